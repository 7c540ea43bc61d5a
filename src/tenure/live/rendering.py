"""The messages of a view as bytes, of which only what is new is made (an edge). Promise: nothing costs more than it saves.

A dialect renders a whole view, since the ids of calls that it names itself depend on those before. But nearly every message says its ids itself, or has
none, and is then the same whatever stands around it: it is rendered once, alone, and kept while it is shown. Where that does not hold the dialect
renders the whole.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenure.dialects.dialect import Dialect, Piece
from tenure.record.entry import Role, ToolCall, ToolResult


class Rendered(Struct, frozen=True, gc=False):
    """A piece as it is sent, and what decides whether it may be sent so in any place."""

    piece: Piece
    messages: tuple[bytes, ...]
    is_free: bool  # it names its calls itself, or has none
    has_results: bool
    has_others: bool  # than results; of the model it does not matter


class Rendering:
    """Renders one conversation's views. Mutable: it keeps what is shown."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._kept: dict[int | Piece, Rendered] = {}  # by the piece's identity; of what was inserted, by its value

    def of(self, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
        """What `dialect.render` gives for these pieces."""
        kept: dict[int | Piece, Rendered] = {}
        found: list[Rendered] = []
        for piece in pieces:
            key = id(piece) if piece.payload else piece
            known = self._kept.get(key)
            if known is None or (known.piece is not piece and piece.payload):
                known = self._rendered(piece)
            kept[key] = known
            found.append(known)
        self._kept = kept
        if all(each.is_free for each in found) and not _is_mixed(found):
            return tuple([message for each in found for message in each.messages])
        return self._dialect.render(pieces)

    def _rendered(self, piece: Piece) -> Rendered:
        named = piece.dialect == self._dialect.name and bool(piece.payload)
        results = [isinstance(block, ToolResult) for block in piece.blocks]
        is_free = named or not any(isinstance(block, ToolCall | ToolResult) for block in piece.blocks)
        return Rendered(
            piece=piece,
            messages=self._dialect.render((piece,)) if is_free else (),
            is_free=is_free,
            has_results=any(results),
            has_others=not all(results),
        )


def _is_mixed(found: Iterable[Rendered]) -> bool:
    """Whether results stand behind something else between two replies, so that the dialect has to put them first."""
    others = False
    for each in found:
        if each.piece.role is Role.ASSISTANT:
            others = False
        elif each.has_results and others:
            return True
        else:
            others = others or each.has_others
    return False
