"""What the agent itself costs: `python bench/agent.py [ENTRIES]`.

A session of 10,000 entries is played through the real loop, store, tokenizer and wire, with a model and a tool that answer at once: what is left is our
own. Prints the time from a reply to the next request, with and without a commit, for each API; how long a session takes to open; and memory.
"""

import asyncio
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tenure.agent.approval import Approval, Mode
from tenure.agent.events import Committed, Requested
from tenure.agent.opening import opened
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.tools.toolbox import Toolbox
from tenure.agent.workspace import Workspace
from tenure.apis.reply import Delta, ReplyCall, WholeReply
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Usage
from tenure.engine.record.tools import ToolKind
from tenure.testing.script import Call, Reply, wire

WORDS = "the parser reads each token of the stream and keeps the offset of its first byte for the error report\n"
MODELS = {"anthropic": "claude-opus-4-5", "openai-chat": "gpt-5", "openai-responses": "gpt-5"}
LAST = 1_000  # calls that are measured, at the end


class Reading:
    """A tool that answers at once, with as much as reads and commands give."""

    name, kind, description = "read", ToolKind.INTERMEDIATE, "Read a file."
    schema: Mapping[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}

    def needs(self, _arguments: str, _workspace: Workspace, /) -> Approval | None:
        """Nobody's leave."""
        return None

    async def run(self, arguments: str, _here: Here, /) -> ToolOutcome:
        """A text of a usual size."""
        size = (hash(arguments) % 900 + 200) * 4
        return ToolOutcome(text=f"{arguments}\n" + (WORDS * (size // len(WORDS) + 1))[:size])


class AtOnce:
    """A model that answers at once, and notes when it was asked and when it had answered."""

    def __init__(self, dialect: str, calls: int) -> None:
        self.name, self.dialect = MODELS[dialect], dialect
        self.asked: list[float] = []
        self.answered: list[float] = []
        self.spent: list[float] = []  # CPU seconds from a reply to the next request
        self._calls, self._cpu = calls, 0.0
        self._rules = rules_for("", self.name, dialect)

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """A call, and at last a word."""
        self.asked.append(time.perf_counter())
        self.spent.append(time.process_time() - self._cpu)
        n = len(self.asked)
        is_last = n >= self._calls
        text = f"Next I look at module {n}, where step {n} goes on." if not is_last else "Done."
        call = Call(name="read", arguments=f'{{"path": "src/module_{n}.py"}}')
        said = Reply(text=text, calls=() if is_last else (call,))
        usage = Usage(cache_read=len(body) // 4, output=40)
        from tenure.apis.json_text import dump

        reply = dump(wire(said, n, {"model": self.name}, self._rules, usage)).encode()
        made = () if is_last else (ReplyCall(call_id=_id(self.dialect, n), tool="read", arguments=call.arguments),)
        whole = WholeReply(reply=reply, text=text, calls=made, stop="stop", usage=usage, model=self.name)
        self.answered.append(time.perf_counter())
        self._cpu = time.process_time()
        yield whole

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close."""


def _id(dialect: str, n: int) -> str:
    return {"anthropic": f"toolu_{n}_0", "openai-chat": f"call_{n}_0", "openai-responses": f"call_{n}_1"}[dialect]


async def session(dialect: str, entries: int, folder: Path, budget: Budget) -> None:
    """One session of that many entries; prints what its last calls cost."""
    speaker = AtOnce(dialect, entries // 2)
    settings = Settings(
        folder=folder, model=f"{dialect}:{MODELS[dialect]}", store=str(folder / f"{dialect}.db"), mode=Mode.ALL, budget=budget
    )
    parts = await opened(settings, World(home=folder, speaker=lambda _: speaker))
    parts = dataclasses.replace(parts, toolbox=Toolbox([Reading()]))
    agent = Agent(parts)
    committed: set[int] = set()
    step = 0
    async for event in agent.run("Look at every module."):
        if isinstance(event, Requested):
            step = event.step
        elif isinstance(event, Committed):
            committed.add(step + 1)  # it is told before the request that it shapes
    length = agent.context.session.length
    own = [asked - before for before, asked in zip(speaker.answered, speaker.asked[1:], strict=False)]
    spent = speaker.spent[1:]
    start = max(0, len(own) - LAST)
    calm = [seconds for n, seconds in enumerate(own[start:], start + 2) if n not in committed]
    name = f"{dialect}, {length:,} entries, view {agent.gauge.tokens:,} tokens, {len(agent.context.session.commits)} commits"
    print(f"{name}: {_said(own[start:])}; without a commit {_said(calm)}; processor {_said(spent[start:])}")
    first = [seconds for n, seconds in enumerate(own[:start], 2) if n not in committed][:LAST]
    if first:
        print(f"  the first calls of it, without a commit: {_said(first)}")
    await agent.close()


def _said(times: list[float]) -> str:
    cuts = quantiles(times, n=100)
    return f"p50 {median(times) * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f} ms, most {max(times) * 1e3:.1f} ms"


OPENING = """
import asyncio, sys, time
from pathlib import Path
from tenure.agent.session import Agent
from tenure.agent.settings import Settings
imported = time.monotonic()
async def go():
    agent = await Agent.open(Settings(folder=Path(sys.argv[1]), model="anthropic:claude-opus-4-5", store=sys.argv[1] + "/open.db"))
    print(imported - float(sys.argv[2]), time.monotonic() - float(sys.argv[2]))
    await agent.close()
asyncio.run(go())
"""


def opening(folder: Path) -> None:
    """How long it takes from the start of an interpreter to a session that takes words, and of `tenure run` to its first request; at best of seven."""
    taken: list[tuple[float, float]] = []
    for _ in range(7):
        command = [sys.executable, "-c", OPENING, str(folder), str(time.monotonic())]
        imports, opens = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        taken.append((float(opens), float(imports)))
    opens_s, imports_s = min(taken)
    print(f"start to an open session: {opens_s * 1e3:.0f} ms, of which imports {imports_s * 1e3:.0f}")
    script = folder / "script.json"
    script.write_text('{"replies": [{"text": "Done."}]}', encoding="utf-8")
    command = [sys.executable, "-m", "tenure.cli.main", "run", "Go.", "--json", "--cwd", str(folder)]
    command += ["--store", str(folder / "run.db"), "--model", f"scripted:{script}"]
    runs = [run_of(command) for _ in range(7)]
    print(
        f"start of `tenure run` to its session: {min(opened for opened, _ in runs) * 1e3:.0f} ms, to its first request:"
        f" {min(asked for _, asked in runs) * 1e3:.0f} ms (the vocabulary is loaded between)"
    )


def run_of(command: list[str]) -> tuple[float, float]:
    """Seconds until a run tells of its session, and of its first request."""
    began = time.monotonic()
    told: dict[str, float] = {}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        for line in running.stdout:
            told.setdefault(json.loads(line)["event"], time.monotonic() - began)
    return told["session_opened"], told["requested"]


def main() -> None:
    """Run it and print the figures."""
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        opening(folder)
        for dialect in MODELS:
            asyncio.run(session(dialect, entries, folder, Budget(ceiling=80_000)))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
        print(f"memory at the end {memory:,.0f} MB")


if __name__ == "__main__":
    main()
