"""The split of conversations into arms, so that what management saves and costs can be measured on real traffic.

Self-GC paper, Online Split: accounts are assigned by a rule on their name. Here by a hash, so that the arms are alike, and whoever belongs to one belongs
to it everywhere and for good.
"""

from hashlib import sha256
from typing import Final, Literal

Arm = Literal["", "managed", "control"]  # empty: of a conversation that takes no part
CONTROL: Final = "control"
MANAGED: Final = "managed"


def arm_of(key: str, holdout: float) -> Arm:
    """The arm of an account or a conversation, `holdout` being the share of them, from 0 to 1, that is left unmanaged."""
    place = int.from_bytes(sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
    return CONTROL if place < holdout else MANAGED
