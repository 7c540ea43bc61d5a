"""An agent of Strands whose window is kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/strands_agent.py`."""

from pathlib import Path

from strands import Agent, tool
from strands.models.anthropic import AnthropicModel

from tenure import Budget
from tenure.adapters.strands import TenureConversationManager


@tool
def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


def main() -> None:
    """Ask once; the agent reads what it needs, and its words are printed as they come."""
    tenure = TenureConversationManager(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    model = AnthropicModel(model_id="claude-opus-4-5", max_tokens=4096)
    agent = Agent(model=model, tools=[read], conversation_manager=tenure)
    agent("What does pyproject.toml leave out of the tests?")


if __name__ == "__main__":
    main()
