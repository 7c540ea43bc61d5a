"""The messages of a view as bytes, of which only what is new is made (an edge).

An API renders a whole view, since the ids of calls that it names itself depend on those before. But nearly every message says its ids itself, or has
none, and is then the same whatever stands around it: it is rendered once, alone, and kept while it is shown. Where that does not hold the whole is
rendered, with what is known of each message.
"""

from collections.abc import Sequence
from operator import is_
from typing import Final

from msgspec import Struct

from tenure.apis.api import Api
from tenure.apis.memo import Memo
from tenure.engine.record.entry import Role, ToolCall, ToolResult
from tenure.engine.view.piece import Piece

LARGE: Final = 2**16  # bytes of a payload that is worth making anew as small as what is shown of it


class Rendered(Struct, frozen=True, gc=False):
    """A piece as it is sent, and what decides whether it may be sent so in any place."""

    piece: Piece
    messages: tuple[bytes, ...]
    is_free: bool  # it names its calls itself, or has none
    has_results: bool
    has_others: bool  # than results; of the model it does not matter


class Rendering:
    """Renders one conversation's views. Mutable: it keeps what is shown."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: dict[int | Piece, Rendered] = {}  # by the piece's identity; of what was inserted, by its value
        self._pieces: tuple[Piece, ...] = ()  # those before, all of which were taken
        self._run = _Run()
        self._memo = Memo()

    def of(self, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
        """What `api.render` gives for these pieces. O(what is new), where nothing left or came back."""
        shown = tuple(pieces)
        stands = len(self._pieces)
        if not begins_with(shown, self._pieces):
            self._memo.turn()
            stands, self._run = 0, _Run()
            self._kept = {key: known for key in map(_key, shown) if (known := self._kept.get(key)) is not None}
        for piece in shown[stands:]:
            self._run.take(self._rendered(piece))
        self._pieces = shown
        if self._run.is_free:
            return tuple(self._run.messages)
        self._memo.turn()
        return self._api.render(shown, self._memo)

    def _rendered(self, piece: Piece) -> Rendered:
        key = _key(piece)
        known = self._kept.get(key)
        if known is None or (known.piece is not piece and piece.payload):
            known = self._kept[key] = self._render(piece)
        return known

    def _render(self, piece: Piece) -> Rendered:
        named = piece.dialect == self._api.name and bool(piece.payload)
        results = [isinstance(block, ToolResult) for block in piece.blocks]
        is_free = named or not any(isinstance(block, ToolCall | ToolResult) for block in piece.blocks)
        return Rendered(
            piece=piece,
            messages=self._api.render((piece,), self._memo) if is_free else (),
            is_free=is_free,
            has_results=any(results),
            has_others=not all(results),
        )


class _Run:
    """Pieces in a row, rendered one by one as long as that is the same as rendering them together. Mutable."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.is_free = True
        self._others = False  # since the newest reply something came that is no result

    def take(self, rendered: Rendered) -> None:
        """Take the next. Results behind something else between two replies are for the API to put first."""
        self.messages += rendered.messages
        self.is_free = self.is_free and rendered.is_free
        if rendered.piece.role is Role.ASSISTANT:
            self._others = False
        elif rendered.has_results and self._others:
            self.is_free = False
        else:
            self._others = self._others or rendered.has_others


def begins_with(now: Sequence[object], before: Sequence[object]) -> bool:
    """Whether the very objects of before still come first."""
    return len(before) <= len(now) and all(map(is_, before, now))


def _key(piece: Piece) -> int | Piece:
    return id(piece) if piece.payload else piece


def light(piece: Piece, api: Api, large: int = LARGE) -> Piece:
    """A piece that shows less than its large payload holds, with a payload of what it shows; rendered it gives the same bytes."""
    if not piece.edited or piece.dialect != api.name or len(piece.payload) < large:
        return piece
    rendered = api.render((piece,))
    drafts = api.parse(rendered) if len(rendered) == 1 else ()
    if len(drafts) != 1 or [type(each) for each in drafts[0].blocks] != [type(each) for each in piece.blocks]:
        return piece
    lighter = Piece(
        role=piece.role, blocks=piece.blocks, dialect=piece.dialect, payload=rendered[0], kept=tuple(range(len(piece.blocks)))
    )
    return lighter if api.render((lighter,)) == rendered else piece
