"""The callback in LiteLLM itself, against a server that refuses what providers refuse."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest

pytest.importorskip("litellm")
import litellm
from framework_work import FILE, RECALLED, work

from tenure import Budget
from tenure.adapters.litellm import TenureCallback
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
READ: Final = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


@pytest.fixture
def store() -> Iterator[Store]:
    with Store("sqlite://") as store:
        litellm.callbacks = [TenureCallback(store=store, budget=Budget(ceiling=40_000))]
        yield store
        litellm.callbacks = []


async def session(url: str, kind: str, *, stream: bool = False, start: str = "Look.") -> list[Any]:
    """An agent by hand: its history, whole."""
    model, base = ("anthropic/claude-opus-4-5", url) if kind == "anthropic" else ("openai/gpt-5.1", f"{url}/v1")
    history: list[Any] = [{"role": "user", "content": start}]
    while True:
        came = await litellm.acompletion(
            model=model, messages=history, tools=[READ], api_base=base, api_key="-", stream=stream, max_retries=0
        )
        if stream:
            came = litellm.stream_chunk_builder([chunk async for chunk in came])
        message = came.choices[0].message
        history.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return history
        history += [{"role": "tool", "tool_call_id": call.id, "content": FILE} for call in message.tool_calls]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_conversation_is_kept_to_its_budget_and_recalls_unseen(kind: str, store: Store) -> None:
    provider = FakeProvider(work(30, recalled=26))
    with serve(provider.app) as url:
        history = asyncio.run(session(url, kind))
    assert [seen.violations for seen in provider.seen] == [()] * 32
    assert "recall" not in str([each.get("tool_calls") for each in history])
    assert len(str(history)) > 2 * max(len(seen.body) for seen in provider.seen)
    assert RECALLED in provider.seen[27].body
    (sheet,) = store.conversations()
    assert store.verify(sheet.id) is None


@pytest.mark.parametrize("way", ["blocking", "blocking stream", "awaited", "awaited stream"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_calls_through_the_callback_recall_unseen_however_they_are_made(kind: str, way: str, store: Store) -> None:
    provider = FakeProvider(work(16, recalled=13))
    callback = litellm.callbacks[0]
    stream = way.endswith("stream")

    def settings(history: list[Any], url: str) -> dict[str, Any]:
        model, base = ("anthropic/claude-opus-4-5", url) if kind == "anthropic" else ("openai/gpt-5.1", f"{url}/v1")
        given = {"model": model, "api_base": base, "api_key": "-", "max_retries": 0}
        return {**given, "messages": history, "tools": [READ], "stream": stream}

    async def ask(history: list[Any], url: str) -> Any:
        came = await callback.acompletion(**settings(history, url))
        return litellm.stream_chunk_builder([chunk async for chunk in came]) if stream else came

    def blocking(history: list[Any], url: str) -> Any:
        came = callback.completion(**settings(history, url))
        return litellm.stream_chunk_builder(list(came)) if stream else came

    history: list[Any] = [{"role": "user", "content": "Look."}]
    with serve(provider.app) as url:
        while True:
            came: Any = asyncio.run(ask(history, url)) if way.startswith("awaited") else blocking(history, url)
            message = came.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            history += [{"role": "tool", "tool_call_id": call.id, "content": FILE} for call in message.tool_calls]
    assert message.content == "Done."
    assert [seen.violations for seen in provider.seen] == [()] * 18
    assert "recall" not in str([each.get("tool_calls") for each in history])
    assert RECALLED in provider.seen[14].body
    assert len(str(history)) > 1.5 * max(len(seen.body) for seen in provider.seen)
    (sheet,) = store.conversations()
    assert store.verify(sheet.id) is None


def test_streams_are_kept_to_the_budget_too(store: Store) -> None:
    provider = FakeProvider(work(30))
    with serve(provider.app) as url:
        history = asyncio.run(session(url, "openai", stream=True))
    assert {seen.violations for seen in provider.seen} == {()}
    assert len(str(history)) > 2 * max(len(seen.body) for seen in provider.seen)


def test_conversations_side_by_side_keep_apart(store: Store) -> None:
    provider = FakeProvider(Script(replies=tuple(Reply(text=f"answer {n}") for n in range(3))))

    async def scene(url: str) -> None:
        await asyncio.gather(*(session(url, "openai", start=f"{name} asks") for name in ("Ann", "Bob", "Cleo")))

    with serve(provider.app) as url:
        asyncio.run(scene(url))
    assert len(store.conversations()) == 3
