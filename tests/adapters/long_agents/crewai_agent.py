"""Crews of CrewAI; a task that was cut off begins anew."""

import asyncio
from typing import Any

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from reading import HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.crewai import tenure_llm


@tool("read")
def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


@tool("run")
def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


llm = tenure_llm(LLM(model="anthropic/claude-opus-4-5", stream=HOW == "streamed"), store=STORE, budget=Budget(ceiling=30_000))


async def converse(name: str) -> Any:
    agent = Agent(role="Reader", goal="Read files.", backstory=WORDS, tools=[read, run], llm=llm, max_iter=10_000)
    task = Task(description=question(name), expected_output="A word.", agent=agent)
    crew = Crew(agents=[agent], tasks=[task])
    result = await crew.akickoff() if HOW == "awaited" else await asyncio.to_thread(crew.kickoff)
    executor: Any = agent.agent_executor
    return [*executor.messages, result.raw]


together(converse)
