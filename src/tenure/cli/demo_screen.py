"""The demo's screen: a line for what is done, a bar for the window, a few words where something leaves or comes back."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from textwrap import wrap
from typing import Final, cast

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from tenure.agent.events import (
    CallDone,
    CallStarted,
    Committed,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Gauged,
    LimitUnmet,
    Recalled,
    Replied,
    Requested,
    TurnDone,
    TurnFailed,
)
from tenure.cli import words
from tenure.engine.lifecycle.session import Session
from tenure.engine.record.episodes import Episode
from tenure.engine.record.tools import is_delimiter
from tenure.engine.view.edit import Price

WIDEST: Final = 110  # columns; longer lines are hard to read
FRAMES: Final = 14  # of a bar that falls
SAID: Final = 3  # lines of a command's output
INSIDE: Final = "│ "  # an episode
BETWEEN: Final = "between episodes"  # calls and words that lie in none that was declared
_KINDS: Final = {"expl": "explores", "act": "acts"}
# The arguments that say what a call is about, by tool; of others what the record's own cue says.
_ABOUT: Final[Mapping[str, Sequence[str]]] = {
    "bash": ("command",),
    "grep": ("pattern", "path"),
    "recall": ("handle", "words", "path", "pattern"),
}


class Remains(Struct, frozen=True, kw_only=True):
    """An episode in the window: o200k tokens in the record, and of those in the view."""

    name: str
    whole: int
    shown: int
    found: bool = False  # it ended with what it had found, which stays longest


class Returned(Struct, frozen=True, kw_only=True):
    """A file's lines that a recall brought back, all of them as they were read and as they are on the disk."""

    source: str  # the object
    path: str
    first: int
    last: int
    size: int  # bytes
    digest: str  # SHA-256 of those bytes, hex


class Pace(Struct, frozen=True, kw_only=True):
    """How long a person is given for what has just appeared, in seconds."""

    word: float = 0.0
    line: float = 0.0
    moment: float = 0.0  # for what is worth a look
    wait: Callable[[float], Awaitable[None]] | None = None  # None: nobody watches

    async def rest(self, seconds: float) -> None:
        """Let time pass."""
        if self.wait is not None and seconds > 0:
            await self.wait(seconds)


class DemoFigures(Struct, kw_only=True):
    """What there was to see. Mutable; filled as it is told."""

    calls: int = 0  # of the model
    largest: int = 0  # provider tokens of a request, as reported
    head: int = 0  # o200k tokens of what stands before the view: the tools
    commits: int = 0
    returned: list[Returned] = []
    troubles: list[str] = []  # what must not happen in a demo


class DemoScreen:
    """Tells a session as it goes on. Mutable: it knows where it is."""

    def __init__(self, console: Console, pace: Pace, project: Path, session: Callable[[], Session]) -> None:
        """`session` gives the session that is told: of it the record and the view are read."""
        self._console, self._pace, self._project, self._session = console, pace, project, session
        self.width = min(console.width, WIDEST)
        self.seen = DemoFigures()
        self._inside = False  # an episode
        self._text = ""  # words that wait for the episode which they begin
        self._gauge: Gauged | None = None
        self._drawn: Gauged | None = None
        self._started: dict[str, CallStarted] = {}
        self._reads: dict[str, tuple[str, str]] = {}  # object -> path and text
        self._brought = ""  # the newest answer of recall
        self._left: dict[str, int] = {}  # by episode: what was shown of it after the last commit

    async def tell(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Replied():
                self.seen.calls += 1
                self.seen.largest = max(self.seen.largest, event.usage.prompt if event.usage is not None else 0)
                self._text = event.text
            case EpisodeStarted():
                builds = f", on what {', '.join(event.dependencies)} found" if event.dependencies else ""
                self._named("┌ ", INSIDE, event.name, f": an episode that {_KINDS[event.type]}{builds}")
                self._inside = True
                await self._words()
            case EpisodeEnded():
                await self._words()
                await self._ended(event)
            case Gauged():
                self._gauge = event
            case CallStarted():
                await self._words()
                self._started[event.call] = event
            case CallDone():
                await self._done(event)
            case Recalled():
                await self._recalled(event)
            case Committed():
                await self._committed(event)
            case Requested():
                if not self.seen.calls:  # nothing is learned yet: provider tokens are o200k tokens
                    self.seen.head = event.tokens - self._session().view.tokens
                await self._draw()
            case TurnDone():
                await self._words()
                await self._draw()
                if event.reason != "done":
                    self._trouble(f"a task ended otherwise: {event.reason} {event.why}")
            case TurnFailed() | LimitUnmet():
                self._trouble(event.text)
            case _:
                pass

    async def introduce(self, title: str, paragraphs: Sequence[str]) -> None:
        """What will be seen, and where it happens."""
        self._console.print(Text(title, style="bold"))
        for paragraph in paragraphs:
            self._console.print()
            self._console.print("\n".join(wrap(paragraph, self.width)))
        self._console.print()
        self._console.print(f"It works in {self._project}", soft_wrap=True)
        await self._pace.rest(2 * self._pace.moment)

    async def sum_up(self, facts: Sequence[tuple[str, str]]) -> None:
        """What it came to."""
        self.heading("what it came to")
        for label, fact in facts:
            for number, line in enumerate(wrap(fact, self.width - 8)):
                self._console.print(Text.assemble((label.ljust(8) if not number else " " * 8, "dim"), line))
        await self._pace.rest(self._pace.moment)

    def heading(self, text: str) -> None:
        """A new part begins."""
        head = f"━━ {text} "
        self._console.print()
        self._console.print(Text(head + "━" * (self.width - len(head)), style="bold"), no_wrap=True)

    async def task(self, number: int, of: int, text: str) -> None:
        """What the person asks next."""
        self.heading(f"task {number} of {of}")
        for line in wrap(f"You: {text}", self.width):
            self._console.print(Text(line, style="bold"))
        self._console.print()
        await self._pace.rest(self._pace.moment / 2)

    # --- Pieces

    async def _ended(self, event: EpisodeEnded) -> None:
        self._inside = False
        self._named("└ ", "  ", event.name, f" ends; found: {event.description}" if event.description else " ends")
        await self._pace.rest(self._pace.moment / 3)

    def _named(self, mark: str, more: str, name: str, said: str) -> None:
        """A line that begins with an episode's name, and those that it takes besides."""
        name = words.plain(name)
        for number, line in enumerate(wrap(words.plain(name + said), self.width - len(mark))):
            named = len(name) if not number else 0
            self._line(Text.assemble((more if number else mark, "dim"), (line[:named], "bold cyan"), line[named:]))

    async def _words(self) -> None:
        """The model's words, as one who speaks."""
        said, self._text = words.plain(" ".join(self._text.split())), ""
        for line in wrap(said, self.width - len(INSIDE)):
            self._console.print(Text(self._indent, style="dim"), end="")
            for number, word in enumerate(line.split(" ")):
                self._console.print(Text(" " * bool(number) + word), end="", no_wrap=True, soft_wrap=True)
                await self._pace.rest(self._pace.word)
            self._console.print()

    async def _done(self, event: CallDone) -> None:
        started = self._started.pop(event.call, None)
        if event.outcome != "done":
            self._trouble(f"{event.tool} failed: {words.first_line(event.text, 200)}")
        if started is None or (is_delimiter(event.tool) and event.outcome == "done"):
            return
        shown = f"{event.tokens:,} tokens"
        if event.shown < event.tokens:
            shown = f"{event.shown:,} of {shown}"
        room = self.width - len(self._indent) - len(shown) - 4
        what = about(event.tool, started.arguments, started.summary, room)
        mark = ("✓ ", "green") if event.outcome == "done" else ("✗ ", "red")
        self._line(Text.assemble(mark, what.ljust(room), "  ", (shown, "dim")))
        if event.tool == "read":
            path = arguments_of(started.arguments).get("path")
            self._reads[event.handle.partition("@")[0]] = (str(path), event.text)
        elif event.tool == "bash":
            self._aside(" · ".join(_lines_of(event.text)[-SAID:]))
        elif event.tool == "recall":
            self._brought = event.text
        await self._pace.rest(self._pace.line)

    async def _recalled(self, event: Recalled) -> None:
        """What was found, or what came back, held against the file that it was read from."""
        if not event.objects:
            first, *rest = [line for line in self._brought.splitlines() if line.strip()]
            self._aside(f"{first.rstrip(':')}: {rest[0]}" if rest else first)
            return
        for source in event.objects:
            path, read = self._reads.get(source, ("", ""))
            back = returned(source, read, self._brought, path, (self._project / path).read_bytes()) if path else None
            if back is None:
                self._trouble(f"{source} did not come back as it was read")
                continue
            self.seen.returned.append(back)
            lines = f"lines {back.first} to {back.last} of {back.path}"
            said = f"{source} is back, byte for byte: {lines}, {back.size:,} bytes, the same as on the disk (SHA-256 {back.digest[:12]}…)"
            for number, line in enumerate(wrap(said, self.width - len(self._indent) - 2)):
                self._line(Text("  " * bool(number) + "↩ " * (not number) + line, style="bold green"))
        await self._pace.rest(self._pace.moment)

    async def _committed(self, event: Committed) -> None:
        """What left, how much of it, why, and at which price."""
        await self._words()
        await self._draw(always=True)
        self.seen.commits += 1
        session = self._session()
        limit = session.setup.budget.limit
        why = f"That is more than {limit:,}, so episodes leave that are done and that no open one builds on:"
        for line in wrap(f"✂ {why}", self.width - len(self._indent)):
            self._line(Text(line, style="bold yellow"))
        gone = [each for each in remains(session) if each.shown < self._left.get(each.name, each.whole)]
        name = max((len(each.name) for each in gone), default=0)
        for each in gone:
            self._line(Text.assemble("  ", (each.name.ljust(name), "cyan"), self._stays(each)))
            await self._pace.rest(self._pace.line)
        self._left = {each.name: each.shown for each in remains(session)}
        price = next((commit.price for commit in session.commits if commit.n == event.n), None)
        if price is not None:
            for number, line in enumerate(wrap(_price(price), self.width - len(self._indent) - 9)):
                self._line(Text(("  price  " if not number else " " * 9) + line))
        await self._pace.rest(self._pace.moment)

    def _stays(self, each: Remains) -> str:
        before = self._left.get(each.name, each.whole)
        stays = f"{each.shown:,} stay" if each.shown else "nothing stays"
        return f"  {before:>6,} tokens, {stays}" + (": what it found" if each.shown and each.found else "")

    async def _draw(self, *, always: bool = False) -> None:
        """The window as a bar: when it has changed by enough to be seen, and falling when something left."""
        now, drawn = self._gauge, self._drawn
        if now is None or (drawn is not None and not always and abs(now.tokens - drawn.tokens) < now.limit // 100):
            return
        if drawn is not None and now.tokens < drawn.tokens and self._pace.wait is not None and self._console.is_terminal:
            for frame in range(FRAMES):
                tokens = drawn.tokens - (drawn.tokens - now.tokens) * frame // FRAMES
                self._line(self._bar(tokens, now), end="\r")
                await self._pace.rest(self._pace.line / 2)
        self._line(self._bar(now.tokens, now))
        self._drawn = now
        await self._pace.rest(self._pace.line)

    def _bar(self, tokens: int, now: Gauged) -> Text:
        facts = f"  {tokens:>6,} of {now.limit:,} tokens, {words.money(now.usd)} so far"
        width = max(8, self.width - len(INSIDE) - len("window ") - len(facts))
        aligned = "" if self._inside else " " * len(INSIDE)  # with the bars inside of episodes
        return Text.assemble(aligned, "window ", words.gauge_bar(tokens, now.limit, width), facts)

    def _aside(self, text: str) -> None:
        self._line(Text("  → " + words.first_line(text, self.width - len(self._indent) - 4), style="dim"))

    def _trouble(self, text: str) -> None:
        self.seen.troubles.append(text)
        self._line(Text("! " + words.first_line(text, self.width - 4), style="red"))

    @property
    def _indent(self) -> str:
        return INSIDE if self._inside else ""

    def _line(self, text: Text, *, end: str = "\n") -> None:
        whole = Text.assemble((self._indent, "dim"), text)
        whole.truncate(self._console.width, overflow="ellipsis")
        self._console.print(whole, end=end, no_wrap=True, overflow="ellipsis")


def _lines_of(text: str) -> list[str]:
    """The lines of a command's output that say something, without the note that all is well."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return lines[:-1] if lines and lines[-1].startswith("[exit code 0") else lines


def _price(price: Price) -> str:
    """What a commit costs and spares, in words."""
    paid = f"{words.money(price.broken_usd)} to write again what stands behind them in the provider's cache"
    calls = f"{price.n:,.0f} calls"
    spared = f"{words.money(price.spared_usd)} spared over the next {calls}, more if there are more"
    return f"{paid}; {spared}" if price.p > 0 else f"nothing, as the provider's cache is cold; {spared}"


def remains(session: Session) -> tuple[Remains, ...]:
    """The declared episodes that are closed, in order, and all undeclared ones as one. One pass over the index."""
    found = [_remains(session, episode) for episode in session.index.episodes if episode.declared and episode.closed]
    beside = [_remains(session, episode) for episode in session.index.episodes if not episode.declared]
    if not beside:
        return tuple(found)
    return (*found, Remains(name=BETWEEN, whole=sum(each.whole for each in beside), shown=sum(each.shown for each in beside)))


def _remains(session: Session, episode: Episode) -> Remains:
    whole = shown = 0
    for n in session.index.entries_of(episode):
        for number, block in enumerate(session.index.entries[n].blocks):
            if block.episode == episode.ordinal:
                whole += block.tokens
                shown += session.view.weight(n, number)
    return Remains(name=episode.name, whole=whole, shown=shown, found=bool(episode.description))


def arguments_of(text: str) -> dict[str, object]:
    """The arguments of a call; none where they are no JSON object."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return {}
    return cast(dict[str, object], found) if isinstance(found, dict) else {}


def about(tool: str, arguments: str, summary: str, width: int) -> str:
    """What a call is about, in one line."""
    given = arguments_of(arguments)
    said = " ".join(str(given[name]) for name in _ABOUT.get(tool, ()) if given.get(name) not in (None, "", "."))
    if not said and summary.startswith(tool):
        said = summary[len(tool) :].strip()
    offset, limit = given.get("offset"), given.get("limit")
    if tool == "read" and isinstance(offset, int) and isinstance(limit, int):
        said += f", lines {offset} to {offset + limit - 1}"
    return words.first_line(f"{tool} {said}".strip(), width)


def returned(source: str, read: str, brought: str, path: str, disk: bytes) -> Returned | None:
    """What came back of a read file; None unless every line is what `read` had said then and what `disk` holds now."""
    if read not in brought:
        return None
    lines = list(_numbered(read))
    if not lines or [n for n, _ in lines] != list(range(lines[0][0], lines[-1][0] + 1)):
        return None
    first, last = lines[0][0], lines[-1][0]
    there = b"\n".join(disk.split(b"\n")[first - 1 : last])
    if "\n".join(line for _, line in lines).encode() != there:
        return None
    return Returned(source=source, path=path, first=first, last=last, size=len(there), digest=sha256(there).hexdigest())


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a result of `read`, each behind its number and a tab."""
    for line in text.split("\n"):
        number, tab, rest = line.partition("\t")
        if tab and number.isdecimal():
            yield int(number), rest
