"""Every error a caller may want to catch. Each says where, what was found and what was allowed."""

import shlex
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tenure.engine.record.entry import Usage


def way_out(where: str) -> str:
    """What to do about a damaged store."""
    return f"what is sound can be saved: tenure verify {shlex.quote(where)} --repair NEW.db"


class TenureError(Exception):
    """Base of all errors raised by this package."""


class InputError(TenureError):
    """What was handed in cannot be read: a file, a message, a budget, a handle.

    `str(error)` reads ``where: found …, expected …`` and is fit to be shown to a user as it is.
    """

    def __init__(self, where: str, found: str, allowed: str = "") -> None:
        super().__init__(f"{where}: {found}" + (f", expected {allowed}" if allowed else ""))
        self.where, self.found, self.allowed = where, found, allowed


class DelimiterRefused(TenureError):
    """A `delimiter` call that the protocol does not allow; the text tells the model what to do instead."""


class LawBroken(TenureError):
    """A view or commit would break a law. Never expected: a defect of the policy or of this package."""


class StoreError(TenureError):
    """The store cannot do what was asked; whatever it held before is still there."""


class Damaged(StoreError):
    """Something that a store holds is not as it was written; `str(error)` says where, and how to save the rest."""

    def __init__(self, what: str, where: str = "", conversation: str = "") -> None:
        place = "".join(f"{each}: " for each in (where, f"conversation {conversation!r}" if conversation else "") if each)
        way = f"; {way_out(where)}" if where else ""
        super().__init__(f"{place}{what}{way}")
        self.what, self.where, self.conversation = what, where, conversation


class Conflict(StoreError):
    """Another writer appended to the conversation first; open it again, and go on from what it holds now."""


class Failure(StrEnum):
    """Why a model gave no answer that can be used."""

    UNAVAILABLE = "unavailable"  # down, overloaded, out of reach or silent for too long: the same question may succeed later
    RATE_LIMITED = "rate limited"  # the same question will succeed later
    TOO_LONG = "too long"  # the question, for the model's window
    REFUSED = "refused"  # by the model, or by a filter before or behind it
    CUT_SHORT = "cut short"  # the answer has no end: the output limit, the connection or the time ran out
    CANCELLED = "cancelled"  # by the caller
    BAD_REPLY = "bad reply"  # complete, and of no use: empty, a tool call, no JSON where JSON was asked for
    NO_SERVER = "no server"  # this machine refuses the connection: nothing runs at that port until somebody starts it
    WAITING = "waiting"  # the question stands in a batch whose answers have not come yet
    NOT_ACCEPTED = "not accepted"  # the key, the model's name, a setting, the bill: will fail again until somebody changes it


class Overflow(NamedTuple):
    """What a provider says of a request that is too long, in its own tokens."""

    allowed: int  # of the prompt, or of the prompt and the reply together
    prompt: int = 0  # what came; 0: it does not say
    reply: int = 0  # what of `allowed` was asked for the reply; 0: it does not say


class ModelError(TenureError):
    """A model gave no usable answer; `kind` says why, and `str(error)` says it in a sentence that never holds a key.

    `said` is what had come of the answer, `usage` and `cost_usd` what that cost as far as it was reported, and `retry_after_s` how long
    the provider asks to be left alone, in seconds. `overflow` holds the figures of a request that was too long, where the provider gives any.
    """

    def __init__(
        self,
        kind: Failure,
        message: str,
        *,
        said: str = "",
        usage: "Usage | None" = None,
        cost_usd: float | None = None,
        retry_after_s: float | None = None,
        overflow: Overflow | None = None,
    ) -> None:
        super().__init__(message)
        self.kind, self.said, self.usage, self.cost_usd, self.retry_after_s = kind, said, usage, cost_usd, retry_after_s
        self.overflow = overflow
