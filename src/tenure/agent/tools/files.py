"""What a file is, found out without harm: devices and pipes are never opened (an edge)."""

import codecs
import os
import re
import stat
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

from msgspec import Struct

from tenure.agent.workspace import Workspace, unhindered
from tenure.errors import InputError

SNIFFED: Final = 2**16  # bytes by which a file is known
_NEAR: Final = 5  # names suggested
_LOOKED_AT: Final = 2_000  # entries of a folder that are compared with a name
_CONTROL_SHARE: Final = 0.02  # of bytes that no text has, above which a file is none
_CONTROL_LEAST: Final = 8  # such bytes

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_KNOWN: Final = (
    (b"%PDF-", "a PDF: `pdftotext FILE -` may show its words"),
    (b"PK\x03\x04", "a ZIP archive: `unzip -l` lists it"),
    (b"\x1f\x8b", "gzip data: `zcat` shows it"),
    (b"\xfd7zXZ\x00", "xz data: `xzcat` shows it"),
    (b"\x28\xb5\x2f\xfd", "zstd data: `zstdcat` shows it"),
    (b"BZh", "bzip2 data: `bzcat` shows it"),
    (b"\x7fELF", "an ELF program"),
    (b"SQLite format 3\x00", "an SQLite database: `sqlite3` opens it"),
)
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {*b"\t\n\r\f\x1b\b"})
_C1: Final = bytes(range(0x80, 0xA0))


class Encoding(Struct, frozen=True, kw_only=True):
    """How a text is written. `label` is its name where it is not plain UTF-8."""

    codec: str = "utf-8"
    bom: bytes = b""
    label: str = ""


_BOMS: Final = (  # the longer one first
    Encoding(codec="utf-8", bom=codecs.BOM_UTF8, label="UTF-8 with a byte order mark"),
    Encoding(codec="utf-32-le", bom=codecs.BOM_UTF32_LE, label="UTF-32"),
    Encoding(codec="utf-32-be", bom=codecs.BOM_UTF32_BE, label="UTF-32"),
    Encoding(codec="utf-16-le", bom=codecs.BOM_UTF16_LE, label="UTF-16"),
    Encoding(codec="utf-16-be", bom=codecs.BOM_UTF16_BE, label="UTF-16 (big-endian)"),
)
_LATIN: Final = Encoding(codec="latin-1", label="no UTF-8, read as Latin-1")
_WINDOWS: Final = Encoding(codec="cp1252", label="no UTF-8, read as Windows-1252")


def open_regular(path: Path, shown: str) -> BinaryIO:
    """A regular file, for reading. Raises InputError for all else, and for what is not there."""
    try:
        kind = kind_of(path.stat().st_mode)
        if not kind:
            file = open(path, "rb", buffering=0, opener=unhindered)  # noqa: SIM115 - the caller closes it
            kind = kind_of(os.fstat(file.fileno()).st_mode)  # it may have been exchanged
            if not kind:
                return file
            file.close()
    except FileNotFoundError:
        raise InputError(shown, "there is no such file" + _dangling(path)) from None
    except OSError as error:
        raise InputError(shown, reason(error)) from error
    raise InputError(shown, f"this is {kind}", "a file")


def reason(error: OSError | RuntimeError) -> str:
    """What the system has against something."""
    return (getattr(error, "strerror", "") or str(error)).lower()


def kind_of(mode: int) -> str:
    """What a path is that is no regular file; empty for one."""
    return "" if stat.S_ISREG(mode) else next((kind for test, kind in _KINDS if test(mode)), "no file")


def image_type(start: bytes) -> str:
    """The media type of an image that models take, by its first bytes; empty for all else."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC if start.startswith(magic)), "")


def binary_kind(start: bytes) -> str:
    """What a file is that is no text, as far as its first bytes tell."""
    return next((kind for magic, kind in _KNOWN if start.startswith(magic)), "binary")


def encoding_of(start: bytes) -> Encoding | None:
    """How a text is written, by its first bytes (at most `SNIFFED`); None when it is no text."""
    for known in _BOMS:
        if start.startswith(known.bom):
            return known
    if b"\0" in start:
        return _wide(start)
    controls = len(start) - len(start.translate(None, _CONTROLS))
    if start.startswith(b"%PDF-") or controls > max(_CONTROL_LEAST, _CONTROL_SHARE * len(start)):
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # which may end within a character
    except UnicodeDecodeError:
        return _WINDOWS if len(start) != len(start.translate(None, _C1)) and _decodes(start, "cp1252") else _LATIN
    return Encoding()


def suggestion(path: str, workspace: Workspace) -> str:
    """What follows an error about a path that there is not: those that look like it; empty when none do."""
    try:
        at = workspace.path(path)
    except InputError:
        return ""
    names = [] if at.exists() or at.is_symlink() else near(at, workspace)
    return f". Did you mean {', '.join(names)}?" if names else ""


def near(path: Path, workspace: Workspace) -> list[str]:
    """Paths that there are and that look like one that there is not, best first."""
    parent, name = path.parent, path.name
    if not parent.is_dir():
        found = [Path(each) / name for each in _near_entries(parent) if (Path(each) / name).exists()]
        return [workspace.shown(each) for each in found]
    return [workspace.shown(each) for each in _near_entries(path)]


def _near_entries(path: Path) -> list[Path]:
    try:
        with os.scandir(path.parent) as entries:
            names = {entry.name: entry.name.casefold() for entry in islice(entries, _LOOKED_AT)}
    except OSError:
        return []
    wanted = path.name.casefold()
    same_stem = [name for name, folded in names.items() if Path(folded).stem == Path(wanted).stem]
    close = get_close_matches(wanted, names.values(), n=_NEAR, cutoff=0.6)
    alike = [name for folded in close for name, other in names.items() if other == folded]
    return [path.parent / name for name in dict.fromkeys([*alike, *same_stem])][:_NEAR]


def _dangling(path: Path) -> str:
    return f"; it is a link to {os.fsdecode(path.readlink())!r}" if path.is_symlink() else ""


def _wide(start: bytes) -> Encoding | None:
    """UTF-16 without a mark, as some Windows programs write it: every second byte of Latin text is zero."""
    for codec, zero, letter in (("utf-16-le", start[1::2], start[::2]), ("utf-16-be", start[::2], start[1::2])):
        if letter and 0 not in letter and zero.count(0) > 0.9 * len(zero) and not letter.translate(None, bytes(range(0x80))):
            return Encoding(codec=codec, label="UTF-16 without a byte order mark")
    return None


def _decodes(data: bytes, codec: str) -> bool:
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


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


def load_text(path: Path, shown: str) -> TextFile:
    """The text of a file. Raises InputError for what cannot be edited as text."""
    with open_regular(path, shown) as file:
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


def write_file(path: Path, data: bytes, shown: str) -> None:
    """Put `data` at a path that may be there or not, its folders made. Raises InputError."""
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            raise InputError(shown, "this is no file", "a file, or a new path")
        _exchange(target, data, mode)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise InputError(shown, f"cannot be written ({reason(error)})") from error


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
