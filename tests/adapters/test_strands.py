"""The conversation manager in real agents of Strands, against a server that refuses what providers refuse."""

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("strands")
from framework_work import FILE, RECALLED, human_texts, prefixes, work
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel

from tenure import Budget
from tenure.adapters.strands import TenureConversationManager
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = Budget(ceiling=40_000)


@tool
def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


def model_of(kind: str, url: str) -> Any:
    if kind == "openai":
        return OpenAIModel(client_args={"api_key": "-", "base_url": f"{url}/v1", "max_retries": 0}, model_id="gpt-5.1")
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if kind == "thinking" else {}
    args = {"api_key": "-", "base_url": url, "max_retries": 0}
    return AnthropicModel(client_args=args, model_id="claude-opus-4-5", max_tokens=4096, params=thinking)


def agent_of(kind: str, url: str, store: Store, **more: Any) -> Agent:
    tenure = TenureConversationManager(store=store, budget=BUDGET)
    return Agent(model=model_of(kind, url), conversation_manager=tenure, **{"tools": [read], "callback_handler": None} | more)


@pytest.mark.parametrize(("kind", "how"), [("anthropic", "called"), ("openai", "awaited"), ("thinking", "streamed")])
def test_an_agent_is_kept_to_its_budget_and_recalls_unseen(kind: str, how: str) -> None:
    provider = FakeProvider(work(30, recalled=26, thinking="hm" if kind == "thinking" else ""))

    async def streamed(agent: Agent) -> Any:
        return [event async for event in agent.stream_async("Look through the files.")][-1]["result"]

    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of(kind, url, store, system_prompt="You read files.")
        match how:
            case "called":
                result = agent("Look through the files.")
            case "awaited":
                result = asyncio.run(agent.invoke_async("Look through the files."))
            case _:
                result = asyncio.run(streamed(agent))
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
    assert str(result).strip() == "Done."
    assert [seen.violations for seen in provider.seen] == [()] * 32
    assert len(agent.messages) == 62
    assert "recall" not in str([block.get("toolUse") for each in agent.messages for block in each["content"]])
    assert len(str(agent.messages)) > 2 * max(len(seen.body) for seen in provider.seen)
    assert all(b"Look through the files." in seen.body for seen in provider.seen)
    assert RECALLED in provider.seen[27].body
    assert prefixes(provider.seen).count(False) <= commits < 10


def test_a_call_beside_a_recall_is_the_agents_own() -> None:
    replies = list(work(20).replies)
    both = (Call(name="recall", arguments='{"handle":"read:1","lines":"7-8"}'), Call(name="read", arguments='{"path":"b.py"}'))
    replies[18] = Reply(text="Both.", calls=both)
    provider = FakeProvider(Script(replies=tuple(replies)))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of("anthropic", url, store)
        agent("Look.")
    assert {seen.violations for seen in provider.seen} == {()}
    assert RECALLED in provider.seen[19].body
    assert len(agent.messages) == 42
    assert [list(block) for block in agent.messages[37]["content"]] == [["text"], ["toolUse"]]


def test_agents_side_by_side_and_sub_agents_keep_apart() -> None:
    provider = FakeProvider(lambda body: _answered(body))
    with serve(provider.app) as url, Store("sqlite://") as store:
        tenure = TenureConversationManager(store=store, budget=BUDGET)

        def agent(name: str, *tools: Any) -> Agent:
            model = model_of("openai", url)
            return Agent(model=model, name=name, tools=list(tools), conversation_manager=tenure, callback_handler=None)

        async def converse(name: str) -> None:
            helper = agent(f"helper_of_{name}", read)
            chief = agent(name, helper.as_tool(name="helper", description="helps"))
            for n in range(3):
                await chief.invoke_async(f"{name} asks {n}")

        async def scene() -> None:
            await asyncio.gather(*(converse(name) for name in ("Ann", "Bob", "Cleo", "Dan")))

        asyncio.run(scene())
        names = [{text.split()[0] for text in human_texts(store, sheet.id)} for sheet in store.conversations()]
    assert {len(each) for each in names} == {1}
    assert set[str]().union(*names) == {prefix + name for name in ("Ann", "Bob", "Cleo", "Dan") for prefix in ("", "for-")}
    assert {seen.violations for seen in provider.seen} == {()}


def _answered(body: Any) -> Reply:
    """A chief lets its helper do everything; a helper answers."""
    newest = body["messages"][-1]
    words = newest["content"] if isinstance(newest["content"], str) else newest["content"][0]["text"]
    if newest["role"] == "user" and not words.startswith("for-"):
        return Reply(calls=(Call(name="helper", arguments=json.dumps({"input": f"for-{words}"})),))
    return Reply(text="Done.")
