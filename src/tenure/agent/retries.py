"""Which failures of a model call are tried again, how often, and after how long. Pure."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tenure.errors import Failure

LONGEST_S: Final = 60.0  # between two attempts, when nobody says how long
ASKED_S: Final = 600.0  # a provider that asks for more is not waited for: the person is told


class Attempts(Struct, frozen=True, kw_only=True):
    """How often a call is made in all, and how long to wait the first time, in seconds; each further wait is twice as long."""

    attempts: int = 1
    first_s: float = 1.0


# What cannot pass by itself is not tried again: a key, a bill, a refusal. A question that is too long is, once, when something has left.
PATIENCE: Final[Mapping[Failure, Attempts]] = {
    Failure.RATE_LIMITED: Attempts(attempts=10, first_s=2.0),
    Failure.UNAVAILABLE: Attempts(attempts=8, first_s=1.0),
    Failure.CUT_SHORT: Attempts(attempts=5, first_s=0.5),
    Failure.BAD_REPLY: Attempts(attempts=3, first_s=0.5),
}
_NONE: Final = Attempts()


class Wait(Struct, frozen=True, kw_only=True):
    """The next attempt, from 2, of how many, and after how many seconds."""

    attempt: int
    most: int
    seconds: float


def wait_for(kind: Failure, failed: int, *, asked_s: float | None, chance: float) -> Wait | None:
    """What to do after the `failed`-th failure of this kind in a row, from 1; None to give up.

    `asked_s` is how long the provider wants to be left alone; `chance` (0 to 1) spreads those who all failed at once.
    """
    patience = PATIENCE.get(kind, _NONE)
    if failed >= patience.attempts or (asked_s is not None and asked_s > ASKED_S):
        return None
    spread_s = min(LONGEST_S, patience.first_s * 2 ** (failed - 1)) * (0.5 + chance / 2)
    seconds = asked_s + chance if asked_s is not None else spread_s
    return Wait(attempt=failed + 1, most=patience.attempts, seconds=seconds)
