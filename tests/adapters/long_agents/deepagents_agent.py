"""A deep agent that goes on by its checkpointer, without deepagents' own summaries."""

from typing import Any

from deepagents import HarnessProfile, create_deep_agent, register_harness_profile
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from reading import FOLDER, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.langchain import TenureMiddleware


def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


register_harness_profile("openai", HarnessProfile(excluded_middleware=frozenset({"SummarizationMiddleware"})))
tenure = TenureMiddleware(store=STORE, budget=Budget(ceiling=30_000))


async def converse(name: str) -> Any:
    config: Any = {"configurable": {"thread_id": name}, "recursion_limit": 10_000}
    async with AsyncSqliteSaver.from_conn_string(str(FOLDER / "graph.db")) as saver:
        agent: Any = create_deep_agent(
            ChatOpenAI(model="gpt-5.1", use_responses_api=False, stream_usage=True),
            [read, run],
            system_prompt=WORDS,
            middleware=[tenure],
            checkpointer=saver,
        )
        begun = (await agent.aget_state(config)).values.get("messages")
        given = None if begun else {"messages": [{"role": "user", "content": question(name)}]}
        if HOW == "awaited":
            await agent.ainvoke(given, config, durability="sync")
        else:
            async for _ in agent.astream(given, config, stream_mode="messages", durability="sync"):
                pass
        return (await agent.aget_state(config)).values["messages"]


together(converse)
