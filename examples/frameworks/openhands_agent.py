"""An agent of OpenHands' SDK whose window is kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/openhands_agent.py` (Python 3.12 or newer)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from openhands.sdk import LLM, Agent, Conversation, Tool, register_tool
from openhands.sdk.conversation.response_utils import get_agent_final_response
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor

from tenure import Budget
from tenure.adapters.openhands import TenureCondenser


class ReadAction(Action):
    """Which file to read."""

    path: str


class ReadObservation(Observation):
    """What stands in it."""


class ReadExecutor(ToolExecutor[ReadAction, ReadObservation]):
    """Reads a text file."""

    def __call__(self, action: ReadAction, conversation: Any = None) -> ReadObservation:
        """The text."""
        return ReadObservation.from_text(text=Path(action.path).read_text(encoding="utf-8"))


class ReadTool(ToolDefinition[ReadAction, ReadObservation]):
    """A tool of OpenHands, named `read`."""

    @classmethod
    def create(cls, *args: Any, **params: Any) -> Sequence[Self]:
        """The tool."""
        description = "Reads a text file."
        return [cls(description=description, action_type=ReadAction, observation_type=ReadObservation, executor=ReadExecutor())]


def main() -> None:
    """Ask once; the agent reads what it needs."""
    register_tool("read", ReadTool)
    tenure = TenureCondenser(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(
        llm=LLM(model="anthropic/claude-opus-4-5"), tools=[Tool(name="read"), Tool(name="tenure_recall")], condenser=tenure
    )
    conversation = Conversation(agent=agent, workspace=Path.cwd(), visualizer=None)
    conversation.send_message("What does pyproject.toml leave out of the tests?")
    conversation.run()
    print(get_agent_final_response(conversation.state.events))


if __name__ == "__main__":
    main()
