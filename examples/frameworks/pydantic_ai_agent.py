"""An agent of Pydantic AI whose window is kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/pydantic_ai_agent.py`."""

from pathlib import Path

from pydantic_ai import Agent

from tenure import Budget
from tenure.adapters.pydantic_ai import TenureCapability


def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


def main() -> None:
    """Ask once; the agent reads what it needs."""
    tenure = TenureCapability(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent("anthropic:claude-opus-4-5", tools=[read], capabilities=[tenure])
    print(agent.run_sync("What does pyproject.toml leave out of the tests?").output)


if __name__ == "__main__":
    main()
