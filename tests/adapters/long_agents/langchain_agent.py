"""An agent of LangChain that goes on by its checkpointer."""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from reading import FOLDER, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.langchain import TenureMiddleware


@tool
def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


@tool
def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


tenure = TenureMiddleware(store=STORE, budget=Budget(ceiling=30_000))
THINKING: Any = {"type": "enabled", "budget_tokens": 1024}
GRAPHS = str(FOLDER / "graph.db")


def agent_of(saver: Any) -> Any:
    model = ChatAnthropic(model_name="claude-opus-4-5", timeout=None, stop=None, max_tokens_to_sample=4096, thinking=THINKING)
    return create_agent(model, [read, run], system_prompt=WORDS, middleware=[tenure], checkpointer=saver)


def start(name: str, agent: Any, state: Any) -> Any:
    """A thread that was cut off goes on without input."""
    return None if state.values.get("messages") else {"messages": [{"role": "user", "content": question(name)}]}


def blocking(name: str) -> Any:
    config: Any = {"configurable": {"thread_id": name}, "recursion_limit": 10_000}
    with SqliteSaver.from_conn_string(GRAPHS) as saver:
        agent = agent_of(saver)
        if HOW == "called":
            agent.invoke(start(name, agent, agent.get_state(config)), config, durability="sync")
        else:
            for _ in agent.stream(start(name, agent, agent.get_state(config)), config, stream_mode="messages", durability="sync"):
                pass
        return agent.get_state(config).values["messages"]


async def converse(name: str) -> Any:
    if HOW != "awaited":
        return await asyncio.to_thread(blocking, name)
    config: Any = {"configurable": {"thread_id": name}, "recursion_limit": 10_000}
    async with AsyncSqliteSaver.from_conn_string(GRAPHS) as saver:
        agent = agent_of(saver)
        await agent.ainvoke(start(name, agent, await agent.aget_state(config)), config, durability="sync")
        return (await agent.aget_state(config)).values["messages"]


together(converse)
