"""An agent of Strands that goes on by its session."""

import asyncio
from typing import Any

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.session import FileSessionManager

from reading import FOLDER, GO_ON, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.strands import TenureConversationManager


@tool
def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


@tool
def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


tenure = TenureConversationManager(store=STORE, budget=Budget(ceiling=30_000))


async def converse(name: str) -> Any:
    agent = Agent(
        model=AnthropicModel(
            model_id="claude-opus-4-5", max_tokens=4096, params={"thinking": {"type": "enabled", "budget_tokens": 1024}}
        ),
        tools=[read, run],
        system_prompt=WORDS,
        conversation_manager=tenure,
        session_manager=FileSessionManager(session_id=name, storage_dir=str(FOLDER / "sessions")),
        agent_id="reader",
        callback_handler=None,
    )
    text = GO_ON if agent.messages else question(name)
    match HOW:
        case "called":
            await asyncio.to_thread(agent, text)
        case "awaited":
            await agent.invoke_async(text)
        case _:
            async for _ in agent.stream_async(text):
                pass
    return agent.messages


together(converse)
