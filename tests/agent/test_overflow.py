import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.overflow import bounded, shrunk
from tenure.agent.patience import ASKED_S, LONGEST_S, PATIENCE, wait_for
from tenure.errors import Failure
from tenure.lifecycle.budget import Budget

WORDS = [  # what is said, what we took the request for, and the most that may come by that
    ("prompt is too long: 213462 tokens > 200000 maximum", 213_462, 199_000),
    ("prompt is too long: 213462 tokens > 200000 maximum", 106_731, 99_500),  # we count half of what they do
    ("This model's maximum context length is 8,192 tokens. However, your messages resulted in 9,001 tokens.", 9_001, 7_192),
    ("the request exceeds the available context size (4096 tokens)", 150_000, 3_096),
]


@pytest.mark.parametrize(("words", "sent", "most"), WORDS)
def test_the_window_becomes_what_the_provider_says_less_the_reply_in_our_own_count(words: str, sent: int, most: int) -> None:
    budget = shrunk(Budget(target=3_000, window=300_000), words, sent=sent, reserve=1_000)
    assert 0 < budget.window <= most
    assert budget.window <= 0.8 * sent
    assert budget.target == min(3_000, budget.window)


def test_without_a_number_a_fifth_of_what_was_sent_must_go() -> None:
    assert shrunk(Budget(), "Your input exceeds the context window.", sent=100_000, reserve=1_000).window == 80_000


budgets = st.builds(
    lambda window, target, ceiling, floor: Budget(window=window, target=min(target, ceiling, window), ceiling=min(ceiling, window), floor=min(floor, target, ceiling, window)),
    *[st.integers(1, 500_000)] * 4,
)  # fmt: skip


@given(
    budgets,
    st.text(st.characters(categories=["Nd", "Lu"], include_characters=" ,_"), max_size=60),
    st.integers(0, 10**7),
    st.integers(0, 10**5),
)
def test_a_budget_never_grows_by_what_a_provider_says_and_stays_one(budget: Budget, words: str, sent: int, reserve: int) -> None:
    smaller = shrunk(budget, words, sent=sent, reserve=reserve)
    assert smaller.window <= budget.window
    assert smaller.limit <= budget.limit


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
