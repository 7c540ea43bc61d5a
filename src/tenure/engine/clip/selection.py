"""Lines chosen for their worth until the room is full.

Shapes that rank lines share this: they take what matters most first, and here it is weighed and put in order.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from tenure.engine.clip.cut import quotation
from tenure.engine.clip.filling import GAP_ABOUT
from tenure.engine.clip.shape import Keep, Note, Piece, weight

PATIENCE: Final = 50  # lines refused in a row before the room counts as full: a log may have a million more
QUOTED_CHARS: Final = 2  # characters of a quoted slice per token allowed: what is weighed as three may be digits
LEAST_QUOTED: Final = 80  # characters; fewer say too little


class Selection:
    """The lines chosen so far, and what they weigh with the gaps between them, in estimated tokens."""

    __slots__ = ("_chosen", "_limit", "_lines", "_quoted", "_refused", "room", "used")

    def __init__(self, lines: Sequence[str], room: int) -> None:
        self._lines = lines
        self._chosen = bytearray(len(lines) + 1)  # one more, so that the neighbours of the last line need no question
        self.room = room
        self._limit = room
        self._refused = 0
        self._quoted: dict[int, list[tuple[int, int]]] = {}  # slices of lines too long to be shown
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

    def quote(self, line: int, at: int, tokens: int) -> bool:
        """Quote so many tokens of a line that is too long, from a little before character `at`; whether some are quoted now.

        False for a line that is quoted already, or shown, or not so long, or when too little is left.
        """
        size = (min(tokens, self.left) - GAP_ABOUT) * QUOTED_CHARS
        text = self._lines[line]
        if self._chosen[line] or line in self._quoted or size < LEAST_QUOTED or len(text) <= LEAST_QUOTED * 2:
            return False
        start = max(min(at - size // 4, len(text) - size), 0)
        return self._add(line, start, min(start + size, len(text)))

    def _add(self, line: int, start: int, stop: int) -> bool:
        self._quoted.setdefault(line, []).append((start, stop))
        self.used += weight(self._lines[line][start:stop]) + GAP_ABOUT
        return True

    def take_from(self, order: range) -> None:
        """Show the lines of one end up to the first that does not fit; of a long one quote what is left."""
        for line in order:
            if self.take(line):
                continue
            text = self._lines[line]
            size = (self.left - GAP_ABOUT) * QUOTED_CHARS
            if size >= LEAST_QUOTED and len(text) > size:
                start, stop = (0, size) if order.step > 0 else (len(text) - size, len(text))
                if not any(start < end and begin < stop for begin, end in self._quoted.get(line, ())):
                    self._add(line, start, stop)
            return

    def quotations(self) -> Iterator[tuple[int, Note]]:
        """What is quoted of long lines, each at its place."""
        for line, slices in self._quoted.items():
            if not self._chosen[line]:
                for start, stop in sorted(slices):
                    yield line, Note(quotation(self._lines[line], line, start, stop), left_out=True)

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


def woven(runs: Sequence[tuple[int, int]], notes: Iterable[tuple[int, Note]]) -> tuple[Piece, ...]:
    """Kept runs with each note where it belongs: before the line of its number. A run that a note interrupts becomes two."""
    pieces: list[Piece] = []
    waiting = sorted(notes, key=itemgetter(0))
    at = 0
    for start, stop in runs:
        while at < len(waiting) and waiting[at][0] < stop:
            place, note = waiting[at]
            if start < place:
                pieces.append(Keep(start, place))
                start = place
            pieces.append(note)
            at += 1
        pieces.append(Keep(start, stop))
    pieces.extend(note for _, note in waiting[at:])
    return tuple(pieces)
