"""Session files on disk (an edge): opened, unpacked, and found where agents keep them. Nothing is ever written here."""

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from tenure.errors import InputError

CHUNK: Final = 2**18  # bytes

STDIN: Final = "-"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _gzip(packed: io.BufferedReader) -> _Readable:
    return gzip.GzipFile(fileobj=packed)


def _xz(packed: io.BufferedReader) -> _Readable:
    return lzma.LZMAFile(packed)


def _zstd(packed: io.BufferedReader) -> _Readable:
    """By the standard library (3.14), or by the `zstandard` package."""
    for module, opener in (("compression.zstd", "ZstdFile"), ("zstandard", "open")):
        try:
            found: Any = import_module(module)
        except ImportError:
            continue
        return getattr(found, opener)(packed, "rb")
    raise InputError(str(packed.name), "found a zstd archive", "the package `zstandard` to be installed, or an unpacked file")


# What a file starts with, and how it is then unpacked; all else is read as it is.
PACKERS: Final = ((b"\xfd7zXZ\x00", _xz), (b"\x1f\x8b", _gzip), (b"\x28\xb5\x2f\xfd", _zstd))


class FoundSession(Struct, frozen=True, kw_only=True):
    """A session file in one of the usual places."""

    tool: str  # the reader's name
    path: Path
    size: int  # bytes, as packed
    modified: datetime  # UTC


class Place(Struct, frozen=True, gc=False):
    """Where a tool keeps its sessions."""

    tool: str
    folder: str  # below the home directory
    files: str  # glob below the folder


PLACES: Final = (
    Place("claude-code", ".claude/projects", "**/*.jsonl"),
    Place("codex", ".codex/sessions", "**/*.jsonl"),
    Place("opencode", ".local/share/opencode", "*.json"),
    Place("opencode", ".local/share/opencode/storage/export", "**/*.json"),
    Place("pi", ".pi/agent/sessions", "**/*.jsonl"),
    Place("gemini-cli", ".gemini/tmp", "*/chats/*.json*"),
)

_SUBAGENT: Final = "agent-"  # Claude Code's logs of sub-agents, beside the sessions that started them


def open_session(path: str | Path) -> Iterator[bytes]:
    """The unpacked bytes of a file in chunks, `-` being standard input. Raises InputError, at once for what cannot be opened."""
    if str(path) == STDIN:
        return _chunks(sys.stdin.buffer, "standard input")  # pyright: ignore[reportArgumentType] - a BufferedReader, always
    _check(Path(path))
    return _of_file(Path(path))


def usual_places(home: Path) -> Iterator[FoundSession]:
    """The sessions that agents left below `home`, newest first."""
    found = (session for place in PLACES for session in _in_place(home, place))
    yield from sorted(found, key=lambda session: (session.modified, str(session.path)), reverse=True)


def _in_place(home: Path, place: Place) -> Iterator[FoundSession]:
    for path in (home / place.folder).glob(place.files):
        try:
            status = path.stat()
        except OSError:
            continue  # gone or unreadable since it was listed
        if path.is_file() and status.st_size and not (place.tool == "claude-code" and path.name.startswith(_SUBAGENT)):
            modified = datetime.fromtimestamp(status.st_mtime, UTC)
            yield FoundSession(tool=place.tool, path=path, size=status.st_size, modified=modified)


def _check(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(str(path), "found a directory", "a session file")
        if not path.is_fifo():  # which would lose its writer
            with path.open("rb"):
                pass
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a session file, or - for standard input") from error
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be opened ({_why(error)})", "a file that may be read") from error


def _of_file(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _chunks(file, str(path))


def _chunks(file: io.BufferedReader, where: str) -> Iterator[bytes]:
    try:
        unpack = next((unpack for magic, unpack in PACKERS if file.peek(len(magic)).startswith(magic)), None)
        source: _Readable = file if unpack is None else unpack(file)
        read = getattr(source, "read1", source.read)  # gives what it has, so that a cut archive gives all there is
        while chunk := read(CHUNK):
            yield chunk
    except (lzma.LZMAError, zlib.error, EOFError) as error:
        raise InputError(where, f"a damaged archive ({_why(error)})", "a whole xz, gzip or zstd file") from error
    except OSError as error:
        raise InputError(where, f"cannot be read ({_why(error)})", "a file that may be read") from error
    except Exception as error:
        if type(error).__name__ == "ZstdError":  # whose class is there only where zstd is
            raise InputError(where, f"a damaged archive ({error})", "a whole xz, gzip or zstd file") from error
        raise


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
