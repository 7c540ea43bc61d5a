"""A crew of CrewAI whose windows are kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/crewai_agent.py`."""

from pathlib import Path

from crewai import Agent, Crew, Task
from crewai.tools import tool

from tenure import Budget
from tenure.adapters.crewai import tenure_llm


@tool("read")
def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


def main() -> None:
    """One task; the agent reads what it needs."""
    llm = tenure_llm("anthropic/claude-opus-4-5", store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(role="Reader", goal="Answer from files.", backstory="You read before you answer.", tools=[read], llm=llm)
    task = Task(description="What does pyproject.toml leave out of the tests?", expected_output="A sentence.", agent=agent)
    print(Crew(agents=[agent], tasks=[task]).kickoff())


if __name__ == "__main__":
    main()
