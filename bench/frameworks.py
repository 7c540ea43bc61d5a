"""Each framework's own context management beside ours, on the same transcript, against the same fake provider, in one run.

    make frameworks                                   # installs them into .venv, CrewAI and OpenHands into .venv/apart
    .venv/bin/python bench/frameworks.py docs/evidence/frameworks.md

An agent reads file after file; now and then it asks for what an earlier file said, which is a need. The replies are fixed, so every contestant is asked the same questions; what
differs is what each request shows. A need is visible when its line stands in the request, routed when the handle that brings it back does, else missed. Tokens are the fake
provider's (a quarter of the characters), with a strict prefix cache; money is by list prices, calls for summaries included. No model takes part, so nothing is said of how well
one would do.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tenure import Budget
from tenure.engine.meter.price import prices_for
from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply

STEPS: Final = 80
LIMIT: Final = 40_000  # tokens, for everybody
QUARTER: Final = LIMIT // 4  # what a summariser leaves
MODEL: Final = "gpt-5.1"
# What a careful model might say of the modules so far; the constants' values are not in it.
SUMMARY: Final = "The modules are read one after another; each has a LIMIT constant and some functions. " * 8
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


def script() -> Callable[[Mapping[str, Any]], Reply]:
    """The replies of the model, the same for everybody; a request without tools asks for a summary."""
    steps = count()

    def reply(body: Mapping[str, Any]) -> Reply:
        if not body.get("tools"):
            return Reply(text=SUMMARY)
        n = next(steps)
        call = Call(name="read", arguments=json.dumps({"path": f"module_{n}.py"}))
        return Reply(text=f"Step {n}.", calls=(call,)) if n < STEPS else Reply(text="Done.")

    return reply


Run = Callable[[str, Store], Coroutine[Any, Any, None]]


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
    words: bool  # whether the person's are in every request of the conversation
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


def _summarising(**settings: Any) -> Callable[[str, Store], Any]:
    def made(url: str, _store: Store) -> Any:
        from langchain.agents.middleware import SummarizationMiddleware
        from langchain_openai import ChatOpenAI

        model: Any = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="-", max_retries=0)  # type: ignore[arg-type]
        return SummarizationMiddleware(model, trigger=("tokens", LIMIT), keep=("tokens", QUARTER), **settings)

    return made


def _ours(floor: int | None = None) -> Callable[[str, Store], Any]:
    def made(_url: str, store: Store) -> Any:
        from tenure.adapters.langchain import TenureMiddleware

        return TenureMiddleware(store=store, budget=Budget(ceiling=LIMIT, floor=floor))

    return made


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


def crewai(manage: Callable[[Any, Store], Any]) -> Run:
    """A crew of one. CrewAI asks for a summary of everything where a request would not fit what it takes for the model's window."""

    async def run(url: str, store: Store) -> None:
        from crewai import LLM, Agent, Crew, Task
        from crewai.tools import tool

        llm = manage(LLM(model=f"openai/{MODEL}", base_url=f"{url}/v1", api_key="-"), store)
        reader: Any = Agent(
            role="Coder",
            goal="Settle constants.",
            backstory="You read code.",
            tools=[tool("read")(read)],
            llm=llm,
            max_iter=1_000,
        )
        await Crew(agents=[reader], tasks=[Task(description=START, expected_output="A word.", agent=reader)]).akickoff()

    return run


def _window(tokens: int) -> Callable[[Any, Store], Any]:
    def made(llm: Any, _store: Store) -> Any:
        type(llm).get_context_window_size = lambda _self: tokens
        return llm

    return made


def _managed_llm(llm: Any, store: Store) -> Any:
    from tenure.adapters.crewai import tenure_llm

    return tenure_llm(llm, store=store, budget=Budget(ceiling=LIMIT))


def openhands(condenser: Callable[[Any, Store], Any], *, recall: bool = False) -> Run:
    """An agent of OpenHands' SDK."""

    async def run(url: str, store: Store) -> None:
        from openhands.sdk import LLM, Agent, Conversation, Tool, register_tool
        from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor

        class ModuleAction(Action):
            path: str

        class ModuleObservation(Observation):
            pass

        class ModuleExecutor(ToolExecutor[ModuleAction, ModuleObservation]):
            def __call__(self, action: ModuleAction, conversation: Any = None) -> ModuleObservation:  # noqa: ARG002 - as it is called
                return ModuleObservation.from_text(text=read(action.path))

        class ReadTool(ToolDefinition[ModuleAction, ModuleObservation]):
            @classmethod
            def create(cls, *_: Any, **__: Any) -> Sequence[Any]:
                how: Any = ModuleExecutor()
                return [
                    cls(description="Reads a file.", action_type=ModuleAction, observation_type=ModuleObservation, executor=how)
                ]

        register_tool("read", ReadTool)
        llm = LLM(model=f"openai/{MODEL}", base_url=f"{url}/v1", api_key="-", num_retries=0, api_mode="chat")
        tools = [Tool(name="read"), *([Tool(name="tenure_recall")] if recall else [])]
        agent = Agent(llm=llm, tools=tools, condenser=condenser(llm, store), include_default_tools=[])
        with tempfile.TemporaryDirectory() as folder:
            conversation: Any = Conversation(agent=agent, workspace=folder, visualizer=None)
            conversation.send_message(START)
            await conversation.arun()

    return run


def _condenser(llm: Any, _store: Store) -> Any:
    from openhands.sdk.context.condenser import LLMSummarizingCondenser

    return LLMSummarizingCondenser(llm=llm.model_copy(update={"usage_id": "condenser"}), max_size=10_000, max_tokens=LIMIT)


def _view(_llm: Any, store: Store) -> Any:
    from tenure.adapters.openhands import TenureCondenser

    return TenureCondenser(store=store, budget=Budget(ceiling=LIMIT))


APART: Final = {"CrewAI": "crewai", "OpenHands": "openhands"}  # which have an environment of their own
CONTESTANTS: Final[Sequence[tuple[str, str, Run]]] = (
    ("OpenAI SDK", "none", by_hand(False)),
    ("OpenAI SDK", "**tenure.wrap**", by_hand(True)),
    ("LangChain", "none", langchain()),
    ("LangChain", "ContextEditingMiddleware", langchain(_clearing)),
    ("LangChain", "SummarizationMiddleware", langchain(_summarising())),
    (
        "LangChain",
        "SummarizationMiddleware, `trim_tokens_to_summarize=None`",
        langchain(_summarising(trim_tokens_to_summarize=None)),
    ),
    ("LangChain", "**TenureMiddleware**", langchain(_ours())),
    ("LangChain", "**TenureMiddleware**, down to a quarter as the summary", langchain(_ours(QUARTER))),
    ("OpenAI Agents", "none", agents(lambda _: None)),
    ("OpenAI Agents", "ToolOutputTrimmer", agents(_trimmer)),
    ("OpenAI Agents", "**TenureFilter**", agents(_filter, recall=True)),
    ("Pydantic AI", "none", pydantic(lambda _: None)),
    ("Pydantic AI", "ProcessHistory: newest messages", pydantic(_newest)),
    ("Pydantic AI", "**TenureCapability**", pydantic(_capability)),
    ("CrewAI", "none", crewai(_window(10**6))),
    ("CrewAI", "its summary (`respect_context_window`)", crewai(_window(LIMIT))),
    ("CrewAI", "**tenure_llm**", crewai(_managed_llm)),
    ("OpenHands", "none", openhands(lambda _llm, _store: None)),
    ("OpenHands", "LLMSummarizingCondenser", openhands(_condenser)),
    ("OpenHands", "**TenureCondenser**", openhands(_view, recall=True)),
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
    steps = [seen for seen in provider.seen if json.loads(seen.body).get("tools")]
    for step, needed in NEEDS.items():
        body = steps[step].body.decode()
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
        words=all(START.encode() in seen.body for seen in steps),
        ms=1000 * took / len(provider.seen),
        **found,
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = "| framework | what manages | peak tokens | prompt tokens | cached | bill | violations | needs visible / routed / missed | the person's words stay | ms a call |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    return head + "".join(
        f"| {row.framework} | {row.name} | {row.peak:,} | {row.prompt:,} | {row.cached:.0%} | ${row.usd:.3f} | {row.violations} | "
        f"{row.visible} / {row.routed} / {row.missed} | {'yes' if row.words else 'no'} | {row.ms:.0f} |\n"
        for row in rows
    )


def row_of(framework: str, name: str, run: Run) -> Row | None:
    """One contestant, in the environment that its framework is in; None where that is not installed."""
    python = Path(sys.prefix) / "apart" / APART.get(framework, "") / "bin" / "python"
    if framework in APART and python.exists():
        done = subprocess.run([python, __file__, "--only", framework, name], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        return msgspec.json.decode(lines[-1], type=Row) if done.returncode == 0 else sys.exit(done.stderr[-2_000:])
    try:
        return measured(framework, name, run)
    except ImportError as error:
        print(f"{framework}, {name}: not installed ({error.name})", flush=True)
        return None


def main() -> None:
    """Measure all, and print or write the table; `--only FRAMEWORK NAME`: one, as JSON."""
    if sys.argv[1:2] == ["--only"]:
        (wanted,) = [each for each in CONTESTANTS if [*each[:2]] == sys.argv[2:]]
        print(msgspec.json.encode(measured(*wanted)).decode())
        return
    rows: list[Row] = []
    for contestant in CONTESTANTS:
        if (row := row_of(*contestant)) is not None:
            rows.append(row)
            print(row, flush=True)
    text = table(rows)
    print(text)
    if len(sys.argv) > 1:
        page = Path(sys.argv[1])
        start, mark, _ = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
        page.write_text(f"{start}{mark}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    os.environ.update({"LITELLM_LOCAL_MODEL_COST_MAP": "True", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"})
    main()
