"""An agent of the OpenAI Agents SDK that goes on by a session whose items are the record's."""

from typing import Any

from agents import Agent, RunConfig, Runner, function_tool

from reading import GO_ON, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.openai_agents import TenureFilter


@function_tool
def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


@function_tool
def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


tenure = TenureFilter(store=STORE, budget=Budget(ceiling=30_000))
agent = Agent(name="Reader", instructions=WORDS, model="gpt-5.1", tools=[read, run, tenure.recall_tool])


async def converse(name: str) -> Any:
    session = tenure.session(name)
    text = GO_ON if await session.get_items() else question(name)
    options: Any = {
        "session": session,
        "hooks": tenure.hooks,
        "run_config": RunConfig(call_model_input_filter=tenure),
        "max_turns": 10_000,
    }
    if HOW == "awaited":
        await Runner.run(agent, text, **options)
    else:
        async for _ in Runner.run_streamed(agent, text, **options).stream_events():
            pass
    return await session.get_items()


together(converse)
