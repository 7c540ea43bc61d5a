"""The callback in real agents of Google ADK, against a server that refuses what providers refuse."""

import asyncio
import json
from typing import Any, Final

import pytest

pytest.importorskip("google.adk")
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.runners import InMemoryRunner
from google.genai import types

from tenure import Budget
from tenure.adapters.google_adk import TenureCallbacks
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
FILE: Final = "\n".join(f"{n:04} def function_{n}(): return {n * 7919}" for n in range(400))


def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


def work(steps: int, recalled: int) -> Script:
    replies: list[Reply] = []
    for n in range(steps):
        if n == recalled:
            replies.append(Reply(calls=(Call(name="tenure_recall", arguments='{"handle":"read:1","lines":"7-8"}'),)))
        replies.append(Reply(text=f"I look at {n}.", calls=(Call(name="read", arguments=json.dumps({"path": f"file_{n}.py"})),)))
    return Script(replies=(*replies, Reply(text="Done.")))


def test_an_agent_is_kept_to_its_budget_and_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = FakeProvider(work(30, recalled=26))
    with serve(provider.app) as url, Store("sqlite://") as store:
        monkeypatch.setenv("GOOGLE_API_KEY", "-")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        hook = TenureCallbacks(store=store, budget=Budget(ceiling=40_000))
        agent = LlmAgent(name="coder", model="gemini-3-flash", tools=[read, hook.recall], before_model_callback=hook)

        async def scene() -> list[Any]:
            runner = InMemoryRunner(agent=agent, app_name="test")
            session = await runner.session_service.create_session(app_name="test", user_id="u")
            asked = types.Content(role="user", parts=[types.Part(text="Look through the files.")])
            config = RunConfig(max_llm_calls=500)
            return [
                each async for each in runner.run_async(user_id="u", session_id=session.id, new_message=asked, run_config=config)
            ]

        events = asyncio.run(scene())
        assert events[-1].content.parts[0].text == "Done."
        assert {seen.violations for seen in provider.seen} == {()}
        assert len(provider.seen) == 32
        assert sum(len(event.model_dump_json()) for event in events) > 2 * max(len(seen.body) for seen in provider.seen)
        assert b"0006 def function_6" in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
