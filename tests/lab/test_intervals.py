"""Intervals and tests against figures that were published, and against their own laws."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.lab.intervals import Interval, Share, sign_test, wilson

# Self-GC paper, tables 3 and 4: no-impact of 33 and of 332 sessions in per cent, with its 95 % interval.
PUBLISHED = [
    (22, 33, 66.67, 49.61, 80.25),
    (23, 33, 69.70, 52.66, 82.62),
    (18, 33, 54.55, 37.99, 70.16),
    (19, 33, 57.58, 40.81, 72.76),
    (28, 33, 84.85, 69.08, 93.35),
    (258, 332, 77.71, 72.93, 81.86),
    (266, 332, 80.12, 75.49, 84.06),
    (278, 332, 83.73, 79.38, 87.31),
    (308, 332, 92.77, 89.47, 95.09),
    (314, 332, 94.58, 91.59, 96.54),
    (303, 332, 91.27, 87.74, 93.85),
]


@pytest.mark.parametrize(("hits", "of", "share", "low", "high"), PUBLISHED)
def test_the_intervals_of_the_self_gc_paper_are_reproduced(hits: int, of: int, share: float, low: float, high: float) -> None:
    found = Share(hits=hits, of=of)
    assert found.value is not None
    assert (round(found.value * 100, 2), round(found.interval.low * 100, 2), round(found.interval.high * 100, 2)) == (
        share,
        low,
        high,
    )


def test_nothing_counted_says_nothing() -> None:
    assert wilson(0, 0) == Interval(0.0, 1.0)
    assert Share(hits=0, of=0).value is None


def test_all_or_none_reaches_the_end_and_leaves_room_on_the_other_side() -> None:
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == 1.0
    assert 0.2 < wilson(0, 10).high < 0.35


@pytest.mark.parametrize(("hits", "of"), [(-1, 3), (4, 3), (1, 0)])
def test_hits_that_are_not_among_the_trials_are_refused(hits: int, of: int) -> None:
    with pytest.raises(ValueError, match=f"{hits} hits in {of} trials"):
        wilson(hits, of)


@given(st.integers(0, 2_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_share_and_mirrors_its_opposite(counted: tuple[int, int]) -> None:
    hits, of = counted
    found, opposite = wilson(hits, of), wilson(of - hits, of)
    assert 0 <= found.low <= found.high <= 1
    assert not of or found.low <= hits / of <= found.high
    assert found.low == pytest.approx(1 - opposite.high)


@given(st.integers(1, 400), st.integers(2, 50))
def test_more_cases_with_the_same_share_make_it_surer(hits: int, times: int) -> None:
    few, many = wilson(hits, 2 * hits), wilson(hits * times, 2 * hits * times)
    assert many.high - many.low < few.high - few.low


def exact(first: int, second: int) -> float:
    trials, fewer = first + second, min(first, second)
    return min(1.0, 2 * sum(comb(trials, n) for n in range(fewer + 1)) / 2**trials)


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_sign_test_is_the_exact_binomial_sum_whichever_side_comes_first(first: int, second: int) -> None:
    assert sign_test(first, second) == pytest.approx(exact(first, second))
    assert sign_test(first, second) == sign_test(second, first)


def test_eleven_preferred_against_two_is_more_than_chance() -> None:
    """The Self-GC paper's own disagreements (Main Results), of which it gives no test."""
    assert sign_test(11, 2) == pytest.approx(0.0225, abs=1e-4)
    assert sign_test(0, 0) == 1.0


def test_many_cases_are_tested_without_overflow() -> None:
    assert sign_test(50_000, 50_000) == pytest.approx(1.0)
    assert sign_test(60_000, 40_000) < 1e-300


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="-1 against 2"):
        sign_test(-1, 2)
