"""An agent of Google ADK that goes on by its session."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from reading import FOLDER, GO_ON, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.google_adk import TenureCallbacks


def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


tenure = TenureCallbacks(store=STORE, budget=Budget(ceiling=30_000))
agent = LlmAgent(
    name="reader",
    model="gemini-3-flash",
    instruction=WORDS,
    tools=[read, run, tenure.recall],
    before_model_callback=tenure,
    after_model_callback=tenure.after,
)
sessions = SqliteSessionService(str(FOLDER / "sessions.db"))
runner = Runner(agent=agent, app_name="reading", session_service=sessions)


async def converse(name: str) -> Any:
    at: Any = {"app_name": "reading", "user_id": "me", "session_id": name}
    session = await sessions.get_session(**at) or await sessions.create_session(**at)
    text = GO_ON if session.events else question(name)
    given: Any = {"user_id": "me", "session_id": name, "new_message": types.Content(role="user", parts=[types.Part(text=text)])}
    mode = StreamingMode.SSE if HOW == "streamed" else StreamingMode.NONE
    config = RunConfig(max_llm_calls=10_000, streaming_mode=mode)
    if HOW == "called":
        await asyncio.to_thread(lambda: list(runner.run(**given, run_config=config)))
    else:
        async for _ in runner.run_async(**given, run_config=config):
            pass
    session = await sessions.get_session(**at)
    return [event.model_dump(mode="json", exclude_none=True) for event in session.events] if session is not None else []


together(converse)
