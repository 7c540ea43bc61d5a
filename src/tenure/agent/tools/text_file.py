"""A text in a file, whole, with all that must survive a change of it (an edge).

A file is exchanged for its new version at once, so that nobody ever sees half of it. A link stays, and what it leads to is changed.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import Struct

from tenure.agent.tools.files import SNIFFED, Encoding, binary_kind, encoding_of, image_type, opened
from tenure.errors import InputError

LARGEST: Final = 16 * 2**20  # bytes of a file that is edited
_ALONE: Final = re.compile(r"(?<!\r)\n")


class TextFile(Struct, frozen=True, kw_only=True):
    """A text as it is edited: a line feed ends its lines, also where all of them end in CRLF in the file (`crlf`)."""

    text: str
    encoding: Encoding = Encoding()
    crlf: bool = False

    def written(self, shown: str) -> bytes:
        """The bytes of it. Raises InputError for what its encoding cannot write."""
        text = _ALONE.sub("\r\n", self.text) if self.crlf else self.text
        try:
            return self.encoding.bom + text.encode(self.encoding.codec)
        except UnicodeEncodeError as error:
            found = text[error.start : error.start + 1]
            raise InputError(shown, f"{found!r} is not in its encoding, {self.encoding.codec}", "other signs") from error


def loaded(path: Path, shown: str) -> TextFile:
    """The text of a file. Raises InputError for what cannot be edited as text."""
    with opened(path, shown) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST:
            raise InputError(shown, f"{size:,} bytes", f"at most {LARGEST:,}: change it with a program")
        data = bytearray()
        while len(data) <= LARGEST and (chunk := file.read(LARGEST)):
            data += chunk
    start = bytes(data[:SNIFFED])
    encoding = None if image_type(start) else encoding_of(start)
    if encoding is None:
        raise InputError(shown, f"no text: {image_type(start) or binary_kind(start)}", "a text")
    try:
        text = data[len(encoding.bom) :].decode(encoding.codec)
    except UnicodeDecodeError as error:
        raise InputError(shown, f"byte {error.start:,} is no {encoding.codec}", "a text: change it with a program") from error
    crlf = "\r\n" in text and not _ALONE.search(text)
    return TextFile(text=text.replace("\r\n", "\n") if crlf else text, encoding=encoding, crlf=crlf)


def stored(path: Path, data: bytes, shown: str) -> None:
    """Put `data` at a path that may be there or not, its folders made. Raises InputError."""
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            raise InputError(shown, "this is no file", "a file, or a new path")
        _exchange(target, data, mode)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise InputError(shown, f"cannot be written ({(getattr(error, 'strerror', '') or str(error)).lower()})") from error


def _exchange(target: Path, data: bytes, mode: int | None) -> None:
    beside = target.with_name(f".{target.name[:100]}.{uuid4().hex[:8]}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except PermissionError:
        if mode is None:
            raise
        target.write_bytes(data)  # a folder that takes no new files, with a file that may be changed
        return
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
                with suppress(OSError):
                    was = target.stat()
                    os.fchown(file.fileno(), was.st_uid, was.st_gid)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
