"""What all shapes of text share: the pieces of a clip, what they weigh, and how a choice of lines is fitted into its room.

A shape recognises one kind of tool output and chooses which of its lines are worth their room. It sees text and room and nothing else;
markers, handles and the honest total are made in `clip`, for all shapes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from msgspec import Struct

from tenure.engine.clip.cut import quotation
from tenure.engine.record.entry import Count

HEAVY_SIGN: Final = "a1b2"  # four tokens; one sign in twenty weighs more
NOTE: Final = 9  # the most o200k tokens before each line of a note, over all signs of four digits

# What a choice by estimated weight allows for them. Less, since it also decides which gaps are worth their words; the count corrects it.
GAP_ABOUT: Final = 16
NOTE_ABOUT: Final = 4

FULL: Final = 0.93  # of the room: enough not to choose again
ATTEMPTS: Final = 6
STRETCH: Final = 200  # lines of each stretch of a text by which it is recognised

PATIENCE: Final = 50  # lines refused in a row before the room counts as full: a log may have a million more
QUOTED_CHARS: Final = 2  # characters of a quoted slice per token allowed: what is weighed as three may be digits
LEAST_QUOTED: Final = 80  # characters; fewer say too little


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
Place = Callable[[int, int], str]  # lines `start` to `stop` (exclusive, from 0) as `recall` takes them


class Shaped(Struct, frozen=True, kw_only=True):
    """A text as a shape shows it: pieces in order; kept lines ascend and never overlap. What no piece keeps is left out.

    Every gap is named with its lines; a note may say more of it.
    """

    pieces: tuple[Piece, ...]
    why: str  # what was kept, in a few words for the marker: "every file named, first hits where there is room"


class TextShape(Struct, frozen=True):
    """One kind of tool output.

    `fits` says whether lines are of this kind: conservative, at most linear, and it may look at a sample of them. `choose` shows them in about
    `room` o200k tokens, notes included, or is None when that cannot be done well; at most n log n. Its `count` is exact and costs time.
    """

    name: str  # as the marker and `tenure show` print it: "search hits"
    fits: Callable[[Sequence[str]], bool]
    choose: Callable[[Sequence[str], int, Count], Shaped | None]


def weight(line: str) -> int:
    """About how many tokens a line weighs with its break: never far below, so that what fits by it fits."""
    return 1 + (len(line) + 2) // 3 if line.isascii() else 1 + len(line.encode("utf-8", "surrogatepass")) // 2


def plural(n: int, one: str, many: str = "") -> str:
    """`1 hit`, `1,204 hits`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def place(start: int, stop: int) -> str:
    """Lines of the text itself, as `recall` takes them."""
    return f"{start + 1}-{stop}" if stop > start + 1 else f"{stop}"


def printed(lines: Sequence[str], pieces: Sequence[Piece], sign: str, place: Place = place) -> Iterator[str]:
    """The pieces line by line, every gap between kept lines named once; each line that is no line of the text has the sign before it."""
    at = 0
    waiting: list[Note] = []
    for piece in (*pieces, Keep(len(lines), len(lines))):
        if isinstance(piece, Note):
            waiting.append(piece)
            continue
        gap = piece.start > at
        notes = [note.text for note in waiting if not (gap and note.left_out)]
        if gap:
            head = f"{plural(piece.start - at, 'line')} left out (lines={place(at, piece.start)})"
            about = "\n".join(note.text for note in waiting if note.left_out)
            notes.append(f"{head}: {about}" if about else head)
        for note in notes:
            yield from (f"[clip {sign}] {line}" for line in note.split("\n"))
        yield from lines[piece.start : piece.stop]
        at, waiting = piece.stop, []


def weighed(lines: Sequence[str], pieces: Sequence[Piece], count: Count) -> int:
    """Tokens of the pieces as they will be shown, with a sign that weighs more than most."""
    return count("\n".join((*printed(lines, pieces, HEAVY_SIGN), "")))


def fitted(lines: Sequence[str], room: int, count: Count, choose: Callable[[int], tuple[Piece, ...]]) -> tuple[Piece, ...] | None:
    """The fullest of a few choices that weighs at most `room`; None when none does.

    `choose` gives pieces for a budget of estimated weight, none when nothing fits. Estimates are a third too high for prose and too low for
    digits and punctuation: so the choice is counted once, and made again with what that count taught.
    """
    best: tuple[Piece, ...] = ()
    fullest = 0
    low, high = 0.0, float("inf")  # budgets known to be too small and too large
    budget = float(room)
    heavy = 0  # the last weight that was too much
    for _ in range(ATTEMPTS):
        pieces = choose(int(budget))
        if not pieces:
            low = budget
            budget = min(budget * 2, (budget + high) / 2)
            continue
        weighs = weighed(lines, pieces, count)
        if weighs > room:
            high = budget
            budget = max(budget * room / weighs * 0.97, low)
            if budget <= low or weighs == heavy:  # the same choice again: a smaller step changes nothing
                budget = (low + high) / 2
            heavy = weighs
            continue
        if weighs > fullest:
            best, fullest = pieces, weighs
        if weighs >= room * FULL or sum(piece.stop - piece.start for piece in pieces if isinstance(piece, Keep)) == len(lines):
            break
        low = budget
        budget = min(budget * room / max(weighs, 1) * 0.98, budget * 4, (budget + high) / 2)
        if budget < low * 1.02:
            break
    return best or None


def fair(wants: Sequence[int], room: int) -> list[int]:
    """Parts of `room`, none larger than what is wanted; who wants less than an equal part leaves the rest to the others. n log n."""
    parts = [0] * len(wants)
    order = sorted(range(len(wants)), key=wants.__getitem__)
    for done, at in enumerate(order):
        parts[at] = max(0, min(wants[at], room // (len(order) - done)))
        room -= parts[at]
    return parts


def stretches(lines: Sequence[str], size: int = STRETCH) -> list[list[str]]:
    """Lines in a row at the beginning, the middle and the end, or all lines of a short text in one stretch; blank ones left out."""
    parts = [lines]
    if len(lines) > 3 * size:
        middle = len(lines) // 2
        parts = [lines[:size], lines[middle : middle + size], lines[-size:]]
    return [[line for line in part if line and not line.isspace()] for part in parts]


def ranges(kept: Iterable[int]) -> list[Keep]:
    """Line numbers as ascending ranges."""
    found: list[Keep] = []
    start = stop = -1
    for line in sorted(kept):
        if line != stop:
            if stop >= 0:
                found.append(Keep(start, stop))
            start = line
        stop = line + 1
    return [*found, Keep(start, stop)] if stop >= 0 else found


def take_first(lines: Sequence[str], order: Iterable[int], kept: set[int], budget: int) -> int:
    """Keeps the next lines in that order up to the first that does not fit; what they weigh."""
    spent = 0
    for at in order:
        if at in kept:
            continue
        if spent + weight(lines[at]) > budget:
            break
        spent += weight(lines[at])
        kept.add(at)
    return spent


class Selection:
    """Lines chosen for their worth, best first, until the room is full; their weight and that of the gaps between them in estimated tokens."""

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
        self._add(line, start, min(start + size, len(text)))
        return True

    def take_from(self, order: range) -> None:
        """Show the lines of one end up to the first that does not fit; of a long one quote what is left."""
        line = next((line for line in order if not self.take(line)), None)
        size = (self.left - GAP_ABOUT) * QUOTED_CHARS
        if line is None or size < LEAST_QUOTED or len(text := self._lines[line]) <= size:
            return
        start, stop = (0, size) if order.step > 0 else (len(text) - size, len(text))
        if not any(start < end and begin < stop for begin, end in self._quoted.get(line, ())):
            self._add(line, start, stop)

    def _add(self, line: int, start: int, stop: int) -> None:
        self._quoted.setdefault(line, []).append((start, stop))
        self.used += weight(self._lines[line][start:stop]) + GAP_ABOUT

    def runs(self) -> list[tuple[int, int]]:
        """What is shown, as ascending ranges. A gap that would cost as much to name as to show is shown."""
        found: list[tuple[int, int]] = []
        start = self._chosen.find(1)
        while start >= 0:
            stop = self._chosen.find(0, start)  # the line past the end is never chosen
            before = found[-1][1] if found else 0
            if (found or start) and self._is_small(before, start):
                start = found.pop()[0] if found else 0
            found.append((start, stop))
            start = self._chosen.find(1, stop)
        if found and self._is_small(found[-1][1], len(self._lines)):
            found[-1] = (found[-1][0], len(self._lines))
        return found

    def _is_small(self, start: int, stop: int) -> bool:
        return stop - start <= GAP_ABOUT and sum(weight(self._lines[line]) for line in range(start, stop)) <= GAP_ABOUT

    def pieces(self, notes: Iterable[tuple[int, Note]]) -> tuple[Piece, ...]:
        """What is shown, with each note before the line of its number, and what is quoted of long lines. A run that a note interrupts becomes two."""
        quotations = (
            (line, Note(quotation(self._lines[line], line, start, stop), left_out=True))
            for line, slices in self._quoted.items()
            if not self._chosen[line]
            for start, stop in sorted(slices)
        )
        waiting = sorted((*notes, *quotations), key=itemgetter(0))
        pieces: list[Piece] = []
        at = 0
        for start, stop in self.runs():
            while at < len(waiting) and waiting[at][0] < stop:
                line, note = waiting[at]
                if start < line:
                    pieces.append(Keep(start, line))
                    start = line
                pieces.append(note)
                at += 1
            pieces.append(Keep(start, stop))
        return (*pieces, *(note for _, note in waiting[at:]))


def gaps(runs: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """The ranges between the runs, and before and after them."""
    end = 0
    for start, stop in (*runs, (size, size)):
        if end < start:
            yield end, start
        end = stop
