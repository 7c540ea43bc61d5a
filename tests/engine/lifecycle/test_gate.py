from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.lifecycle.budget import GateRule
from tenure.engine.lifecycle.gate import (
    CALLS_FEWEST,
    CALLS_MOST,
    MISS_RATE,
    Outlook,
    Removal,
    best_start,
    expected_calls,
    miss_rate,
    pays,
    price,
)

WARM = Outlook(calls=40, warm=1.0, write=3.75e-6, read=3e-7)


def test_the_gain_is_the_designs_formula() -> None:
    outlook = Outlook(calls=40, warm=0.5, write=3.75e-6, read=3e-7, recall=0.02)
    priced = price(outlook, removed=31_000, suffix=22_000, misses=0.4, planning=0.01)
    by_hand = 31_000 * (3.75e-6 + 3e-7 * 39) - 0.5 * (3.75e-6 - 3e-7) * 53_000 - 0.01 - 0.4 * 0.02
    assert priced.gain_usd == pytest.approx(by_hand)
    assert (priced.d, priced.s, priced.n, priced.p, priced.g, priced.misses, priced.recall) == (
        31_000, 22_000, 40, 0.5, 0.01, 0.4, 0.02,
    )  # fmt: skip


def test_in_a_warm_cache_a_commit_spares_reading_what_left_and_costs_writing_what_stands_behind_it() -> None:
    priced = price(WARM, removed=1_000, suffix=500)
    assert priced.spared_usd == pytest.approx(1_000 * 3e-7 * 40)
    assert priced.broken_usd == pytest.approx(500 * (3.75e-6 - 3e-7))
    assert priced.spared_usd - priced.broken_usd == pytest.approx(priced.gain_usd)


def test_a_plan_that_does_not_pay_while_the_cache_is_warm_pays_once_it_is_cold() -> None:
    priced = price(WARM, removed=1_000, suffix=90_000)
    assert not pays(GateRule.PRICED, priced, 100_000)
    cold = price(Outlook(calls=40, warm=0.0, write=3.75e-6, read=3e-7), removed=1_000, suffix=90_500)
    assert pays(GateRule.PRICED, cold, 100_000)


def test_expected_recalls_count_against_a_plan() -> None:
    dear = Outlook(calls=4, warm=0.0, write=3.75e-6, read=3e-7, recall=1.0)
    assert pays(GateRule.PRICED, price(dear, removed=1_000, suffix=0), 2_000)
    assert not pays(GateRule.PRICED, price(dear, removed=1_000, suffix=0, misses=1.0), 2_000)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 1), st.floats(1, CALLS_MOST))
def test_a_colder_cache_never_makes_a_plan_worse(removed: int, suffix: int, warm: float, calls: float) -> None:
    outlook = Outlook(calls=calls, warm=warm, write=3.75e-6, read=3e-7)
    cold = Outlook(calls=calls, warm=0.0, write=3.75e-6, read=3e-7)
    assert price(cold, removed=removed, suffix=suffix).gain_usd >= price(outlook, removed=removed, suffix=suffix).gain_usd


def test_nothing_removed_is_never_worth_a_commit() -> None:
    assert not any(pays(rule, price(WARM, removed=0, suffix=0), 0, is_cold=True, at_boundary=True) for rule in GateRule)


@pytest.mark.parametrize(("made", "expected"), [(40, 40), (77, 77), (10_000, 400)])
def test_without_experience_as_many_calls_again_are_expected(made: int, expected: int) -> None:
    assert expected_calls(made) == expected


@pytest.mark.parametrize("made", [0, 3, 20, 39])
def test_a_young_session_is_not_assumed_to_go_on(made: int) -> None:
    assert expected_calls(made) == CALLS_FEWEST


def test_sessions_that_went_on_for_longer_say_how_many_calls_follow() -> None:
    always_a_hundred = (100,) * 50
    assert expected_calls(20, always_a_hundred) == pytest.approx(80, rel=0.1)  # though it is young
    assert expected_calls(90, always_a_hundred) < 20
    assert expected_calls(150, always_a_hundred) == 150  # none went so far


@given(st.integers(0, 1_000), st.lists(st.integers(0, 1_000)))
def test_expected_calls_stay_within_bounds(made: int, earlier: list[int]) -> None:
    assert CALLS_FEWEST <= expected_calls(made, sorted(earlier)) <= CALLS_MOST


def test_recalls_that_were_seen_raise_the_rate_and_none_do_not_lower_it() -> None:
    assert miss_rate(0, 0) == miss_rate(0, 500) == MISS_RATE
    assert miss_rate(10, 100) == 0.1


@pytest.mark.parametrize(
    ("removed", "tokens", "occasion", "paid"),
    [
        (31, 100, {}, True),
        (30, 100, {}, False),
        (30, 100, {"is_cold": True}, True),
        (5, 100, {"at_boundary": True}, True),
        (0, 100, {"at_boundary": True}, False),
        (4, 10, {}, True),
    ],
)
def test_the_papers_rule_goes_by_the_share_that_leaves_whatever_the_price(
    removed: int, tokens: int, occasion: dict[str, bool], paid: bool
) -> None:
    plan = price(Outlook(calls=4, warm=1, write=1, read=0.1), removed=removed, suffix=10**6)
    assert pays(GateRule.SELFGC_PAPER, plan, tokens, **occasion) is paid


removals = st.lists(st.builds(Removal, tokens=st.integers(0, 5_000), behind=st.integers(1, 60_000)), max_size=6)


@given(each=removals, calls=st.floats(1, 200), warm=st.sampled_from([0.0, 0.4, 1.0]))
def test_the_best_part_of_a_plan_is_the_best_of_all_its_parts(each: list[Removal], calls: float, warm: float) -> None:
    outlook = Outlook(calls=calls, warm=warm, write=3.75e-6, read=3e-7, recall=0.01)

    def gain(part: Sequence[Removal]) -> float:
        spared = sum(
            one.tokens * (outlook.write + outlook.read * (calls - 1)) - 0.02 * (0.01 + one.tokens * outlook.write) for one in part
        )
        return spared - warm * (outlook.write - outlook.read) * max(one.behind for one in part)

    parts = [part for size in range(1, len(each) + 1) for part in combinations(each, size)]
    best, behind = best_start(outlook, each, miss=0.02)
    assert best == pytest.approx(max([0.0, *map(gain, parts)]), abs=1e-9)
    assert (behind == 0) == (best == 0.0)


def test_what_a_commit_loses_if_the_session_ends_with_the_next_call_is_the_break_less_one_reading() -> None:
    priced = price(WARM, removed=1_000, suffix=500, planning=0.001)
    assert priced.lost_usd == pytest.approx(500 * (3.75e-6 - 3e-7) - 1_000 * 3e-7 + 0.001)
    cold = price(Outlook(calls=40, warm=0.0, write=3.75e-6, read=3e-7), removed=1_000, suffix=500)
    assert cold.lost_usd == pytest.approx(-1_000 * 3.75e-6), "in a cold cache what leaves is not written again"


@given(st.floats(0, 0.1), st.lists(st.tuples(st.integers(1, 9_000), st.integers(1, 90_000)), max_size=8))
def test_the_best_start_loses_no_more_than_it_may(most_usd: float, parts: list[tuple[int, int]]) -> None:
    removals = [Removal(tokens=min(tokens, behind), behind=behind) for tokens, behind in parts]
    gain, behind = best_start(WARM, removals, miss=0.0, most_usd=most_usd)
    if gain > 0:
        removed = sum(each.tokens for each in removals if each.behind <= behind)
        assert price(WARM, removed=removed, suffix=behind - removed).lost_usd <= most_usd + 1e-12
