"""One message of a view, as an API's dialect renders it."""

from msgspec import Struct

from tenure.engine.record.entry import Block, Role


class Piece(Struct, frozen=True, kw_only=True):
    """One message of a view: a record entry as far as it is shown, or an inserted one (`payload` empty)."""

    role: Role
    blocks: tuple[Block, ...]  # what is shown, after edits, in order
    dialect: str = ""
    payload: bytes = b""  # the entry's original JSON, in `dialect`
    kept: tuple[int, ...] = ()  # for each shown block its place among the blocks that `payload` parses to
    edited: bool = False  # False: everything in `payload` is shown as it is
