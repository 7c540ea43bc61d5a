import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.price import DEFAULT, prices_for
from tenure.engine.meter.warmth import Warmth
from tenure.engine.record.entry import Usage

OPENAI = prices_for("gpt-4o", "openai")
READ = Usage(uncached=500, cache_read=60_000)
REWRITTEN = Usage(uncached=10, cache_write=60_490)
UNCACHED = Usage(uncached=60_500)


def test_a_prefix_is_certain_within_its_time_and_gone_after_it() -> None:
    assert [Warmth().chance(idle, DEFAULT) for idle in (None, 0.0, 300.0, 300.1)] == [1.0, 1.0, 1.0, 0.0]


def test_where_no_time_is_promised_the_chance_falls_evenly() -> None:
    assert [Warmth().chance(idle, OPENAI) for idle in (300.0, 1_950.0, 3_600.0)] == [1.0, 0.5, 0.0]


def test_a_prefix_that_outlived_its_time_is_expected_to_do_so_again() -> None:
    learned = Warmth().learn(expected=60_000, usage=READ, idle_s=900.0, prices=DEFAULT)
    assert learned.chance(900.0, DEFAULT) == 1.0
    assert learned.chance(901.0, DEFAULT) == 0.0


def test_a_cold_start_after_a_long_pause_says_nothing_against_the_cache() -> None:
    learned = Warmth().learn(expected=60_000, usage=REWRITTEN, idle_s=4_000.0, prices=DEFAULT)
    assert learned.share == 1.0
    assert learned.collapse is None


def test_a_collapse_that_nothing_explains_is_noticed_once_and_said_in_words() -> None:
    learned = Warmth().learn(expected=60_000, usage=REWRITTEN, idle_s=12.0, prices=DEFAULT)
    assert str(learned.collapse) == "the provider read 0 of 60,000 tokens that had not changed, 12 s after the call before"
    assert learned.learn(expected=60_500, usage=READ, idle_s=5.0, prices=DEFAULT).collapse is None


def test_requests_that_are_never_cached_cost_the_same_with_and_without_a_change() -> None:
    learned = Warmth()
    for _ in range(40):
        learned = learned.learn(expected=60_000, usage=UNCACHED, idle_s=5.0, prices=DEFAULT)
    fresh, standing = learned.rates(DEFAULT)
    assert fresh == DEFAULT.uncached
    assert standing == pytest.approx(fresh, rel=0.05)


def test_a_provider_that_reads_as_promised_is_billed_as_listed() -> None:
    learned = Warmth().learn(expected=60_000, usage=READ, idle_s=5.0, prices=DEFAULT)
    assert learned.rates(DEFAULT) == (DEFAULT.write, pytest.approx(DEFAULT.read))


def test_prompts_too_short_for_a_cache_teach_nothing() -> None:
    assert Warmth().learn(expected=500, usage=Usage(uncached=700), idle_s=1.0, prices=DEFAULT) == Warmth()


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.none() | st.floats(0, 1e6))))
def test_whatever_is_reported_the_share_and_the_chance_stay_probabilities(
    reports: list[tuple[int, int, int, float | None]],
) -> None:
    learned = Warmth()
    for expected, read, uncached, idle in reports:
        learned = learned.learn(expected=expected, usage=Usage(cache_read=read, uncached=uncached), idle_s=idle, prices=OPENAI)
        assert 0.0 <= learned.share <= 1.0
        assert 0.0 <= learned.chance(idle, OPENAI) <= 1.0
        fresh, standing = learned.rates(OPENAI)
        assert OPENAI.read <= standing <= fresh + 1e-12
