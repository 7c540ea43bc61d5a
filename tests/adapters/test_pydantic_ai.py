"""The capability in real agents of Pydantic AI, against a server that refuses what providers refuse."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("pydantic_ai")
from anthropic import AsyncAnthropic
from framework_work import FILE, RECALLED, prefixes, work
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from tenure import Budget
from tenure.adapters.pydantic_ai import TenureCapability
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script

pytestmark = pytest.mark.filterwarnings("ignore")
LIMITS: Final = UsageLimits(request_limit=200)


def agent_of(kind: str, url: str, capability: TenureCapability) -> Agent[None, str]:
    settings: Any = None
    if kind == "openai":
        provider: Any = OpenAIProvider(openai_client=AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0))
        model: Any = OpenAIChatModel("gpt-5.1", provider=provider)
    else:
        provider = AnthropicProvider(anthropic_client=AsyncAnthropic(api_key="-", base_url=url, max_retries=0))
        model = AnthropicModel("claude-opus-4-5", provider=provider)
        settings = (
            {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096} if kind == "thinking" else None
        )
    agent: Agent[None, str] = Agent(model, instructions="Be brief. " * 800, capabilities=[capability], model_settings=settings)

    @agent.tool_plain
    def read(path: str) -> str:
        """Reads a file."""
        return f"{path}\n{FILE}"

    return agent


@pytest.mark.parametrize("kind", ["anthropic", "openai", "thinking"])
def test_an_agent_is_kept_to_its_budget_and_recalls(kind: str) -> None:
    provider = FakeProvider(work(30, recalled=26, recall="tenure_recall", thinking="hm" if kind == "thinking" else ""))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of(kind, url, TenureCapability(store=store, budget=Budget(ceiling=40_000)))
        result = asyncio.run(agent.run("Look through the files.", usage_limits=LIMITS))
        assert result.output == "Done."
        assert [seen.violations for seen in provider.seen] == [()] * 32
        assert (
            max(seen.usage.prompt for seen in provider.seen if seen.usage) <= 40_000
        )  # of the provider's own count, the head included
        whole = len(result.all_messages_json())
        assert whole > 2 * max(len(seen.body) for seen in provider.seen)
        assert all(b"Look through the files." in seen.body and b"Be brief." in seen.body for seen in provider.seen)
        assert RECALLED in provider.seen[27].body
        (sheet,) = store.conversations()
        assert store.verify(sheet.id) is None
        commits = sum(each.moment != "admission" for each in store.commits(sheet.id))
    assert prefixes(provider.seen).count(False) <= commits < 10


def test_a_run_goes_on_from_its_messages_in_the_same_conversation_after_a_restart(tmp_path: Path) -> None:
    provider = FakeProvider(Script(replies=(*work(12).replies, *work(12).replies)))
    with serve(provider.app) as url:
        history: Any = None
        for _ in range(2):
            with Store(f"sqlite:///{tmp_path}/agent.db") as store:
                agent = agent_of("anthropic", url, TenureCapability(store=store, budget=Budget(ceiling=40_000)))
                held = ModelMessagesTypeAdapter.validate_json(history) if history else None
                history = asyncio.run(agent.run("Look.", message_history=held, usage_limits=LIMITS)).all_messages_json()
        with Store(f"sqlite:///{tmp_path}/agent.db") as store:
            (sheet,) = store.conversations()
            assert store.verify(sheet.id) is None
            assert sheet.length > 48
    assert {seen.violations for seen in provider.seen} == {()}


def test_streamed_runs_side_by_side_keep_apart() -> None:
    provider = FakeProvider(Script(replies=tuple(Reply(text=f"answer {n}") for n in range(9))))
    with serve(provider.app) as url, Store("sqlite://") as store:
        agent = agent_of("openai", url, TenureCapability(store=store, budget=Budget(ceiling=40_000)))

        async def converse(name: str) -> None:
            history: Any = None
            for n in range(3):
                async with agent.run_stream(f"{name} asks {n}", message_history=history) as stream:
                    async for _ in stream.stream_text():
                        pass
                    history = stream.all_messages()

        async def scene() -> None:
            await asyncio.gather(*(converse(name) for name in ("Ann", "Bob", "Cleo")))

        asyncio.run(scene())
        for sheet in store.conversations():
            texts = [block.text for entry in store.entries(sheet.id) for block in entry.blocks]
            assert len({text.split()[0] for text in texts if "asks" in text}) == 1
    assert {seen.violations for seen in provider.seen} == {()}
