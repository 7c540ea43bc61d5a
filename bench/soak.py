"""A working day of an agent in minutes: `python bench/soak.py [CALLS] [DIALECT]`, by default 20,000 calls of the model in one session.

The real loop, store, tokenizer, wire and policy, with a scripted model and tool output of the sizes that sessions have: most results of a few kilobytes,
some of 64,000 characters, episodes that open and close, recalls of what has left, commands that really run, a person who speaks now and then. Prints
memory and the time from a reply to the next request as the session grows: neither may grow with it. The goal is less than 250 MB.
"""

import asyncio
import dataclasses
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from tenure.agent.approval import Approval, Mode
from tenure.agent.events import CallDone, Committed, Event, Requested, TurnDone
from tenure.agent.opening import opened
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools.bash import Bash
from tenure.agent.tools.grep import Grep
from tenure.agent.tools.read import Read
from tenure.agent.tools.tool import Here, Tool, ToolOutcome
from tenure.agent.tools.toolbox import Toolbox
from tenure.agent.workspace import Workspace
from tenure.apis.json_text import dump
from tenure.apis.reply import Delta, ReplyCall, WholeReply
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.engine.record.tools import ToolKind
from tenure.testing.script import Call, Reply, wire

CALLS: Final = 20_000
MODELS: Final = {"anthropic": "claude-opus-4-5", "openai-chat": "gpt-5", "openai-responses": "gpt-5"}
TURN: Final = 250  # calls between two words of the person
EPISODE: Final = 14  # calls
REPORTS: Final = 20
GOAL_MB: Final = 250
SYLLABLES: Final = "par ser to ken view re cord in dex com mit pol icy bud get edge span han dle en try".split()


class Text:
    """ReplyCall-up sources and logs, the same every time."""

    def __init__(self) -> None:
        self._chance = random.Random(7)
        self._lines = [self._line(n) for n in range(5_000)]

    def result(self, n: int) -> str:
        """A result: 2 KB in the middle, one in twenty of 30 KB and more, at most what a tool gives."""
        size = min(64_000, int(self._chance.lognormvariate(7.6, 1.3)) + 40)
        start = self._chance.randrange(len(self._lines))
        lines: list[str] = [f"src/module_{n % 4_000}.py"]
        while size > 0:
            lines.append(self._lines[start % len(self._lines)])
            size -= len(lines[-1]) + 1
            start += 1
        return "\n".join(lines)

    def words(self, most: int) -> str:
        """What a model says."""
        return " ".join(self._chance.choices(self._lines, k=self._chance.randrange(1, most)))

    def _line(self, n: int) -> str:
        name = "".join(self._chance.choices(SYLLABLES, k=3))
        return (
            f"{'    ' * self._chance.randrange(3)}{name}_{n} = self.{self._chance.choice(SYLLABLES)}(entry_{n % 97}, offset={n})"
        )


class Looking:
    """A tool that answers at once, with as much as reads, searches and commands give."""

    name, kind, description = "look", ToolKind.INTERMEDIATE, "Look at a file."
    schema: Mapping[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}

    def __init__(self, text: Text) -> None:
        self._text, self._n = text, 0

    def needs(self, _arguments: str, _workspace: Workspace, /) -> Approval | None:
        """Nobody's leave."""
        return None

    async def run(self, _arguments: str, _here: Here, /) -> ToolOutcome:
        """The next text."""
        self._n += 1
        return ToolOutcome(text=self._text.result(self._n))


class Timed:
    """A tool, with the time that it takes. Mutable."""

    def __init__(self, tool: Tool) -> None:
        self.name, self.kind, self.description, self.schema = tool.name, tool.kind, tool.description, tool.schema
        self.seconds = 0.0
        self._tool = tool

    def needs(self, arguments: str, workspace: Workspace, /) -> Approval | None:
        """What the tool says."""
        return self._tool.needs(arguments, workspace)

    async def run(self, arguments: str, here: Here, /) -> ToolOutcome:
        """What the tool gives."""
        began = time.perf_counter()
        try:
            return await self._tool.run(arguments, here)
        finally:
            self.seconds += time.perf_counter() - began


class Working:
    """A model that works on, and notes how long it was not asked."""

    def __init__(self, dialect: str, text: Text, tools: Sequence[Timed]) -> None:
        self.name, self.dialect = MODELS[dialect], dialect
        self.waited: list[float] = []  # seconds from each reply to the next request, without tools
        self.handles: list[str] = []  # what could be recalled
        self._text, self._rules = text, rules_for("", self.name, dialect)
        self._said_s = self._tools_s = 0.0
        self._tools = tools
        self._open: dict[str, str] | None = None  # how the open episode ends
        self._found: list[str] = []  # what the next act builds on
        self.asked = 0

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply; every so many calls it ends the turn."""
        if self._said_s:
            self.waited.append(time.perf_counter() - self._said_s - (self._took() - self._tools_s))
        self.asked += 1
        n = self.asked
        calls = tuple(self._calls(n)) if n % TURN else ()
        text = self._text.words(4) if calls else "Done."
        usage = Usage(cache_read=len(body) // 4, output=60)
        thinking = self._text.words(6) if n % 3 == 0 and self.dialect != "openai-chat" else ""
        reply = dump(wire(Reply(text=text, thinking=thinking, calls=calls), n, {"model": self.name}, self._rules, usage)).encode()
        made = tuple(
            ReplyCall(call_id=call_id, tool=each.name, arguments=each.arguments)
            for call_id, each in zip(_ids(reply, self.dialect), calls, strict=True)
        )
        whole = WholeReply(reply=reply, text=text, calls=made, stop="stop", usage=usage, model=self.name)
        for start in range(0, len(text), 200):
            yield Delta(kind="text", text=text[start : start + 200])
        self._said_s, self._tools_s = time.perf_counter(), self._took()
        yield whole

    def rest(self) -> None:
        """A person thinks: the time until the next request is theirs."""
        self._said_s = 0.0

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close."""

    def _took(self) -> float:
        return sum(tool.seconds for tool in self._tools)

    def _calls(self, n: int) -> Iterator[Call]:
        if n % EPISODE == 1:
            if self._open is not None:
                yield Call(name="delimiter", arguments=dump({"action": "end"} | self._open))
            name = f"part-{n}"
            is_act = (n // EPISODE + 1) % 3 == 0
            found = {} if is_act else {"description": "found what the entries hold and where they come from"}
            given: dict[str, Any] = {"dependencies": self._found} if is_act else {}
            self._open, self._found = found, [] if is_act else [*self._found, name]
            kind = "act" if is_act else "expl"
            yield Call(name="delimiter", arguments=dump({"action": "start", "name": name, "type": kind} | given))
        if n % 97 == 0 and self.handles:
            yield Call(name="recall", arguments=dump({"handle": self.handles[n * 7 % len(self.handles)]}))
        elif n % 50 == 0:
            yield Call(name="bash", arguments=dump({"command": f"seq {n} {n + 9_000}; echo {n} >&2"}))
        elif n % 53 == 0:
            yield Call(name="grep", arguments=dump({"pattern": f"word{n % 90}"}))
        elif n % 59 == 0:
            yield Call(name="read", arguments=dump({"path": "large.txt", "offset": n}))
        else:
            yield Call(name="look", arguments=dump({"path": f"src/module_{n}.py"}))


def _ids(reply: bytes, dialect: str) -> list[str]:
    """The ids of a reply's calls, as its provider put them."""
    import json

    held: dict[str, Any] = json.loads(reply)
    match dialect:
        case "anthropic":
            return [part["id"] for part in held["content"] if part["type"] == "tool_use"]
        case "openai-chat":
            return [call["id"] for call in held["choices"][0]["message"].get("tool_calls", ())]
        case _:
            return [item["call_id"] for item in held["output"] if item["type"] == "function_call"]


class Watching:
    """Counts what happens, and prints a line from time to time."""

    def __init__(self, model: Working, agent: Agent, every: int) -> None:
        self._model, self._agent, self._every = model, agent, every
        self._next, self._began = every, time.perf_counter()
        self.commits = self.errors = 0

    def take(self, event: Event) -> None:
        """Look at one event."""
        match event:
            case Committed():
                self.commits += 1
            case CallDone(tool="look", handle=handle):
                self._model.handles = [*self._model.handles[-500:], handle]
            case CallDone(outcome="error"):
                self.errors += 1
            case Requested() if self._model.asked >= self._next:
                self._next += self._every
                self.tell()
            case _:
                pass

    def tell(self) -> None:
        """Print how it stands."""
        waited = self._model.waited[-self._every :]
        cuts = quantiles(waited, n=100)
        session = self._agent.context.session
        print(
            f"{self._model.asked:6,} calls  {resident_mb():5.0f} MB  view {session.view.tokens:7,}  commits {self.commits:4,}"
            f"  own p50 {median(waited) * 1e3:5.2f} ms  p90 {cuts[89] * 1e3:5.2f}  p99 {cuts[98] * 1e3:6.2f}"
            f"  {time.perf_counter() - self._began:5.0f} s",
            flush=True,
        )


def resident_mb() -> float:
    """Memory that is in use now; where the system does not tell, the most there was."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_mb()
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_mb() -> float:
    """The most memory there was."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)


async def soak(calls: int, dialect: str, folder: Path) -> None:
    """One session of so many calls of the model."""
    with (folder / "large.txt").open("w") as large:
        large.writelines(f"{n}: word{n % 97} of a large file\n" for n in range(60_000))
    text = Text()
    tools = [Timed(tool) for tool in (Looking(text), Read(), Grep(), Bash())]
    model = Working(dialect, text, tools)
    settings = Settings(folder=folder, model=f"{dialect}:{MODELS[dialect]}", store=str(folder / "soak.db"), mode=Mode.ALL)
    parts = await opened(settings, World(home=folder, speaker=lambda _: model))
    agent = Agent(dataclasses.replace(parts, toolbox=Toolbox(tools)))
    watching = Watching(model, agent, max(1, calls // REPORTS))
    print(f"{dialect}: {resident_mb():.0f} MB before the first call")
    ended: TurnDone | None = None
    while model.asked < calls:
        model.rest()
        async for event in agent.run(f"Now part {model.asked // TURN + 1}: look at all of its modules."):
            watching.take(event)
            ended = event if isinstance(event, TurnDone) else ended
        if ended is None or ended.reason != "done":
            raise SystemExit(f"a turn ended otherwise: {ended}")
    length, size = agent.context.session.length, (folder / "soak.db").stat().st_size
    await agent.close()
    print(
        f"{length:,} entries, {watching.commits:,} commits, {watching.errors:,} failed calls, a store of {size / 2**20:,.0f} MB"
    )
    print(f"peak {peak_mb():,.0f} MB; the goal is less than {GOAL_MB}: {'kept' if peak_mb() < GOAL_MB else 'MISSED'}")


def main() -> None:
    """Run it and print the figures."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(soak(calls, sys.argv[2] if len(sys.argv) > 2 else "anthropic", Path(scratch)))


if __name__ == "__main__":
    main()
