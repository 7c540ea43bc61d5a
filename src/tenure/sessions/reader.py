"""The seam for other tools' session files: bytes in, drafts out. Promise: nothing is lost.

A reader is a small pure file. It is handed the unpacked bytes in chunks, keeps no more than it must, and yields what a model saw
in the order in which it saw it. What it cannot read it says (`Skipped`), and goes on.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

from tenure.record.entry import Draft


class Skipped(Struct, frozen=True, kw_only=True, gc=False):
    """Something in the file that was left out although it might have mattered, or was damaged."""

    line: int  # 1-based; 0 when the file has no lines to speak of
    bytes: int
    reason: str


class Rewritten(Struct, frozen=True, kw_only=True):
    """The recorded agent changed its own window here: a compaction, a prune, a cleared result.

    Drafts are counted from 0 in the order this reader yielded them.
    """

    reason: str
    line: int = 0
    at: str = ""
    drop_before: int = 0  # every draft below this number left the window
    cleared: tuple[str, ...] = ()  # call ids whose results were blanked, the calls stayed


Event = Draft | Skipped | Rewritten


class Reader(Protocol):
    """Reads one format."""

    name: str  # as printed and as in REPLAY.md's `format`: "claude-code"

    def recognises(self, head: bytes) -> bool:
        """Whether a file starting with `head` (up to 64 KiB, unpacked) is of this format. Never raises."""
        ...

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The events of the file, in order. Raises InputError only when nothing of it can be read."""
        ...
