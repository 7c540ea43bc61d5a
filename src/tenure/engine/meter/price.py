"""What a token costs.

Prices come from the data inside the `genai-prices` package: offline, loaded on first use. A model that it does not know
gets `DEFAULT`, which says so (`known` is False).
"""

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Usage
from tenure.errors import InputError


class Prices(Struct, frozen=True, kw_only=True, gc=False):
    """USD per token of each kind, and how the provider's cache behaves. `write` and `read` equal `uncached` where nothing is cheaper."""

    uncached: float
    write: float
    read: float
    output: float
    ttl_s: int = 300  # a cached prefix is there this long after its last use
    ttl_max_s: int = 0  # and gone after this long; 0: after `ttl_s`, to the second
    min_cache: int = 1024  # tokens; a shorter prompt is not cached
    known: bool = True

    def cost_usd(self, usage: Usage) -> float:
        """What a call with this usage costs."""
        return (
            usage.uncached * self.uncached
            + usage.cache_write * self.write
            + usage.cache_read * self.read
            + usage.output * self.output
        )


# The list price of a mid-size model in 2025 (Claude Sonnet): right in its proportions for most, in its height for few.
DEFAULT: Final = Prices(uncached=3e-6, write=3.75e-6, read=3e-7, output=1.5e-5, known=False)

# (provider, start of the model's name) -> ttl_s, ttl_max_s, min_cache; the first match counts.
# anthropic: docs.anthropic.com/en/docs/build-with-claude/prompt-caching, "Cache limitations" and "default 5 minutes".
# openai: platform.openai.com/docs/guides/prompt-caching, "1024 tokens", "5 to 10 minutes of inactivity", "within one hour".
# google: ai.google.dev/gemini-api/docs/caching, implicit caching; no time is promised.
# deepseek: api-docs.deepseek.com/guides/kv_cache, "64 tokens", "a few hours to a few days".
CACHES: Final = (
    ("anthropic", "claude-opus-4-5", 300, 0, 4096),
    ("anthropic", "claude-opus-4-6", 300, 0, 4096),
    ("anthropic", "claude-opus-4-7", 300, 0, 4096),
    ("anthropic", "claude-haiku-4-5", 300, 0, 4096),
    ("anthropic", "claude-3-5-haiku", 300, 0, 2048),
    ("anthropic", "claude-3-haiku", 300, 0, 2048),
    ("openai", "", 300, 3600, 1024),
    ("google", "gemini-2.5-pro", 300, 3600, 4096),
    ("google", "", 300, 3600, 1024),
    ("deepseek", "", 7200, 86_400, 64),
)

# Lives of a cached prefix that can be asked for: (provider, what is asked) -> ttl_s. What a longer life costs is listed with the prices.
# anthropic: the same page, "1-hour cache duration"; openai: the same page, "Extended prompt cache retention".
LIVES: Final = {("anthropic", "5m"): 300, ("anthropic", "1h"): 3600, ("openai", "24h"): 86_400}

# Prices that begin on a date or hold at certain hours: the newest, at an hour of no discount. A clock has no place here.
_NEWEST: Final = datetime(9998, 1, 1, 12, tzinfo=UTC)


def prices_for(model: str, provider: str = "", *, prompt: int = 0, life: str = "") -> Prices:
    """The list prices of `model`, at `provider` where that is known; `DEFAULT` for a model that nobody lists.

    `life` is how long the requests ask the provider to keep a cached prefix ("1h", `LIVES`); empty: its default. Raises InputError for a
    life that no provider sells.

    Where the price rises with the prompt's length the tier of `prompt` tokens is meant: by default the lowest, since a managed
    context stays below the thresholds (200,000 tokens, mostly). A provider that prices no cache writes charges them as input.
    """
    if life and life not in {sold for _, sold in LIVES}:
        raise InputError("cache life", repr(life), "one of " + ", ".join(sorted({sold for _, sold in LIVES})))
    found = _find(model, provider)
    if found is None:
        return DEFAULT
    provider_id, model_id, listed = found
    uncached = _usd(getattr(listed, "input_mtok", None), prompt)
    if uncached is None:
        return DEFAULT
    longer = (provider_id, life) in LIVES and getattr(listed, f"cache_write_{life}_mtok", None)
    write = _usd(longer or getattr(listed, "cache_write_mtok", None), prompt)
    read = _usd(getattr(listed, "cache_read_mtok", None), prompt)
    output = _usd(getattr(listed, "output_mtok", None), prompt)
    prices = Prices(
        uncached=uncached,
        write=uncached if write is None else write,
        read=uncached if read is None else read,
        output=uncached if output is None else output,
    )
    prices = _with_cache(prices, provider_id, model_id)
    asked = LIVES.get((provider_id, life))
    return replace(prices, ttl_s=asked, ttl_max_s=0) if asked else prices


def _with_cache(prices: Prices, provider: str, model: str) -> Prices:
    for cache_provider, name, ttl_s, ttl_max_s, min_cache in CACHES:
        if provider == cache_provider and model.startswith(name):
            return replace(prices, ttl_s=ttl_s, ttl_max_s=ttl_max_s, min_cache=min_cache)
    return prices


@cache
def _find(model: str, provider: str) -> tuple[str, str, Any] | None:
    """Where the price is listed: at the provider; by the model's name alone; by its name without a router's prefix."""
    if not model:
        return None
    from genai_prices.data_snapshot import get_snapshot

    for name, host in ((model, provider or None), (model, None), (model.rpartition("/")[2], None)):
        try:
            listed_by, info = get_snapshot().find_provider_model(name, None, host, None)
        except LookupError:
            continue
        return listed_by.id, info.id, info.get_prices(_NEWEST)
    return None


def _usd(price: Any, prompt: int) -> float | None:
    """USD per token of a listed price per million, which is a number or tiers that begin above a prompt length."""
    if price is None:
        return None
    per_million = price
    if not isinstance(price, Decimal | int | float):
        per_million = price.base
        for tier in sorted(price.tiers, key=lambda tier: tier.start):
            if prompt > tier.start:
                per_million = tier.price
    return float(Decimal(per_million) / 1_000_000)
