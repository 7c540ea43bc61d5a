"""An agent of Inspect whose window is kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/inspect_ai_agent.py`."""

from pathlib import Path

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.tool import Tool, tool

from tenure import Budget
from tenure.adapters.inspect_ai import tenure_model


@tool
def read() -> Tool:
    """A tool of Inspect."""

    async def execute(path: str) -> str:
        """Reads a text file.

        Args:
            path: Which one.

        """
        return Path(path).read_text(encoding="utf-8")

    return execute


def main() -> None:
    """One sample; the agent reads what it needs."""
    model = tenure_model("anthropic/claude-opus-4-5", store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    samples = [Sample(input="What does pyproject.toml leave out of the tests?")]
    (log,) = evaluate(Task(dataset=samples, solver=react(tools=[read()], submit=False)), model=model, display="none")
    for sample in log.samples or ():
        print(sample.output.completion)


if __name__ == "__main__":
    main()
