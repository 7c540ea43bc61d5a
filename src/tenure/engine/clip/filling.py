"""How a choice of lines is fitted into its room.

A shape chooses by estimated weights, which are a third too high for prose and too low for digits and punctuation. The choice is counted
once, and made again with what that count taught; each count reads no more than about what the room holds.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tenure.engine.clip.shape import Keep, Note, Piece, Place, laid_out, place
from tenure.engine.record.entry import Count

HEAVY_SIGN: Final = "a1b2"  # four tokens; one sign in twenty weighs more
NOTE: Final = 9  # the most o200k tokens before each line of a note, over all signs of four digits

# What a choice by estimated weight allows for them. Less, since it also decides which gaps are worth their words; the count corrects it.
GAP_ABOUT: Final = 16
NOTE_ABOUT: Final = 4

FULL: Final = 0.93  # of the room: enough not to choose again
ATTEMPTS: Final = 6

Choose = Callable[[int], "tuple[Piece, ...]"]  # pieces for a budget of estimated weight; empty when nothing fits


def fitted(lines: Sequence[str], room: int, count: Count, choose: Choose) -> tuple[Piece, ...] | None:
    """The fullest of a few choices that weighs at most `room`; None when none does."""
    best: tuple[int, tuple[Piece, ...]] = (0, ())
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
        best = max(best, (weighs, pieces), key=_fullness)
        if weighs >= room * FULL or complete(lines, pieces):
            break
        low = budget
        budget = min(budget * room / max(weighs, 1) * 0.98, budget * 4, (budget + high) / 2)
        if budget < low * 1.02:
            break
    return best[1] or None


def weighed(lines: Sequence[str], pieces: Sequence[Piece], count: Count) -> int:
    """Tokens of the pieces as they will be shown, with a sign that weighs more than most."""
    return count("\n".join((*printed(lines, pieces, HEAVY_SIGN), "")))


def printed(lines: Sequence[str], pieces: Sequence[Piece], sign: str, place: Place = place) -> Iterator[str]:
    """The pieces line by line, each line that is no line of the text with the sign before it."""
    for part in laid_out(pieces, len(lines)):
        if isinstance(part, Keep):
            yield from lines[part.start : part.stop]
        else:
            text = part.text if isinstance(part, Note) else part.printed(place)
            yield from (f"[clip {sign}] {line}" for line in text.split("\n"))


def complete(lines: Sequence[str], pieces: Sequence[Piece]) -> bool:
    """Whether every line is kept."""
    return sum(piece.stop - piece.start for piece in pieces if isinstance(piece, Keep)) == len(lines)


def runs(kept: Sequence[int]) -> list[Keep]:
    """Ascending line numbers as ranges."""
    ranges: list[Keep] = []
    start = stop = -1
    for line in kept:
        if line != stop:
            if stop >= 0:
                ranges.append(Keep(start, stop))
            start = line
        stop = line + 1
    if stop >= 0:
        ranges.append(Keep(start, stop))
    return ranges


def fair(wants: Sequence[int], room: int) -> list[int]:
    """Parts of `room`, none larger than what is wanted; who wants less than an equal part leaves the rest to the others. n log n."""
    parts = [0] * len(wants)
    left = room
    order = sorted(range(len(wants)), key=wants.__getitem__)
    for done, at in enumerate(order):
        parts[at] = max(0, min(wants[at], left // (len(order) - done)))
        left -= parts[at]
    return parts


def plural(n: int, one: str, many: str = "") -> str:
    """`1 hit`, `1,204 hits`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _fullness(choice: tuple[int, tuple[Piece, ...]]) -> int:
    return choice[0]
