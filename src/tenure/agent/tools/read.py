"""The tool `read`: some lines of a text, or an image."""

import base64
import codecs
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO, Final

from msgspec import Meta, Struct, structs

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import SNIFFED, Encoding, binary_kind, encoding_of, image_type, open_regular, reason, suggestion
from tenure.agent.tools.ls import listing, looks
from tenure.agent.tools.tool import Deadline, Here, ToolLimits, ToolOutcome
from tenure.agent.workspace import Workspace, sighted
from tenure.apis.media import MediaSource
from tenure.engine.record.tools import ToolKind
from tenure.engine.record.visible import visible
from tenure.errors import InputError

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


class ReadArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read`."""

    path: Annotated[str, Meta(description="the file")]
    offset: Annotated[int, Meta(description="the first line, from 1; -100 for the last 100 lines")] = 1
    limit: Annotated[int, Meta(description="how many lines", ge=1)] | None = None


class Read(ArgumentTool[ReadArguments]):
    """Shows a file."""

    name = "read"
    takes = ReadArguments
    kind = ToolKind.INTERMEDIATE
    description = (
        "Show a file's lines, each behind its number and a tab, or an image (PNG, JPEG, GIF, WebP). Find the place with grep or glob first,"
        f" and read only what you need with offset and limit; without them come the first {ToolLimits().read_lines:,} lines."
    )

    def _needs(self, given: ReadArguments, workspace: Workspace) -> Approval | None:
        return looks(self.name, given.path, workspace)

    async def _run(self, given: ReadArguments, here: Here) -> ToolOutcome:
        try:
            path = here.workspace.path(given.path)
            if path.is_dir():
                return ToolOutcome(text=f"{here.workspace.shown(path)} is a folder. It holds:\n{listing(path, here)}")
            return await _shown(path, given, here)
        except OSError as error:
            return ToolOutcome(text=f"read: {given.path}: {reason(error)}", error=True)

    def _hint(self, given: ReadArguments, here: Here) -> str:
        return suggestion(given.path, here.workspace)


async def _shown(path: Path, given: ReadArguments, here: Here) -> ToolOutcome:
    name = here.workspace.shown(path)
    with open_regular(path, name) as file:
        start = file.read(SNIFFED) or b""  # nothing yet, of a file that is written as it is read
        if kind := image_type(start):
            return _image(file, kind, name, here)
        encoding = encoding_of(start)
        if encoding is None:
            size = os.fstat(file.fileno()).st_size
            raise InputError(name, f"{size:,} bytes that are no text: {binary_kind(start)}")
        sight = sighted(path)
        part = await window(file, encoding, given.offset or 1, given.limit or here.limits.read_lines, here)
        size = os.fstat(file.fileno()).st_size
    if sight is not None:
        here.workspace.see(path, sight)
    if not part.lines:
        return _nothing(name, given, part, here)
    lines = [f"{line.n}\t{line.text}" + (f"… [cut: a line of {line.size:,} bytes]" if line.cut else "") for line in part.lines]
    notes = " ".join(_notes(part, encoding, size))
    return ToolOutcome(text="\n".join([*lines, *([f"[{notes}]"] if notes else [])]))


def _image(file: BinaryIO, kind: str, name: str, here: Here) -> ToolOutcome:
    size = os.fstat(file.fileno()).st_size
    if size > here.limits.image_bytes:
        raise InputError(name, f"an image of {size:,} bytes", f"at most {here.limits.image_bytes:,}: make a smaller copy first")
    file.seek(0)
    data = file.read(here.limits.image_bytes)
    source = MediaSource(media_type=kind, data=base64.b64encode(data).decode(), name=name)
    return ToolOutcome(text=f"{name}: {kind}, {size:,} bytes", media=(source,))


def _nothing(name: str, given: ReadArguments, part: LineWindow, here: Here) -> ToolOutcome:
    if here.cancel.is_set():
        return ToolOutcome(text="[stopped by the user]", error=True)
    if part.stopped:
        return ToolOutcome(text=f"read: {name}: line {given.offset:,} is too far into it to be reached in time", error=True)
    if not part.total:
        return ToolOutcome(text=f"[{name} is empty]")
    lines = f"{part.total:,} line{'s' * (part.total > 1)}"
    return ToolOutcome(text=f"read: {name} has {lines}; offset {given.offset:,} is behind them", error=True)


def _notes(part: LineWindow, encoding: Encoding, size: int) -> Iterator[str]:
    first, last = part.lines[0].n, part.lines[-1].n
    if part.total is None:
        yield f"lines {first} to {last} of a file of {size:,} bytes" + (f"; go on with offset={last + 1}." if last != -1 else ".")
    elif last < part.total:
        yield f"lines {first} to {last} of {part.total:,}; go on with offset={last + 1}."
    elif first > 1:
        yield f"lines {first} to {last}, the last."
    if encoding.label:
        yield f"Encoding: {encoding.label}."
    if any(line.damaged for line in part.lines):
        yield "Bytes that are no UTF-8 are shown as \ufffd."


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
    with Deadline(here, limits.search_s) as patience:
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


async def _fill(frame: Frame, file: BinaryIO, encoding: Encoding, offset: int, patience: Deadline) -> bool:
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


async def _from_end(file: BinaryIO, lines: int, start: int, size: int, patience: Deadline) -> tuple[int, int]:
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
