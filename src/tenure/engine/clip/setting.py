"""When results are clipped, apart from how: settings are wanted long before any shape is."""

from typing import Final

from msgspec import Struct

FEWEST: Final = 150  # tokens of room that a clip of anything needs


class Clip(Struct, frozen=True, kw_only=True):
    """From how many o200k tokens on a result is clipped, and to how many."""

    above: int = 4_000
    room: int = 4_000
