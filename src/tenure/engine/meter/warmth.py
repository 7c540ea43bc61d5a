"""Whether the provider still holds the prefix that was sent last.

What is assumed: a prefix is read from the cache within `ttl_s` of its last use, and gone after `ttl_max_s`. What providers report corrects
that: requests that carry no cache markers are never cached, a router may spread them over machines, and some caches live longer than they
promise. DESIGN.md, Lifecycle (the `p`, `w` and `r` of the gate).
"""

from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import Usage

ASSUMED: Final = 4.0  # calls' worth of evidence for what providers promise
FORGET: Final = 0.9  # what evidence is worth one call later
HALF: Final = 0.5  # of what should have been read: less is a collapse


class Collapse(Struct, frozen=True, kw_only=True, gc=False):
    """A prefix that should have been read and was not: nothing in it had changed, and its time was not over."""

    expected: int  # provider tokens that stood unchanged at the start of the request
    read: int
    idle_s: float | None = None  # since the call before; None: not known

    def __str__(self) -> str:
        """As a person is told."""
        when = "" if self.idle_s is None else f", {self.idle_s:,.0f} s after the call before"
        return f"the provider read {self.read:,} of {self.expected:,} tokens that had not changed{when}"


class Warmth(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a provider's cache, by evidence that fades."""

    hits: float = ASSUMED
    tried: float = ASSUMED
    longest_s: float = 0.0  # the longest pause after which a prefix was still there
    is_cached: bool = True  # whether prompts are written to a cache at all
    collapse: Collapse | None = None  # of the newest call

    @property
    def share(self) -> float:
        """Of a prefix that is warm: how much of it is read from the cache, from 0 to 1."""
        return self.hits / self.tried

    def chance(self, idle_s: float | None, prices: Prices) -> float:
        """The probability that a prefix is still held after a pause; a pause that is not known is short. Falls evenly where no time is promised."""
        sure = max(float(prices.ttl_s), self.longest_s)
        if idle_s is None or idle_s <= sure:
            return 1.0
        last = max(float(prices.ttl_max_s), sure)
        return 0.0 if idle_s >= last else (last - idle_s) / (last - sure)

    def rates(self, prices: Prices) -> tuple[float, float]:
        """USD for a token that is new or was changed, and for one that stands as it was sent before, as this provider really bills them."""
        fresh = prices.write if self.is_cached else prices.uncached
        return fresh, self.share * prices.read + (1.0 - self.share) * fresh

    def learn(self, *, expected: int, usage: Usage, idle_s: float | None, prices: Prices) -> "Warmth":
        """After a call of which the first `expected` provider tokens were as in the call before. O(1)."""
        if expected < prices.min_cache or usage.prompt < prices.min_cache:
            return replace(self, collapse=None)
        found = min(1.0, usage.cache_read / expected)
        is_cached = usage.cache_read > 0 or usage.cache_write > 0
        if idle_s is not None and self.chance(idle_s, prices) < 1.0:  # a cold start speaks against no cache, a warm one for it
            longest = max(self.longest_s, idle_s) if found > HALF else self.longest_s
            return replace(self, longest_s=longest, is_cached=is_cached, collapse=None)
        lost = found < HALF and self.share >= HALF
        return Warmth(
            hits=self.hits * FORGET + found,
            tried=self.tried * FORGET + 1.0,
            longest_s=self.longest_s,
            is_cached=is_cached,
            collapse=Collapse(expected=expected, read=usage.cache_read, idle_s=idle_s) if lost else None,
        )


class SentCalls(Struct, frozen=True, kw_only=True):
    """What is known of the cache at the other end. Times are ISO 8601; an empty one is not known."""

    warmth: Warmth = Warmth()
    last_at: str = ""  # of the newest answer
    standing: int = 0  # o200k tokens at the start of the view that are as they were sent last
    head: str = ""  # what stood before the view then; its tokens are not counted in `standing`
    expected: int = 0  # o200k tokens of the request in flight that were sent before
    sent_at: str = ""

    def idle_s(self, at: str) -> float | None:
        """Seconds since the last call; None when one of the two times is not known."""
        return _seconds(self.last_at, at)

    def after_change(self, kept: int) -> "SentCalls":
        """After a change of the view that leaves its first `kept` o200k tokens as they were."""
        return replace(self, standing=min(self.standing, kept))

    def after_request(self, *, view: int, head: str, head_tokens: int, at: str) -> "SentCalls":
        """After a request with so many o200k tokens behind that head went out."""
        same = self.standing > 0 and head == self.head
        expected = self.standing + head_tokens if same else 0
        return replace(self, expected=expected, standing=view, head=head, sent_at=at)

    def after_answer(self, *, at: str, usage: Usage | None, ratio: float, prices: Prices) -> "SentCalls":
        """After its answer came, with what the provider reported; what was not expected to be cached teaches nothing."""
        warmth = replace(self.warmth, collapse=None)
        if usage is not None:
            idle = _seconds(self.last_at, self.sent_at)
            warmth = self.warmth.learn(expected=int(self.expected * ratio), usage=usage, idle_s=idle, prices=prices)
        return replace(self, warmth=warmth, last_at=at or self.last_at, expected=0)


def _seconds(start: str, end: str) -> float | None:
    if not (start and end):
        return None
    try:
        passed = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (ValueError, TypeError):  # no time, or one of them without its zone
        return None
    return max(0.0, passed.total_seconds())
