"""The callback in real agents of Google ADK, against a server that refuses what providers refuse."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("google.adk")
from framework_work import FILE, RECALLED, work
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from tenure import Budget
from tenure.adapters.google_adk import TenureCallbacks
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply

pytestmark = pytest.mark.filterwarnings("ignore")


def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


WORDS: Final = "You read files. " * 400  # stands in front of the contents, and counts for the limit


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("GOOGLE_API_KEY", "-")
    return monkeypatch


def coder(hook: TenureCallbacks, name: str = "coder") -> LlmAgent:
    return LlmAgent(
        name=name,
        model="gemini-3-flash",
        instruction=WORDS,
        tools=[read, hook.recall],
        before_model_callback=hook,
        after_model_callback=hook.after,
    )


async def ask(runner: Any, session: str, text: str, *, streamed: bool = False, most: int = 500) -> list[Any]:
    asked = types.Content(role="user", parts=[types.Part(text=text)])
    config = RunConfig(max_llm_calls=most, streaming_mode=StreamingMode.SSE if streamed else StreamingMode.NONE)
    return [each async for each in runner.run_async(user_id="u", session_id=session, new_message=asked, run_config=config)]


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_is_kept_to_its_budget_and_recalls(streamed: bool, key: pytest.MonkeyPatch) -> None:
    provider = FakeProvider(work(30, recalled=26, recall="tenure_recall"))
    with serve(provider.app) as url, Store("sqlite://") as store:
        key.setenv("GOOGLE_GEMINI_BASE_URL", url)

        async def scene() -> list[Any]:
            hook = TenureCallbacks(store=store, budget=Budget(ceiling=40_000))
            runner = InMemoryRunner(agent=coder(hook), app_name="test")
            session = await runner.session_service.create_session(app_name="test", user_id="u")
            return await ask(runner, session.id, "Look through the files.", streamed=streamed)

        events = [each for each in asyncio.run(scene()) if not each.partial]
        assert events[-1].content.parts[0].text == "Done."
        assert {seen.violations for seen in provider.seen} == {()}
        assert len(provider.seen) == 32
        assert max(seen.usage.prompt for seen in provider.seen if seen.usage) <= 40_000
        assert sum(len(event.model_dump_json()) for event in events) > 2 * max(len(seen.body) for seen in provider.seen)
        assert RECALLED in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        assert len(store.usages(sheet.id)) == 32


def test_a_run_that_was_broken_off_goes_on_by_adks_session_in_the_same_conversation(
    tmp_path: Path, key: pytest.MonkeyPatch
) -> None:
    provider = FakeProvider(work(24))

    async def scene(store: Store, text: str, most: int) -> list[Any]:
        sessions = SqliteSessionService(str(tmp_path / "sessions.db"))
        agent = coder(TenureCallbacks(store=store, budget=Budget(ceiling=40_000)))
        runner = Runner(agent=agent, app_name="test", session_service=sessions)
        if await sessions.get_session(app_name="test", user_id="u", session_id="s") is None:
            await sessions.create_session(app_name="test", user_id="u", session_id="s")
        return await ask(runner, "s", text, most=most)

    with serve(provider.app) as url:
        key.setenv("GOOGLE_GEMINI_BASE_URL", url)
        with Store(f"sqlite:///{tmp_path}/agent.db") as store, pytest.raises(Exception, match="llm"):
            asyncio.run(scene(store, "Look.", 12))
        with Store(f"sqlite:///{tmp_path}/agent.db") as store:
            assert asyncio.run(scene(store, "Go on.", 100))[-1].content.parts[0].text == "Done."
            assert {store.verify(sheet.id) for sheet in store.conversations()} == {None}
            assert len(store.conversations()) == 1
    assert {seen.violations for seen in provider.seen} == {()}
    assert b"Look." in provider.seen[-1].body


def test_agents_side_by_side_keep_apart(key: pytest.MonkeyPatch) -> None:
    def answer(body: Any) -> Reply:
        done = sum("functionResponse" in part for each in body["contents"] for part in each["parts"])
        return (
            Reply(text="Done.") if done >= 3 else Reply(calls=(Call(name="read", arguments=json.dumps({"path": f"{done}.py"})),))
        )

    provider = FakeProvider(answer)
    with serve(provider.app) as url, Store("sqlite://") as store:
        key.setenv("GOOGLE_GEMINI_BASE_URL", url)
        hook = TenureCallbacks(store=store, budget=Budget(ceiling=40_000))
        both = ParallelAgent(name="both", sub_agents=[coder(hook, "left"), coder(hook, "right")])

        async def scene() -> list[Any]:
            runner = InMemoryRunner(agent=both, app_name="test")
            session = await runner.session_service.create_session(app_name="test", user_id="u")
            return await ask(runner, session.id, "Look.")

        events = asyncio.run(scene())
        assert {event.author for event in events} == {"left", "right"}
        assert {seen.violations for seen in provider.seen} == {()}
        assert {store.verify(sheet.id) for sheet in store.conversations()} == {None}
        assert len(store.conversations()) == 2
