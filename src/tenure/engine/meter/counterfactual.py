"""What the same calls would have cost had nothing ever been evicted or clipped.

Both sides go through the same strict prefix cache (`meter.cache`) at the same list prices: one as its requests were sent, one as they would
have been with the whole record in them. So without a commit both are the same to the last digit, and what a provider's cache really did
stands only in the bill. A call that was made for nothing but a recall, once something had left, is not among those of the whole record.

Where the whole record would not have fitted into the window there is nothing to compare with: that call's costs count on neither side.
"""

from math import isfinite
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.cache import Call, PrefixCache, seconds_of
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.meter.ratio import Ratio
from tenure.engine.record.entry import Usage

PICO: Final = 10**12  # money is summed in whole millionths of a millionth of a dollar: no order of adding changes a sum


def pico(usd: float) -> int:
    """An amount as a whole number that adds up exactly; what is no amount is nothing."""
    return round(usd * PICO) if isfinite(usd) else 0


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One call of the agent: what it reported, and what was and would have been in its window, in o200k tokens without the head."""

    shown: int
    whole: int
    usage: Usage
    model: str = ""
    prices: Prices = DEFAULT
    at: str = ""  # ISO 8601; empty: soon after the call before
    fetching: bool = False  # its reply asked for recalls and nothing else


class Course(Struct, frozen=True, kw_only=True):
    """One side's requests so far; tokens and money only of those that count."""

    cache: PrefixCache
    prompt: int = 0  # provider tokens of the newest request
    usage: Usage = Usage()
    pico_usd: int = 0

    def send(self, call: Call, *, counts: bool) -> "Course":
        """The side after one more request."""
        charge, cache = self.cache.send(call)
        if not counts:
            return replace(self, cache=cache, prompt=call.prompt_tokens)
        usage, usd = add(self.usage, charge.usage), self.pico_usd + pico(charge.usd)
        return Course(cache=cache, prompt=call.prompt_tokens, usage=usage, pico_usd=usd)

    def at_prices(self, prices: Prices) -> "Course":
        """The side when another model goes on: nothing is cached there."""
        return replace(self, cache=PrefixCache(prices=prices), prompt=0)


class Counterfactual(Struct, frozen=True, kw_only=True):
    """Both sides, call by call in O(1). `window` in provider tokens; 0: none is known, and everything fits."""

    window: int = 0
    ratio: Ratio = Ratio()
    sent: Course = Course(cache=PrefixCache(prices=DEFAULT))
    whole: Course = Course(cache=PrefixCache(prices=DEFAULT))
    shown: int = 0  # of the newest request
    standing: int = 0  # of it: what still stands unchanged at its start
    touched: bool = False  # whether anything was ever evicted or clipped
    break_pico_usd: int = 0  # what commits cost by breaking the cache; `sent` holds it too
    calls: int = 0
    beyond: int = 0  # calls that the whole record would not have fitted into
    peak: int = 0  # of the whole record's requests
    model: str = ""
    is_priced: bool = True  # whether every model so far has a list price

    def changed(self, kept: int | None) -> "Counterfactual":
        """After a commit that leaves the first `kept` o200k tokens of the view as they were; None: it changed only what was never sent."""
        return replace(self, touched=True, standing=self.standing if kept is None else min(self.standing, kept))

    def called(self, request: Request) -> "Counterfactual":
        """After a call of the agent."""
        now = self if request.model == self.model else self._with_model(request)
        ratio = now.ratio.learn(request.usage.prompt, request.shown)
        prompt = request.usage.prompt or ratio.provider_tokens(request.shown)
        long = max(0, prompt + round(ratio.value * (request.whole - request.shown)))
        fits = not now.window or long <= now.window
        at, output = seconds_of(request.at), request.usage.output
        unbroken = min(now.sent.prompt, prompt)
        gone = round(ratio.value * (now.shown - now.standing))
        shared = min(unbroken, max(0, now.sent.prompt - gone))
        call = Call(prompt_tokens=prompt, shared_prefix_tokens=shared, output=output, at=at)
        sent = now.sent.send(call, counts=fits)
        kept = now.sent.send(replace(call, shared_prefix_tokens=unbroken), counts=fits)
        whole = now.whole
        if not (request.fetching and now.touched):
            standing = min(whole.prompt, long)
            whole = whole.send(Call(prompt_tokens=long, shared_prefix_tokens=standing, output=output, at=at), counts=fits)
        return replace(
            now,
            ratio=ratio,
            sent=sent,
            whole=whole,
            shown=request.shown,
            standing=request.shown,
            break_pico_usd=now.break_pico_usd + sent.pico_usd - kept.pico_usd,
            calls=now.calls + 1,
            beyond=now.beyond + (not fits),
            peak=max(now.peak, long),
            is_priced=now.is_priced and request.prices.known,
        )

    def _with_model(self, request: Request) -> "Counterfactual":
        prices = request.prices
        return replace(self, model=request.model, sent=self.sent.at_prices(prices), whole=self.whole.at_prices(prices))


def add(one: Usage, other: Usage) -> Usage:
    """What two calls used together."""
    return Usage(
        uncached=one.uncached + other.uncached,
        cache_write=one.cache_write + other.cache_write,
        cache_read=one.cache_read + other.cache_read,
        output=one.output + other.output,
    )
