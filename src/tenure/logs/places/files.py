"""Session files on disk (an edge): opened and unpacked. Nothing is ever written here."""

import codecs
import gzip
import io
import lzma
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final, cast

from tenure.errors import InputError
from tenure.logs.places import archives

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHUNK: Final = 2**18  # bytes
MOST_MEMORY: Final = 2**28  # bytes that unpacking may take: four times what the largest setting of xz asks for
MOST_PIPED: Final = 2**30  # bytes of what has no size, and is held in memory
WRITER_S: Final = 10.0  # seconds in which something is written to a pipe that is named as a file

STDIN: Final = "-"
_OF_THE_KERNEL: Final = (("proc",), ("sys",))

_NEEDS_MEMORY: Final = re.compile(r"[Mm]emory usage limit|too much memory")  # in the words of liblzma and libzstd


def _unxz(packed: io.BufferedReader) -> Iterator[bytes]:
    """The streams of an xz file, one after another; `lzma.LZMAFile` sets no bound to the memory of a stream."""
    held, streams = b"", 0
    while held := held.lstrip(b"\0") or packed.read(CHUNK):
        stream = lzma.LZMADecompressor(memlimit=MOST_MEMORY)
        while not stream.eof:
            if stream.needs_input and not held and not (held := packed.read(CHUNK)):
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            try:
                yield stream.decompress(held, CHUNK)
            except lzma.LZMAError as error:
                if streams and "format not supported" in str(error):
                    return  # what follows the last stream is none
                raise
            held = b""
        held, streams = stream.unused_data, streams + 1


def _gunzip(packed: io.BufferedReader) -> Iterator[bytes]:
    source = gzip.GzipFile(fileobj=packed)
    return iter(lambda: source.read1(CHUNK), b"")  # gives what it has, so that a cut archive gives all there is


def _unzstd(packed: io.BufferedReader) -> Iterator[bytes]:
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: MOST_MEMORY.bit_length() - 1}
    source = zstd.ZstdFile(packed, "rb", options=options)
    return iter(lambda: source.read1(CHUNK), b"")


# What a file starts with, and how it is then unpacked; all else is read as it is.
PACKERS: Final = ((b"\xfd7zXZ\x00", _unxz), (b"\x1f\x8b", _gunzip), (b"\x28\xb5\x2f\xfd", _unzstd))


def open_session(path: str | Path) -> Iterator[bytes]:
    """The unpacked bytes of a file in chunks, `-` being standard input. Raises InputError, at once for what cannot be opened.

    A file is read as far as it reached when it was opened, a pipe up to MOST_PIPED bytes. Devices and sockets are refused.
    """
    if str(path) == STDIN:
        return _chunks(_Bounded(cast("io.BufferedReader[Any]", sys.stdin.buffer), MOST_PIPED, "standard input"), "standard input")
    _check(Path(path), "a session file")
    return _of_file(Path(path))


def read_file(path: Path, most: int) -> bytes:
    """The bytes of a file, a pipe included. Raises InputError for a device, for what cannot be read, and for one of more than `most` bytes."""
    _check(path, "a file")
    return b"".join(_of_file(path, most))


def is_of_the_kernel(path: Path) -> bool:
    """Whether it is one of the kernel's files, some of which never end, and some of which keep a reader waiting."""
    return path.resolve().parts[1:2] in _OF_THE_KERNEL


def _check(path: Path, wanted: str) -> None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(str(path), "found a directory", wanted)
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise InputError(str(path), f"found a {_kind(mode)}", "a file or a pipe")
        if stat.S_ISREG(mode) and is_of_the_kernel(path):
            raise InputError(str(path), "found a file of the kernel", wanted)
        if stat.S_ISREG(mode):  # to open a pipe would lose its writer
            with path.open("rb"):
                pass
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", f"{wanted}{', or - for standard input' * (wanted != 'a file')}") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(str(path), f"cannot be opened ({_why(error)})", "a file that may be read") from error


def _kind(mode: int) -> str:
    return "socket" if stat.S_ISSOCK(mode) else "device"


def _of_file(path: Path, most: int = 0) -> Iterator[bytes]:
    """The bytes of a file, unpacked; with `most` as they are, and no more than that."""
    with _opened(path) as raw, io.BufferedReader(raw) as file:
        try:
            held = os.fstat(raw.fileno())
        except OSError as error:
            raise InputError(str(path), f"cannot be read ({_why(error)})", "a file that may be read") from error
        limit = held.st_size if stat.S_ISREG(held.st_mode) and held.st_size else MOST_PIPED
        if most:
            bounded = _Bounded(file, most, str(path))
            yield from iter(lambda: bounded.read(CHUNK), b"")
            return
        yield from _chunks(_Bounded(file, limit, str(path), grows=limit == held.st_size), str(path))


def _opened(path: Path) -> io.FileIO:
    """The file, open; a pipe once somebody writes to it. Raises InputError where nobody does."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
        )
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be opened ({_why(error)})", "a file that may be read") from error
    raw = io.FileIO(descriptor, "rb")
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        if not select.select([raw], [], [], WRITER_S)[0]:
            raw.close()
            raise InputError(
                str(path),
                f"found a pipe to which nothing was written in {WRITER_S:.0f} seconds",
                "a file, or a pipe with a writer",
            )
        os.set_blocking(descriptor, True)
    return raw


class _Bounded(io.RawIOBase):
    """The first bytes of a file. What goes on after that is an error, or where the file `grows` its end as it was when it was opened."""

    def __init__(self, file: "io.BufferedReader[Any]", most: int, where: str, *, grows: bool = False) -> None:
        self._file, self._most, self._where, self._grows = file, most, where, grows
        self.count = 0  # bytes read

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """To a place; what is read again counts again only past the end."""
        self.count = self._file.seek(offset, whence)
        return self.count

    def peek(self, size: int, /) -> bytes:
        """What comes next, not read yet; empty for a file without bytes."""
        return self._file.peek(size)

    def read(self, size: int = -1, /) -> bytes:
        """Some bytes; none at the end. Raises InputError past the bound."""
        left = self._most - self.count
        wanted = CHUNK if size < 0 else size
        wanted = min(wanted, max(left, 0) if self._grows else left + 1)
        piece = self._file.read(wanted) if self._grows else self._file.read1(wanted)  # a pipe gives what it has
        self.count += len(piece)
        if self.count > self._most and not self._grows:
            raise InputError(self._where, f"found more than {self._most:,} bytes", "a session")
        return piece


def _chunks(file: _Bounded, where: str) -> Iterator[bytes]:
    try:
        if file.peek(len(archives.ZIP)).startswith(archives.ZIP):
            yield from archives.inspect_log(cast(IO[bytes], file), where)
            return
        unpack = next((unpack for magic, unpack in PACKERS if file.peek(len(magic)).startswith(magic)), None)
        if unpack is None:
            yield from _in_utf8(iter(lambda: file.read(CHUNK), b""))
        else:
            yield from _in_utf8(_bounded(unpack(cast(io.BufferedReader, file)), file, where))
    except (lzma.LZMAError, zlib.error, zstd.ZstdError, EOFError, MemoryError) as error:
        if _NEEDS_MEMORY.search(str(error)):
            found = f"an archive that takes more than {MOST_MEMORY // 2**20} MiB of memory to unpack"
            raise InputError(where, found, "a packed session") from error
        raise InputError(where, f"a damaged archive ({_why(error)})", "a whole xz, gzip or zstd file") from error
    except OSError as error:
        raise InputError(where, f"cannot be read ({_why(error)})", "a file that may be read") from error


def _bounded(chunks: Iterator[bytes], packed: _Bounded, where: str) -> Iterator[bytes]:
    """What an archive holds. Raises InputError for one that unpacks to far more than any log does."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > min(archives.MOST, max(archives.ALWAYS, archives.MOST_TIMES * packed.count)):
            raise InputError(
                where, f"an archive of {packed.count:,} bytes that unpacks to more than {size:,}", "a packed session"
            )
        yield chunk


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
