import subprocess
import sys

import pytest

from tenure.engine.meter.price import DEFAULT, prices_for
from tenure.engine.record.entry import Usage
from tenure.errors import InputError


def test_a_listed_model_has_its_prices() -> None:
    prices = prices_for("claude-sonnet-4-5", "anthropic")
    assert prices.known
    assert (prices.uncached, prices.write, prices.read, prices.output) == (3e-6, 3.75e-6, 3e-7, 1.5e-5)
    assert (prices.ttl_s, prices.min_cache) == (300, 1024)


def test_a_provider_without_a_price_for_writes_charges_them_as_input() -> None:
    prices = prices_for("gpt-4o", "openai")
    assert prices.write == prices.uncached > prices.read > 0


@pytest.mark.parametrize("model", ["", "scripted", "gpt-99", "x" * 5_000])
def test_an_unknown_model_gets_a_default_that_says_so(model: str) -> None:
    assert prices_for(model) == DEFAULT
    assert not DEFAULT.known


@pytest.mark.parametrize("provider", ["", "nowhere", "bedrock"])
def test_a_model_is_found_by_its_name_alone(provider: str) -> None:
    assert prices_for("claude-sonnet-4-5", provider).known


def test_a_routers_prefix_is_looked_through() -> None:
    assert prices_for("somewhere/claude-sonnet-4-5").read == 3e-7


def test_tiers_follow_the_prompt() -> None:
    assert prices_for("gemini-2.5-pro").uncached == 1.25e-6
    assert prices_for("gemini-2.5-pro", prompt=200_000).uncached == 1.25e-6
    assert prices_for("gemini-2.5-pro", prompt=200_001).uncached == 2.5e-6


def test_the_minimum_a_cache_keeps_depends_on_the_model() -> None:
    assert prices_for("claude-haiku-4-5", "anthropic").min_cache == 4096
    assert prices_for("deepseek-chat", "deepseek").min_cache == 64


def test_a_longer_life_in_the_cache_has_its_price() -> None:
    short, long = (prices_for("claude-sonnet-4-5", "anthropic", life=life) for life in ("5m", "1h"))
    assert short == prices_for("claude-sonnet-4-5", "anthropic")
    assert (long.ttl_s, long.write, long.read) == (3600, 6e-6, 3e-7)
    assert prices_for("gpt-4o", "openai", life="24h").ttl_s == 86_400


def test_a_life_that_a_provider_does_not_sell_changes_nothing_and_one_that_nobody_sells_is_refused() -> None:
    assert prices_for("gpt-4o", "openai", life="1h") == prices_for("gpt-4o", "openai")
    with pytest.raises(InputError, match=r"2h.*1h, 24h, 5m"):
        prices_for("gpt-4o", "openai", life="2h")


def test_a_call_costs_the_sum_of_its_kinds() -> None:
    usage = Usage(uncached=10, cache_write=100, cache_read=1_000, output=1)
    assert DEFAULT.cost_usd(usage) == pytest.approx(10 * 3e-6 + 100 * 3.75e-6 + 1_000 * 3e-7 + 1.5e-5)


def test_importing_prices_loads_nothing() -> None:
    subprocess.run(
        [sys.executable, "-c", "import sys, tenure.engine.meter.price; assert 'genai_prices' not in sys.modules"], check=True
    )
