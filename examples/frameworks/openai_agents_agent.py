"""An agent of the OpenAI Agents SDK whose window is kept to a budget: `OPENAI_API_KEY=… python examples/frameworks/openai_agents_agent.py`."""

from pathlib import Path

from agents import Agent, RunConfig, Runner, function_tool

from tenure import Budget
from tenure.adapters.openai_agents import TenureFilter


@function_tool
def read(path: str) -> str:
    """Reads a text file."""
    return Path(path).read_text(encoding="utf-8")


def main() -> None:
    """Ask once; the agent reads what it needs."""
    tenure = TenureFilter(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))
    agent = Agent(name="Reader", model="gpt-5.1", tools=[read, tenure.recall_tool])
    config = RunConfig(call_model_input_filter=tenure)
    question = "What does pyproject.toml leave out of the tests?"
    result = Runner.run_sync(agent, question, session=tenure.session("reader"), hooks=tenure.hooks, run_config=config)
    print(result.final_output)


if __name__ == "__main__":
    main()
