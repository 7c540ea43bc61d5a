"""One message of a view, as an API's dialect renders it."""

from msgspec import Struct

from tenure.engine.record.entry import Block, Draft, Entry, Role


class Piece(Struct, frozen=True, kw_only=True):
    """One message of a view: a record entry as far as it is shown, or an inserted one (`payload` empty)."""

    role: Role
    blocks: tuple[Block, ...]  # what is shown, after edits, in order
    dialect: str = ""
    payload: bytes = b""  # the entry's original JSON, in `dialect`
    kept: tuple[int, ...] = ()  # for each shown block its place among the blocks that `payload` parses to
    edited: bool = False  # False: everything in `payload` is shown as it is


def whole_piece(message: Draft | Entry) -> Piece:
    """A message all of which is shown as it came in."""
    kept = tuple(range(len(message.blocks)))
    return Piece(role=message.role, blocks=message.blocks, dialect=message.dialect, payload=message.payload, kept=kept)
