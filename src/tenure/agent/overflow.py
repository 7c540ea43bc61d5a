"""How much a model takes, as its provider's answers and refusals show. Pure.

Providers count otherwise than we do until they have reported, and servers are set up with other windows than a model's. What a refusal says of it is
believed only where it can be true; an answer corrects what a refusal made too small.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.ratio import is_credible
from tenure.engine.record.entry import Usage
from tenure.errors import Overflow

SMALLEST: Final = 1_000  # tokens; no window is smaller
APART: Final = 16  # a limit that is this many times smaller than what was sent is none, unless the provider counted what was sent
UNTOLD: Final = 0.8  # of what was sent, where nobody says how much may come


class ModelWindow(Struct, frozen=True, kw_only=True):
    """What is known of a model's window in one session. `most` is in our estimates, all else in provider tokens."""

    given: Budget  # as the session was opened with it: never exceeded
    most: int  # of a prompt, by what was refused
    stated: int = 0  # of a prompt, by the provider's own words; 0: nothing that is believed
    accepted: int = 0  # the largest prompt that was answered

    @classmethod
    def of(cls, budget: Budget) -> "ModelWindow":
        """Before anything was sent."""
        return cls(given=budget, most=budget.window)

    @property
    def budget(self) -> Budget:
        """The budget in force."""
        return bounded(self.given, self.most)

    def refused(self, overflow: Overflow | None, *, sent: int, reserve: int) -> "ModelWindow":
        """After a request that was too long. `sent` is what we took it for; `reserve` is what a reply may take of the window."""
        if overflow is None or not self._believes(overflow, sent):
            most = int(sent * UNTOLD)
            return replace(self, most=min(self.most, max(most, self.accepted if self.accepted < sent else 0)))
        room = overflow.allowed - overflow.reply if overflow.reply else max(overflow.allowed - reserve, overflow.allowed // 2)
        if room <= 0:  # the reply alone is too long: nothing that leaves would help
            return self
        ours = sent * room // overflow.prompt if overflow.prompt else room
        return replace(self, most=min(self.most, int(sent * UNTOLD), max(SMALLEST, ours)), stated=room)

    def answered(self, usage: Usage | None, *, estimated: int) -> "ModelWindow":
        """After an answered request. `estimated` is what we took it for."""
        reported = usage.prompt if usage is not None else 0
        is_true = is_credible(reported, estimated, window=0)
        accepted = max(self.accepted, reported if is_true else estimated)
        stated = max(self.stated, accepted) if self.stated else 0
        most = max(self.most, accepted, stated if is_true else 0)
        return replace(self, accepted=accepted, stated=stated, most=min(most, self.given.window))

    def _believes(self, overflow: Overflow, sent: int) -> bool:
        """Whether the figures can be true, and say why this request was refused though smaller ones were not."""
        if overflow.allowed < max(SMALLEST, self.accepted):
            return False
        if overflow.prompt:
            return is_credible(overflow.prompt, sent, window=0) and overflow.prompt + overflow.reply > overflow.allowed
        return overflow.allowed * APART >= sent


def bounded(budget: Budget, window: int) -> Budget:
    """The budget within a model's window."""
    most = max(1, min(budget.window, window))
    target, ceiling = (None if limit is None else min(limit, most) for limit in (budget.target, budget.ceiling))
    least = min(limit for limit in (target, ceiling, most) if limit is not None)
    floor = None if budget.floor is None or budget.floor > least else budget.floor
    return replace(budget, window=most, target=target, ceiling=ceiling, floor=floor)
