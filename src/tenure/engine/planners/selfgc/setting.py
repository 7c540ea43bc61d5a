"""How Self-GC is done: ours, and as its paper has it."""

from typing import Final

from msgspec import Struct


class SelfGc(Struct, frozen=True, kw_only=True):
    """What of the paper's way a conversation follows."""

    keep_last_turn: bool = False  # also the calls of the newest human turn that are older than the tail are out of reach
    in_place: bool = True  # pointers stand where their objects stood; False: after the person's words of that turn
    bounded: bool = True  # unasked, a planner is asked only where what it may name could pay for asking
    by_part: bool = True  # of a plan the part that gains most is carried out, and the rest waits; False: all or nothing


OURS: Final = SelfGc()

# Table 6; "Recoverability and Cache-Aware Commit"
PAPER: Final = SelfGc(keep_last_turn=True, in_place=False, bounded=False, by_part=False)
