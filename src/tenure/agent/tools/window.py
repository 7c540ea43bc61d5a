"""Some lines of a file, however large it is (an edge).

Lines end at a line feed, and are numbered from 1. From the end they are found by going backwards.
"""

import codecs
import os
from typing import BinaryIO, Final

from msgspec import Struct, structs

from tenure.agent.tools.files import Encoding
from tenure.agent.tools.tool import Here, Patience
from tenure.engine.record.visible import visible

CHUNK: Final = 2**20  # bytes
COUNTED_BYTES: Final = 2**28  # behind the window, to tell how many lines there are
_BYTES: Final = 4  # of a character, at most
_REPLACEMENT: Final = "\ufffd"
_NARROW: Final = frozenset({"utf-8", "latin-1", "cp1252"})  # in these a line feed is one byte; others are walked through as UTF-8


class FileLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a window; `size` is its length in bytes, of which `text` may be the start."""

    n: int
    text: str
    size: int
    cut: bool = False
    damaged: bool = False  # it has bytes that its encoding has not


class LineWindow(Struct, frozen=True, kw_only=True):
    """What was found: the lines, and how many the file has; None when there are more than were counted."""

    lines: tuple[FileLine, ...]
    total: int | None
    stopped: bool = False  # before the lines were reached: time ran out


class Frame:
    """Collects lines from `first` on, as many as fit, and counts all. Mutable."""

    def __init__(self, first: int, most: int, room: int, longest: int, codec: str = "utf-8") -> None:
        """At most `most` lines and `room` characters in all; each line is cut at `longest`."""
        self.lines: list[FileLine] = []
        self.full = False
        self._next, self._first, self._most = 1, first, most
        self._room, self._longest, self._codec = room, longest, codec
        self._start = b""  # of the line that is not finished
        self._size = 0  # bytes of it so far

    @property
    def count(self) -> int:
        """The lines so far, an unfinished one among them."""
        return self._next - 1 + (self._size > 0)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        at = self._skipped(chunk)
        while not self.full and (end := chunk.find(b"\n", at)) >= 0:
            self._extend(chunk, at, end)
            self._finish()
            at = end + 1
        if self.full:
            self._count(chunk, at)
        elif at < len(chunk):
            self._extend(chunk, at, len(chunk))

    def end(self) -> None:
        """Take the last line, which need not end in a line feed."""
        if self._size and not self.full and self._next >= self._first:
            self._finish()

    def _skipped(self, chunk: bytes) -> int:
        """Where in the chunk the wanted lines begin, or go on."""
        missing = self._first - self._next
        if missing <= 0:
            return 0
        if chunk.count(b"\n") < missing:
            self._count(chunk, 0)
            return len(chunk)
        at = 0
        for _ in range(missing):
            at = chunk.find(b"\n", at) + 1
        self._next, self._size = self._first, 0
        return at

    def _count(self, chunk: bytes, at: int) -> None:
        lines = chunk.count(b"\n", at)
        self._next += lines
        self._size = len(chunk) - chunk.rfind(b"\n") - 1 if lines else self._size + len(chunk) - at

    def _extend(self, chunk: bytes, at: int, end: int) -> None:
        self._start += chunk[at : min(end, at + self._longest * _BYTES - len(self._start))]
        self._size += end - at

    def _finish(self) -> None:
        text = self._start.decode(self._codec, "replace").removesuffix("\r")
        cut = len(text) > self._longest or self._size > len(self._start)
        shown = visible(text[: self._longest])
        self._room -= len(shown) + 1
        if self._room >= 0 or not self.lines:
            damaged = _REPLACEMENT in shown and self._codec == "utf-8"
            self.lines.append(FileLine(n=self._next, text=shown, size=self._size, cut=cut, damaged=damaged))
        self.full = self._room < 0 or len(self.lines) >= self._most
        self._next, self._start, self._size = self._next + 1, b"", 0


async def window(file: BinaryIO, encoding: Encoding, first: int, most: int, here: Here) -> LineWindow:
    """At most `most` lines from line `first` on, or of the last `-first` lines. In a huge file the latter are numbered from the end, as -3."""
    limits, is_narrow = here.limits, encoding.codec in _NARROW
    with Patience(here, limits.search_s) as patience:
        offset, shift = len(encoding.bom), 0
        if first < 0 and is_narrow and (size := os.fstat(file.fileno()).st_size) > COUNTED_BYTES:
            offset, count = await _from_end(file, -first, offset, size, patience)
            first, shift = 1, -count - 1
        elif first < 0:
            counted = Frame(0, 0, 0, 0)
            counted.full = True
            await _fill(counted, file, encoding, offset, patience)
            first = max(1, counted.count + 1 + first)
        frame = Frame(first, most, limits.output_bytes, limits.line_chars, encoding.codec if is_narrow else "utf-8")
        whole = await _fill(frame, file, encoding, offset, patience)
    lines = [structs.replace(line, n=line.n + shift) for line in frame.lines] if shift else frame.lines
    return LineWindow(
        lines=tuple(lines), total=frame.count if whole and not shift else None, stopped=not whole and not frame.full
    )


async def _fill(frame: Frame, file: BinaryIO, encoding: Encoding, offset: int, patience: Patience) -> bool:
    """Feed a file to a frame, from `offset` on; whether all of it was fed."""
    decode = None if encoding.codec in _NARROW else codecs.getincrementaldecoder(encoding.codec)("replace").decode
    file.seek(offset)
    behind = 0
    while chunk := file.read(CHUNK):
        frame.feed(decode(chunk).encode() if decode else chunk)
        behind += len(chunk) if frame.full and frame.lines else 0
        if behind > COUNTED_BYTES or await patience.ends():
            return False
    if decode:
        frame.feed(decode(b"", final=True).encode())
    frame.end()
    return True


async def _from_end(file: BinaryIO, lines: int, start: int, size: int, patience: Patience) -> tuple[int, int]:
    """Where the last `lines` lines begin, and how many they are: fewer when there are no more or time is up."""
    at, count = size, 0
    while at > start and not await patience.ends():
        length = min(CHUNK, at - start)
        file.seek(at - length)
        chunk = file.read(length)
        end = len(chunk) - (at == size and chunk.endswith(b"\n"))
        while (end := chunk.rfind(b"\n", 0, end)) >= 0:
            count += 1
            if count == lines:
                return at - length + end + 1, count
        at -= length
    return at, count + 1
