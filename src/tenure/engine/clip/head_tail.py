"""A text of no known shape: its beginning and its end, and lines between them that look like errors.

The end weighs three times the beginning, as in the tiered-context text, tier 1 (head 500 and tail 1,500 tokens): the beginning says what
ran, the end how it went. Of a line that is too long, a slice is quoted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tenure.engine.clip.log import Ranking, notes, source_share, take_failures, take_traces
from tenure.engine.clip.log_failures import LogReading
from tenure.engine.clip.shape import Piece, Selection, Shaped, fitted
from tenure.engine.record.entry import Count

HEAD: Final = 500  # o200k tokens of a room of 2,000; other rooms keep the proportion
TAIL: Final = 1_500
ERRORS: Final = 0.35  # of the room for lines that look like errors, one of each kind before any again
ONE_ERROR: Final = 80  # tokens for errors at least, so that one can be quoted
TRACES: Final = 0.15  # of the room for what belongs to them
SOURCE: Final = 0.3  # of the lines that look like program code
IN_SOURCE: Final = 0.25  # of these shares in program code, which only speaks of errors


def fits(lines: Sequence[str]) -> bool:  # noqa: ARG001 - as for every shape; no line can change the answer
    """Always: it is the shape of what has no other."""
    return True


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """Errors, then a quarter of the room from the beginning, the rest from the end."""
    reading = LogReading(lines)
    share = IN_SOURCE if source_share(lines) > SOURCE else 1.0
    pieces = fitted(lines, room, count, partial(_pieces, reading, Ranking(reading.blocks, reading.uncounted), share))
    why = "the beginning, the end, lines that look like errors" if reading.blocks else "the beginning and the end"
    return Shaped(pieces=pieces, why=why) if pieces else None


def _pieces(reading: LogReading, errors: Ranking, share: float, budget: int) -> tuple[Piece, ...]:
    selection = Selection(reading.lines, budget)
    selection.allow(max(int(budget * ERRORS * share), min(ONE_ERROR, budget // 3)))
    first = take_failures(reading, selection, errors.first)
    selection.spend(TRACES * share)
    take_traces(reading, selection, first, TRACES * share)
    selection.spend(1)
    last = len(reading.lines) - 1
    selection.allow(selection.left * HEAD // (HEAD + TAIL))
    selection.take_from(range(last + 1))
    selection.spend(1)
    selection.take_from(range(last, -1, -1))
    selection.take_from(range(last + 1))
    return selection.pieces(notes(reading, selection.runs(), (errors,))) if selection.used else ()
