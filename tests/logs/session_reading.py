"""What the tests of all readers share: reading a fixture, and taking it apart."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tenure.engine.record.entry import Block, Draft, ToolCall, ToolResult
from tenure.logs.detect import read
from tenure.logs.reader import Event, Rewritten, Skipped

FIXTURES = Path(__file__).parent / "fixtures"


def chunked(data: bytes, size: int = 1000) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def events(name: str) -> list[Event]:
    return list(read(chunked((FIXTURES / name).read_bytes()))[1])


def drafts(found: Iterable[Event]) -> list[Draft]:
    return [event for event in found if isinstance(event, Draft)]


def skipped(found: Iterable[Event]) -> list[Skipped]:
    return [event for event in found if isinstance(event, Skipped)]


def rewritten(found: Iterable[Event]) -> list[Rewritten]:
    return [event for event in found if isinstance(event, Rewritten)]


def blocks(found: Iterable[Event]) -> list[Block]:
    return [block for draft in drafts(found) for block in draft.blocks]


def calls(found: Iterable[Event]) -> list[str]:
    return [block.call_id for block in blocks(found) if isinstance(block, ToolCall)]


def results(found: Iterable[Event]) -> list[str]:
    return [block.call_id for block in blocks(found) if isinstance(block, ToolResult)]


def said(found: Iterable[Event]) -> list[tuple[str, str]]:
    """Kind and text of every block, in order."""
    return [(type(block).__name__, block.text) for block in blocks(found)]
