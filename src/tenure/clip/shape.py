"""What the clip of one text shape is. Promise: nothing is lost, and a kept line is never altered.

A shape recognises a kind of tool output and says which of its lines are worth their room, and what stands for the others. It sees text and
room and nothing else; markers, handles and the honest total are made in one place, for all shapes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

Count = Callable[[str], int]  # o200k tokens of a text


class Keep(Struct, frozen=True, gc=False):
    """Lines `start` to `stop` (exclusive, from 0) of the text, shown exactly as they are."""

    start: int
    stop: int


class Note(Struct, frozen=True, gc=False):
    """What the harness says at this place of what is left out there: counts, names, a shape. One or more lines."""

    text: str


Piece = Keep | Note


class Shaped(Struct, frozen=True, kw_only=True):
    """A text as a shape would show it: pieces in order; kept lines ascend and never overlap. What no piece keeps is left out.

    Where pieces leave lines out without a note of their own, the clip says how many.
    """

    pieces: tuple[Piece, ...]
    why: str  # what was kept, in a few words for the marker: "every file named, first hits where there is room"


class Shape(Protocol):
    """One kind of tool output."""

    @property
    def name(self) -> str:
        """As the marker and `tenure show` print it: "search hits"."""
        ...

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether the text is of this kind. Conservative: when unsure, no. At most linear; may look at a sample of the lines."""
        ...

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """The text in about `room` o200k tokens, notes included; None when that cannot be done well. At most n log n.

        `count` is exact and costs time: estimate with `weight` and count once at the end.
        """
        ...


def weight(line: str) -> int:
    """About how many tokens a line weighs with its break: never far below, so that what fits by it fits."""
    return 1 + (len(line) + 2) // 3 if line.isascii() else 1 + len(line.encode("utf-8", "surrogatepass")) // 2
