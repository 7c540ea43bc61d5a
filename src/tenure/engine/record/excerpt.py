"""Parts of a text by line; the text is in memory, or an output that is kept in a file (a spill), read in bounded memory. Pure.

Lines end at a line feed and count from 1. One that is too long for any room is cut at a character, and goes on there.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Count, Spill
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


Open = Callable[
    [Spill], Iterator[bytes]
]  # the bytes of a spill, in pieces of any size; raises InputError where they are not to be had

MOST: Final = 4_000_000  # characters of one part, whatever the room
BLOCK: Final = 2**20  # bytes that are searched at once
_SHAPES: Final = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n\r"} | {0x7F: 0x2421}


def nowhere(spill: Spill) -> Iterator[bytes]:
    """For hosts that keep no files."""
    raise InputError(
        "handle", f"{spill.handle} is kept in a file, and none can be read here", "the store that the session was recorded in"
    )


def whole(handle: str, spill: Spill) -> str:
    """Where all of an output is to be had whose result holds only a part of it, as a clip says it."""
    if not spill.left[0]:
        return f"The result has the text of an output that is not all text; recall {spill.handle} returns its bytes, recall {handle} returns this text"
    kept = f"all {spill.lines:,} lines"
    if spill.size < spill.of_size:
        kept = f"the first {spill.lines:,} of {spill.of_lines:,} lines; no more was kept"
    return (
        f"The result is a part of the output, its lines {spill.left[0]}-{spill.left[1]} left out: recall {spill.handle} returns {kept}, "
        f"lines or pattern a part; recall {handle} returns this result"
    )


def harmless(text: str) -> str:
    """The text with control characters shown by a sign each, so that it keeps its lines and acts on no terminal."""
    return text.translate(_SHAPES)


def part(spill: Spill, chunks: Iterator[bytes], wanted: Lines, room: int | None, count: Count) -> Excerpt:
    """The wanted lines of a spill, as many whole ones from their start as weigh at most `room` tokens. Raises InputError where there are none."""
    if wanted.first > max(1, spill.lines):
        raise InputError("lines", repr(str(wanted)), f"a range within the {spill.lines:,} lines there are")
    last = min(wanted.last or spill.lines, spill.lines)
    most = MOST if room is None else min(MOST, room * _TOKEN_CHARS)
    text, whole = _collected(_from(chunks, wanted), last - wanted.first + 1, most)
    if wanted.char > 1 and not text:
        raise InputError("lines", repr(str(wanted)), f"a character that line {wanted.first} has")
    cut = excerpt(harmless(text), Lines(), room, count)
    if cut.left is None and whole:
        return Excerpt(text=cut.text, left=None, total=spill.lines)
    lines = text.count("\n") + 1  # what was cut goes on behind its last whole line, or within its only one
    line, char = (cut.left.first, cut.left.char) if cut.left is not None else (lines + 1, 1) if lines > 1 else (1, len(text) + 1)
    if line == 1:
        char += wanted.char - 1
    return Excerpt(text=cut.text, left=Lines(first=wanted.first + line - 1, char=char, last=last), total=spill.lines)


def stretches(chunks: Iterator[bytes], first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """The lines from `first` to `last` in whole lines of about `BLOCK` bytes together; a longer line comes in pieces.

    Each with the number of its first line, and the character of that line that it begins with, both from 1.
    """
    line, char, held = first, 1, b""
    for chunk in chain(_from(chunks, Lines(first=first)), (None,)):
        held += chunk or b""
        if chunk is not None and len(held) < BLOCK:
            continue
        cut = len(held) if chunk is None else held.rfind(b"\n") + 1 or _whole_characters(held)
        text, lines = held[:cut].decode("utf-8", "replace"), last - line + 1
        if lines <= 0:
            return
        if text:
            yield line, char, text if text.count("\n") < lines else "\n".join(text.split("\n", lines)[:lines])
        newlines = held.count(b"\n", 0, cut)
        char = 1 if newlines else char + len(text)
        line, held = line + newlines, held[cut:]


def _from(chunks: Iterator[bytes], wanted: Lines) -> Iterator[bytes]:
    """The bytes from the wanted line and character on."""
    missing = wanted.first - 1
    for chunk in chunks:
        found = chunk.count(b"\n") if missing else 0
        if missing and found < missing:
            missing -= found
            continue
        at = 0
        for _ in range(missing):
            at = chunk.find(b"\n", at) + 1
        missing = 0
        yield from _skipped(chain((chunk[at:],), chunks), wanted.char - 1)
        return


def _skipped(chunks: Iterable[bytes], chars: int) -> Iterator[bytes]:
    """Without the first characters of a line; nothing when it has not so many."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    for chunk in chunks:
        if not chars:
            yield chunk
            continue
        text = decode(chunk)
        if "\n" in text[:chars]:
            return
        if rest := text[chars:]:
            yield rest.encode()
        chars = max(0, chars - len(text))


def _collected(chunks: Iterator[bytes], lines: int, most: int) -> tuple[str, bool]:
    """At most so many lines and characters; and whether these are all the lines that were wanted."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if held.count(b"\n") >= lines:
            text = b"\n".join(held.split(b"\n", lines)[:lines]).decode("utf-8", "replace")
            return text[:most], len(text) <= most
        if len(held) > 4 * most:
            break
    else:
        text = held.decode("utf-8", "replace").removesuffix("\n")
        return text[:most], len(text) <= most
    text = held[: _whole_characters(held)].decode("utf-8", "replace")[:most]
    cut = text.rfind("\n")
    return text[:cut] if cut > 0 else text, False


def _whole_characters(held: bytes | bytearray) -> int:
    """How many bytes are whole characters of UTF-8, as far as the end can tell."""
    for back in range(1, min(4, len(held)) + 1):
        byte = held[-back]
        if byte & 0xC0 != 0x80:
            width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(held) - back if width > back else len(held)
    return len(held)
