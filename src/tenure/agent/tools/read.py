"""The tool `read`: some lines of a text, or an image."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.files import SNIFFED, Encoding, binary_kind, encoding_of, image_type, opened, suggestion
from tenure.agent.tools.ls import listing, looks
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.tools.window import Line, Window, window
from tenure.agent.workspace import Workspace, sighted
from tenure.apis.media import Source
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read`."""

    path: Annotated[str, Meta(description="the file")]
    offset: Annotated[int, Meta(description="the first line, from 1; -100 for the last 100 lines")] = 1
    limit: Annotated[int, Meta(description="how many lines", ge=1)] | None = None


class Read(ArgumentTool[Asked]):
    """Shows a file."""

    name = "read"
    takes = Asked
    kind = ToolKind.INTERMEDIATE

    def __init__(self, *, limits: Limits | None = None) -> None:
        """`limits` only words the description."""
        limits = limits or Limits()
        self.description = (
            "Show a file's lines, each behind its number and a tab, or an image (PNG, JPEG, GIF, WebP). Find the place with grep or glob first,"
            f" and read only what you need with offset and limit; without them come the first {limits.read_lines:,} lines."
        )

    def _needs(self, asked: Asked, workspace: Workspace) -> Approval | None:
        """Nothing, unless the file is one that holds keys."""
        return looks(self.name, asked.path, workspace)

    async def _run(self, asked: Asked, here: Here) -> Outcome:
        """The lines, or the image."""
        try:
            path = here.workspace.path(asked.path)
            if path.is_dir():
                return Outcome(text=f"{here.workspace.shown(path)} is a folder. It holds:\n{listing(path, here)}")
            return await _shown(path, asked, here)
        except OSError as error:
            return Outcome(text=f"read: {asked.path}: {(error.strerror or str(error)).lower()}", error=True)

    def _hint(self, asked: Asked, here: Here) -> str:
        return suggestion(asked.path, here.workspace)


async def _shown(path: Path, asked: Asked, here: Here) -> Outcome:
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
        found = await window(file, encoding, asked.offset or 1, asked.limit or here.limits.read_lines, here)
        size = os.fstat(file.fileno()).st_size
    if sight is not None:
        here.workspace.see(path, sight)
    if not found.lines:
        return _nothing(name, asked, found, here)
    notes = " ".join(_notes(found, encoding, size))
    lines = "\n".join(map(_numbered, found.lines))
    return Outcome(text=f"{lines}\n[{notes}]" if notes else lines)


def _image(file: BinaryIO, kind: str, name: str, here: Here) -> Outcome:
    size = os.fstat(file.fileno()).st_size
    if size > here.limits.image_bytes:
        raise InputError(name, f"an image of {size:,} bytes", f"at most {here.limits.image_bytes:,}: make a smaller copy first")
    file.seek(0)
    data = file.read(here.limits.image_bytes)
    source = Source(media_type=kind, data=base64.b64encode(data).decode(), name=name)
    return Outcome(text=f"{name}: {kind}, {size:,} bytes", media=(source,))


def _nothing(name: str, asked: Asked, found: Window, here: Here) -> Outcome:
    if here.cancel.is_set():
        return Outcome(text="[stopped by the user]", error=True)
    if found.stopped:
        return Outcome(text=f"read: {name}: line {asked.offset:,} is too far into it to be reached in time", error=True)
    if not found.total:
        return Outcome(text=f"[{name} is empty]")
    return Outcome(
        text=f"read: {name} has {found.total:,} line{'s' * (found.total > 1)}; offset {asked.offset:,} is behind them", error=True
    )


def _numbered(line: Line) -> str:
    return f"{line.n}\t{line.text}" + (f"… [cut: a line of {line.size:,} bytes]" if line.cut else "")


def _notes(found: Window, encoding: Encoding, size: int) -> Iterator[str]:
    """What a reader must know beside the lines."""
    first, last = found.lines[0].n, found.lines[-1].n
    if found.total is None:
        yield f"lines {first} to {last} of a file of {size:,} bytes" + (f"; go on with offset={last + 1}." if last != -1 else ".")
    elif last < found.total:
        yield f"lines {first} to {last} of {found.total:,}; go on with offset={last + 1}."
    elif first > 1:
        yield f"lines {first} to {last}, the last."
    if encoding.said:
        yield f"Encoding: {encoding.said}."
    if any(line.damaged for line in found.lines):
        yield "Bytes that are no UTF-8 are shown as \ufffd."
