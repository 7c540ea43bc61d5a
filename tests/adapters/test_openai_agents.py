"""The filter in real agents of the OpenAI Agents SDK, against a server that refuses what providers refuse."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("agents")
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from tenure import Budget
from tenure.adapters.openai_agents import TenureFilter
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
FILE: Final = "\n".join(f"{n:04} def function_{n}(): return {n * 7919}" for n in range(400))


@pytest.fixture(autouse=True)
def untraced() -> None:
    set_tracing_disabled(True)


def work(steps: int, recalled: int | None = None) -> Script:
    replies: list[Reply] = []
    for n in range(steps):
        if n == recalled:
            replies.append(Reply(calls=(Call(name="tenure_recall", arguments='{"handle":"read:1","lines":"7-8"}'),)))
        replies.append(Reply(thinking="hm", calls=(Call(name="read", arguments=json.dumps({"path": f"file_{n}.py"})),)))
    return Script(replies=(*replies, Reply(text="Done.")))


def agent_of(url: str, *tools: Any, hook: TenureFilter) -> tuple[Agent[Any], RunConfig]:
    client = AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0)
    model = OpenAIResponsesModel("gpt-5.1", client)
    return Agent(name="Coder", model=model, tools=[*tools, hook.recall_tool]), RunConfig(call_model_input_filter=hook)


@function_tool
def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_is_kept_to_its_budget_and_recalls(streamed: bool) -> None:
    provider = FakeProvider(work(30, recalled=26))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent, config = agent_of(url, read, hook=TenureFilter(store=store, budget=Budget(ceiling=40_000)))

        async def scene() -> Any:
            if streamed:
                result = Runner.run_streamed(agent, "Look.", run_config=config, max_turns=100)
                async for _ in result.stream_events():
                    pass
                return result
            return await Runner.run(agent, "Look.", run_config=config, max_turns=100)

        result = asyncio.run(scene())
        assert result.final_output == "Done."
        assert [seen.violations for seen in provider.seen] == [()] * 32
        assert len(str(result.to_input_list())) > 2 * max(len(seen.body) for seen in provider.seen)
        assert b"0006 def function_6" in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None


def test_a_run_that_crashed_goes_on_by_the_sdks_session_in_the_same_conversation(tmp_path: Path) -> None:
    provider = FakeProvider(work(24))

    async def scene(url: str, store: Store, text: str, turns: int) -> Any:
        agent, config = agent_of(url, read, hook=TenureFilter(store=store, budget=Budget(ceiling=40_000)))
        return await Runner.run(agent, text, session=SQLiteSession("s", tmp_path / "s.db"), run_config=config, max_turns=turns)

    with serve(provider.app) as url:
        with Store(f"sqlite:///{tmp_path}/agent.db") as store, pytest.raises(Exception, match=r"[Mm]ax turns"):
            asyncio.run(scene(url, store, "Look.", 12))
        with Store(f"sqlite:///{tmp_path}/agent.db") as store:
            assert asyncio.run(scene(url, store, "Go on.", 30)).final_output == "Done."
            assert {store.verify(sheet.id) for sheet in store.conversations()} == {None}
            assert len(store.conversations()) == 1
    assert {seen.violations for seen in provider.seen} == {()}


def test_runs_side_by_side_recall_from_their_own_conversation() -> None:
    replies = []
    for _ in range(2):
        replies += [Reply(calls=(Call(name="read", arguments='{"path":"a.py"}'),))] * 2
    provider = FakeProvider(
        Script(
            replies=(
                *replies,
                *[Reply(calls=(Call(name="tenure_recall", arguments='{"handle":"user:1"}'),))] * 2,
                Reply(text="Done."),
                Reply(text="Done."),
            )
        )
    )
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent, config = agent_of(url, read, hook=TenureFilter(store=store, budget=Budget(ceiling=40_000)))

        async def scene() -> list[Any]:
            return await asyncio.gather(
                *(Runner.run(agent, f"I am {name}.", run_config=config, max_turns=9) for name in ("Ann", "Bob"))
            )

        for name, result in zip(("Ann", "Bob"), asyncio.run(scene()), strict=True):
            (answer,) = [
                item["output"]
                for item in result.to_input_list()
                if "entry" in str(item.get("output", "")) or "I am" in str(item.get("output", ""))
            ]
            assert f"I am {name}." in answer
