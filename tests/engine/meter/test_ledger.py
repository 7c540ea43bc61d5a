from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.cache import CachedCall, SimulatedCache
from tenure.engine.meter.ledger import ROLES, Ledger, Spent, opened
from tenure.engine.meter.price import DEFAULT, Prices
from tenure.engine.record.entry import Usage

PRICES = Prices(uncached=3e-6, write=3.75e-6, read=3e-7, output=1.5e-5)
TOKENS = st.integers(0, 200_000)
USAGES = st.builds(Usage, uncached=TOKENS, cache_write=TOKENS, cache_read=TOKENS, output=TOKENS)
MODELS = st.sampled_from(["a", "b", "c"])
CALLS = st.builds(
    Spent, model=MODELS, usage=USAGES, usd=st.none() | st.floats(0, 100), at=st.sampled_from(["", "2026-01-01T00:00:00Z"])
)
HELPERS = st.builds(
    Spent, role=st.sampled_from([role for role in ROLES if role != "agent"]), model=MODELS, usage=USAGES, usd=st.floats(0, 100)
)


def said(prompt: int, output: int = 100) -> Spent:
    """A call as a provider reports it, priced."""
    usage = Usage(uncached=prompt, output=output)
    return Spent(model="m", usage=usage, usd=PRICES.cost_usd(usage))


def bill(calls: Sequence[CachedCall]) -> float:
    """What a strict prefix cache makes of calls in USD."""
    cache, usd = SimulatedCache(prices=PRICES), 0.0
    for each in calls:
        charge, cache = cache.send(each)
        usd += charge.usd
    return usd


def ledger_of(events: Sequence[Spent], *, window: int = 0) -> Ledger:
    """Calls of an agent from which nothing ever left, and of helpers, in order. Each call saw 500 tokens more than the one before."""
    ledger, tokens = opened(window), 0
    for event in events:
        if event.role != "agent":
            ledger = ledger.after_helper_call(event)
            continue
        tokens += 500
        ledger = ledger.after_call(event, shown=tokens, whole=tokens, prices=PRICES)
    return ledger


@given(st.lists(CALLS | HELPERS, max_size=12))
def test_the_sums_over_roles_and_models_are_the_whole(events: list[Spent]) -> None:
    total = ledger_of(events).total
    assert total.calls == len(events)
    assert total.unpriced == sum(event.usd is None for event in events)
    assert total.usd == pytest.approx(sum(event.usd or 0.0 for event in events))
    for kind in ("uncached", "cache_write", "cache_read", "output"):
        assert getattr(total.usage, kind) == sum(getattr(event.usage, kind) for event in events)


@given(st.lists(CALLS, max_size=5), st.lists(HELPERS, max_size=6), st.randoms(use_true_random=False))
def test_when_helper_models_were_called_and_in_what_order_does_not_matter(
    calls: list[Spent], helpers: list[Spent], chance: Random
) -> None:
    mixed: list[Spent] = list(calls)
    for each in chance.sample(helpers, len(helpers)):
        mixed.insert(chance.randrange(len(mixed) + 1), each)
    agent = [each for each in mixed if each.role == "agent"]
    assert ledger_of(mixed) == ledger_of([*agent, *helpers])


@given(st.lists(CALLS, max_size=12), st.sampled_from([0, 1_000, 300_000]))
def test_a_session_without_commits_saves_exactly_nothing(calls: list[Spent], window: int) -> None:
    saved = ledger_of(calls, window=window).savings
    assert (saved.net_usd, saved.tokens, saved.breaks_usd) == (0.0, 0, 0.0)
    assert saved.without_usd == saved.with_usd


@given(st.lists(CALLS, max_size=6), st.lists(HELPERS, max_size=4))
def test_what_helper_models_cost_is_taken_off_what_was_saved_but_a_title_is_no_help_to_eviction(
    calls: list[Spent], helpers: list[Spent]
) -> None:
    saved = ledger_of([*calls, *helpers]).savings
    assert saved.net_usd == pytest.approx(-sum(each.usd or 0.0 for each in helpers if each.role != "title"))
    assert saved.helpers_usd == pytest.approx(-saved.net_usd)


def test_accounts_come_by_role_and_model() -> None:
    ledger = ledger_of([Spent(role="digest", model="z"), Spent(model="b"), Spent(role="planner", model="z"), Spent(model="a")])
    assert [(each.role, each.model) for each in ledger.accounts] == [
        ("agent", "a"),
        ("agent", "b"),
        ("planner", "z"),
        ("digest", "z"),
    ]


def test_the_other_side_is_the_bill_of_a_strict_prefix_cache_over_the_whole_record() -> None:
    ledger = opened().after_call(said(10_000), shown=10_000, whole=10_000, prices=PRICES).after_commit(2_000)
    ledger = ledger.after_call(said(6_000), shown=6_000, whole=11_000, prices=PRICES)
    whole = [
        CachedCall(prompt_tokens=10_000, output=100),
        CachedCall(prompt_tokens=11_000, shared_prefix_tokens=10_000, output=100),
    ]
    sent = [CachedCall(prompt_tokens=10_000, output=100), CachedCall(prompt_tokens=6_000, shared_prefix_tokens=2_000, output=100)]
    saved = ledger.savings
    assert saved.without_usd == pytest.approx(bill(whole))
    assert saved.with_usd == pytest.approx(bill(sent))
    assert saved.tokens == 5_000
    assert saved.net_usd == pytest.approx(saved.without_usd - saved.with_usd)


def test_a_commit_that_breaks_the_cache_for_little_costs_more_than_it_saves() -> None:
    ledger = opened().after_call(said(10_000), shown=10_000, whole=10_000, prices=PRICES).after_commit(0)
    saved = ledger.after_call(said(9_900), shown=9_900, whole=10_000, prices=PRICES).savings
    assert saved.net_usd < 0
    assert saved.breaks_usd == pytest.approx(9_900 * (PRICES.write - PRICES.read))


def test_a_commit_that_changed_only_what_was_never_sent_breaks_nothing() -> None:
    ledger = opened().after_call(said(10_000), shown=10_000, whole=10_000, prices=PRICES).after_commit(None).after_commit(10_000)
    saved = ledger.after_call(said(10_500), shown=10_500, whole=12_000, prices=PRICES).savings
    assert saved.breaks_usd == 0
    assert saved.net_usd == pytest.approx(1_500 * PRICES.write)


def test_the_head_stands_in_front_of_what_a_commit_changed() -> None:
    """The provider counts 4,000 tokens of system prompt and tools that are not in the view."""
    ledger = opened().after_call(said(14_000), shown=10_000, whole=10_000, prices=PRICES).after_commit(0)
    ledger = ledger.after_call(said(9_000), shown=5_000, whole=10_000, prices=PRICES)
    assert ledger.compared.sent.usage.cache_read == 4_000


def fetched(*, after_commit: bool) -> Ledger:
    """Two calls, of which the first fetches 3,000 tokens that had left, or had never left."""
    ledger = opened().after_call(said(8_000), shown=8_000, whole=8_000, prices=PRICES)
    if after_commit:
        ledger = ledger.after_commit(8_000)
    ledger = (
        ledger.after_call(said(8_000), shown=8_000, whole=8_000, prices=PRICES, fetching=True)
        .after_fetching(50)
        .after_answer(3_000)
    )
    return ledger.after_call(said(11_050), shown=11_050, whole=11_050, prices=PRICES)


def test_what_was_fetched_again_and_the_call_for_it_are_costs_of_eviction() -> None:
    ledger = fetched(after_commit=True)
    extra = PRICES.cost_usd(Usage(cache_read=8_000, output=100)) + 3_050 * PRICES.write
    assert ledger.savings.net_usd == pytest.approx(-extra)
    assert (ledger.recalls.answers, ledger.recalls.tokens, ledger.recalls.calls.calls) == (1, 3_000, 1)
    assert ledger.recalls.usd == pytest.approx(PRICES.cost_usd(said(8_000).usage) + 3_000 * PRICES.write, rel=0.01)


def test_a_recall_before_anything_left_is_an_ordinary_call() -> None:
    ledger = fetched(after_commit=False)
    assert ledger.savings.net_usd == 0
    assert ledger.recalls.answers == 1


def test_calls_that_would_not_have_fitted_are_counted_and_not_compared() -> None:
    ledger, whole = opened(10_000), 0
    for n in range(6):
        whole += 3_000
        ledger = (ledger.after_commit(0) if n else ledger).after_call(said(3_000), shown=3_000, whole=whole, prices=PRICES)
    saved = ledger.savings
    assert (saved.calls, saved.beyond, saved.peak, saved.window) == (6, 3, 18_000, 10_000)
    fitting = [CachedCall(prompt_tokens=3_000 * n, shared_prefix_tokens=3_000 * (n - 1), output=100) for n in (1, 2, 3)]
    assert saved.without_usd == pytest.approx(bill(fitting))
    assert saved.with_usd == pytest.approx(3 * (3_000 * PRICES.write + 100 * PRICES.output))


def test_another_model_has_nothing_cached_on_either_side() -> None:
    other = Spent(model="other", usage=Usage(cache_write=10_000))
    ledger = opened().after_call(said(10_000), shown=10_000, whole=10_000, prices=PRICES)
    ledger = ledger.after_call(other, shown=10_000, whole=10_000, prices=DEFAULT)
    assert ledger.compared.sent.usage.cache_read == 0
    assert ledger.savings.net_usd == 0
    assert not ledger.savings.is_priced


def test_an_idle_hour_empties_the_cache_on_both_sides() -> None:
    ledger = opened()
    for hour in ("09", "10"):
        spent = Spent(model="m", usage=Usage(cache_write=10_000), at=f"2026-01-01T{hour}:00:00Z")
        ledger = ledger.after_call(spent, shown=10_000, whole=10_000, prices=PRICES)
    assert ledger.compared.sent.usage.cache_read == ledger.compared.whole.usage.cache_read == 0


@pytest.mark.parametrize("usd", [float("nan"), float("inf")])
def test_money_that_is_no_amount_spoils_no_sum(usd: float) -> None:
    ledger = ledger_of([said(1_000), Spent(role="planner", usd=usd)])
    assert ledger.total.usd == pytest.approx(said(1_000).usd or 0.0)


def test_after_a_commit_the_providers_own_count_says_what_stood_and_what_left() -> None:
    """What left weighs half as many of the provider's tokens as it counted, and a marker left more uncached than was changed."""
    usage = Usage(cache_write=5_000, cache_read=1_500, output=100)
    ledger = opened().after_call(said(10_000), shown=10_000, whole=10_000, prices=PRICES).after_commit(2_000)
    ledger = ledger.after_call(Spent(model="m", usage=usage), shown=5_000, whole=12_000, prices=PRICES)
    assert ledger.compared.sent.usage.cache_read == 1_500
    assert ledger.compared.whole.prompt == 11_400  # what was there, and 2,000 more at the ratio so far
    ledger = ledger.after_call(
        Spent(model="m", usage=Usage(cache_read=6_500, cache_write=600)), shown=6_000, whole=13_000, prices=PRICES
    )
    assert ledger.compared.whole.prompt == 11_400 + 600, "the rest grows as the prompt does"


@given(st.lists(TOKENS, min_size=2, max_size=8))
def test_whatever_is_reported_the_whole_record_stays_within_twice_what_was_counted(prompts: list[int]) -> None:
    ledger = opened()
    for n, prompt in enumerate(prompts):
        ledger = ledger.after_call(said(prompt), shown=4_000, whole=4_000 + 1_000 * n, prices=PRICES).after_commit(1_000)
        away, ratio = ledger.compared.away, ledger.compared.ratio.value
        assert ratio * 1_000 * n // 2 - 1 <= away <= 2 * ratio * 1_000 * n + 2
