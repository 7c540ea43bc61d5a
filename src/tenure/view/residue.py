"""What a removal leaves in the view. Promise: nothing is lost, and the floor of a view does not grow with the session.

A residue is one inserted entry that names what left between two things still shown. It is described by its routes alone, which the index
resolves, so merging needs no parsing and the same record and commits give the same words on every machine.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from tenure.record.entry import Role
from tenure.record.episodes import Episode
from tenure.record.index import Index, Span, is_recall
from tenure.record.objects import parse_handle
from tenure.record.tools import ToolKind, is_delimiter

CUES: Final = 12  # tool calls that one residue names
_HOW: Final = "recall brings back any of it, by handle, path or words"


class Residue:
    """The evicted episodes between two things still shown: `first` to `last` by start, and the calls worth naming."""

    def __init__(
        self, index: Index, episodes: Iterable[Episode], cues: Iterable[Span] = (), described: Iterable[Episode] | None = None
    ) -> None:
        self._index = index
        known = {episode.ordinal: episode for episode in episodes}
        self.episodes = [known[ordinal] for ordinal in sorted(known)]
        named = self.episodes if described is None else sorted(described, key=lambda episode: episode.ordinal)
        self.described = [episode for episode in named if episode.description]  # what stays longest
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
        """The handles its text names: the ends of the stretch, described episodes, calls."""
        named = [self.first, self.last, *self.described]
        handles = [self._index.handle(episode.object, episode.start[0]) for episode in named]
        handles += [self._index.handle(span.object, span.call[0]) for span in self.cues]
        return tuple(dict.fromkeys(handles))

    def text(self) -> str:
        """What the model reads."""
        lines = [f"[evicted: {self._range()}{self._tally()} · {_HOW}]"]
        lines += [f"{self._index.handle(e.object, e.start[0])}: {e.description}" for e in self.described]
        if self.cues:
            lines.append("; ".join(f"{self._index.handle(s.object, s.call[0])} {s.cue}" for s in self.cues))
        return "\n".join(lines)

    def without_cues(self) -> "Residue":
        """The same, naming no calls."""
        return Residue(self._index, self.episodes, described=self.described)

    def describing(self, episodes: Iterable[Episode]) -> "Residue":
        """The same stretch, describing only these episodes and naming no calls."""
        return Residue(self._index, self.episodes, described=episodes)

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
        return "".join(f", {count} {tool}" for count, tool in shown)


def described_only(episode: Episode, handle: str) -> str:
    """The paper's residue: the description is all that is kept of an expl (section 4.2)."""
    return f"[evicted: {handle}] {episode.description}"


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


def worth_naming(span: Span) -> bool:
    """Whether a call is named when it leaves: it says what it was about, and its output is not cheap search output."""
    if is_recall(span.tool):
        return True  # by what it brought back
    return bool(span.cue) and span.kind is not ToolKind.BULK and not is_delimiter(span.tool)


def role_of_residue() -> Role:
    """Residues are the harness's words; every provider accepts a user message between exchanges."""
    return Role.USER


def _end_of(index: Index, episode: Episode) -> tuple[int, int]:
    return (index.entries_of(episode).stop, 0)
