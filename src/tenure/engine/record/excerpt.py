"""Parts of a text by line.

Lines end at a line feed and count from 1. One that is too long for any room is cut at a character, and goes on there.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Count
from tenure.errors import InputError

_TOKEN_CHARS: Final = 128  # no token of o200k is longer, so that a longer text need not be counted
_RANGE: Final = re.compile(r"\s*(\d{1,9})(?:@(\d{1,12}))?\s*(?:(?P<to>-|–|:|,|\.\.)\s*(\d{1,9})?)?\s*")


class Lines(Struct, frozen=True, kw_only=True, gc=False):
    """From character `char` of line `first` to the end of line `last`, all from 1; `last` 0 is the end of the text."""

    first: int = 1
    char: int = 1
    last: int = 0

    def __str__(self) -> str:
        start = f"{self.first}@{self.char}" if self.char > 1 else f"{self.first}"
        return f"{start}-{self.last}" if self.last else f"{start}-"


class Excerpt(Struct, frozen=True, kw_only=True, gc=False):
    """Whole lines from the start of what was wanted, and what of it did not fit."""

    text: str
    left: Lines | None
    total: int  # lines of the whole text


def lines_of(wanted: str) -> Lines:
    """A range as a person or model writes it: 120-180, 120, 120- (to the end), 7@4001- (from that character on). Raises InputError."""
    found = _RANGE.fullmatch(wanted) if len(wanted) <= 60 else None
    first = int(found[1]) if found else 0
    last = (int(found[4] or 0) if found["to"] else first) if found else 0
    if not found or first < 1 or (last and last < first) or found[2] == "0":
        raise InputError("lines", repr(wanted[:60]), "a range such as 120-180, or 120- for all from there on")
    return Lines(first=first, char=int(found[2] or 1), last=last)


def excerpt(text: str, wanted: Lines, room: int | None, count: Count) -> Excerpt:
    """The wanted lines, as many whole ones from their start as weigh at most `room` tokens. Raises InputError where there are none.

    Linear in the text; what is counted is at most about twice the room.
    """
    every = text.split("\n")
    if wanted.first > len(every) or wanted.char > len(every[wanted.first - 1]) + 1:
        raise InputError("lines", repr(str(wanted)), f"a range within the {len(every)} lines there are")
    last = min(wanted.last or len(every), len(every))
    chosen = every[wanted.first - 1 : last]
    chosen[0] = chosen[0][wanted.char - 1 :]
    whole = "\n".join(chosen)
    if room is None or _fits(whole, room, count):
        return Excerpt(text=whole, left=None, total=len(every))
    kept = _fitting(chosen, room, count)
    if kept:
        return Excerpt(text="\n".join(chosen[:kept]), left=Lines(first=wanted.first + kept, last=last), total=len(every))
    chars = _chars(chosen[0], room, count)
    return Excerpt(text=chosen[0][:chars], left=Lines(first=wanted.first, char=wanted.char + chars, last=last), total=len(every))


def _fits(text: str, room: int, count: Count) -> bool:
    return len(text) <= room * _TOKEN_CHARS and count(text) <= room


def _fitting(lines: Sequence[str], room: int, count: Count) -> int:
    """How many lines from the start fit: by the sum of their own weights, which is hardly ever less than that of the whole."""
    spent = kept = 0
    for line in lines:
        if len(line) > room * _TOKEN_CHARS or (spent := spent + count(line + "\n")) > room:
            break
        kept += 1
    while kept and count("\n".join(lines[:kept])) > room:
        kept -= max(1, kept // 64)
    return kept


def _chars(line: str, room: int, count: Count) -> int:
    """About how many characters of a line fit, at least one."""
    low, high = 1, min(len(line), room * _TOKEN_CHARS)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(line[:middle]) <= room else (low, middle - 1)
    return low
