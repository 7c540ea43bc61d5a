"""The bill of a replay's requests with a simulated cache, as each stands on the one before it."""

from msgspec import structs

from tenure.engine.meter.cache import CachedCall, SimulatedCache, seconds_of
from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import Draft, Usage


class SentWindow:
    """One window's requests: what they cost, and what of the newest still stands unchanged. Mutable.

    A model finds nothing in the cache of another one; with `one_model` all are priced as one.
    """

    def __init__(self, prices: Prices, *, one_model: bool) -> None:
        self._prices, self._one_model = prices, one_model
        self._cache = SimulatedCache(prices=prices)
        self._model = ""  # whose cache it is
        self.unbroken = 0  # o200k tokens
        self.prompt = self._read = 0  # provider tokens
        self.usd = 0.0

    def begin_source(self) -> None:
        """The next request is of another session."""
        self._model = ""

    def keep(self, tokens: int) -> None:
        """The window changed: what was sent last stands only as far as so many o200k tokens."""
        self.unbroken = min(self.unbroken, tokens)

    def send(self, tokens: int, ratio: float, output: int, answer: Draft) -> Usage:
        """Bill one request of so many o200k tokens against what still stands of the one before; `ratio`: provider tokens per o200k token."""
        shared = round(self.unbroken * ratio)
        if not self._one_model and "" not in (answer.model, self._model) and answer.model != self._model:
            self._cache = SimulatedCache(prices=self._prices)
        elif self._cache.tokens:  # the same text weighs more once the ratio has risen, and none of it is written again for that
            self._cache = structs.replace(self._cache, tokens=max(self._cache.tokens, shared))
        prompt = round(tokens * ratio)
        call = CachedCall(prompt_tokens=prompt, shared_prefix_tokens=shared, output=output, at=seconds_of(answer.at))
        charge, self._cache = self._cache.send(call)
        self.unbroken, self._model = tokens, answer.model or self._model
        self._read += charge.usage.cache_read
        self.prompt += charge.usage.prompt
        self.usd += charge.usd
        return charge.usage

    @property
    def reuse(self) -> float:
        """The share (0 to 1) of all prompts that was read from the cache."""
        return self._read / self.prompt if self.prompt else 0.0
