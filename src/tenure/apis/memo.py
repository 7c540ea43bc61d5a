"""What was rendered before, so that a message that an edit has changed is parsed once and not with every request."""

from collections.abc import Callable
from typing import Any, TypeVar

from tenure.apis.json_text import encoded
from tenure.engine.view.piece import Piece

T = TypeVar("T")


class Memo:
    """Holds what the rendering before and this one made. Mutable."""

    def __init__(self) -> None:
        self._pieces: dict[int, tuple[Piece, Any]] = {}  # by identity; the piece is held, so that no other gets its id
        self._texts: dict[str, bytes] = {}
        self._pieces_before, self._texts_before = self._pieces, self._texts

    def turn(self) -> None:
        """Begin another rendering: what neither it nor the one before uses is let go."""
        self._pieces_before, self._texts_before = self._pieces, self._texts
        self._pieces, self._texts = {}, {}

    def of(self, piece: Piece, make: Callable[[Piece], T]) -> T:
        """What `make` gives for this very piece."""
        key = id(piece)
        known = self._pieces.get(key) or self._pieces_before.get(key)
        if known is None or known[0] is not piece:
            known = piece, make(piece)
        self._pieces[key] = known
        return known[1]

    def encoded(self, text: str) -> bytes:
        """A text as bytes, the same object for the same text."""
        known = self._texts.get(text) or self._texts_before.get(text) or encoded(text)
        self._texts[text] = known
        return known


def spelled(piece: Piece, text: str) -> bytes:
    """A piece's text as bytes; its own payload where that is the same."""
    data = encoded(text)
    return piece.payload if data == piece.payload else data
