"""What every provider refuses, seen on the pieces of a request."""

from collections.abc import Iterator, Sequence

from tenure.engine.record.entry import Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece


def disorder(pieces: Sequence[Piece]) -> Iterator[str]:
    """Calls without results directly behind them, results without calls, empty messages, reasoning at a message's end."""
    waiting: list[str] = []
    for number, piece in enumerate(pieces):
        answers = [block.call_id for block in piece.blocks if isinstance(block, ToolResult)]
        if not piece.blocks:
            yield f"piece {number} is empty"
        if waiting and not answers:
            yield f"piece {number} stands before the results of {waiting}"
            waiting = []
        if len(piece.blocks) > len(piece.kept) and piece.payload:
            yield f"piece {number} does not know its places"
        for block in piece.blocks:
            if isinstance(block, ToolResult):
                if block.call_id not in waiting:
                    yield f"piece {number} answers {block.call_id}, which waits for nothing"
                    continue
                waiting.remove(block.call_id)
        if waiting and answers and any(isinstance(block, Text) for block in piece.blocks):
            yield f"piece {number} speaks before the results of {waiting}"
        calls = [block.call_id for block in piece.blocks if isinstance(block, ToolCall)]
        if calls and piece.role is not Role.ASSISTANT:
            yield f"piece {number} calls, but is no assistant's"
        goes_on = number + 1 < len(pieces) and pieces[number + 1].role is Role.ASSISTANT
        if piece.role is Role.ASSISTANT and not goes_on and piece.blocks and isinstance(piece.blocks[-1], Thinking):
            yield f"piece {number} ends with reasoning"
        waiting = waiting + calls
    if waiting and pieces and pieces[-1].role is not Role.ASSISTANT:
        yield f"{waiting} have no results"
