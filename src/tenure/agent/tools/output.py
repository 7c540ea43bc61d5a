"""What a program says, gigabytes of it if need be, as a text that fits. Promise: nothing is lost unsaid.

The beginning and the end are kept; between them a line says how much was left out and where it can be read.
"""

from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from tenure.agent.tools.harmless import Cleaner

_BYTES: Final = 4  # kept of the end for each character of room: the longest that UTF-8 needs
_NEWS_BYTES: Final = 4_096  # that are told at once while more comes than anybody reads
_LINE_CHARS: Final = 1_000  # that a cut may move to fall between lines


class Output:
    """Takes what comes, in bounded memory. Mutable."""

    def __init__(self, room: int, *, spill: Path | None = None, spill_bytes: int = 0) -> None:
        """`room` characters are kept. Once there are more, all of it up to `spill_bytes` goes to the file `spill`."""
        self.bytes = 0
        self.lines = 0
        self._room = room
        self._cleaner = Cleaner()
        self._head: list[str] = []
        self._chars = 0  # in the head
        self._told = 0  # pieces of the head
        self._ring: deque[bytes] | None = None  # the end, once not all fits
        self._ringed = self._dropped = self._fresh = 0  # bytes: in the ring, fallen out of it, not told yet
        self._spill, self._spill_bytes, self._spilled = spill, spill_bytes, 0
        self._raw: list[bytes] = []  # what the file will begin with
        self._file: BinaryIO | None = None

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        self.bytes += len(chunk)
        self.lines += chunk.count(b"\n")
        self._store(chunk)
        if self._ring is not None:
            self._push(chunk)
            return
        self._add(self._cleaner.feed(chunk))
        if self._chars > self._room:
            self._overflow()

    def news(self) -> str:
        """What was not told yet, in whole lines and harmless; when there is much of it, the newest."""
        told, self._told = "".join(self._head[self._told :]), len(self._head)
        if self._ring is None:
            return told
        fresh, self._fresh = self._fresh, 0
        newest, skipped = _end(self._ring, min(fresh, _NEWS_BYTES)), fresh > _NEWS_BYTES
        if skipped:
            newest = newest.partition(b"\n")[2]
        return told + "[…]\n" * skipped + Cleaner().feed(newest, final=True)

    def text(self) -> str:
        """All of it as far as it fits; nothing is taken any more."""
        if self._ring is None:
            self._add(self._cleaner.feed(b"", final=True))
            if self._chars > self._room:
                self._overflow()
        head = "".join(self._head)
        if self._ring is None:
            self._close(keep=False)
            return head
        tail = Cleaner().feed(b"".join(self._ring), final=True)
        cut = max(0, len(tail) - self._room // 2)
        cut = cut and (tail.find("\n", cut, cut + _LINE_CHARS) + 1 or cut)
        left_out = self._dropped + len(tail[:cut].encode())
        self._close(keep=left_out > 0)
        if not left_out:
            return head + tail
        before = "" if head.endswith("\n") else "\n"
        return f"{head}{before}[left out: {left_out:,} bytes of {self.bytes:,}, which are {self.lines:,} lines{self._where()}]\n{tail[cut:]}"

    def _add(self, text: str) -> None:
        if text:
            self._head.append(text)
            self._chars += len(text)

    def _overflow(self) -> None:
        """From here on the head stands, and only the end of what comes is kept."""
        told = sum(map(len, self._head[: self._told]))
        whole, half = "".join(self._head), self._room // 2
        cut = whole.rfind("\n", max(0, half - _LINE_CHARS), half) + 1 or half
        self._head, self._ring = [whole[: min(told, cut)], whole[min(told, cut) : cut]], deque()
        self._told = 1
        self._push(whole[cut:].encode())
        self._push(self._cleaner.rest())
        self._fresh = self._ringed - len(whole[cut:told].encode())

    def _push(self, chunk: bytes) -> None:
        assert self._ring is not None
        self._ring.append(chunk)
        self._ringed += len(chunk)
        self._fresh += len(chunk)
        while self._ringed - len(self._ring[0]) > self._room // 2 * _BYTES:
            self._dropped += len(self._ring[0])
            self._ringed -= len(self._ring.popleft())

    def _store(self, chunk: bytes) -> None:
        """Keep the bytes for the file, or write them there; a disk that takes no more ends that."""
        if self._spill is None:
            return
        chunk = chunk[: self._spill_bytes - self._spilled]
        self._spilled += len(chunk)
        try:
            if self._file is None:
                self._raw.append(chunk)
                if self._spilled <= self._room:
                    return
                self._spill.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._spill.open("wb")
                chunk, self._raw = b"".join(self._raw), []
            self._file.write(chunk)
        except OSError:
            self._close(keep=False)
            self._spill = None

    def _close(self, *, keep: bool) -> None:
        if self._file is None:
            return
        with suppress(OSError):
            self._file.close()
        self._file = None
        if not keep and self._spill is not None:
            self._spill.unlink(missing_ok=True)
            self._spill = None

    def _where(self) -> str:
        if self._spill is None or not self._spilled:
            return ""
        which = "all of it is" if self._spilled == self.bytes else f"its first {self._spilled:,} bytes are"
        return f"; {which} in {self._spill}"


def _end(ring: deque[bytes], size: int) -> bytes:
    """The last `size` bytes, or fewer."""
    pieces: list[bytes] = []
    for piece in reversed(ring):
        if size <= 0:
            break
        pieces.append(piece[-size:])
        size -= len(piece)
    return b"".join(reversed(pieces))
