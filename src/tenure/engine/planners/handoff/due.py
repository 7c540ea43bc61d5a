"""When history is handed off without being asked.

The source is the account of the agent efferent: by real usage only, at a share of the window or at a number of tokens.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

PERCENT: Final = 85.0  # of the window; before the wall, while there is room for the handoff itself


class OfWindow(Struct, frozen=True, kw_only=True, gc=False):
    """A threshold as a share of the window, in percent. 0 is off."""

    percent: float = PERCENT


class Absolute(Struct, frozen=True, kw_only=True, gc=False):
    """A threshold in provider tokens, whatever the window: quality falls before a large window is full. 0 is off."""

    tokens: int


Threshold = OfWindow | Absolute


class Reason(StrEnum):
    """Why an automatic handoff is due or is not, in the order in which it is asked."""

    OFF = "automatic handoff is off"
    NO_WINDOW = "the window is not known"
    NO_USAGE = "no usage was reported yet"
    ESTIMATED = "the usage is an estimate"
    QUEUED = "messages are queued"
    NOTHING_NEW = "too little is new since the last handoff"
    BELOW = "the threshold is not reached"
    DUE = "the threshold is reached"


class Verdict(Struct, frozen=True, kw_only=True, gc=False):
    """Whether a handoff is due, and why. True when it is."""

    reason: Reason

    def __bool__(self) -> bool:
        return self.reason is Reason.DUE


def due(
    usage_tokens: int, window: int, threshold: Threshold, *, estimated: bool = False, queued: bool = False, new_usage: bool = True
) -> Verdict:
    """Whether history should be handed off now without being asked.

    `usage_tokens` is the whole prompt of the newest call as the provider reported it; `window` is 0 when unknown. A surprise is never made of
    an estimate (a session that was opened again), nor in a burst (`queued`), nor twice for one report (`new_usage`: since the last handoff).
    """
    asked = threshold.percent if isinstance(threshold, OfWindow) else threshold.tokens
    reached = usage_tokens * 100 >= asked * window if isinstance(threshold, OfWindow) else usage_tokens >= asked
    refusals = (
        (not asked > 0, Reason.OFF),  # NaN is off too
        (isinstance(threshold, OfWindow) and window <= 0, Reason.NO_WINDOW),
        (usage_tokens <= 0, Reason.NO_USAGE),
        (estimated, Reason.ESTIMATED),
        (queued, Reason.QUEUED),
        (not new_usage, Reason.NOTHING_NEW),
        (not reached, Reason.BELOW),
    )
    return Verdict(reason=next((reason for holds, reason in refusals if holds), Reason.DUE))
