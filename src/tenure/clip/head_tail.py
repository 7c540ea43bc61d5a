"""The beginning and the end of a text, by tokens: what is shown of a text of no known shape. Promise: a kept line is never altered.

The end weighs three times the beginning, as in the tiered-context text, tier 1 (head 500 and tail 1,500 tokens): the beginning says what
ran, the end how it went.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

from tenure.clip.filling import GAP_ABOUT, fitted
from tenure.clip.shape import Count, Keep, Piece, Shaped, weight

HEAD: Final = 500  # o200k tokens of a room of 2,000; other rooms keep the proportion
TAIL: Final = 1_500
TOO_LITTLE: Final = 0.25  # of the room: whole lines that fill less say less than a cut inside the gigantic one beside them

_LONGEST_TOKEN: Final = 32  # characters per token that a cut looks for at most; only runs of one character have longer ones
_SEEK: Final = 48  # characters that a cut moves to reach a word's end
_BREAK: Final = re.compile(r"\s+|(?<=[,;:)\]}>.!?])(?=\S)|(?<=\w)(?=[^\w\s])")


class HeadTail:
    """Whole lines from both ends."""

    name = "text"

    def fits(self, lines: Sequence[str]) -> bool:  # noqa: ARG002 - the protocol's; no line can change the answer
        """Always: it is the shape of what has no other."""
        return True

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """A quarter of the room from the beginning, the rest from the end; None when whole lines fill too little of it: then `cut`."""
        pieces = fitted(lines, room, count, lambda budget: _ends(lines, budget))
        if pieces is None or _starved(lines, pieces, room, count):
            return None
        return Shaped(pieces=pieces, why="the beginning and the end")


def cut(text: str, head: int, tail: int, count: Count) -> tuple[str, str, int]:
    """The first `head` and the last `tail` o200k tokens of a text cut inside its lines, and how many tokens were left out between.

    Cuts fall at a word's end where one is near, and never inside a surrogate pair or a combining sequence. A text that
    is not longer than both together comes back whole, as `(text, "", 0)`.
    """
    first = _longest(len(text), head, lambda size: count(text[:size]))
    last = _longest(len(text), tail, lambda size: count(text[len(text) - size :]))
    if first + last >= len(text):
        if count(text) <= head + tail:
            return text, "", 0
        last = max(len(text) - first - 1, 0)
    left = _before(text, first)
    right = _after(text, max(len(text) - last, left))
    return text[:left], text[right:], count(text[left:right])


def _ends(lines: Sequence[str], budget: int) -> tuple[Piece, ...]:
    """Lines from both ends by estimated weight; what one end cannot use, the other may."""
    budget -= GAP_ABOUT
    head, used = _taken(lines, 0, 1, budget * HEAD // (HEAD + TAIL))
    tail, spent = _taken(lines, len(lines) - 1, -1, budget - used)
    more, _ = _taken(lines, head, 1, budget - used - spent)
    head = min(head + more, len(lines))
    if head + tail >= len(lines):
        return (Keep(0, len(lines)),) if lines else ()
    ends = (Keep(0, head), Keep(len(lines) - tail, len(lines)))
    return tuple(piece for piece in ends if piece.stop > piece.start)


def _taken(lines: Sequence[str], start: int, step: int, budget: int) -> tuple[int, int]:
    """How many lines from `start` on fit, and what they weigh."""
    used = taken = 0
    at = start
    while 0 <= at < len(lines):
        weighs = weight(lines[at])
        if used + weighs > budget:
            break
        used += weighs
        taken += 1
        at += step
    return taken, used


def _starved(lines: Sequence[str], pieces: Sequence[Piece], room: int, count: Count) -> bool:
    kept = [line for piece in pieces if isinstance(piece, Keep) for line in lines[piece.start : piece.stop]]
    return len(kept) < len(lines) and count("\n".join(kept)) < room * TOO_LITTLE


def _longest(length: int, tokens: int, counted: Callable[[int], int]) -> int:
    """The most characters, of `length`, that weigh at most `tokens`, to within a hundredth or one character."""
    if tokens <= 0:
        return 0
    bound = min(length, tokens * _LONGEST_TOKEN)
    low, high = 0, min(bound, tokens * 4)
    while counted(high) <= tokens:
        low = high
        if high == bound:
            return bound
        high = min(high * 2, bound)
    while high - low > max(low // 100, 1):
        middle = (low + high) // 2
        if counted(middle) <= tokens:
            low = middle
        else:
            high = middle
    return low


def _before(text: str, at: int) -> int:
    """The cut at or before `at`: a word's end when one is near, and a whole character in any case."""
    if at >= len(text):
        return len(text)
    near = max((match.end() for match in _BREAK.finditer(text, max(at - _SEEK, 0), at)), default=0)
    near = near or at
    while near > 0 and _joined(text, near):
        near -= 1
    return near


def _after(text: str, at: int) -> int:
    """The cut at or after `at`."""
    if at <= 0:
        return 0
    found = _BREAK.search(text, at, min(at + _SEEK, len(text)))
    near = found.end() if found else at
    while near < len(text) and _joined(text, near):
        near += 1
    return near


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and after `at` are one to the reader: Unicode's grapheme clusters, the common rules of them."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    if right < "\u0300":
        return left == "\r" and right == "\n"
    return (
        ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")
        or unicodedata.category(right) in ("Mn", "Mc", "Me")
        or "\u200d" in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= right <= "\U000e007f"  # tags of flags
        or ("\U0001f1e6" <= left <= "\U0001f1ff" and "\U0001f1e6" <= right <= "\U0001f1ff" and _odd_flag(text, at))
        or ("\u1100" <= left <= "\u11ff" and "\u1160" <= right <= "\u11ff")  # Hangul jamo
        or ("\uac00" <= left <= "\ud7a3" and "\u11a8" <= right <= "\u11ff")
    )


def _odd_flag(text: str, at: int) -> bool:
    """Whether an odd number of regional indicators stands before `at`: the next one ends a flag. Looks back 64 characters."""
    start = at
    while start > max(at - 64, 0) and "\U0001f1e6" <= text[start - 1] <= "\U0001f1ff":
        start -= 1
    return (at - start) % 2 == 1
