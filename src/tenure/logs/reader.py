"""The seam for other tools' session files: bytes in, drafts out.

A reader is a small pure file. It is handed the unpacked bytes in chunks, keeps no more than it must, and yields what a model saw
in the order in which it saw it. What it cannot read it says (`Skipped`), and goes on.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tenure.engine.record.entry import Draft


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
    kept: tuple[int, ...] = ()  # except these, in order
    cleared: tuple[str, ...] = ()  # call ids whose results were blanked, the calls stayed


class SubAgent(Struct, frozen=True, kw_only=True, gc=False):
    """A sub-agent whose conversation is in the same file, and not in this one; `HasAgents.read_agent` reads it."""

    id: str
    line: int  # where it starts
    messages: int  # lines or messages of it in the file
    bytes: int = 0
    task: str = ""  # what it was asked, as far as the file says it beside the conversation


Event = Draft | Skipped | Rewritten | SubAgent


class Reader(Protocol):
    """Reads one format."""

    name: str  # as printed and as in REPLAY.md's `format`: "claude-code"

    def recognises(self, head: bytes) -> bool:
        """Whether a file starting with `head` (up to 64 KiB, unpacked) is of this format. Never raises."""
        ...

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The events of the file, in order. Raises InputError only when nothing of it can be read."""
        ...


@runtime_checkable
class HasAgents(Protocol):
    """A reader of a format whose files may hold the conversations of sub-agents too."""

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """The events of the sub-agent's conversation; none when the file does not hold it."""
        ...
