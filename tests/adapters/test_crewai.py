"""Managed models in real crews of CrewAI, against a server that refuses what providers refuse."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("crewai")
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from framework_work import FILE, RECALLED, prefixes, summed_up, work

from tenure import Budget
from tenure.adapters.crewai import tenure_llm
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = Budget(ceiling=40_000)


@pytest.fixture(autouse=True)
def untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")


@tool("read")
def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


def llm_of(kind: str, url: str, store: Store, **more: Any) -> Any:
    if kind == "openai":
        inner = LLM(model="openai/gpt-5.1", base_url=f"{url}/v1", api_key="-", **more)
    else:
        inner = LLM(model="anthropic/claude-opus-4-5", base_url=url, api_key="-", **more)
    return tenure_llm(inner, store=store, budget=BUDGET)


def crew_of(llm: Any, asked: str = "Look through the files.") -> Crew:
    agent = Agent(role="Reader", goal="Read files.", backstory="You read files.", tools=[read], llm=llm, max_iter=100)
    return Crew(agents=[agent], tasks=[Task(description=asked, expected_output="A word.", agent=agent)])


@pytest.mark.parametrize(("kind", "how"), [("anthropic", "called"), ("openai", "awaited"), ("anthropic", "streamed")])
def test_a_crew_is_kept_to_its_budget_and_recalls_unseen(kind: str, how: str) -> None:
    provider = FakeProvider(work(30, recalled=26))
    with serve(provider.app) as url, Store("sqlite://") as store:
        crew = crew_of(llm_of(kind, url, store, stream=how == "streamed"))
        result = asyncio.run(crew.akickoff()) if how == "awaited" else crew.kickoff()
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
    assert result.raw == "Done."
    assert [seen.violations for seen in provider.seen] == [()] * 32
    messages = crew.agents[0].agent_executor.messages
    assert sum(len(str(each)) for each in messages) > 2 * max(len(seen.body) for seen in provider.seen)
    assert all(b"Look through the files." in seen.body for seen in provider.seen)
    assert RECALLED in provider.seen[27].body
    assert prefixes(provider.seen).count(False) <= commits < 10


@pytest.mark.parametrize("is_managed", [False, True])
def test_a_persons_words_stay_where_its_own_summary_drops_them(is_managed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = FakeProvider(summed_up(work(30)))
    with serve(provider.app) as url, Store("sqlite://") as store:
        llm: Any = LLM(model="openai/gpt-5.1", base_url=f"{url}/v1", api_key="-")
        monkeypatch.setattr(type(llm), "get_context_window_size", lambda _: 40_000)
        result = crew_of(tenure_llm(llm, store=store, budget=BUDGET) if is_managed else llm).kickoff()
    assert result.raw == "Done."
    assert {seen.violations for seen in provider.seen} == {()}
    bodies = [json.loads(seen.body) for seen in provider.seen]
    assert all(body.get("tools") for body in bodies) == is_managed, "a request without tools asks for a summary"
    assert all("Look through the files." in str(body["messages"]) for body in bodies) == is_managed
    assert (b"read:1@" in provider.seen[-1].body) == is_managed
