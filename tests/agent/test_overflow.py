import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.agent.overflow import ModelWindow, bounded
from tenure.agent.retries import ASKED_S, LONGEST_S, PATIENCE, wait_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Usage
from tenure.errors import Failure, Overflow


def refused(
    overflow: Overflow | None, *, sent: int, reserve: int = 1_000, accepted: int = 0, window: int = 300_000
) -> ModelWindow:
    return replace(ModelWindow.of(Budget(target=3_000, window=window)), accepted=accepted).refused(
        overflow, sent=sent, reserve=reserve
    )


SAID = [  # what is said, what we took the request for, and the most that may come by that
    pytest.param(Overflow(200_000, 213_462), 213_462, 0.8 * 213_462, id="at most four fifths of what was refused"),
    pytest.param(Overflow(200_000, 213_462), 106_731, 0.8 * 106_731, id="we count half of what they do"),
    pytest.param(Overflow(8_192, 16_000), 16_000, 7_192, id="less the reserve for the reply"),
    pytest.param(Overflow(8_192, 16_000), 8_000, 3_596, id="less the reserve, and we count half of what they do"),
    pytest.param(Overflow(8_192, 16_000, 3_000), 16_000, 5_192, id="less the reply that was asked for"),
    pytest.param(Overflow(8_192), 20_000, 7_192, id="no word of what came"),
]


@pytest.mark.parametrize(("overflow", "sent", "most"), SAID)
def test_the_window_becomes_what_the_provider_says_less_the_reply_in_our_own_count(
    overflow: Overflow, sent: int, most: float
) -> None:
    window = refused(overflow, sent=sent)
    assert window.budget.window == int(most)
    assert window.budget.target == min(3_000, window.budget.window)


def test_without_a_number_a_fifth_of_what_was_sent_must_go() -> None:
    assert refused(None, sent=100_000).budget.window == 80_000


NOT_BELIEVED = [
    pytest.param(Overflow(40_000), 60_000, 50_000, id="smaller than what was accepted"),
    pytest.param(Overflow(40_000, 60_000), 60_000, 50_000, id="smaller than what was accepted, and what came is said too"),
    pytest.param(Overflow(889), 30_000, 0, id="smaller than any window"),
    pytest.param(Overflow(8_765), 150_000, 0, id="far below what was sent"),
    pytest.param(Overflow(8_765, 9_000), 150_000, 0, id="what came is far below what was sent"),
    pytest.param(Overflow(200_000, 150_000), 150_000, 0, id="what came would have been allowed"),
]


@pytest.mark.parametrize(("overflow", "sent", "accepted"), NOT_BELIEVED)
def test_a_figure_that_cannot_be_true_is_not_believed(overflow: Overflow, sent: int, accepted: int) -> None:
    window = refused(overflow, sent=sent, accepted=accepted)
    assert window.budget.window == max(int(0.8 * sent), accepted)
    assert not window.stated


def test_a_refusal_that_only_a_shorter_reply_would_mend_takes_nothing_out_of_the_view() -> None:
    before = ModelWindow.of(Budget(window=300_000))
    assert before.refused(Overflow(4_096, 2_104, 8_192), sent=2_000, reserve=10_000) == before


def test_the_reserve_never_takes_more_than_half_of_a_small_window() -> None:
    assert refused(Overflow(4_096), sent=20_000, reserve=18_000).budget.window == 2_048


def test_what_is_answered_later_corrects_a_window_upward_but_never_beyond_the_given_one() -> None:
    window = refused(None, sent=100_000, window=120_000)
    assert window.budget.window == 80_000
    window = window.answered(Usage(uncached=90_000), estimated=85_000)
    assert window.budget.window == 90_000
    assert window.answered(Usage(uncached=500_000), estimated=400_000).budget.window == 120_000


def test_once_a_report_has_corrected_our_count_the_window_is_what_the_provider_said() -> None:
    window = refused(Overflow(200_000, 213_462), sent=106_731)
    assert window.budget.window == 85_384
    assert window.answered(Usage(uncached=100_000), estimated=50_000).budget.window == 199_000


def test_a_report_that_cannot_be_true_widens_nothing() -> None:
    window = refused(Overflow(8_192, 16_000), sent=16_000)
    for untrue in (Usage(), Usage(uncached=10), Usage(uncached=2_000_000), None):
        assert window.answered(untrue, estimated=5_000).budget.window == 7_192


budgets = st.builds(
    lambda window, target, ceiling, floor: Budget(window=window, target=min(target, ceiling, window), ceiling=min(ceiling, window), floor=min(floor, target, ceiling, window)),
    *[st.integers(1, 500_000)] * 4,
)  # fmt: skip
figures = st.integers(0, 10**9)
overflows = st.none() | st.builds(Overflow, figures) | st.builds(Overflow, figures, st.integers(1, 10**9), figures)


@given(budgets, st.lists(st.tuples(overflows, figures, figures), max_size=5))
def test_a_budget_never_grows_by_what_a_provider_says_and_stays_one(
    budget: Budget, heard: list[tuple[Overflow | None, int, int]]
) -> None:
    window = ModelWindow.of(budget)
    for overflow, sent, reserve in heard:
        smaller = window.refused(overflow, sent=sent, reserve=reserve)
        assert smaller.budget.window <= window.budget.window
        assert smaller.budget.limit <= window.budget.limit
        window = smaller.answered(Usage(uncached=reserve), estimated=sent)
        assert smaller.budget.window <= window.budget.window <= budget.window


@given(st.integers(2_000, 10**6), overflows)
def test_no_refusal_takes_more_than_its_provider_could_have_meant(sent: int, overflow: Overflow | None) -> None:
    """Whatever the text of an error holds: what stays is a sixteenth of what was sent, or the provider knew how much came."""
    window = refused(overflow, sent=sent, window=10**6).budget.window
    assert window >= sent // 32 or (overflow is not None and overflow.prompt)


@given(budgets, st.integers(-5, 500_000))
def test_a_budget_is_kept_within_any_window(budget: Budget, window: int) -> None:
    assert bounded(budget, window).window <= max(1, window)


def test_waits_double_are_spread_by_chance_and_are_never_longer_than_a_minute() -> None:
    waits = [wait_for(Failure.UNAVAILABLE, n, asked_s=None, chance=0.0) for n in range(1, 8)]
    assert [each.seconds for each in waits if each] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert all(wait_for(Failure.RATE_LIMITED, n, asked_s=None, chance=1.0).seconds <= LONGEST_S for n in range(1, 10))


def test_a_provider_is_left_alone_as_long_as_it_wants_but_not_for_hours() -> None:
    wait = wait_for(Failure.RATE_LIMITED, 1, asked_s=30.0, chance=0.25)
    assert wait is not None
    assert (wait.seconds, wait.attempt) == (30.25, 2)
    assert wait_for(Failure.RATE_LIMITED, 1, asked_s=ASKED_S + 1, chance=0.0) is None


@pytest.mark.parametrize("kind", [kind for kind in Failure if kind not in PATIENCE])
def test_what_cannot_pass_is_not_tried_again(kind: Failure) -> None:
    assert wait_for(kind, 1, asked_s=None, chance=0.5) is None
