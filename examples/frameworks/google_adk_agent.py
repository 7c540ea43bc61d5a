"""An agent of Google ADK whose window is kept to a budget: `GOOGLE_API_KEY=… python examples/frameworks/google_adk_agent.py`."""

import asyncio
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

from tenure import Budget
from tenure.adapters.google_adk import TenureCallbacks


def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


async def main() -> None:
    """Ask once; the agent reads what it needs."""
    tenure = TenureCallbacks(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = LlmAgent(
        name="reader",
        model="gemini-3-flash",
        tools=[read, tenure.recall],
        before_model_callback=tenure,
        after_model_callback=tenure.after,
    )
    runner = InMemoryRunner(agent=agent, app_name="example")
    session = await runner.session_service.create_session(app_name="example", user_id="me")
    question = types.Content(role="user", parts=[types.Part(text="What does pyproject.toml leave out of the tests?")])
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=question):
        if event.is_final_response() and event.content and event.content.parts:
            print(event.content.parts[0].text)


if __name__ == "__main__":
    asyncio.run(main())
