"""A view as one text, for a planner that was not there: another model than the agent's, which has no cached prefix to stand behind.

Labels start with `MARK`, and no line of content does. Where the room is short, the largest pieces lose their middle: reasoning first, then what
tools gave, then calls and replies, and what people said last.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.transcript import MARK, ends
from tenure.engine.record.entry import Count, Origin, Read
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Insert
from tenure.engine.view.project import View

LEAST: Final = 60  # o200k tokens down to which a piece may be shortened
LABEL: Final = 8  # that a label weighs

# Who gives way first, and down to how much where that helps.
_GIVES_WAY: Final = (
    ("thinking", LEAST),
    ("result", 160),
    ("note", LEAST),
    ("call", 160),
    ("reply", 200),
    ("result", LEAST),
    ("human", 400),
)


class _Piece(Struct):
    kind: str
    label: str
    text: str
    tokens: int


def in_words(view: View, index: Index, read: Read, count: Count, *, room: int = 0) -> str:
    """All that a view shows, in at most about `room` o200k tokens; 0: whole. O(view)."""
    pieces = list(_pieces(view, index, read))
    if room:
        _fit(pieces, room, count)
    return "\n".join(f"{MARK} {piece.label}\n{_plain(piece.text)}" for piece in pieces)


def _pieces(view: View, index: Index, read: Read) -> Iterator[_Piece]:
    for line in view.lines:
        if isinstance(line, Insert):
            yield _Piece("note", "note of the program", line.text, line.tokens)
            continue
        entry, instead = read(line.entry), dict(line.replaced)
        for number in line.blocks:
            facts = index.block((line.entry, number))
            shown = instead.get(number)
            text, tokens = (entry.blocks[number].text, facts.tokens) if shown is None else (shown.text, shown.tokens)
            if facts.span != NONE:
                label = f"{facts.kind.replace('_', ' ')} {index.spans[facts.span].object}"
                yield _Piece("call" if facts.kind == "tool_call" else "result", label, text, tokens)
            elif facts.origin is Origin.HUMAN:
                yield _Piece("human", f"user:{facts.turn}", text, tokens)
            else:
                kind = "thinking" if facts.kind == "thinking" else "reply" if facts.origin is Origin.MODEL else "note"
                yield _Piece(kind, f"{entry.role}, {facts.kind}", text, tokens)


def _fit(pieces: Sequence[_Piece], room: int, count: Count) -> None:
    """Shorten the largest pieces of each kind in turn, to one level for all of a kind, until the whole fits."""
    for kind, least in _GIVES_WAY:
        over = sum(piece.tokens + LABEL for piece in pieces) - room
        if over <= 0:
            return
        chosen = [piece for piece in pieces if piece.kind == kind and piece.tokens > least]
        level = _level([piece.tokens for piece in chosen], over, least)
        for piece in chosen:
            if piece.tokens > level:
                piece.text = ends(piece.text, level, count)
                piece.tokens = count(piece.text)


def _level(weights: Sequence[int], over: int, least: int) -> int:
    """The weight down to which the heaviest have to come to save `over`, at least `least`."""
    saved, heaviest = 0, sorted(weights, reverse=True)
    for number, weight in enumerate(heaviest, 1):
        below = heaviest[number] if number < len(heaviest) else least
        if saved + number * (weight - below) >= over:
            return max(least, weight - -(-(over - saved) // number))
        saved += number * (weight - below)
    return least


def _plain(text: str) -> str:
    return f"\n{text}".replace(f"\n{MARK}", f"\n {MARK}")[1:]
