"""What the engine knows of a call's worth: who used it since, what of it stands nowhere else in the view, whether it can be had again.

One pass over the texts of the view, made when a planner is asked and when its answer comes. A locator is an exact string that leads somewhere: a URL,
a path, an id, a long number. The harm detector has an extractor of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Origin, Read
from tenure.engine.record.index import NONE, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ACTS, Act, ToolKind

SOLE: Final = 3  # locators that are named of one call
LONGEST: Final = 120  # characters of a locator

_LOCATOR: Final = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}]{4,200}+"
    r"|(?<![\w/.@+~:-])(?:~|\.{1,2})?/?(?:[\w.@+-]++/)++[\w.@+-]*+"
    r"|(?<![\w-])(?:[A-Z][A-Z0-9]{1,9}-\d{1,7}|[0-9a-f]{7,40}(?:-[0-9a-f]{4,12}){0,4}|\d{5,20})(?![\w-])"
)
_EXACT: Final = re.compile(r"[\d._-]")  # else words with strokes between them
_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w{4,60}+")
_TELLING: Final = re.compile(r"_|\d|[a-z][A-Z]")
_ENDS: Final = ".,;:!?-/"
_AGAIN: Final = {Act.SEARCH: "can be run again", Act.LIST: "can be run again", Act.LOOK_UP: "can be run again"}
UNCHANGED: Final = "its file is unchanged since"


class Known(Struct, frozen=True, kw_only=True):
    """What is known of one call."""

    uses: int = 0  # later replies that name what was seen here first
    last_use: int = 0  # replies since the newest of them
    sole: tuple[str, ...] = ()  # locators that stand nowhere else in the view, at most SOLE
    again: str = ""  # how the same can be had again; empty where that is not known
    edited: str = ""  # the newest later call that changed its file

    @property
    def is_last_holder(self) -> bool:
        """Whether the view would lose something that stands nowhere else and is not known to be had again."""
        return bool(self.sole) and not self.again


NOTHING: Final = Known()


def locators(text: str) -> Iterator[str]:
    """The exact strings of a text that lead somewhere. Linear."""
    for found in _LOCATOR.findall(text):
        name = found.rstrip(_ENDS)
        if 4 < len(name) <= LONGEST and (_EXACT.search(name) or name[0] in "/~"):
            yield name


def known_of(situation: Situation, read: Read, spans: Iterable[Span], cues: Mapping[int, str]) -> dict[int, Known]:
    """What is known of these calls, by ordinal. `cues`: what each call of the view was about, in full. O(texts of the view)."""
    shown = list(spans)
    names, edits = _ViewNames(situation, read), _edits(shown, cues)
    now = len(situation.index.steps)
    known: dict[int, Known] = {}
    for span in shown:
        used = names.uses.get(span.ordinal, set())
        again, edited = _again(span, cues, edits)
        known[span.ordinal] = Known(
            uses=len(used),
            last_use=now - max(used) if used else 0,
            sole=tuple(names.sole.get(span.ordinal, ())[:SOLE]),
            again=again,
            edited=edited,
        )
    return known


class _ViewNames:
    """The names of a view: where each was seen first, who spoke of it later, and which locators have one holder only."""

    def __init__(self, situation: Situation, read: Read) -> None:
        self.uses: dict[int, set[int]] = {}  # by span: the replies that name what it gave
        self._first: dict[str, int] = {}  # name -> the owner that showed it first: a span, or NONE for anything else
        self._shared: set[str] = set()  # locators with a second holder
        self._given: set[str] = set()  # locators that results hold
        index = situation.index
        for row in situation.view.rows():
            instead = {number: shown.text for number, shown in row.replaced}
            entry = read(row.entry)
            step = index.entries[row.entry].step
            for number in row.blocks:
                fact = index.block((row.entry, number))
                text = instead.get(number, entry.blocks[number].text)
                self._take(text, fact.span, step if fact.origin is Origin.MODEL else NONE)
                if fact.kind == "tool_result":
                    self._given.update(locators(text))
        for insert in situation.view.inserts:
            self._take(insert.text, NONE, NONE)
        self.sole: dict[int, list[str]] = {}
        for name, owner in self._first.items():
            if owner != NONE and name in self._given and name not in self._shared:
                self.sole.setdefault(owner, []).append(name)

    def _take(self, text: str, owner: int, step: int) -> None:
        """The names of one block; `step` of what the model itself said or called, else NONE."""
        found = dict.fromkeys(locators(text))  # in the order of the text: the same record, the same question
        self._shared |= {name for name in found if self._first.get(name, owner) != owner}
        found |= dict.fromkeys(name for name in _NAME.findall(text) if _TELLING.search(name))
        for name in found:
            first = self._first.setdefault(name, owner)
            if step != NONE and first not in (NONE, owner):
                self.uses.setdefault(first, set()).add(step)


def _edits(spans: Iterable[Span], cues: Mapping[int, str]) -> dict[str, Span]:
    """The newest call that changed each file, by its name without folders."""
    return {_file(cues[span.ordinal]): span for span in spans if span.kind is ToolKind.DURABLE and not span.error}


def _again(span: Span, cues: Mapping[int, str], edits: Mapping[str, Span]) -> tuple[str, str]:
    act = ACTS.get(tool_name(span.tool))
    if act is not Act.READ or span.error:
        return (_AGAIN.get(act, "") if act is not None and not span.error else ""), ""
    edit = edits.get(_file(cues[span.ordinal]))
    is_edited = edit is not None and edit.ordinal > span.ordinal
    return ("", edit.object) if edit is not None and is_edited else (UNCHANGED, "")


def _file(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]
