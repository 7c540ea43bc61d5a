"""The parts of the transcript.

A piece is fed as fast as events come and drawn when the screen has time (`flush`), so that a flood of output costs no more than its tail.
"""

from collections import deque
from contextlib import suppress
from itertools import islice
from typing import Final

import msgspec
from textual.content import Content

from tenure.agent.events import CallDone, CallStarted, Outcome
from tenure.agent.screens import clean
from tenure.agent.screens.prose import hunks, prose
from tenure.agent.screens.widgets import MeasuredText
from tenure.agent.tools.change import difference
from tenure.agent.tools.terminal_text import Cleaner
from tenure.apis.json_text import load
from tenure.engine.meter import figures
from tenure.errors import InputError

SPLIT: Final = 3_000  # characters of a reply, after which the next paragraph is a piece of its own
HARD: Final = 8_000  # after which any line is
TAIL: Final = 12  # lines of output that are shown while a tool works
DONE: Final = 6  # and of its result once it is done
DIFF: Final = 40  # lines of a diff
THOUGHT: Final = 3  # lines of reasoning
WIDEST: Final = 500  # cells of a terminal
_LINE: Final = 500  # characters of a line of output
_HELD: Final = 20_000  # characters of a result, of which only the first lines are shown

_SIGNS: Final[dict[Outcome, tuple[str, str]]] = {
    "done": ("●", "$text-success"),
    "error": ("●", "$text-error"),
    "declined": ("○", "$text-warning"),
    "interrupted": ("○", "$text-warning"),
}


class TranscriptPiece(MeasuredText):
    """A part of the transcript; `is_stale` until it was drawn."""

    DEFAULT_CSS = """
    TranscriptPiece { height: auto; padding: 0 1; margin: 0 0 1 0; }
    TranscriptPiece.-said { border-left: outer $primary; background: $surface; }
    TranscriptPiece.-boundary { color: $text-accent; text-wrap: nowrap; text-overflow: clip; }
    TranscriptPiece.-ended { color: $text-accent; }
    TranscriptPiece.-note { color: $quiet; }
    TranscriptPiece.-warning { color: $text-warning; }
    TranscriptPiece.-error { color: $text-error; }
    TranscriptPiece.-call { padding: 0 1 0 1; }
    """

    def __init__(self, content: Content | None = None, kind: str = "") -> None:
        super().__init__(content if content is not None else "", classes=f"-{kind}" if kind else None)
        self.is_stale = False

    def flush(self) -> None:
        """Draw what came."""
        if self.is_stale:
            self.is_stale = False
            self.update(self.drawn())

    def drawn(self) -> Content:
        """As it stands."""
        raise NotImplementedError


class Words(TranscriptPiece):
    """What the model says, as it comes."""

    def __init__(self, text: str = "") -> None:
        super().__init__(kind="words")
        self._parts, self._length = [text], len(text)
        self.is_stale = bool(text)

    def feed(self, text: str) -> str:
        """Take words in; what is left for the next piece, when this one is full."""
        whole = self._length + len(text)
        if whole < SPLIT:
            self._parts.append(text)
            self._length, self.is_stale = whole, True
            return ""
        said = "".join(self._parts) + text
        place = said.find("\n\n", SPLIT)
        even = place >= 0 and said.count("```", 0, place) % 2 == 0
        if not even:
            place = said.find("\n", HARD) if whole >= HARD else -1
            place = HARD + SPLIT if place < 0 and whole > HARD + SPLIT else place
        rest = said[place:].lstrip("\n") if place >= 0 else ""
        self._parts = [said[:place] if rest else said]
        self._length, self.is_stale = len(self._parts[0]), True
        return rest

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._parts)

    def drawn(self) -> Content:
        self._parts = [self.text]
        return prose(self._parts[0])


class Thought(TranscriptPiece):
    """Reasoning: only its newest lines are shown."""

    def __init__(self) -> None:
        super().__init__(kind="thought")
        self._tail = ""

    def feed(self, text: str) -> None:
        """Take reasoning in."""
        self._tail = (self._tail + text)[-2_000:]
        self.is_stale = True

    def drawn(self) -> Content:
        lines = [line for line in clean.text(self._tail).split("\n") if line.strip()][-THOUGHT:]
        return Content.styled("\n".join(lines), "$quiet italic")


class CallPiece(TranscriptPiece):
    """A call: what it does, its output as it comes, its result or its diff."""

    def __init__(self, started: CallStarted) -> None:
        super().__init__(kind="call")
        self.started = started
        self.done: CallDone | None = None
        self._cleaner = Cleaner()
        self._lines: deque[str] = deque(maxlen=TAIL)
        self._count = 0
        self._asked = False
        self.is_stale = True

    def feed(self, text: str) -> None:
        """Take output in: only its tail is kept."""
        newlines = text.count("\n")
        if newlines > 4 * TAIL:  # a flood: what will be scrolled away at once is only counted
            kept = text.rsplit("\n", 2 * TAIL + 1)
            self._count += newlines - 2 * TAIL
            text = "\n".join(kept[1:])
        shown = self._cleaner.feed(text[-TAIL * _LINE * 2 :].encode("utf-8", "replace"))
        for line in shown.splitlines():
            self._lines.append(_short(line))
            self._count += 1
        self.is_stale = True

    def ask(self, waits: bool) -> None:
        """Whether it waits for a person."""
        self._asked, self.is_stale = waits, True

    def finish(self, done: CallDone) -> None:
        """Its result is there."""
        self._count = done.text.rstrip().count("\n") + 1
        self.done, self._asked, self.is_stale = msgspec.structs.replace(done, text=done.text[:_HELD]), False, True

    def drawn(self) -> Content:
        started, done = self.started, self.done
        sign, tone = _SIGNS[done.outcome] if done is not None else ("?" if self._asked else "◌", "$text-warning")
        facts = "waits for your word" if self._asked else "" if done is None else _facts(done)
        head = Content.assemble(
            (f"{sign} ", tone),
            (clean.line(started.tool, 40), "bold"),
            f" {clean.line(started.summary.removeprefix(started.tool).lstrip() or _handed(started), 160)}",
            (f"  {facts}" if facts else "", "$quiet"),
        )
        body = self._body()
        return head + "\n" + body if body.plain else head

    def _body(self) -> Content:
        done = self.done
        if done is None:
            return _indented(list(self._lines), self._count)
        if done.outcome == "done" and (lines := _diff(self.started)):
            more = f"\n  [{len(lines) - DIFF:,} more lines]" if len(lines) > DIFF else ""
            return hunks(lines[:DIFF]) + Content.styled(more, "$quiet")
        lines = clean.text(done.text).rstrip().split("\n") if done.text.strip() else []
        most = DONE if done.outcome == "done" else 2 * DONE
        return _indented([_short(line) for line in lines[:most]], self._count if lines else 0, first=True)


def _short(line: str) -> str:
    """A line of output, with a sign where it is cut."""
    return line if len(line) <= _LINE else f"{line[:_LINE]} [… {len(line) - _LINE:,} characters]"


def _indented(lines: list[str], count: int, *, first: bool = False) -> Content:
    """Lines of output below their call; how many are not shown is said where they are missing."""
    more = count - len(lines)
    told = [f"[{more:,} more lines]"] if more > 0 else []
    shown = lines + told if first else told + lines
    return Content.styled("\n".join(f"  {line}" for line in shown), "$quiet")


def _facts(done: CallDone) -> str:
    parts = [done.outcome] if done.outcome != "done" else []
    parts += [f"{figures.short(done.tokens)} tokens"] if done.tokens else []
    parts += [f"shown {figures.short(done.shown)}"] if done.shown < done.tokens else []
    parts += [f"{done.seconds:.1f} s"] if done.seconds >= 0.1 else []
    return " · ".join([*parts, *([done.handle] if done.handle else [])])


def _diff(started: CallStarted) -> list[str]:
    """What an edit changed, by its own arguments, without heads: these would count lines of the arguments. Empty for another tool."""
    if started.tool != "edit":
        return []
    from tenure.agent.tools.edit import EditArguments

    try:
        asked = msgspec.json.decode(started.arguments, type=EditArguments)
        found = (difference(each.old, each.new, asked.path) for each in asked.replacements)
        changes = [hunk.split("\n")[3:] for hunk in islice((hunk for hunk in found if hunk), 20)]
        return [line for n, lines in enumerate(changes) for line in (["⋯"] if n else []) + lines]
    except (msgspec.DecodeError, InputError, UnicodeError, RecursionError):
        return []


def _handed(started: CallStarted) -> str:
    """What a sub-agent was given to do, and where; empty for another tool."""
    with suppress(InputError):
        match load(started.arguments) if started.tool == "task" else None:
            case {"task": str(task), "folder": str(folder)} if folder:
                return f"{folder}: {task}"
            case {"task": str(task)}:
                return task
            case _:
                pass
    return ""


def begins(words: str) -> TranscriptPiece:
    """A line across: an episode begins."""
    return TranscriptPiece(Content.assemble(("── ", ""), (clean.line(words, 200), "bold"), " ", "─" * WIDEST), "boundary")


def ends(words: str) -> TranscriptPiece:
    """An episode ends; what was learned stands here."""
    return TranscriptPiece(Content(f"└─ {clean.line(words, 400)}"), "ended")


def said(text: str) -> TranscriptPiece:
    """What the person said."""
    return TranscriptPiece(Content(clean.text(text, 8_000)), "said")


def note(text: str, kind: str = "note") -> TranscriptPiece:
    """Something that happened."""
    return TranscriptPiece(Content(clean.text(text, 4_000)), kind)
