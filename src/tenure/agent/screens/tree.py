"""A session as one tree that folds: segments, their turns, their messages; and where a row would be forked or rewound to."""

from collections.abc import Iterator, Sequence, Set
from itertools import count
from typing import Final, Literal

from msgspec import Struct

from tenure.agent.screens import clean
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import ListedObject, Lists, Segment, turn_blocks
from tenure.agent.screens.details import about_block
from tenure.agent.screens.history import History
from tenure.engine.record.entry import At, ToolCall
from tenure.engine.record.index import NONE
from tenure.errors import InputError

Kind = Literal["segment", "turn", "message"]
WORDS: Final = 200  # characters of a message that a row shows
SEGMENT: Final = "segment:"
BRIEF: Final = "brief:"  # and its number, from 1 on: a segment that a brief stands for


class TreeNode(Struct, frozen=True, kw_only=True, gc=False):
    """One row. `key` is what is under the cursor: `segment:0`, `user:3`, `entry:40`; of a turn that a brief cuts, `user:3/0` in the segment it begins in."""

    key: str
    kind: Kind
    depth: int
    label: str
    words: str
    tokens: int  # o200k, as recorded
    shown: int
    is_open: bool = False
    segment: Segment | None = None
    turn: ListedObject | None = None  # of a row of all of it

    @property
    def number(self) -> int:
        """Of a turn."""
        return int(self.key.partition("/")[0].partition(":")[2])


def usual_open(lists: Lists) -> frozenset[str]:
    """What is open at first: the live tail, none of its turns."""
    return frozenset({f"{SEGMENT}{len(lists.segments) - 1}"})


def nodes(history: History, lists: Lists, is_open: Set[str]) -> Iterator[TreeNode]:
    """The rows that are in sight. Where there is one segment only, its turns stand alone. O(turns, and the messages of those that are open)."""
    by_number = {int(turn.object.partition(":")[2]): turn for turn in lists.turns}
    blocks = turn_blocks(history)
    has_segments, briefs = len(lists.segments) > 1, count(1)
    for n, segment in enumerate(lists.segments):
        key = f"{SEGMENT}{n}"
        if has_segments:
            words = f"{segment.title}: {segment.text}" if segment.text else segment.title
            span = f"{segment.start}–{segment.stop - 1}" if segment.stop > segment.start else "none"
            label = f"{BRIEF}{next(briefs)}" if segment.key else f"entries {span}"
            yield TreeNode(
                key=key, kind="segment", depth=0, label=label, words=words, tokens=segment.tokens, shown=segment.shown,
                is_open=key in is_open, segment=segment,
            )  # fmt: skip
            if key not in is_open:
                continue
        for number in sorted({*segment.turns, *segment.parts, *((0,) if n == 0 and 0 in by_number else ())}):
            yield from _turn(history, lists, segment, by_number[number], blocks[number], is_open, depth=int(has_segments))


def _turn(
    history: History, lists: Lists, segment: Segment, turn: ListedObject, blocks: list[At], is_open: Set[str], *, depth: int
) -> Iterator[TreeNode]:
    number = int(turn.object.partition(":")[2])
    here = [at for at in blocks if not number or segment.start <= at[0] < segment.stop]
    if not here:
        return
    is_rest = blocks[-1][0] < segment.stop
    key = turn.object if is_rest else f"{turn.object}/{segment.start}"
    life, index = lists.life, history.index
    entries: dict[int, list[At]] = {}
    for at in here:
        entries.setdefault(at[0], []).append(at)
    is_whole = len(here) == len(blocks)
    part = "" if is_whole else "the rest: " if is_rest else "its beginning: "
    yield TreeNode(
        key=key,
        kind="turn",
        depth=depth,
        label=turn.handle if number else "start",
        words=part + ("⚑ " if turn.pinned else "") + turn.about,
        tokens=sum(index.block(at).tokens for at in here),
        shown=sum(life.now.weight(*at) for at in here),
        is_open=key in is_open,
        segment=segment,
        turn=turn if is_whole else None,
    )
    for entry, places in entries.items() if key in is_open else ():
        first = history.read(entry).blocks[places[0][1]]
        yield TreeNode(
            key=f"entry:{entry}",
            kind="message",
            depth=depth + 1,
            label=about_block(history, places[0], first),
            words=_words(history, places),
            tokens=sum(index.block(at).tokens for at in places),
            shown=sum(life.now.weight(*at) for at in places),
            segment=segment,
        )


def _words(history: History, places: list[At]) -> str:
    """What a message says, and which calls it makes."""
    found: list[str] = []
    for entry, block in places:
        held = history.read(entry).blocks[block]
        span = history.index.block((entry, block)).span
        if isinstance(held, ToolCall) and span != NONE:
            found.append(f"→ {held.name} {history.index.spans[span].cue}".rstrip())
        elif held.text.strip():
            found.append(held.text[: 4 * WORDS])
    return clean.line("  ".join(found), WORDS)


def picks_named(lists: Lists, names: Sequence[str]) -> Picks:
    """What names such as `user:3` and `brief:1` choose; `user:0` is what stands before a person's first word. Raises InputError."""
    briefs = [segment for segment in lists.segments if segment.key]
    picks = Picks()
    for name in names:
        if name.startswith(BRIEF):
            number = _number(name, len(briefs) + 1)
            if not number:
                raise InputError("selection", repr(name), f"{BRIEF}1 or more")
            picks = picks.brief(briefs[number - 1])
        elif name.partition("@")[0] in {turn.object for turn in lists.turns}:
            picks = picks.turn(_number(name, len(lists.turns) + 1), lists.segments)
        else:
            raise InputError(
                "selection", repr(name), f"turns such as {lists.turns[-1].object if lists.turns else 'user:1'}, or {BRIEF}1"
            )
    return picks


def turn_of(history: History, key: str) -> int:
    """The turn of a message; a result's is that of its call."""
    facts = history.index.entries[_number(key, len(history.index))].blocks
    span = next((block.span for block in facts if block.span != NONE), NONE)
    return history.index.block(history.index.spans[span].call).turn if span != NONE else facts[0].turn if facts else 0


def end_of(history: History, lists: Lists, key: str) -> int:
    """How many entries a fork at a row has: all up to its end, no call without its result. Raises InputError for what is no row."""
    index = history.index
    if key.startswith(SEGMENT):
        stop = lists.segments[_number(key, len(lists.segments))].stop
    elif key.startswith("user:"):
        number = _number(key, len(index.turns) + 1)
        stop = index.turns[number].start[0] if number < len(index.turns) else len(index)
        if "/" in key:  # its beginning only
            start = int(key.partition("/")[2])
            stop = next((each.stop for each in lists.segments if each.start == start), stop)
    else:
        stop = _number(key, len(index) if key.startswith("entry:") else 0) + 1
    while stop < len(index) and not index.entries[stop].at_rest:
        stop += 1
    return stop


def start_of(history: History, lists: Lists, key: str) -> tuple[int, str]:
    """How many entries there were before a row's turn or a person's message, and what the person said then; of others, as `end_of`."""
    index = history.index
    number = _number(key, len(index.turns) + 1) if key.startswith("user:") else 0
    if key.startswith("entry:"):
        entry = _number(key, len(index))
        number = next((turn.number for turn in index.turns if turn.start[0] == entry), 0)
    if not number:
        return end_of(history, lists, key), ""
    start, block = index.turns[number - 1].start
    return start, "\n".join(each.text for each in history.read(start).blocks[block:] if each.text)


def _number(key: str, below: int) -> int:
    text = key.partition(":")[2].partition("/")[0].partition("@")[0]
    if not key.startswith((SEGMENT, BRIEF, "user:", "entry:")) or not text.isdecimal() or int(text) >= below:
        raise InputError("session", f"no {key!r} in it", "a turn such as user:3, or a message such as entry:40")
    return int(text)
