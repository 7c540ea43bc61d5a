"""Strict prefix caching, simulated.

The provider keeps the previous request of the conversation for `ttl_s`; the next one reads the prefix that both share and writes the rest.
Requests shorter than `min_cache` are neither kept nor read. REPLAY.md's `call` has the same fields.
"""

from datetime import UTC, datetime

from msgspec import Struct

from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import Usage


class CachedCall(Struct, frozen=True, kw_only=True, gc=False):
    """A request as the cache sees it: `shared_prefix_tokens` with the request before it."""

    prompt_tokens: int
    shared_prefix_tokens: int = 0
    output: int = 0
    at: float | None = None  # seconds since any fixed moment; None: soon enough for the cache to be warm


class Charge(Struct, frozen=True, kw_only=True):
    """What a call is billed for; `uncached + cache_write + cache_read` is its prompt."""

    usage: Usage
    usd: float


class SimulatedCache(Struct, frozen=True, kw_only=True):
    """What the provider still holds of one conversation."""

    prices: Prices
    tokens: int = 0  # length of the prefix held; 0: nothing
    at: float | None = None  # when it was last used

    def is_warm(self, at: float | None) -> bool:
        """Whether a call at that time finds the prefix; a time that is not known does."""
        if not self.tokens:
            return False
        return at is None or self.at is None or at - self.at <= self.prices.ttl_s

    def send(self, call: CachedCall) -> tuple[Charge, "SimulatedCache"]:
        """What `call` costs, and the cache after it. What is not read is written, if the prompt is long enough to be kept."""
        kept = call.prompt_tokens >= self.prices.min_cache
        read = self._read(call)
        rest = call.prompt_tokens - read
        usage = Usage(uncached=0 if kept else rest, cache_write=rest if kept else 0, cache_read=read, output=call.output)
        after = SimulatedCache(prices=self.prices, tokens=call.prompt_tokens if kept else 0, at=call.at)
        return Charge(usage=usage, usd=self.prices.cost_usd(usage)), after

    def _read(self, call: CachedCall) -> int:
        shared = min(call.shared_prefix_tokens, call.prompt_tokens, self.tokens)
        return shared if shared >= self.prices.min_cache and self.is_warm(call.at) else 0


def seconds_of(at: str) -> float | None:
    """A time of a log as seconds since a fixed moment; None for none. One without a zone is in UTC, on every machine."""
    try:
        time = datetime.fromisoformat(at) if at else None
        return None if time is None else (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
