"""What stands for folded objects, and how it merges.

A fold leaves a pointer in the plan's own words. When there are too many, the pointers of a turn become one line that keeps their handles, and
lines become one for a whole stretch, which names its ends. All are described by their routes alone, which the index resolves, so merging
needs no parsing, and recall finds by path, words or handle what no line names any more.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.record.index import Index
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.quotation import cited, enclosed
from tenure.engine.record.recall import blocks_of
from tenure.engine.record.tools import is_delimiter, is_recall
from tenure.engine.view.edit import Insert, Remove
from tenure.engine.view.project import Projection
from tenure.errors import InputError

At = tuple[int, int]  # (entry, block)

# The first letter of an inserted entry's key says which kind it is. A brief's is that of a pointer, but a brief names no route.
POINTER: Final = "p"
TURN_LINE: Final = "t"
STRETCH_LINE: Final = "s"

NAMED: Final = 24  # objects that the line of a turn names
CUE_CHARS: Final = 40
_TOOLS: Final = 6  # that the line of a stretch counts calls of


class Line(Struct, frozen=True, kw_only=True, gc=False):
    """What the model reads, and the handles in it."""

    text: str
    routes: tuple[str, ...]


def is_pointer(insert: Insert) -> bool:
    """Whether it stands for something folded: a pointer, or the line that pointers were merged into."""
    return bool(insert.routes) and insert.key[:1] in (POINTER, TURN_LINE, STRETCH_LINE)


def is_stretch(insert: Insert) -> bool:
    """Whether its routes are the ends of a stretch, and not all it stands for."""
    return insert.key.startswith(STRETCH_LINE) or insert.routes[0].startswith("entry:")


def turn_line(index: Index, routes: Iterable[str]) -> Line:
    """One line for the folded objects of a turn, in record order; of more than NAMED the oldest and the newest are named."""
    every = _ordered(index, routes)
    named = every if len(every) <= NAMED else (every[0], *every[1 - NAMED :])
    parts = [_named(index, route) for route in named]
    if len(named) < len(every):
        parts.insert(1, f"{len(every) - len(named)} more")
    return Line(text=f"[folded: {'; '.join(parts)} · recall brings back each, by handle, path or words]", routes=named)


def stretch_line(index: Index, routes: Iterable[str]) -> Line:
    """One line for all that was folded between the first and the last of these objects."""
    every = _ordered(index, routes)
    first, last = every[0], every[-1]
    ends = first if first == last else f"{first} to {last}"
    text = f"[folded: part of {ends}{_tally(index, first, last)} · recall brings back any of it, by handle, path or words]"
    return Line(text=text, routes=tuple(dict.fromkeys((first, last))))


def start_of(index: Index, route: str) -> At:
    """Where the object of a handle starts; the record's start when there is no such object."""
    handle = parse_handle(route)
    if handle.kind == "user" and handle.name.isdecimal() and 0 < int(handle.name) <= len(index.turns):
        return index.turns[int(handle.name) - 1].start
    tool, _, number = handle.object.rpartition(":")
    span = index.span(tool, int(number)) if number.isdecimal() else None
    if span is not None:
        return span.call
    try:
        return blocks_of(index, handle)[0]
    except InputError:
        return (0, 0)


def is_whole(index: Index, view: Projection, route: str) -> bool:
    """Whether an object is shown as the record has it, so that nothing need stand for it."""
    try:
        places = blocks_of(index, parse_handle(route))
    except InputError:
        return False
    for entry, block in places:
        row = view.row(entry)
        if row is None or not row.shows(block) or row.instead(block) is not None:
            return False
    return True


def needless(index: Index, view: Projection) -> Iterator[Remove]:
    """The removal of every pointer and line of a turn all of whose objects are shown whole again."""
    for insert in view.inserts:
        if is_pointer(insert) and not is_stretch(insert) and all(is_whole(index, view, route) for route in insert.routes):
            yield Remove(key=insert.key)


def _ordered(index: Index, routes: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(routes), key=lambda route: start_of(index, route)))


def _named(index: Index, route: str) -> str:
    tool, _, number = parse_handle(route).object.rpartition(":")
    span = index.span(tool, int(number)) if number.isdecimal() else None
    cue = enclosed(span.cue) if span is not None else ""
    if len(cue) > CUE_CHARS:
        cue = f"…{cue[1 - CUE_CHARS :]}" if " " not in cue else f"{cue[: CUE_CHARS - 1]}…"
    return f"{route} {cited(cue)}".rstrip()


def _tally(index: Index, first: str, last: str) -> str:
    """How many calls were made from the one object to the end of the other, by tool."""
    start, stop = start_of(index, first), _end_of(index, last)
    counted = [
        (index.calls_between(tool, start, stop), tool) for tool in index.tools if not (is_delimiter(tool) or is_recall(tool))
    ]
    shown = sorted((pair for pair in counted if pair[0]), reverse=True)[:_TOOLS]
    return "".join(f", {count} {cited(tool)}" for count, tool in shown)


def _end_of(index: Index, route: str) -> At:
    start = start_of(index, route)
    handle = parse_handle(route)
    if handle.kind == "entry":
        return start[0] + 1, 0
    if handle.kind == "user":
        later: Sequence[At] = [turn.start for turn in index.turns[int(handle.name) : int(handle.name) + 1]]
        return later[0] if later else (len(index), 0)
    return start[0], start[1] + 1
