"""Repeated exploration: the same read or search again, of what was read before and has not changed since (CWL paper, sections 6.4 and 6.5). Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from tenure.engine.view.edit import Commit, Drop, Replace, Restore
from tenure.lab.audit.files import lines_shown
from tenure.lab.bench.measures.calls import Called

SHARE: Final = 0.5  # of a read's lines: of fewer that were read before, it is a read of something else
KEPT: Final = 256  # reads of one file that are watched at a time, the newest


class Again(Struct, frozen=True, kw_only=True):
    """A call that gave what an earlier one had given. o200k tokens of its result."""

    object: str
    earlier: str
    about: str  # a path, pattern or command
    tokens: int
    across: bool  # the earlier one was made in an earlier human turn: for another task, where each task is a turn
    gone: bool  # what the earlier one gave was not in the view any more, or not whole


class Explored(Struct, frozen=True, kw_only=True):
    """The calls of a stretch that only looked, and those of them that were repeated."""

    looks: int = 0
    tokens: int = 0  # o200k, of their results
    again: tuple[Again, ...] = ()

    @property
    def again_tokens(self) -> int:
        """o200k tokens that were read for a second time."""
        return sum(each.tokens for each in self.again)


def explored(made: Iterable[Called], commits: Iterable[Commit] = (), first: int = 0) -> Explored:
    """What was looked at from entry `first` on, and again. `made` begins with the record: what was read before `first` was read before."""
    logged = tuple(commits)
    gone, clipped = _gone(logged), _clipped(logged)
    reads: dict[str, list[tuple[Called, range]]] = {}
    calls: dict[tuple[str, str], Called] = {}
    looks = tokens = 0
    found: list[Again] = []
    for call in made:
        for path in call.deed.changes:
            reads.pop(path, None)
        if call.changed != "no" or not call.answered or call.span.error:
            continue
        shown = lines_shown(call.text, call.deed.shows)
        earlier = _earlier(call, shown, reads, calls)
        if call.span.call[0] >= first:
            looks, tokens = looks + 1, tokens + call.result_tokens
            if earlier is not None:
                found.append(_again(call, earlier, gone))
        if call.span.result not in clipped:  # what was never shown whole may be asked for
            _remember(call, shown, reads, calls)
    return Explored(looks=looks, tokens=tokens, again=tuple(found))


def _earlier(
    call: Called, shown: range, reads: Mapping[str, list[tuple[Called, range]]], calls: Mapping[tuple[str, str], Called]
) -> Called | None:
    """The call that gave this before, the newest of several."""
    if call.deed.shows is not None:
        for old, lines in reversed(reads.get(call.deed.path, [])):
            if min(lines.stop, shown.stop) - max(lines.start, shown.start) >= SHARE * len(shown):
                return old
        return None
    old = calls.get((call.span.tool, call.arguments))
    return old if old is not None and old.digest == call.digest else None


def _remember(
    call: Called, shown: range, reads: dict[str, list[tuple[Called, range]]], calls: dict[tuple[str, str], Called]
) -> None:
    if call.deed.shows is None:
        calls[call.span.tool, call.arguments] = call
        return
    kept = reads.setdefault(call.deed.path, [])
    kept.append((call, shown))
    del kept[:-KEPT]


def _again(call: Called, earlier: Called, gone: Mapping[tuple[int, int], int]) -> Again:
    since = gone.get(earlier.span.result) if earlier.span.result is not None else None
    return Again(
        object=call.span.object,
        earlier=earlier.span.object,
        about=call.deed.path or call.span.cue,
        tokens=call.result_tokens,
        across=earlier.turn != call.turn,
        gone=since is not None and since <= call.span.call[0],
    )


def _gone(commits: Iterable[Commit]) -> dict[tuple[int, int], int]:
    """Blocks that are not shown whole any more, each with the length of the record when that came about; restored ones are not among them."""
    found: dict[tuple[int, int], int] = {}
    for commit in commits:
        for edit in commit.edits:
            match edit:
                case Drop() | Replace():
                    found.setdefault((edit.entry, edit.block), commit.entries)
                case Restore():
                    found.pop((edit.entry, edit.block), None)
                case _:
                    pass
    return found


def _clipped(commits: Iterable[Commit]) -> frozenset[tuple[int, int] | None]:
    """Blocks that were shown shortened from their birth."""
    edits = (edit for commit in commits if commit.moment == "admission" for edit in commit.edits)
    return frozenset((edit.entry, edit.block) for edit in edits if isinstance(edit, Drop | Replace))
