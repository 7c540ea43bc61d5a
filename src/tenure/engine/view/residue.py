"""What stands in a view for what left: residues of episodes, pointers to folded objects, and the lines that these merge into.

Each is one inserted entry, described by its routes alone, which the index resolves. So merging needs no parsing, and the same record and
commits give the same words on every machine. Recall finds by path, words or handle what no line names any more.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import At
from tenure.engine.record.episodes import Episode
from tenure.engine.record.index import Index, Span
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.quotation import cited, enclosed, in_quotes
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.tools import ToolKind, is_delimiter, is_recall
from tenure.engine.view.edit import Insert, Remove
from tenure.engine.view.project import Projection
from tenure.errors import InputError

DESCRIPTION_SHARE: Final = 0.08  # of the limit: what the descriptions of evicted expl episodes may weigh
NAME_SHARE: Final = 0.05  # of the limit: what the names may weigh of those that are described no more
CUES: Final = 12  # tool calls that one residue names
NAMED: Final = 24  # objects that the line of a turn names
CUE_CHARS: Final = 40  # of an object in the line of a turn
_TOOLS: Final = 6  # that a line counts calls of
_HOW: Final = "recall brings back any of it, by handle, path or words"
_PLAIN: Final = re.compile(r"[\w.\-/]+")  # a name that needs nothing around it


class ResidueLine(Struct, frozen=True, kw_only=True, gc=False):
    """What the model reads, and the handles in it."""

    text: str
    routes: tuple[str, ...]


class Residue:
    """The evicted episodes between two things still shown: `first` to `last` by start, what was found in them, and the calls worth naming.

    `room` is what descriptions may weigh and `names` what names may, in tokens: the newest are described, older ones named, the oldest neither.
    """

    def __init__(self, index: Index, episodes: Iterable[Episode], cues: Iterable[Span] = (), *, room: int, names: int) -> None:
        self._index = index
        known = {episode.ordinal: episode for episode in episodes}
        every = [known[ordinal] for ordinal in sorted(known)]
        self.first, self.last = every[0], every[-1]
        findings = [episode for episode in every if episode.description]
        self.described = _newest(findings, [description_weight(index, each) for each in findings], room)
        older = findings[: len(findings) - len(self.described)]
        self.named = _newest(older, list(map(name_weight, older)), names)
        calls = {
            source.ordinal: source for span in cues for source in index.sources(span) if source.cue
        }  # a recall is named by its sources
        self.cues = list({calls[ordinal].cue: calls[ordinal] for ordinal in sorted(calls)}.values())[-CUES:]

    def routes(self) -> tuple[str, ...]:
        """The handles its text names: the ends of the stretch, described episodes, those of which only the name stands (without a hash), calls."""
        handles = [_handle(self._index, episode) for episode in (self.first, self.last, *self.described)]
        handles += [episode.object for episode in self.named]
        handles += [self._index.handle(span.object, span.call[0]) for span in self.cues]
        return tuple(dict.fromkeys(handles))

    def text(self) -> str:
        """What the model reads."""
        index = self._index
        first, last = _handle(index, self.first), _handle(index, self.last)
        ends = first if first == last else f"{first} to {last}"
        counts = _tally(index, self.first.start, (index.entries_of(self.last).stop, 0))
        lines = [f"[evicted: {ends}{''.join(f', {count} {cited(tool)}' for count, tool in counts)} · {_HOW}]"]
        if self.named:
            names = ", ".join(e.name if _PLAIN.fullmatch(e.name) else e.object for e in self.named)
            lines.append(f"[found earlier, recall brings back each by its name, and older ones by words: {names}]")
        lines += [f"{_handle(index, e)}: {in_quotes(e.description)}" for e in self.described]
        if self.cues:
            lines.append("; ".join(f"{index.handle(s.object, s.call[0])} {cited(s.cue)}" for s in self.cues))
        return "\n".join(lines)


def described_only(index: Index, episode: Episode) -> str:
    """The paper's residue: the description is all that is kept of an expl (section 4.2)."""
    return f"[evicted: {_handle(index, episode)}] {in_quotes(episode.description)}"


def place_of(index: Index, entry: int) -> int:
    """Where a residue of something that started in `entry` may stand: never between a call and its result."""
    while entry and not index.entries[entry].at_rest:
        entry -= 1
    return entry


def named_by(index: Index, routes: Sequence[str]) -> tuple[list[Episode], list[Span]]:
    """The episodes and calls that a residue's routes name; the inverse of `Residue.routes`."""
    episodes: list[Episode] = []
    spans: list[Span] = []
    for handle in map(parse_handle, routes):
        if handle.kind == "episode":
            episodes += [episode] if (episode := index.graph.named(handle.name)) else []
        elif handle.kind == "step":
            episodes += index.implicit(handle.name)
        elif span := index.span_of(handle.object):
            spans.append(span)
    return episodes, spans


def findings_weight(index: Index, routes: Sequence[str]) -> tuple[int, int]:
    """About what the descriptions weigh that a residue of these routes gives, and what the names do that it gives without. Nothing is counted."""
    handles = [handle for handle in map(parse_handle, routes) if handle.kind == "episode"]
    bare = {handle.name for handle in handles if not handle.hash}
    episodes = {handle.name: index.graph.named(handle.name) for handle in handles}
    described = sum(description_weight(index, each) for name, each in episodes.items() if each is not None and name not in bare)
    return described, sum(name_weight(each) for name, each in episodes.items() if each is not None and name in bare)


def description_weight(index: Index, episode: Episode) -> int:
    """At most what a description weighs in a residue, without counting: the call that gave it, its line's handle, a margin."""
    if not (episode.description and episode.end):
        return 0
    return index.block(episode.end).tokens + name_weight(episode) + 8


def name_weight(episode: Episode) -> int:
    """About what a name weighs in a line of names, without counting."""
    return len(episode.name) // 3 + 3


def worth_naming(span: Span) -> bool:
    """Whether a call is named when it leaves: it says what it was about, and its output is not cheap search output."""
    if is_recall(span.tool):
        return True  # by what it brought back
    return bool(span.cue) and span.kind is not ToolKind.BULK and not is_delimiter(span.tool)


def is_pointer(insert: Insert) -> bool:
    """Whether it stands for something folded: a pointer, or the line that pointers were merged into."""
    return insert.stands_for in ("object", "turn", "stretch")


def is_stretch(insert: Insert) -> bool:
    """Whether its routes are the ends of a stretch, and not all it stands for."""
    return insert.stands_for == "stretch" or insert.routes[0].startswith("entry:")


def turn_line(index: Index, routes: Iterable[str]) -> ResidueLine:
    """One line for the folded objects of a turn, in record order; of more than NAMED the oldest and the newest are named."""
    every = _ordered(index, routes)
    named = every if len(every) <= NAMED else (every[0], *every[1 - NAMED :])
    parts = [_named(index, route) for route in named]
    if len(named) < len(every):
        parts.insert(1, f"{len(every) - len(named)} more")
    return ResidueLine(text=f"[folded: {'; '.join(parts)} · recall brings back each, by handle, path or words]", routes=named)


def stretch_line(index: Index, routes: Iterable[str]) -> ResidueLine:
    """One line for all that was folded between the first and the last of these objects."""
    every = _ordered(index, routes)
    first, last = every[0], every[-1]
    ends = first if first == last else f"{first} to {last}"
    counts = "".join(f", {count} {cited(tool)}" for count, tool in _tally(index, start_of(index, first), _end_of(index, last)))
    return ResidueLine(text=f"[folded: part of {ends}{counts} · {_HOW}]", routes=tuple(dict.fromkeys((first, last))))


def start_of(index: Index, route: str) -> At:
    """Where the object of a handle starts; the record's start when there is no such object."""
    handle = parse_handle(route)
    if handle.kind == "user" and handle.name.isdecimal() and 0 < int(handle.name) <= len(index.turns):
        return index.turns[int(handle.name) - 1].start
    if (span := index.span_of(handle.object)) is not None:
        return span.call
    return next(iter(_blocks(index, route)), (0, 0))


def is_whole(index: Index, view: Projection, route: str) -> bool:
    """Whether an object is shown as the record has it, so that nothing need stand for it."""
    places = _blocks(index, route)
    return bool(places) and all(view.shows(*at) and view.instead(*at) is None for at in places)


def needless(index: Index, view: Projection) -> Iterator[Remove]:
    """The removal of every pointer and line of a turn all of whose objects are shown whole again."""
    for insert in view.inserts:
        if is_pointer(insert) and not is_stretch(insert) and all(is_whole(index, view, route) for route in insert.routes):
            yield Remove(key=insert.key)


def _blocks(index: Index, route: str) -> tuple[At, ...]:
    """The blocks of the object of a handle; none when there is no such object."""
    try:
        return blocks_of(index, parse_handle(route))
    except InputError:
        return ()


def _handle(index: Index, episode: Episode) -> str:
    return index.handle(episode.object, episode.start[0])


def _ordered(index: Index, routes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(routes), key=lambda route: start_of(index, route)))


def _named(index: Index, route: str) -> str:
    span = index.span_of(parse_handle(route).object)
    cue = enclosed(span.cue) if span is not None else ""
    if len(cue) > CUE_CHARS:
        cue = f"…{cue[1 - CUE_CHARS :]}" if " " not in cue else f"{cue[: CUE_CHARS - 1]}…"
    return f"{route} {cited(cue)}".rstrip()


def _tally(index: Index, start: At, stop: At) -> list[tuple[int, str]]:
    """How many calls were made between two blocks, by tool: the most frequent."""
    tools = (tool for tool in index.tools if not (is_delimiter(tool) or is_recall(tool)))
    counts = ((index.calls_between(tool, start, stop), tool) for tool in tools)
    return sorted((pair for pair in counts if pair[0]), reverse=True)[:_TOOLS]


def _end_of(index: Index, route: str) -> At:
    start, handle = start_of(index, route), parse_handle(route)
    if handle.kind == "entry":
        return start[0] + 1, 0
    if handle.kind == "user":
        turn = int(handle.name)
        return index.turns[turn].start if turn < len(index.turns) else (len(index), 0)
    return start[0], start[1] + 1


def _newest(episodes: Sequence[Episode], weights: Sequence[int], room: int) -> list[Episode]:
    """The newest of them, as many as there is room for, in order."""
    sums = list(accumulate(reversed(weights)))
    return list(episodes[len(episodes) - bisect_right(sums, room) :])
