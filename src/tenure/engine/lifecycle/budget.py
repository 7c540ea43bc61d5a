"""How much a window may hold.

`target` lets price decide when to act; `ceiling` is a promise that is kept at once; `window`, the model's limit less its output reserve,
always forces. `floor` is how far down one batch goes. All are provider tokens.
"""

import re
from decimal import Decimal
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct

from tenure.errors import InputError

FLOOR_SHARE: Final = 0.6  # measured on 27 recorded sessions run as one: batches to 60 % cost 0.8 of compaction, single steps 2.1
PAST_SHARE: Final = 0.5  # the same where all of the view is of earlier turns, for policies that deepen
DEFAULT_WINDOW: Final = 180_000

_AMOUNT = re.compile(r"(?P<number>\d{1,3}(?:[,_]\d{3})+|\d+(?:\.\d+)?)\s*(?P<unit>[kKmM]?)(?:\s*(?:tokens?|tok))?")
_PERCENT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*%")
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_ALLOWED: Final = "tokens such as 80000, 80_000, 80,000, 80k or 1.5M, or a share of the window such as 50%"


class GateRule(StrEnum):
    """When what could leave above the target does."""

    PRICED = "priced"  # the gain, DESIGN.md, Lifecycle
    BOUNDED = (
        "bounded"  # the same, and what it would lose if the session ended now is little beside its bill, or was saved before
    )
    SELFGC_PAPER = "selfgc-paper"  # the share that leaves: Self-GC paper, Recoverability and Cache-Aware Commit


class Budget(Struct, frozen=True, kw_only=True):
    """Limits in provider tokens. Numbers may be given as text: `Budget(ceiling="80k")`.

    Raises InputError when a limit is nonsense or the limits contradict each other.
    """

    target: int | None = None
    ceiling: int | None = None
    floor: int | None = None  # None: FLOOR_SHARE of the limit in force, down to PAST_SHARE under a policy that deepens
    window: int = DEFAULT_WINDOW

    def __post_init__(self) -> None:
        """Refuse limits that contradict each other."""
        for name, value in (("target", self.target), ("ceiling", self.ceiling), ("floor", self.floor), ("window", self.window)):
            if value is not None and (type(value) is not int or value <= 0):
                raise InputError(name, repr(value), "a whole number of tokens above 0; use Budget.parse for text")
        for name, value in (("target", self.target), ("ceiling", self.ceiling)):
            if value is not None and value > self.window:
                raise InputError(name, f"{value:,} tokens is more than the window holds", f"at most {self.window:,}")
        if self.target is not None and self.ceiling is not None and self.target > self.ceiling:
            raise InputError("target", f"{self.target:,} tokens is above the ceiling", f"at most {self.ceiling:,}")
        if self.floor is not None and self.floor > self.limit:
            raise InputError("floor", f"{self.floor:,} tokens is above the limit", f"at most {self.limit:,}")

    @classmethod
    def parse(
        cls,
        *,
        target: str | int | None = None,
        ceiling: str | int | None = None,
        floor: str | int | None = None,
        window: str | int | None = None,
    ) -> "Budget":
        """The budget that a person wrote; a percentage is of the window, a floor's is of the limit."""
        size = DEFAULT_WINDOW if window is None else parse_tokens("window", window, of=None)
        limits = {
            name: parse_tokens(name, value, of=size)
            for name, value in (("target", target), ("ceiling", ceiling))
            if value is not None
        }
        limit = limits.get("ceiling") or limits.get("target") or size
        return cls(**limits, floor=None if floor is None else parse_tokens("floor", floor, of=limit), window=size)

    @classmethod
    def stored(cls, text: str, *, otherwise: "Budget | None" = None) -> "Budget":
        """The budget that a store keeps as JSON; the usual one where it keeps none. Raises InputError for one that cannot be read, unless there is an `otherwise`."""
        try:
            return msgspec.json.decode(text, type=cls) if text else USUAL
        except (msgspec.MsgspecError, UnicodeError, InputError) as error:
            if otherwise is not None:
                return otherwise
            raise InputError("budget", f"the stored one cannot be read ({error})", "limits in tokens; or hand one in") from error

    @property
    def limit(self) -> int:
        """The lowest level at which anything may be evicted."""
        return min(value for value in (self.target, self.ceiling, self.window) if value is not None)

    @property
    def room(self) -> int:
        """What may be sent at all: the window, or a ceiling below it."""
        return min(self.window, self.ceiling or self.window)

    def floor_of(self, limit: int, past: float = 0.0) -> int:
        """How far down a batch goes that was called for by `limit`; `past` is the share of the view that is of earlier turns (0 to 1)."""
        if self.floor is not None and self.floor <= limit:
            return self.floor
        return int(limit * (FLOOR_SHARE - past * (FLOOR_SHARE - PAST_SHARE)))


USUAL: Final = Budget(target=80_000)  # CWL paper, section 5: where the cost fell and accuracy did not


def parse_tokens(where: str, text: str | int, *, of: int | None) -> int:
    """The number of tokens meant by `80k`, `80_000`, `80,000`, `1.5M` or `50%` (of `of`).

    Raises InputError for anything else: a number that only looks right would evict everything, or nothing.
    """
    plain = str(text).strip()
    if match := _PERCENT.fullmatch(plain):
        return _share(where, plain, Decimal(match["number"]), of)
    match = _AMOUNT.fullmatch(plain)
    if not match:
        raise InputError(where, repr(text), _ALLOWED)
    amount = Decimal(re.sub("[,_]", "", match["number"])) * _UNITS[match["unit"].lower()]
    if amount < 1 or amount != int(amount):
        raise InputError(where, repr(text), _ALLOWED)
    return int(amount)


def _share(where: str, text: str, percent: Decimal, of: int | None) -> int:
    if of is None or not 0 < percent <= 100:
        raise InputError(where, repr(text), "tokens, such as 200k" if of is None else "a percentage above 0 and up to 100")
    return max(1, int(of * percent / 100))
