"""Entries read or appended lately, so that the store is not asked twice; large ones are read again rather than held (an edge)."""

from collections.abc import Callable, Iterable
from typing import Final

from tenure.apis.api import Api
from tenure.engine.record.entry import Entry
from tenure.engine.view.piece import Piece

MOST: Final = 2**24  # bytes of payloads: more than a window of a million tokens shows
LARGE: Final = 2**16  # bytes of a payload that is worth making anew as small as what is shown of it


class Lately:
    """The newest entries that were asked for, as many as `most` bytes of payloads allow, and the last in any case. Mutable."""

    def __init__(self, read: Callable[[int], Entry], is_shown: Callable[[int], bool], most: int = MOST) -> None:
        self.bytes = 0
        self._read, self._is_shown, self._most = read, is_shown, most
        self._held: dict[int, Entry] = {}  # the last asked for at the end

    def take(self, entries: Iterable[Entry]) -> None:
        """Hold these."""
        for entry in entries:
            self._drop(entry.n)
            self._held[entry.n] = entry
            self.bytes += len(entry.payload)
        while self.bytes > self._most and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    def entry(self, n: int) -> Entry:
        """An entry of the record. What is not shown is recalled, not held."""
        entry = self._held.pop(n, None)
        if entry is not None:
            self._held[n] = entry
            return entry
        entry = self._read(n)
        if self._is_shown(n):
            self.take((entry,))
        return entry

    def clear(self) -> None:
        """Let go of what is shown no longer."""
        for n in [n for n in self._held if not self._is_shown(n)]:
            self._drop(n)

    def _drop(self, n: int) -> None:
        gone = self._held.pop(n, None)
        self.bytes -= len(gone.payload) if gone is not None else 0


def light(piece: Piece, api: Api, large: int = LARGE) -> Piece:
    """A piece that shows less than its large payload holds, with a payload of what it shows; rendered it gives the same bytes."""
    if not piece.edited or piece.dialect != api.name or len(piece.payload) < large:
        return piece
    rendered = api.render((piece,))
    drafts = api.parse(rendered) if len(rendered) == 1 else ()
    if len(drafts) != 1 or [type(each) for each in drafts[0].blocks] != [type(each) for each in piece.blocks]:
        return piece
    made = Piece(
        role=piece.role, blocks=piece.blocks, dialect=piece.dialect, payload=rendered[0], kept=tuple(range(len(piece.blocks)))
    )
    return made if api.render((made,)) == rendered else piece
