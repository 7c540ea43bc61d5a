"""Lines chosen for their worth until the room is full. Promise: nothing is lost, and a kept line is never altered.

Shapes that rank lines share this: they take what matters most first, and here it is weighed and put in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tenure.clip.filling import GAP_ABOUT
from tenure.clip.shape import Keep, Note, Piece, weight

PATIENCE: Final = 50  # lines refused in a row before the room counts as full: a log may have a million more


class Selection:
    """The lines chosen so far, and what they weigh with the gaps between them, in estimated tokens."""

    __slots__ = ("_chosen", "_limit", "_lines", "_refused", "room", "used")

    def __init__(self, lines: Sequence[str], room: int) -> None:
        self._lines = lines
        self._chosen = bytearray(len(lines) + 1)  # one more, so that the neighbours of the last line need no question
        self.room = room
        self._limit = room
        self._refused = 0
        self.used = 0

    def spend(self, share: float) -> None:
        """From here on take at most this share of the whole room; what was taken before does not count."""
        self.allow(int(self.room * share))

    def allow(self, tokens: int) -> None:
        """From here on take at most so many tokens."""
        self._limit = min(self.room, self.used + tokens)
        self._refused = 0

    @property
    def left(self) -> int:
        """Tokens that may still be taken."""
        return self._limit - self.used

    @property
    def full(self) -> bool:
        """Whether nothing more is worth asking for: nothing is left, or many lines in a row were too long for what is."""
        return self._limit - self.used < 2 or self._refused >= PATIENCE

    def has(self, line: int) -> bool:
        """Whether the line is shown."""
        return bool(self._chosen[line])

    def take(self, line: int) -> bool:
        """Show one line if it fits; whether it is shown now."""
        chosen = self._chosen
        if chosen[line]:
            return True
        apart = 0 if chosen[line + 1] or (line and chosen[line - 1]) else GAP_ABOUT
        cost = weight(self._lines[line]) + apart
        if self.used + cost > self._limit:
            self._refused += 1
            return False
        self._refused = 0
        chosen[line] = 1
        self.used += cost
        return True

    def take_all(self, lines: Iterable[int]) -> bool:
        """Show lines one after the other until one does not fit; whether all did."""
        return all(self.take(line) for line in lines)

    def take_any(self, lines: Iterable[int]) -> None:
        """Show those lines that fit."""
        for line in lines:
            if self.full:
                return
            self.take(line)

    def runs(self) -> list[tuple[int, int]]:
        """What is shown, as ascending ranges. A gap that would cost as much to name as to show is shown."""
        found: list[tuple[int, int]] = []
        for start, stop in self._ranges():
            if found and self._small(found[-1][1], start):
                found[-1] = (found[-1][0], stop)
            else:
                found.append((start, stop))
        if found and found[0][0] and self._small(0, found[0][0]):
            found[0] = (0, found[0][1])
        if found and self._small(found[-1][1], len(self._lines)):
            found[-1] = (found[-1][0], len(self._lines))
        return found

    def _ranges(self) -> Iterator[tuple[int, int]]:
        start = self._chosen.find(1)
        while start >= 0:
            stop = self._chosen.find(0, start)  # the line past the end is never chosen
            yield start, stop
            start = self._chosen.find(1, stop)

    def _small(self, start: int, stop: int) -> bool:
        return stop - start <= GAP_ABOUT and sum(weight(self._lines[line]) for line in range(start, stop)) <= GAP_ABOUT


def gaps(runs: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """The ranges between the runs, and before and after them."""
    end = 0
    for start, stop in runs:
        if end < start:
            yield end, start
        end = stop
    if end < size:
        yield end, size


def woven(runs: Sequence[tuple[int, int]], notes: Iterable[tuple[int, str]]) -> tuple[Piece, ...]:
    """Kept runs with each note where it belongs: before the line of its number. A run that a note interrupts becomes two."""
    pieces: list[Piece] = []
    waiting = sorted(notes)
    at = 0
    for start, stop in runs:
        while at < len(waiting) and waiting[at][0] < stop:
            place, text = waiting[at]
            if start < place:
                pieces.append(Keep(start, place))
                start = place
            pieces.append(Note(text))
            at += 1
        pieces.append(Keep(start, stop))
    pieces.extend(Note(text) for _, text in waiting[at:])
    return tuple(pieces)
