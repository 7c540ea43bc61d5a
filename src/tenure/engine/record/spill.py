"""Reading an output that is kept in a file: parts by line, and lines by pattern, in bounded memory. Pure: the file's bytes are handed in."""

import codecs
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Count, Spill
from tenure.engine.record.excerpt import Excerpt, Lines, excerpt
from tenure.errors import InputError

Open = Callable[
    [Spill], Iterator[bytes]
]  # the bytes of a spill, in pieces of any size; raises InputError where they are not to be had

MOST: Final = 4_000_000  # characters of one part, whatever the room
BLOCK: Final = 2**20  # bytes that are searched at once
_TOKEN_CHARS: Final = 128  # no token of o200k is longer
_SHAPES: Final = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n\r"} | {0x7F: 0x2421}


class Stretch(Struct, frozen=True, kw_only=True, gc=False):
    """Some of a spill as text: its first line's number, and the character of that line it begins with, both from 1."""

    line: int
    char: int
    text: str


def nowhere(spill: Spill) -> Iterator[bytes]:
    """For hosts that keep no files."""
    raise InputError(
        "handle", f"{spill.handle} is kept in a file, and none can be read here", "the store that the session was recorded in"
    )


def whole(handle: str, spill: Spill) -> str:
    """Where all of an output is to be had whose result holds only a part of it, as a clip says it."""
    kept = (
        f"all {spill.lines:,} lines"
        if spill.size == spill.of_size
        else f"the first {spill.lines:,} of {spill.of_lines:,} lines; no more was kept"
    )
    if not spill.left[0]:
        return f"The result has the text of an output that is not all text; recall {spill.handle} returns its bytes, recall {handle} returns this text"
    lines = f"lines {spill.left[0]}-{spill.left[1]} left out"
    return (
        f"The result is a part of the output, its {lines}: recall {spill.handle} returns {kept}, lines or pattern a part; recall {handle} "
        "returns this result"
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
    line, char = (cut.left.first, cut.left.char) if cut.left is not None else _end(text)
    if line == 1:
        char += wanted.char - 1
    return Excerpt(text=cut.text, left=Lines(first=wanted.first + line - 1, char=char, last=last), total=spill.lines)


def stretches(chunks: Iterator[bytes], first: int, last: int) -> Iterator[Stretch]:
    """The lines from `first` to `last` in whole lines of about `BLOCK` bytes together; a longer line comes in pieces."""
    line, char, held = first, 1, b""
    for chunk in _from(chunks, Lines(first=first)):
        held += chunk
        if len(held) < BLOCK:
            continue
        cut = held.rfind(b"\n") + 1 or _whole_characters(held)
        yield from _bounded(Stretch(line=line, char=char, text=held[:cut].decode("utf-8", "replace")), last)
        newlines = held.count(b"\n", 0, cut)
        char = 1 if newlines else char + len(held[:cut].decode("utf-8", "replace"))
        line, held = line + newlines, held[cut:]
        if line > last:
            return
    yield from _bounded(Stretch(line=line, char=char, text=held.decode("utf-8", "replace")), last)


def _bounded(stretch: Stretch, last: int) -> Iterator[Stretch]:
    """A stretch as far as it lies in front of the end of line `last`, where anything does."""
    lines = last - stretch.line + 1
    if lines <= 0 or not stretch.text:
        return
    if stretch.text.count("\n") < lines:
        yield stretch
        return
    yield Stretch(line=stretch.line, char=stretch.char, text="\n".join(stretch.text.split("\n", lines)[:lines]))


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
        yield from _skipped(_rest(chunk[at:], chunks), wanted.char - 1)
        return


def _rest(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _skipped(chunks: Iterator[bytes], chars: int) -> Iterator[bytes]:
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
            end = _nth(held, lines)
            text = held[:end].decode("utf-8", "replace")
            return text[:most], len(text) <= most
        if len(held) > 4 * most:
            break
    else:
        text = held.decode("utf-8", "replace").removesuffix("\n")
        return text[:most], len(text) <= most
    text = held[: _whole_characters(held)].decode("utf-8", "replace")[:most]
    cut = text.rfind("\n")
    return text[:cut] if cut > 0 else text, False


def _nth(held: bytearray, number: int) -> int:
    """Where the `number`-th line feed stands."""
    at = -1
    for _ in range(number):
        at = held.find(b"\n", at + 1)
    return at


def _end(text: str) -> tuple[int, int]:
    """Where a text that was cut goes on: behind its last whole line, or within its only one. Line and character, from 1."""
    lines = text.count("\n") + 1
    return (lines + 1, 1) if lines > 1 else (1, len(text) + 1)


def _whole_characters(held: bytes | bytearray) -> int:
    """How many bytes are whole characters of UTF-8, as far as the end can tell."""
    for back in range(1, min(4, len(held)) + 1):
        byte = held[-back]
        if byte & 0xC0 != 0x80:
            width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(held) - back if width > back else len(held)
    return len(held)
