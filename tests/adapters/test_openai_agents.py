"""The filter in real agents of the OpenAI Agents SDK, against a server that refuses what providers refuse."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from framework_work import FILE, RECALLED, work
from openai import AsyncOpenAI

from tenure import Budget
from tenure.adapters.openai_agents import TenureFilter
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def untraced() -> None:
    set_tracing_disabled(True)


def agent_of(url: str, *tools: Any, hook: TenureFilter) -> tuple[Agent[Any], RunConfig]:
    client = AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0)
    model = OpenAIResponsesModel("gpt-5.1", client)
    words = "You read files. " * 400  # stands in front of the items, and counts for the limit
    made: Agent[Any] = Agent(name="Coder", instructions=words, model=model, tools=[*tools, hook.recall_tool])
    return made, RunConfig(call_model_input_filter=hook)


@function_tool
def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_is_kept_to_its_budget_and_recalls(streamed: bool) -> None:
    provider = FakeProvider(work(30, recalled=26, recall="tenure_recall", thinking="hm"))
    with serve(provider.app) as url, Store("sqlite://") as store:
        hook = TenureFilter(store=store, budget=Budget(ceiling=40_000))
        agent, config = agent_of(url, read, hook=hook)

        async def scene() -> Any:
            if streamed:
                result = Runner.run_streamed(agent, "Look.", run_config=config, max_turns=100, hooks=hook.hooks)
                async for _ in result.stream_events():
                    pass
                return result
            return await Runner.run(agent, "Look.", run_config=config, max_turns=100, hooks=hook.hooks)

        result = asyncio.run(scene())
        assert max(seen.usage.prompt for seen in provider.seen if seen.usage) <= 40_000
        assert len(store.usages(store.conversations()[0].id)) == 32
        assert result.final_output == "Done."
        assert [seen.violations for seen in provider.seen] == [()] * 32
        assert len(str(result.to_input_list())) > 2 * max(len(seen.body) for seen in provider.seen)
        assert RECALLED in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None


@pytest.mark.parametrize("own", [False, True])
def test_a_run_that_crashed_goes_on_by_its_session_in_the_same_conversation(own: bool, tmp_path: Path) -> None:
    provider = FakeProvider(work(24, thinking="hm"))

    async def scene(url: str, store: Store, text: str, turns: int) -> Any:
        hook = TenureFilter(store=store, budget=Budget(ceiling=40_000))
        agent, config = agent_of(url, read, hook=hook)
        session: Any = hook.session("s") if own else SQLiteSession("s", tmp_path / "s.db")
        return await Runner.run(agent, text, session=session, hooks=hook.hooks, run_config=config, max_turns=turns)

    with serve(provider.app) as url:
        with Store(f"sqlite:///{tmp_path}/agent.db") as store, pytest.raises(Exception, match=r"[Mm]ax turns"):
            asyncio.run(scene(url, store, "Look.", 12))
        with Store(f"sqlite:///{tmp_path}/agent.db") as store:
            assert asyncio.run(scene(url, store, "Go on.", 30)).final_output == "Done."
            assert {store.verify(sheet.id) for sheet in store.conversations()} == {None}
            assert len(store.conversations()) == 1
    assert {seen.violations for seen in provider.seen} == {()}
    assert b"Look." in provider.seen[-1].body


def test_a_session_gives_back_what_was_added_and_forgets_what_was_popped(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "one"},
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"id": "f1", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
    ]

    async def scene(store: Store) -> None:
        hook = TenureFilter(store=store)
        session = hook.session("s")
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items(said[:1])
        await session.add_items(said[1:])
        assert await TenureFilter(store=store).session("s").get_items() == said
        assert await session.get_items(2) == said[2:]
        assert await session.get_items(0) == []
        assert [await session.pop_item(), await session.pop_item()] == [said[3], said[2]]
        assert await session.get_items() == said[:2]
        other = {"id": "f2", "type": "function_call", "call_id": "c2", "name": "list", "arguments": "{}"}
        await session.add_items([other])
        assert await session.get_items() == [*said[:2], other]
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(said)
        assert await session.get_items() == said
        assert await hook.session("other").get_items() == []
        assert {store.verify(sheet.id) for sheet in store.conversations()} == {None}

    with Store(f"sqlite:///{tmp_path}/agent.db") as store:
        asyncio.run(scene(store))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_handoff_and_an_agent_as_a_tool_keep_their_histories(streamed: bool) -> None:
    def answer(body: Any) -> Reply:
        who = body.get("instructions", "").split(".")[0]
        given = [item for item in body["input"] if item.get("type") == "function_call_output"]
        match who:
            case "Front" if not given:
                return Reply(calls=(Call(name="transfer_to_back", arguments="{}"),))
            case "Back" if len(given) == 1:
                return Reply(calls=(Call(name="helper", arguments='{"input":"What does it say?"}'),))
            case "Helper" if not given:
                return Reply(calls=(Call(name="read", arguments='{"path":"a.py"}'),))
            case "Helper":
                return Reply(text="It says 7919.")
            case _:
                return Reply(text="Done.")

    provider = FakeProvider(answer)
    with serve(provider.app) as url, Store("sqlite://") as store:
        hook = TenureFilter(store=store, budget=Budget(ceiling=40_000))
        _, config = agent_of(url, hook=hook)
        model = OpenAIResponsesModel("gpt-5.1", AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0))
        helper: Agent[Any] = Agent(name="Helper", instructions="Helper.", model=model, tools=[read])
        tool = helper.as_tool("helper", "Reads.", run_config=config, hooks=hook.hooks)
        back: Agent[Any] = Agent(name="Back", instructions="Back.", model=model, tools=[tool, hook.recall_tool])
        front: Agent[Any] = Agent(name="Front", instructions="Front.", model=model, handoffs=[back])
        session = hook.session("s")

        async def scene() -> Any:
            options: Any = {"run_config": config, "hooks": hook.hooks, "session": session}
            if not streamed:
                return (await Runner.run(front, "Begin.", **options)).final_output
            result = Runner.run_streamed(front, "Begin.", **options)
            async for _ in result.stream_events():
                pass
            return result.final_output

        assert asyncio.run(scene()) == "Done."
        assert {seen.violations for seen in provider.seen} == {()}
        sheets = store.conversations()
        assert len(sheets) == 2  # the helper's own, and the one that was handed over
        assert {store.verify(sheet.id) for sheet in sheets} == {None}
        assert "It says 7919." in str(asyncio.run(session.get_items()))


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
