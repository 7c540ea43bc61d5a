"""The tool `read`: some lines of a text, or an image."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import SNIFFED, Encoding, binary_kind, encoding_of, image_type, opened, reason, suggestion
from tenure.agent.tools.ls import listing, looks
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.tools.window import LineWindow, window
from tenure.agent.workspace import Workspace, sighted
from tenure.apis.media import Source
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError


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

    def __init__(self, *, limits: Limits | None = None) -> None:
        """`limits` only words the description."""
        limits = limits or Limits()
        self.description = (
            "Show a file's lines, each behind its number and a tab, or an image (PNG, JPEG, GIF, WebP). Find the place with grep or glob first,"
            f" and read only what you need with offset and limit; without them come the first {limits.read_lines:,} lines."
        )

    def _needs(self, given: ReadArguments, workspace: Workspace) -> Approval | None:
        return looks(self.name, given.path, workspace)

    async def _run(self, given: ReadArguments, here: Here) -> Outcome:
        try:
            path = here.workspace.path(given.path)
            if path.is_dir():
                return Outcome(text=f"{here.workspace.shown(path)} is a folder. It holds:\n{listing(path, here)}")
            return await _shown(path, given, here)
        except OSError as error:
            return Outcome(text=f"read: {given.path}: {reason(error)}", error=True)

    def _hint(self, given: ReadArguments, here: Here) -> str:
        return suggestion(given.path, here.workspace)


async def _shown(path: Path, given: ReadArguments, here: Here) -> Outcome:
    name = here.workspace.shown(path)
    with opened(path, name) as file:
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
    return Outcome(text="\n".join([*lines, *([f"[{notes}]"] if notes else [])]))


def _image(file: BinaryIO, kind: str, name: str, here: Here) -> Outcome:
    size = os.fstat(file.fileno()).st_size
    if size > here.limits.image_bytes:
        raise InputError(name, f"an image of {size:,} bytes", f"at most {here.limits.image_bytes:,}: make a smaller copy first")
    file.seek(0)
    data = file.read(here.limits.image_bytes)
    source = Source(media_type=kind, data=base64.b64encode(data).decode(), name=name)
    return Outcome(text=f"{name}: {kind}, {size:,} bytes", media=(source,))


def _nothing(name: str, given: ReadArguments, part: LineWindow, here: Here) -> Outcome:
    if here.cancel.is_set():
        return Outcome(text="[stopped by the user]", error=True)
    if part.stopped:
        return Outcome(text=f"read: {name}: line {given.offset:,} is too far into it to be reached in time", error=True)
    if not part.total:
        return Outcome(text=f"[{name} is empty]")
    lines = f"{part.total:,} line{'s' * (part.total > 1)}"
    return Outcome(text=f"read: {name} has {lines}; offset {given.offset:,} is behind them", error=True)


def _notes(part: LineWindow, encoding: Encoding, size: int) -> Iterator[str]:
    """What a reader must know beside the lines."""
    first, last = part.lines[0].n, part.lines[-1].n
    if part.total is None:
        yield f"lines {first} to {last} of a file of {size:,} bytes" + (f"; go on with offset={last + 1}." if last != -1 else ".")
    elif last < part.total:
        yield f"lines {first} to {last} of {part.total:,}; go on with offset={last + 1}."
    elif first > 1:
        yield f"lines {first} to {last}, the last."
    if encoding.said:
        yield f"Encoding: {encoding.said}."
    if any(line.damaged for line in part.lines):
        yield "Bytes that are no UTF-8 are shown as \ufffd."
