"""From a view to the messages that are sent. Promise: nothing is broken: every request is valid, whatever the record holds.

Texts are read from the record only here, and only those that are shown. A call that was never answered gets a result saying so, a result
that answers nothing is left out, and what a host recorded between a call and its results stands after them.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, assert_never

from msgspec import structs

from tenure.dialects.dialect import Piece
from tenure.record.entry import Block, Entry, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.record.index import NONE, Index
from tenure.view.edit import Insert
from tenure.view.project import Row, View

INTERRUPTED: Final = "[no result: the call was interrupted]"
Read = Callable[[int], Entry]  # a record entry by its number


def pieces(view: View, index: Index, read: Read) -> tuple[Piece, ...]:
    """The messages of a view, in an order and completeness that every provider accepts."""
    return tuple(
        _mended([_inserted(line) if isinstance(line, Insert) else _shown(line, index, read) for line in view.lines], index)
    )


def replaced(block: Block, text: str) -> Block:
    """The block with `text` in place of what it said; what identifies it stays."""
    match block:
        case ToolResult():
            return structs.replace(block, text=text, media=())
        case ToolCall():
            return structs.replace(block, arguments=text)
        case Text():
            return structs.replace(block, text=text)
        case Thinking() | Media() | Opaque():
            return Text(text=text, origin=block.origin)
        case _:
            assert_never(block)


class _Line:
    """A piece on its way, with the calls it makes and answers by span."""

    def __init__(self, piece: Piece, calls: dict[int, ToolCall], answers: set[int]) -> None:
        self.piece, self.calls, self.answers = piece, calls, answers


def _shown(row: Row, index: Index, read: Read) -> _Line:
    entry = read(row.entry)
    texts = {block: shown.text for block, shown in row.replaced}
    spans = [index.block((row.entry, block)).span for block in row.blocks]
    kept = [
        (block, replaced(entry.blocks[block], texts[block]) if block in texts else entry.blocks[block])
        for block, span in zip(row.blocks, spans, strict=True)
        if span != NONE or not isinstance(entry.blocks[block], ToolResult)
    ]
    piece = Piece(
        role=entry.role,
        blocks=tuple(block for _, block in kept),
        dialect=entry.dialect,
        payload=entry.payload,
        kept=tuple(number for number, _ in kept),
        edited=not row.whole or len(kept) < len(row.blocks),
    )
    paired = [(span, entry.blocks[block]) for block, span in zip(row.blocks, spans, strict=True) if span != NONE]
    calls = {span: block for span, block in paired if isinstance(block, ToolCall)}
    return _Line(piece, calls, {span for span, block in paired if isinstance(block, ToolResult)})


def _inserted(insert: Insert) -> _Line:
    block: Block
    match insert.kind:
        case "text":
            block = Text(text=insert.text, origin=Origin.HARNESS)
        case "tool_call":
            block = ToolCall(call_id=insert.call_id, name=insert.name, arguments=insert.text)
        case "tool_result":
            block = ToolResult(call_id=insert.call_id, text=insert.text)
        case _:
            assert_never(insert.kind)
    return _Line(Piece(role=insert.role, blocks=(block,)), {}, set())


def _mended(lines: Iterable[_Line], index: Index) -> Iterator[Piece]:
    """Results directly after their calls; the unanswered answered, unless they are the newest of all."""
    waiting: dict[int, ToolCall] = {}
    back: list[Piece] = []  # what was recorded while results were awaited
    for line in lines:
        if line.piece.role is Role.ASSISTANT:
            yield from _interrupted(waiting)
            yield from back
            waiting, back = dict(line.calls), []
        elif waiting and not line.answers:
            back.append(line.piece)
            continue
        for span in line.answers:
            waiting.pop(span, None)
        if line.piece.blocks:
            yield line.piece
        if not waiting:
            yield from back
            back = []
    if back:  # the human spoke on: what has no result by now has none
        yield from _interrupted(waiting)
        yield from back
    elif waiting and not all(index.spans[span].result is None for span in waiting):
        yield from _interrupted(waiting)


def _interrupted(waiting: dict[int, ToolCall]) -> Iterator[Piece]:
    for call in waiting.values():
        yield Piece(role=Role.TOOL, blocks=(ToolResult(call_id=call.call_id, text=INTERRUPTED, error=True),))
