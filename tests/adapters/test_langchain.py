"""The middleware in real agents of LangChain, against a server that refuses what providers refuse."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("langchain.agents")
from framework_work import FILE, RECALLED, prefixes, work
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from tenure import Budget
from tenure.adapters.langchain import TenureMiddleware
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")


@tool
def read(path: str) -> str:
    """Reads a file."""
    return f"{path}\n{FILE}"


def model_of(kind: str, url: str, **settings: Any) -> Any:
    if kind == "anthropic":
        return ChatAnthropic(model="claude-opus-4-5", base_url=url, api_key="-", max_retries=0, **settings)  # type: ignore[call-arg, arg-type]
    return ChatOpenAI(model="gpt-5.1", base_url=f"{url}/v1", api_key="-", max_retries=0, **settings)  # type: ignore[arg-type]


CONFIG: Final[Any] = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 1000}


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("kind", ["anthropic", "openai", "thinking"])
def test_an_agent_is_kept_to_its_budget_and_recalls_unseen(kind: str, awaited: bool) -> None:
    provider = FakeProvider(work(30, recalled=26, thinking="hm" if kind == "thinking" else ""))
    settings = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096} if kind == "thinking" else {}
    with serve(provider.app) as url, Store("sqlite://") as store:
        model = model_of("openai" if kind == "openai" else "anthropic", url, **settings)
        agent = create_agent(model, [read], middleware=[TenureMiddleware(store=store, budget=Budget(ceiling=40_000))])
        asked: Any = {"messages": [{"role": "user", "content": "Look through the files."}]}
        state = asyncio.run(agent.ainvoke(asked, CONFIG)) if awaited else agent.invoke(asked, CONFIG)
        assert [seen.violations for seen in provider.seen] == [()] * 32
        assert len(state["messages"]) == 62
        assert "recall" not in str([getattr(each, "tool_calls", ()) for each in state["messages"]])
        assert sum(len(str(each.content)) for each in state["messages"]) > 2 * max(len(seen.body) for seen in provider.seen)
        assert all(b"Look through the files." in seen.body for seen in provider.seen)
        assert RECALLED in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None


def test_the_prefix_stays_but_for_the_commits() -> None:
    provider = FakeProvider(work(30))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = create_agent(
            model_of("openai", url), [read], middleware=[TenureMiddleware(store=store, budget=Budget(ceiling=40_000))]
        )
        agent.invoke({"messages": [{"role": "user", "content": "Look."}]}, CONFIG)
        (sheet,) = store.conversations()
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
    assert prefixes(provider.seen).count(False) <= commits < 10


def test_a_checkpointed_thread_goes_on_after_a_crash_in_the_same_conversation(tmp_path: Path) -> None:
    class Killed(BaseException): ...

    steps = iter(range(100))

    @tool
    def read(path: str) -> str:
        """Reads a file."""
        if next(steps) == 15:
            raise Killed
        return f"{path}\n{FILE}"

    provider = FakeProvider(work(30))
    with serve(provider.app) as url:
        for start in ({"messages": [{"role": "user", "content": "Look."}]}, None):
            with (
                SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver,
                Store(f"sqlite:///{tmp_path}/agent.db") as store,
            ):
                middleware = [TenureMiddleware(store=store, budget=Budget(ceiling=40_000))]
                agent: Any = create_agent(model_of("anthropic", url), [read], middleware=middleware, checkpointer=saver)
                if start is not None:
                    with pytest.raises(Killed):
                        agent.invoke(start, CONFIG, durability="sync")
                    continue
                assert agent.invoke(None, CONFIG)["messages"][-1].text == "Done."
                (sheet,) = store.conversations()
                assert store.verify(sheet.id) is None
    assert [seen.violations for seen in provider.seen] == [()] * 31


def test_parallel_threads_and_sub_agents_keep_apart() -> None:
    provider = FakeProvider(Script(replies=tuple(Reply(text=f"answer {n}") for n in range(12))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        middleware = [TenureMiddleware(store=store, budget=Budget(ceiling=40_000))]
        agent: Any = create_agent(model_of("openai", url), [read], middleware=middleware, checkpointer=InMemorySaver())

        async def converse(name: str) -> None:
            for n in range(3):
                asked = {"messages": [{"role": "user", "content": f"{name} asks {n}"}]}
                await agent.ainvoke(asked, {"configurable": {"thread_id": name}})

        async def scene() -> None:
            await asyncio.gather(*(converse(name) for name in ("Ann", "Bob", "Cleo", "Dan")))

        asyncio.run(scene())
        sheets = store.conversations()
        assert len(sheets) == 4
        for sheet in sheets:
            texts = [block.text for entry in store.entries(sheet.id) for block in entry.blocks]
            assert len({text.split()[0] for text in texts if "asks" in text}) == 1


def test_streamed_agents_work_alike() -> None:
    provider = FakeProvider(work(12, recalled=10))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = create_agent(
            model_of("openai", url), [read], middleware=[TenureMiddleware(store=store, budget=Budget(ceiling=30_000))]
        )
        asked: Any = {"messages": [{"role": "user", "content": "Look."}]}
        pieces = [chunk.text for chunk, _ in agent.stream(asked, CONFIG, stream_mode="messages")]
        assert "Done." in "".join(pieces)
    assert [seen.violations for seen in provider.seen] == [()] * 14
