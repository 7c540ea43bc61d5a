"""Each framework's own context management beside ours, on the same transcript, against the same fake provider, in one run.

    make frameworks                                   # installs them into .venv
    .venv/bin/python bench/frameworks.py docs/evidence/frameworks.md

An agent reads file after file; now and then it asks for what an earlier file said, which is a need. The replies are fixed, so every contestant is asked the same questions; what
differs is what each request shows. A need is visible when its line stands in the request, routed when the handle that brings it back does, else missed. Tokens are the fake
provider's (a quarter of the characters), with a strict prefix cache; money is by list prices. No model takes part, so nothing is said of how well one would do.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tenure import Budget
from tenure.engine.meter.price import prices_for
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

STEPS: Final = 80
LIMIT: Final = 40_000  # tokens, for everybody
MODEL: Final = "gpt-5.1"
START: Final = "Go through the modules and settle every open constant."
RANDOM: Final = random.Random(7)


def _file(n: int) -> str:
    names = [
        f"{RANDOM.choice(('load', 'store', 'parse', 'merge', 'check'))}_{RANDOM.choice(('row', 'page', 'token', 'edge'))}_{k}"
        for k in range(70)
    ]
    body = "\n".join(
        f"def {name}(value):\n    return value * {RANDOM.randrange(10**6)}  # {name} of module {n}" for name in names
    )
    return f"# module_{n}.py\nLIMIT_{n} = {RANDOM.randrange(10**9)}\n{body}"


FILES: Final = {f"module_{n}.py": _file(n) for n in range(STEPS)}
# At a step, the line of an earlier file that the work then needs; as far back as eight steps at the median.
NEEDS: Final = {step: step - 2 - min(step - 3, int(RANDOM.expovariate(1 / 9))) for step in range(5, STEPS, 3)}


def read(path: str) -> str:
    """Reads a file."""
    return FILES[path]


def script() -> Script:
    """The replies of the model, the same for everybody."""
    replies = [
        Reply(text=f"Step {n}.", calls=(Call(name="read", arguments=json.dumps({"path": f"module_{n}.py"})),))
        for n in range(STEPS)
    ]
    return Script(replies=(*replies, Reply(text="Done.")))


Run = Callable[[str, Store], Awaitable[None]]


class Row(Struct, frozen=True, kw_only=True):
    """What one contestant came to."""

    framework: str
    name: str
    peak: int  # tokens of the largest request
    prompt: int  # of all requests
    cached: float  # share (0 to 1) of them
    usd: float
    violations: int
    visible: int
    routed: int
    missed: int
    ms: float  # of a call, the provider's part included


# --- Contestants


def langchain(*middleware: Callable[[str, Store], Any]) -> Run:
    """An agent of LangChain."""

    async def run(url: str, store: Store) -> None:
        from langchain.agents import create_agent
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI

        model: Any = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="-", max_retries=0)  # type: ignore[arg-type]
        agent: Any = create_agent(model, [tool(read)], middleware=[make(url, store) for make in middleware])
        await agent.ainvoke({"messages": [{"role": "user", "content": START}]}, {"recursion_limit": 10_000})

    return run


def _clearing(_url: str, _store: Store) -> Any:
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=LIMIT)])


def _summarising(_url: str, _store: Store) -> Any:
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    # The summary is what a careful model might say: the newest names, none of the constants' values.
    summary = "The modules are read one after another; each has a LIMIT constant and some functions. " * 8
    return SummarizationMiddleware(
        FakeListChatModel(responses=[summary] * 1_000), trigger=("tokens", LIMIT), keep=("tokens", LIMIT // 4)
    )


def _ours(_url: str, store: Store) -> Any:
    from tenure.adapters.langchain import TenureMiddleware

    return TenureMiddleware(store=store, budget=Budget(ceiling=LIMIT))


def agents(hook: Callable[[Store], Any], *, recall: bool = False) -> Run:
    """An agent of the OpenAI Agents SDK."""

    async def run(url: str, store: Store) -> None:
        from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool, set_tracing_disabled
        from openai import AsyncOpenAI

        set_tracing_disabled(True)
        made = hook(store)
        async with AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0) as client:
            tools = [function_tool(read), *([made.recall_tool] if recall else [])]
            agent: Any = Agent(name="Coder", model=OpenAIResponsesModel(MODEL, client), tools=tools)
            config = RunConfig(call_model_input_filter=made) if made is not None else RunConfig()
            await Runner.run(agent, START, run_config=config, max_turns=1_000)

    return run


def _trimmer(_store: Store) -> Any:
    from agents.extensions.tool_output_trimmer import ToolOutputTrimmer

    return ToolOutputTrimmer()


def _filter(store: Store) -> Any:
    from tenure.adapters.openai_agents import TenureFilter

    return TenureFilter(store=store, budget=Budget(ceiling=LIMIT))


def pydantic(capability: Callable[[Store], Any]) -> Run:
    """An agent of Pydantic AI."""

    async def run(url: str, store: Store) -> None:
        from openai import AsyncOpenAI
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.usage import UsageLimits

        made = capability(store)
        async with AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0) as client:
            model: Any = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
            agent: Any = Agent(model, tools=[read], capabilities=[made] if made is not None else [])
            await agent.run(START, usage_limits=UsageLimits(request_limit=None))

    return run


def _newest(_store: Store) -> Any:
    """What its documentation shows for long histories: the newest messages, from a request on, the first with them."""
    from pydantic_ai.capabilities import ProcessHistory
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    keep = 2 * int(LIMIT / (len(FILES["module_0.py"]) / 4 + 40)) - 2

    def newest(messages: list[Any]) -> list[Any]:
        if len(messages) <= keep:
            return messages
        tail = messages[-keep:]
        start = next(n for n, message in enumerate(tail) if not isinstance(message, ModelRequest))
        return [ModelRequest(parts=[UserPromptPart(START)]), *tail[start:]]

    return ProcessHistory(newest)


def _capability(store: Store) -> Any:
    from tenure.adapters.pydantic_ai import TenureCapability

    return TenureCapability(store=store, budget=Budget(ceiling=LIMIT))


def by_hand(wrapped: bool) -> Run:
    """The SDK of OpenAI and a loop by hand."""

    async def run(url: str, store: Store) -> None:
        from openai import AsyncOpenAI

        import tenure

        client = AsyncOpenAI(api_key="-", base_url=f"{url}/v1", max_retries=0)
        client = tenure.wrap(client, store=store, budget=Budget(ceiling=LIMIT)) if wrapped else client
        path = {"type": "object", "properties": {"path": {"type": "string"}}}
        tools: Any = [{"type": "function", "function": {"name": "read", "parameters": path}}]
        history: list[Any] = [{"role": "user", "content": START}]
        async with client:
            while True:
                message = (await client.chat.completions.create(model=MODEL, messages=history, tools=tools)).choices[0].message
                history.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    text = read(**json.loads(call.function.arguments))  # type: ignore[union-attr]
                    history.append({"role": "tool", "tool_call_id": call.id, "content": text})

    return run


CONTESTANTS: Final[Sequence[tuple[str, str, Run]]] = (
    ("OpenAI SDK", "none", by_hand(False)),
    ("OpenAI SDK", "**tenure.wrap**", by_hand(True)),
    ("LangChain", "none", langchain()),
    ("LangChain", "ContextEditingMiddleware", langchain(_clearing)),
    ("LangChain", "SummarizationMiddleware (scripted summary)", langchain(_summarising)),
    ("LangChain", "**TenureMiddleware**", langchain(_ours)),
    ("OpenAI Agents", "none", agents(lambda _: None)),
    ("OpenAI Agents", "ToolOutputTrimmer", agents(_trimmer)),
    ("OpenAI Agents", "**TenureFilter**", agents(_filter, recall=True)),
    ("Pydantic AI", "none", pydantic(lambda _: None)),
    ("Pydantic AI", "ProcessHistory: newest messages", pydantic(_newest)),
    ("Pydantic AI", "**TenureCapability**", pydantic(_capability)),
)


def measured(framework: str, name: str, run: Run) -> Row:
    """One contestant."""
    provider = FakeProvider(script())
    with serve(provider.app) as url, Store("sqlite://") as store:
        began = time.perf_counter()
        asyncio.run(run(url, store))
        took = time.perf_counter() - began
    usages = [seen.usage for seen in provider.seen if seen.usage is not None]
    prompt = sum(usage.prompt for usage in usages)
    found = {"visible": 0, "routed": 0, "missed": 0}
    for step, needed in NEEDS.items():
        body = provider.seen[step].body.decode()
        line = FILES[f"module_{needed}.py"].split("\n")[1]
        found["visible" if line in body else "routed" if f"read:{needed + 1}@" in body else "missed"] += 1
    return Row(
        framework=framework,
        name=name,
        peak=max(usage.prompt for usage in usages),
        prompt=prompt,
        cached=sum(usage.cache_read for usage in usages) / prompt,
        usd=sum(prices_for(MODEL, "").cost_usd(usage) for usage in usages),
        violations=sum(len(seen.violations) for seen in provider.seen),
        ms=1000 * took / len(provider.seen),
        **found,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = "| framework | what manages | peak tokens | prompt tokens | cached | bill | violations | needs visible / routed / missed | ms a call |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n"
    return head + "".join(
        f"| {row.framework} | {row.name} | {row.peak:,} | {row.prompt:,} | {row.cached:.0%} | ${row.usd:.3f} | {row.violations} | "
        f"{row.visible} / {row.routed} / {row.missed} | {row.ms:.0f} |\n"
        for row in rows
    )


def main() -> None:
    """Measure all, and print or write the table."""
    rows: list[Row] = []
    for framework, name, run in CONTESTANTS:
        try:
            rows.append(measured(framework, name, run))
            print(rows[-1], flush=True)
        except ImportError as error:
            print(f"{framework}, {name}: not installed ({error.name})", flush=True)
    text = table(rows)
    print(text)
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        start, mark, _ = (
            page.read_text(encoding="utf-8").partition("<!-- table -->\n") if page.exists() else ("", "<!-- table -->\n", "")
        )
        page.write_text(f"{start}{mark}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
