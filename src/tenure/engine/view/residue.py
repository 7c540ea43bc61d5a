"""What a removal leaves in the view.

A residue is one inserted entry that names what left between two things still shown. It is described by its routes alone, which the index
resolves, so merging needs no parsing and the same record and commits give the same words on every machine.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from tenure.engine.record.entry import Role
from tenure.engine.record.episodes import Episode
from tenure.engine.record.index import Index, Span
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.quotation import cited, in_quotes
from tenure.engine.record.tools import ToolKind, is_delimiter, is_recall

DESCRIPTION_SHARE: Final = 0.08  # of the limit: what the descriptions of evicted expl episodes may weigh
NAME_SHARE: Final = 0.05  # of the limit: what the names may weigh of those that are described no more
CUES: Final = 12  # tool calls that one residue names
_HOW: Final = "recall brings back any of it, by handle, path or words"
_PLAIN: Final = re.compile(r"[\w.\-/]+")  # a name that needs nothing around it


class Residue:
    """The evicted episodes between two things still shown: `first` to `last` by start, what was found in them, and the calls worth naming.

    `room` is what descriptions may weigh and `names` what names may, in tokens: the newest are described, older ones named, the oldest neither.
    """

    def __init__(self, index: Index, episodes: Iterable[Episode], cues: Iterable[Span] = (), *, room: int, names: int) -> None:
        self._index = index
        known = {episode.ordinal: episode for episode in episodes}
        self.episodes = [known[ordinal] for ordinal in sorted(known)]
        found = [episode for episode in self.episodes if episode.description]
        described = _newest(found, [description_weight(index, each) for each in found], room)
        older = found[: len(found) - len(described)]
        self.described = described
        self.named = _newest(older, list(map(name_weight, older)), names)
        called = {
            source.ordinal: source for span in cues for source in index.sources(span) if source.cue
        }  # a recall is named by its sources
        self.cues = list({called[ordinal].cue: called[ordinal] for ordinal in sorted(called)}.values())[-CUES:]

    @property
    def first(self) -> Episode:
        """The oldest episode it stands for."""
        return self.episodes[0]

    @property
    def last(self) -> Episode:
        """The newest episode it stands for."""
        return self.episodes[-1]

    def routes(self) -> tuple[str, ...]:
        """The handles its text names: the ends of the stretch, described episodes, those of which only the name stands (without a hash), calls."""
        shown = [self.first, self.last, *self.described]
        handles = [self._index.handle(episode.object, episode.start[0]) for episode in shown]
        handles += [episode.object for episode in self.named]
        handles += [self._index.handle(span.object, span.call[0]) for span in self.cues]
        return tuple(dict.fromkeys(handles))

    def text(self) -> str:
        """What the model reads."""
        lines = [f"[evicted: {self._range()}{self._tally()} · {_HOW}]"]
        if self.named:
            names = ", ".join(e.name if _PLAIN.fullmatch(e.name) else e.object for e in self.named)
            lines.append(f"[found earlier, recall brings back each by its name, and older ones by words: {names}]")
        lines += [f"{self._index.handle(e.object, e.start[0])}: {in_quotes(e.description)}" for e in self.described]
        if self.cues:
            lines.append("; ".join(f"{self._index.handle(s.object, s.call[0])} {cited(s.cue)}" for s in self.cues))
        return "\n".join(lines)

    def _range(self) -> str:
        first, last = (self._index.handle(episode.object, episode.start[0]) for episode in (self.first, self.last))
        return first if first == last else f"{first} to {last}"

    def _tally(self) -> str:
        start, stop = self.first.start, _end_of(self._index, self.last)
        counted = [
            (self._index.calls_between(tool, start, stop), tool)
            for tool in self._index.tools
            if not (is_delimiter(tool) or is_recall(tool))
        ]
        shown = sorted((pair for pair in counted if pair[0]), reverse=True)[:6]
        return "".join(f", {count} {cited(tool)}" for count, tool in shown)


def described_only(episode: Episode, handle: str) -> str:
    """The paper's residue: the description is all that is kept of an expl (section 4.2)."""
    return f"[evicted: {handle}] {in_quotes(episode.description)}"


def place_of(index: Index, entry: int) -> int:
    """Where a residue of something that started in `entry` may stand: never between a call and its result."""
    while entry and not index.entries[entry].at_rest:
        entry -= 1
    return entry


def named_by(index: Index, routes: Sequence[str]) -> tuple[list[Episode], list[Span]]:
    """The episodes and calls that a residue's routes name; the inverse of `Residue.routes`."""
    episodes: list[Episode] = []
    spans: list[Span] = []
    for route in routes:
        handle = parse_handle(route)
        if handle.kind == "episode":
            found = index.graph.named(handle.name)
            episodes += [found] if found else []
        elif handle.kind == "step":
            episodes += index.implicit(handle.name)
        else:
            tool, _, number = handle.object.rpartition(":")
            span = index.span(tool, int(number))
            spans += [span] if span else []
    return episodes, spans


def findings_weight(index: Index, routes: Sequence[str]) -> tuple[int, int]:
    """About what the descriptions weigh that a residue of these routes gives, and what the names do that it gives without. Nothing is counted."""
    handles = [handle for handle in map(parse_handle, routes) if handle.kind == "episode"]
    named = {handle.name for handle in handles if not handle.hash}
    found = {handle.name: index.graph.named(handle.name) for handle in handles}
    described = sum(description_weight(index, each) for name, each in found.items() if each is not None and name not in named)
    return described, sum(name_weight(each) for name, each in found.items() if each is not None and name in named)


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


def role_of_residue() -> Role:
    """Residues are the harness's words; every provider accepts a user message between exchanges."""
    return Role.USER


def _newest(found: Sequence[Episode], weights: Sequence[int], room: int) -> list[Episode]:
    """The newest of them, as many as there is room for, in order."""
    sums = list(accumulate(reversed(weights)))
    return list(found[len(found) - bisect_right(sums, room) :])


def _end_of(index: Index, episode: Episode) -> tuple[int, int]:
    return (index.entries_of(episode).stop, 0)
