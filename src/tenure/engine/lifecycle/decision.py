"""What is to happen before a call, and why, in numbers and in words."""

from functools import partial
from typing import Final

from msgspec import Struct

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.meter import figures
from tenure.engine.view.edit import Commit, Price

DIGITS: Final = 4  # of sums below a dollar: single commits are small


class Stay(Struct, frozen=True, kw_only=True):
    """Nothing is to happen, and why; with a `price` there is a plan that waits."""

    reason: str
    price: Price | None = None
    assumed: bool = False  # the price is of a model that stands in

    def __str__(self) -> str:
        """One line."""
        if self.price is None:
            return f"nothing leaves: {self.reason}"
        why = "" if self.price.gain_usd <= 0 else f"{self.reason}; "  # else the account says it
        return f"nothing leaves yet: {why}{account(self.price, assumed=self.assumed)}"


class Propose(Struct, frozen=True, kw_only=True):
    """A commit that should be made durable and then taken in with `commit`."""

    commit: Commit
    rehearsal: Rehearsal
    assumed: bool = False  # the price is of a model that stands in

    def __str__(self) -> str:
        """One line."""
        commit = self.commit
        tokens = commit.tokens_before - commit.tokens_after
        what = f"{commit.policy} takes {tokens:,} tokens: {commit.reason}"
        return what if commit.price is None else f"{what}; {account(commit.price, assumed=self.assumed)}"


class Unmet(Struct, frozen=True, kw_only=True):
    """A limit that is not met: what the view weighs, and what holds every token of it (`lifecycle.held`), in provider tokens."""

    tokens: int
    limit: int
    held_by: dict[str, int]
    proposal: Propose | None = None  # what can be done all the same

    @property
    def shortfall(self) -> int:
        """Tokens above the limit."""
        return self.tokens - self.limit

    def __str__(self) -> str:
        """One line."""
        holders = sorted(((tokens, name) for name, tokens in self.held_by.items() if tokens > 0), reverse=True)
        held = ", ".join(f"{name.replace('_', ' ')} {tokens:,}" for tokens, name in holders)
        done = f" although {self.proposal}" if self.proposal is not None else ""
        return f"{self.tokens:,} tokens, {self.shortfall:,} above the limit of {self.limit:,}{done}; held by {held}"


Decision = Stay | Propose | Unmet


def account(price: Price, *, assumed: bool) -> str:
    """How a gain comes about: what is spared, what is paid for it, and what is left of it. `assumed`: by the prices of another model."""
    money = partial(figures.money, assumed=assumed, digits=DIGITS)
    calls = f"{price.n:,.0f} more calls"
    spared = f"spares {money(price.spared_usd)} over {calls}"
    chance = "" if price.p >= 1 else f" with a chance of {price.p:.0%}"
    rewritten = f"{money(price.broken_usd)} to write {price.s:,} tokens again that are cached{chance}"
    paid = [rewritten if price.p > 0 else "nothing, as the cache is cold"]
    for usd, what in ((price.g, "the plan"), (price.misses * price.recall, "recalls to be expected")):
        if usd > 0:
            paid.append(f"{money(usd)} for {what}")
    gain = f"{'gains' if price.gain_usd >= 0 else 'loses'} {money(abs(price.gain_usd))}"
    by = f" ({figures.ASSUMED}: by the price of another model)" if assumed else ""
    return f"it {spared} and costs {' and '.join(paid)}: {gain}{by}"
