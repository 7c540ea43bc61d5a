"""What a program says, gigabytes of it if need be, in bounded memory.

All of it up to a limit goes to a file as it comes, so that a kill loses nothing that was heard. What fits into the record is given whole. Of more,
the beginning and the end are given; a line between them says what was left out, and the file stays as a spill, known by the hash of its bytes.
"""

import os
import shutil
from collections import deque
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from tenure.agent.tools.terminal_text import Cleaner
from tenure.engine.record.entry import Spill

CHUNK: Final = 2**16
_NEWS_BYTES: Final = 4_096  # of the first and of the newest that are told while more comes than anybody reads
_LINE_BYTES: Final = 1_000  # that a cut may move to fall between lines
_ASKED_BYTES: Final = 2**24  # written before the disk's free space is looked at again


class Output:
    """Takes what comes. Mutable."""

    def __init__(self, room: int, *, part: Path | None = None, most: int = 0, spare: int = 0) -> None:
        """`room` bytes are given whole. At most `most` bytes go to the file `part`, and none of the last `spare` bytes of its disk."""
        self.bytes = 0
        self.spill: Spill | None = None  # once `text` was asked for: where not all of the output is in it
        self._room = room
        self._newlines = 0
        self._ends_line = True
        self._head = bytearray()
        self._tail: deque[bytes] = deque()  # the end of what is not in the head
        self._tail_bytes = 0
        self._file = _File(part, most, spare) if part is not None else None
        self.news = OutputNews()

    @classmethod
    def left_in(cls, part: Path, room: int) -> Self:
        """What a call that never ended has left in its file."""
        output = cls(room)
        output._file = _File(part, part.stat().st_size, 0, is_there=True)
        with part.open("rb") as file:
            while chunk := file.read(CHUNK):
                output.feed(chunk)
        return output

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        if not chunk:
            return
        self.bytes += len(chunk)
        self._newlines += chunk.count(b"\n")
        self._ends_line = chunk.endswith(b"\n")
        self.news.feed(chunk)
        if self._file is not None:
            self._file.write(chunk)
        free = self._room - len(self._head)
        if free > 0:
            self._head += chunk[:free]
            chunk = chunk[free:]
        if chunk:
            self._tail.append(chunk)
            self._tail_bytes += len(chunk)
            while self._tail_bytes - len(self._tail[0]) >= self._room // 2:
                self._tail_bytes -= len(self._tail.popleft())

    @property
    def lines(self) -> int:
        """Lines so far, one that has not ended among them."""
        return self._newlines + (not self._ends_line)

    def text(self) -> str:
        """All of it as far as it fits; nothing is taken any more."""
        self.news.end()
        if not self._tail:
            text, is_text = _plain(self._head)
            kept = None if is_text else self._kept((0, 0))
            return (
                text
                if kept is None
                else f"{_ended(text)}[not all of its {self.bytes:,} bytes are text: {self._where(kept, 0)}]\n"
            )
        half = self._room // 2
        cut = self._head.rfind(b"\n", max(0, half - _LINE_BYTES), half) + 1 or half
        rest = bytes(self._head[cut:]) + b"".join(self._tail)
        at = max(0, len(rest) - half)
        at = rest.find(b"\n", at, at + _LINE_BYTES) + 1 or at
        head, tail = bytes(self._head[:cut]), rest[at:]
        shown = tail.count(b"\n") + (not self._ends_line)
        left = head.count(b"\n") + 1, self.lines - shown + (rest[at - 1 : at] != b"\n")
        left_out = self.bytes - len(head) - len(tail)
        where = self._where(self._kept(left), len(tail))
        note = f"[left out here: lines {left[0]}-{left[1]} of {self.lines:,}, {left_out:,} of {self.bytes:,} bytes; {where}]"
        return f"{_ended(_plain(head)[0])}{note}\n{_plain(tail)[0]}"

    def _kept(self, left: tuple[int, int]) -> Spill | None:
        held = self._file.keep() if self._file is not None else None
        if held is not None:
            digest, size, lines = held
            self.spill = Spill(sha256=digest, size=size, lines=lines, of_size=self.bytes, of_lines=self.lines, left=left)
        return self.spill

    def _where(self, spill: Spill | None, shown: int) -> str:
        """Where the output is to be had, and what of it is nowhere; its last `shown` bytes follow in any case."""
        full = self._file.full if self._file is not None else "this store has no folder for it"
        if spill is None:
            return f"that is not kept: {full}"
        how = f'recall handle="{spill.handle}", with lines="A-B" or a pattern'
        if spill.size == self.bytes:
            return f"the whole output is kept: {how}"
        lost = max(0, self.bytes - shown - spill.size)
        return f"of the output the first {spill.size:,} bytes are kept ({full}): {how}; {lost:,} bytes behind them are lost"


class _File:
    """The file that takes an output as it comes. Mutable."""

    def __init__(self, path: Path, most: int, spare: int, *, is_there: bool = False) -> None:
        """`is_there`: the file has it already, and is only read again."""
        self.full = ""  # why it takes no more
        self._path, self._most, self._spare, self._is_there = path, most, spare, is_there
        self._size = self._newlines = self._asked = 0
        self._hash = sha256()
        self._ends_line = True
        self._descriptor = -1

    def write(self, chunk: bytes) -> None:
        """Take as much as the limit and the disk allow; nothing once it is full, so that what is kept has no gap."""
        if self.full:
            return
        taken = chunk[: self._most - self._size]
        try:
            taken = taken[: self._written(taken)] if taken and not self._is_there else taken
        except OSError as error:
            self.full = f"the disk took no more: {(error.strerror or str(error)).lower()}"
            return
        if taken:
            self._hash.update(taken)
            self._size += len(taken)
            self._newlines += taken.count(b"\n")
            self._ends_line = taken.endswith(b"\n")
        if len(taken) < len(chunk):
            self.full = self.full or f"the limit is {self._most:,}"

    def keep(self) -> tuple[str, int, int] | None:
        """Let the file stay, under the hash of its bytes: that, its size and its lines. None when it has nothing."""
        if not self._size:
            return None
        digest = self._hash.hexdigest()
        try:
            _linked(self._path, self._path.with_name(digest))
        except OSError as error:
            self.full = f"the file could not be kept: {(error.strerror or str(error)).lower()}"
            return None
        return digest, self._size, self._newlines + (not self._ends_line)

    def _written(self, chunk: bytes) -> int:
        """How many bytes the disk took. Raises OSError."""
        if self._descriptor < 0:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if self._size + len(chunk) > self._asked:
            self._asked = self._size + _ASKED_BYTES
            if shutil.disk_usage(self._path.parent).free < self._spare + _ASKED_BYTES:
                self.full = f"the disk has less than {self._spare + _ASKED_BYTES:,} bytes left"
                return 0
        return os.write(self._descriptor, chunk)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)


class OutputNews:
    """What came and was not told yet: all of it, or of a flood its beginning and then only the newest. Mutable."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._first, self._newest = bytearray(), b""
        self._fresh = 0
        self._is_begun = self._is_over = False

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        self._fresh += len(chunk)
        free = _NEWS_BYTES - len(self._first)
        if free > 0:
            self._first += chunk[:free]
            chunk = chunk[free:]
        if chunk:
            self._newest = (self._newest + chunk[-_NEWS_BYTES:])[-_NEWS_BYTES:]

    def end(self) -> None:
        """Nothing more comes: a line that has not ended is told too."""
        self._is_over = True

    def text(self) -> str:
        """What is to be told now, in whole lines and harmless."""
        first, newest, fresh = bytes(self._first), self._newest, self._fresh
        self._first, self._newest, self._fresh = bytearray(), b"", 0
        if fresh <= len(first) + len(newest):
            return self._cleaner.feed(first + newest, final=self._is_over)
        begun = "" if self._is_begun else self._cleaner.feed(first)
        self._is_begun = True
        self._cleaner = Cleaner()
        return f"{begun}[…]\n{self._cleaner.feed(newest.partition(bytes([10]))[2], final=self._is_over)}"


def _plain(raw: bytes | bytearray) -> tuple[str, bool]:
    """Bytes as they would be read on a terminal, and whether all of them are text."""
    cleaner = Cleaner()
    text = cleaner.feed(bytes(raw), final=True)
    return text, not cleaner.binary


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _linked(part: Path, kept: Path) -> None:
    """Give a file its lasting name. The part stays beside it until the result is recorded: a kill between the two loses nothing."""
    try:
        os.link(part, kept)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        copy = kept.with_name(f"{part.name}.copy")
        shutil.copyfile(part, copy)
        copy.replace(kept)  # so that a kill leaves no half of it under the name of the whole
