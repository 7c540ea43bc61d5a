"""Texts cut inside a line: at a word's end where one is near, and never inside a surrogate pair or a combining sequence."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from tenure.engine.record.entry import Count

_LONGEST_TOKEN: Final = 32  # characters per token that a cut looks for at most; only runs of one character have longer ones
_SEEK: Final = 48  # characters that a cut moves to reach a word's end
_BREAK: Final = re.compile(r"\s+|(?<=[,;:)\]}>.!?])(?=\S)|(?<=\w)(?=[^\w\s])")


def cut(text: str, head: int, tail: int, count: Count) -> tuple[str, str, int]:
    """The first `head` and the last `tail` o200k tokens of a text cut inside its lines, and how many tokens were left out between.

    A text that is not longer than both together comes back whole, as `(text, "", 0)`.
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


def quotation(line: str, number: int, start: int, stop: int) -> str:
    """A slice of line `number` (from 0) as a note has it, about from character `start` to `stop`."""
    start = _after(line, start)
    stop = _before(line, max(stop, start))
    shown = f"{line[start:stop]}{'' if stop == len(line) else '…'}"
    return f"line {number + 1}, characters {start + 1:,} to {stop:,} of {len(line):,}: {shown}"


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
    match = _BREAK.search(text, at, min(at + _SEEK, len(text)))
    near = match.end() if match else at
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
