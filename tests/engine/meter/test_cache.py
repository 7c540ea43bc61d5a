from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.cache import CachedCall, Charge, SimulatedCache
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.record.entry import Usage

CALLS = st.lists(
    st.builds(
        CachedCall,
        prompt_tokens=st.integers(0, 5_000),
        shared_prefix_tokens=st.integers(0, 6_000),
        output=st.integers(0, 900),
        at=st.none() | st.floats(0, 2_000),
    ),
    max_size=20,
)


def simulate(calls: Iterable[CachedCall], prices: Prices) -> Iterator[Charge]:
    cache = SimulatedCache(prices=prices)
    for each in calls:
        charge, cache = cache.send(each)
        yield charge


def call(prompt: int, shared: int = 0, at: float | None = None) -> CachedCall:
    return CachedCall(prompt_tokens=prompt, shared_prefix_tokens=shared, at=at)


def usages(*calls: CachedCall) -> list[Usage]:
    return [charge.usage for charge in simulate(calls, DEFAULT)]


@given(CALLS)
def test_every_token_of_a_prompt_is_billed_once(calls: list[CachedCall]) -> None:
    charges = list(simulate(calls, DEFAULT))
    assert [charge.usage.prompt for charge in charges] == [each.prompt_tokens for each in calls]
    assert all(charge.usd >= 0 for charge in charges)


@given(CALLS)
def test_nothing_is_read_that_was_not_in_the_request_before(calls: list[CachedCall]) -> None:
    read = [charge.usage.cache_read for charge in simulate(calls, DEFAULT)]
    assert all(tokens <= before.prompt_tokens for tokens, before in zip(read[1:], calls, strict=False))
    assert not read or read[0] == 0


def test_a_shared_prefix_is_read_and_the_rest_written() -> None:
    assert usages(call(2_000), call(3_000, 2_000)) == [Usage(cache_write=2_000), Usage(cache_write=1_000, cache_read=2_000)]


def test_a_prompt_below_the_minimum_is_neither_kept_nor_read() -> None:
    assert usages(call(1_023), call(3_000, 1_023)) == [Usage(uncached=1_023), Usage(cache_write=3_000)]


def test_a_shared_prefix_below_the_minimum_is_not_read() -> None:
    assert usages(call(5_000), call(5_000, 1_000))[1] == Usage(cache_write=5_000)


@pytest.mark.parametrize(("pause", "read"), [(300, 2_000), (301, 0)])
def test_a_pause_longer_than_the_ttl_empties_the_cache(pause: float, read: int) -> None:
    assert usages(call(2_000, at=0), call(3_000, 2_000, at=pause))[1].cache_read == read


def test_a_call_without_a_time_finds_the_cache_warm() -> None:
    assert [usage.cache_read for usage in usages(call(2_000, at=0), call(2_000, 2_000), call(2_000, 2_000, at=9_999))] == [
        0,
        2_000,
        2_000,
    ]


def test_every_call_renews_the_ttl() -> None:
    assert [usage.cache_read for usage in usages(*(call(2_000, 2_000, at=250.0 * n) for n in range(5)))] == [0] + [2_000] * 4


def test_the_charge_is_the_price_of_its_usage() -> None:
    (charge,) = simulate([CachedCall(prompt_tokens=2_000, output=10)], DEFAULT)
    assert charge.usd == DEFAULT.cost_usd(Usage(cache_write=2_000, output=10))
