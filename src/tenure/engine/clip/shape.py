"""What the clip of one text shape is.

A shape recognises a kind of tool output and says which of its lines are worth their room, and what stands for the others. It sees text and
room and nothing else; markers, handles and the honest total are made in one place, for all shapes.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from tenure.engine.record.entry import Count


class Keep(Struct, frozen=True, gc=False):
    """Lines `start` to `stop` (exclusive, from 0) of the text, shown exactly as they are."""

    start: int
    stop: int


class Note(Struct, frozen=True, gc=False):
    """What the clip says at this place: counts, names, a shape. One or more lines.

    `left_out`: it describes the lines left out at this place, so it follows their number; without effect where none are.
    """

    text: str
    left_out: bool = False


Piece = Keep | Note


class Gap(Struct, frozen=True, gc=False):
    """Lines `start` to `stop` (exclusive, from 0) that are left out, and what is said of them."""

    start: int
    stop: int
    text: str

    def printed(self, place: "Place") -> str:
        """How many lines, the words for `recall` that return them, and what is said of them."""
        lines = self.stop - self.start
        head = f"{lines:,} line{'s' * (lines > 1)} left out (lines={place(self.start, self.stop)})"
        return f"{head}: {self.text}" if self.text else head


Place = Callable[[int, int], str]  # lines `start` to `stop` (exclusive, from 0) as `recall` takes them


def place(start: int, stop: int) -> str:
    """Lines of the text itself."""
    return f"{start + 1}-{stop}" if stop > start + 1 else f"{stop}"


def laid_out(pieces: Sequence[Piece], size: int) -> Iterator[Keep | Gap | Note]:
    """The pieces of a text of `size` lines in order, with every gap between kept lines named once: kept lines and gaps are all lines."""
    at = 0
    waiting: list[Note] = []
    for piece in (*pieces, Keep(size, size)):
        if isinstance(piece, Note):
            waiting.append(piece)
            continue
        if piece.start > at:
            yield from (note for note in waiting if not note.left_out)
            yield Gap(at, piece.start, "\n".join(note.text for note in waiting if note.left_out))
        else:
            yield from waiting
        waiting = []
        if piece.stop > piece.start:
            yield piece
        at = piece.stop


class Shaped(Struct, frozen=True, kw_only=True):
    """A text as a shape would show it: pieces in order; kept lines ascend and never overlap. What no piece keeps is left out.

    Every gap is named with its lines; a note may say more of it.
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
