"""Session files on disk (an edge): opened and unpacked. Nothing is ever written here."""

import codecs
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from tenure.disk import archives
from tenure.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK: Final = 2**18  # bytes

STDIN: Final = "-"


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _gzip(packed: io.BufferedReader) -> _Readable:
    return gzip.GzipFile(fileobj=packed)


def _xz(packed: io.BufferedReader) -> _Readable:
    return lzma.LZMAFile(packed)


def _zstd(packed: io.BufferedReader) -> _Readable:
    return zstd.ZstdFile(packed, "rb")


# What a file starts with, and how it is then unpacked; all else is read as it is.
PACKERS: Final = ((b"\xfd7zXZ\x00", _xz), (b"\x1f\x8b", _gzip), (b"\x28\xb5\x2f\xfd", _zstd))


def open_session(path: str | Path) -> Iterator[bytes]:
    """The unpacked bytes of a file in chunks, `-` being standard input. Raises InputError, at once for what cannot be opened."""
    if str(path) == STDIN:
        return _chunks(sys.stdin.buffer, "standard input")  # pyright: ignore[reportArgumentType] - a BufferedReader, always
    _check(Path(path))
    return _of_file(Path(path))


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
        if file.peek(len(archives.ZIP)).startswith(archives.ZIP):
            yield from archives.inspect_log(file, where)
            return
        unpack = next((unpack for magic, unpack in PACKERS if file.peek(len(magic)).startswith(magic)), None)
        source: _Readable = file if unpack is None else unpack(file)
        read = getattr(source, "read1", source.read)  # gives what it has, so that a cut archive gives all there is
        yield from _in_utf8(iter(lambda: read(CHUNK), b""))
    except (lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError) as error:
        raise InputError(where, f"a damaged archive ({_why(error)})", "a whole xz, gzip or zstd file") from error
    except OSError as error:
        raise InputError(where, f"cannot be read ({_why(error)})", "a file that may be read") from error


def _in_utf8(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The text in UTF-8 where its mark says that it is in UTF-16, as Windows shells write; all else as it is."""
    first = next(chunks, b"")
    if not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from chain((first,) if first else (), chunks)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for chunk in chain((first,), chunks):
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", final=True).encode()


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
