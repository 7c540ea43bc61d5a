"""When results are clipped, apart from how: settings are wanted long before any shape is."""

from msgspec import Struct


class Clip(Struct, frozen=True, kw_only=True):
    """From how many o200k tokens on a result is clipped, and to how many."""

    above: int = 4_000
    room: int = 4_000
