"""An agent of LangChain whose window is kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/langchain_agent.py`."""

from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import tool

from tenure import Budget
from tenure.adapters.langchain import TenureMiddleware


@tool
def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


def main() -> None:
    """Ask once; the agent reads what it needs."""
    tenure = TenureMiddleware(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = create_agent("anthropic:claude-opus-4-5", [read], middleware=[tenure])
    state = agent.invoke({"messages": [{"role": "user", "content": "What does pyproject.toml leave out of the tests?"}]})
    print(state["messages"][-1].text)


if __name__ == "__main__":
    main()
