"""Zip archives that hold one session (an edge): Inspect's `.eval` logs, read as the JSON document of which they hold the parts.

Entries are unpacked one by one, and nothing is written to disk. A damaged entry costs that sample: it is said when all the others
have been given. What unpacks to far more than any log does is refused.
"""

import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO, RawIOBase
from typing import IO, Any, Final
from zipfile import BadZipFile, ZipFile, ZipInfo

import msgspec
from msgspec import Raw, Struct

from tenure.errors import InputError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZIP: Final = b"PK\x03\x04"  # what such a file starts with
ALLOWED: Final = "an Inspect log (.eval), or an unpacked file"

MOST: Final = 4 * 2**30  # bytes unpacked, of all entries together
MOST_TIMES: Final = 1000  # the size of the archive: a log repeats itself, and yet none comes near
ALWAYS: Final = 2**28  # bytes that any archive may unpack to

_ZSTD: Final = 93  # the method's number, which `zipfile` knows since Python 3.14, but reads no more of than the first frame
_ENCRYPTED: Final = 1  # a flag
_LOCAL: Final = struct.Struct("<4s22xHH")  # before an entry: the mark, and the lengths of its name and of the extra fields
_PIECE: Final = 2**18  # bytes

_HEADERS: Final = ("header.json", "_journal/start.json")  # of a finished log, and of one under way
_SAMPLE: Final = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>[0-9]{1,18})(?:\.json|/(?P<shell>sample\.json))", re.DOTALL)
_PART: Final = re.compile(r"(?P<sequence>samples/.+/(?:messages|events|attachments)/)(?P<start>[0-9]{1,18})\.json", re.DOTALL)


class _ArchivesShell(Struct, frozen=True):
    """A sample in parts: all but its sequences, and which messages of the pool are its conversation."""

    message_refs: list[tuple[int, int]] = []  # from, to


def inspect_log(file: IO[bytes], where: str) -> Iterator[bytes]:
    """The JSON of the Inspect log that `file` is, in pieces. Raises InputError, for a damaged sample only after all others.

    Samples stand in the order of Inspect's own JSON logs. What they hold of raw traffic with an API apart from their events is left out.
    """
    archive = _Archive(file if file.seekable() else BytesIO(_all(file, where)), where)
    header = next((name for name in _HEADERS if name in archive.entries), None)
    if header is None:
        raise InputError(where, "found a zip archive that is no Inspect log", ALLOWED)
    yield archive.opened(header) + b'"samples":['
    damaged: InputError | None = None
    separator = b"\n"
    for name in sorted(filter(_SAMPLE.fullmatch, archive.entries), key=_order):
        try:
            sample = archive.sample(name)
        except InputError as error:
            damaged = damaged or error
            continue
        yield separator
        yield from sample
        separator = b",\n"
    yield b"\n]}"
    if damaged:
        raise damaged


def _order(name: str) -> tuple[int, str]:
    found = _SAMPLE.fullmatch(name)
    assert found
    return int(found["epoch"]), found["id"].zfill(20) if found["id"].isdecimal() else found["id"]


class _Archive:
    def __init__(self, packed: IO[bytes], where: str) -> None:
        self.packed, self.where = packed, where
        try:
            self.zip = ZipFile(packed)
        except Exception as error:
            raise self._damaged("its directory", error) from error
        self.entries = {entry.filename: entry for entry in self.zip.infolist()}  # of equal names the last one counts
        self.parts: dict[str, list[tuple[int, str]]] = {}
        for name in self.entries:
            if found := _PART.fullmatch(name):
                self.parts.setdefault(found["sequence"], []).append((int(found["start"]), name))
        self.left = min(MOST, max(ALWAYS, MOST_TIMES * packed.seek(0, 2)))

    def sample(self, name: str) -> list[bytes]:
        """A sample's JSON, put together when it is in parts."""
        found = _SAMPLE.fullmatch(name)
        if found is None or not found["shell"]:
            return [self._unpacked(name)]
        folder = name.removesuffix(found["shell"])
        try:
            pool = list(self._sequence(folder + "messages/"))
            refs = msgspec.json.decode(self._unpacked(name), type=_ArchivesShell).message_refs
            said = (pool[n] for start, end in refs for n in range(max(0, start), min(end, len(pool))))
            attachments = (b'"%d":%s' % (n, text) for n, text in enumerate(self._sequence(folder + "attachments/")))
            return [
                self.opened(name),
                b'"messages":[' + self._joined(said),
                b'],"events":[' + self._joined(self._sequence(folder + "events/")),
                b'],"events_data":{"messages":[' + self._joined(pool),
                b']},"attachments":{' + self._joined(attachments) + b"}}",
            ]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(name, error) from error

    def opened(self, name: str) -> bytes:
        """The object in an entry, open for more members."""
        text = self._unpacked(name).strip(b"\xef\xbb\xbf \t\r\n")
        if not (text.startswith(b"{") and text.endswith(b"}")):
            raise self._damaged(name, ValueError("no JSON object"))
        members = text[:-1].rstrip()
        return members if members == b"{" else members + b","

    def _sequence(self, name: str) -> Iterator[bytes]:
        for _, part in sorted(self.parts.get(name, [])):
            yield from map(bytes, msgspec.json.decode(self._unpacked(part), type=list[Raw]))

    def _joined(self, items: Iterable[bytes]) -> bytes:
        """The items as members; the same ones may be named any number of times, so what comes of it counts as unpacked."""
        held: list[bytes] = []
        for item in items:
            self._spend(len(item))
            held.append(item)
        return b",\n".join(held)

    def _unpacked(self, name: str) -> bytes:
        entry = self.entries[name]
        self._spend(entry.file_size)
        try:
            data = self._read(entry)
        except InputError:
            raise
        except Exception as error:  # of `zipfile`, of each of its methods, and of the system: all say that it cannot be read
            raise self._damaged(name, error) from error
        if len(data) != entry.file_size or zlib.crc32(data) != entry.CRC:
            raise self._damaged(name, ValueError("not what was packed"))
        return data

    def _read(self, entry: ZipInfo) -> bytes:
        if entry.flag_bits & _ENCRYPTED:
            raise InputError(self.where, f"found {entry.filename} encrypted", ALLOWED)
        with self._zstd(entry) if entry.compress_type == _ZSTD else self.zip.open(entry) as unpacked:
            return _up_to(unpacked, entry.file_size)

    def _zstd(self, entry: ZipInfo) -> Any:
        self.packed.seek(entry.header_offset)
        mark, name, extra = _LOCAL.unpack(self.packed.read(_LOCAL.size))
        if mark != ZIP:
            raise BadZipFile("no entry where the directory says")
        stretch = _Stretch(self.packed, entry.header_offset + _LOCAL.size + name + extra, entry.compress_size)
        return zstd.ZstdFile(stretch, "rb")

    def _spend(self, size: int) -> None:
        if size > self.left:
            raise InputError(self.where, "found an archive that unpacks to more than any log does", ALLOWED)
        self.left -= size

    def _damaged(self, part: str, error: Exception) -> InputError:
        why = (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
        return InputError(self.where, f"a damaged archive ({part}: {why})", "a whole Inspect log (.eval)")


class _Stretch(RawIOBase):
    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file, self._at, self._end = file, start, start + size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        self._file.seek(self._at)
        left = self._end - self._at
        piece = self._file.read(left if size < 0 else min(size, left))
        self._at += len(piece)
        return piece


def _up_to(unpacked: IO[bytes], size: int) -> bytes:
    """The bytes of the stream, and of one that holds more than `size` just enough to tell."""
    held: list[bytes] = []
    left = size + 1
    while left and (piece := unpacked.read(min(_PIECE, left))):
        held.append(piece)
        left -= len(piece)
    return b"".join(held)


def _all(file: IO[bytes], where: str) -> bytes:
    held = _up_to(file, MOST)
    if len(held) > MOST:
        raise InputError(where, f"found more than {MOST} bytes of an archive", ALLOWED)
    return held
