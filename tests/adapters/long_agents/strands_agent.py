"""An agent of Strands that goes on by its session: `strands_agent.py FOLDER`."""

import sys
from pathlib import Path

from file_reading import read_file
from strands import Agent, tool
from strands.models.anthropic import AnthropicModel
from strands.session import FileSessionManager

from tenure import Budget
from tenure.adapters.strands import TenureConversationManager

folder = Path(sys.argv[1])


@tool
def read(path: str) -> str:
    """Reads a file."""
    return read_file(folder, path)


tenure = TenureConversationManager(store=f"sqlite:///{folder}/agent.db", budget=Budget(ceiling=30_000))
agent = Agent(
    model=AnthropicModel(model_id="claude-opus-4-5", max_tokens=4096),
    tools=[read],
    conversation_manager=tenure,
    session_manager=FileSessionManager(session_id="s-1", storage_dir=str(folder / "sessions")),
    agent_id="reader",
    callback_handler=None,
)
print(agent("Go on." if agent.messages else "Read all files."))  # noqa: T201 - what the test reads
