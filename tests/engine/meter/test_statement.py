import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.ledger import ROLES, Ledger, Spent, opened
from tenure.engine.meter.price import Prices
from tenure.engine.meter.statement import line, notes, table
from tenure.engine.record.entry import Usage

PRICES = Prices(uncached=3e-6, write=3.75e-6, read=3e-7, output=1.5e-5)


def evicted(*, window: int = 0, kept: int = 2_000) -> Ledger:
    """A call of 20,000 tokens, a commit, a call of 5,000 where 24,000 would have been."""
    first, second = Usage(cache_write=20_000, output=300), Usage(cache_write=3_000, cache_read=2_000, output=700)
    ledger = opened(window)
    ledger = ledger.after_call(Spent(model="m", usage=first, usd=0.08), shown=20_000, whole=20_000, prices=PRICES).after_commit(
        kept
    )
    return ledger.after_call(Spent(model="m", usage=second, usd=0.02), shown=5_000, whole=24_000, prices=PRICES)


def test_a_ledger_is_one_line_for_a_person() -> None:
    ledger = evicted().after_helper_call(Spent(role="planner", model="p", usage=Usage(uncached=900, output=9), usd=0.001))
    assert line(ledger) == (
        "3 calls, 25k tokens in (8 % from the cache), 1.0k out, $0.101, $0.001 of it for 1 call of helper models; "
        "eviction saved $0.008 of a simulated $0.111, net"
    )


def test_a_loss_and_a_window_that_was_too_small_are_said() -> None:
    assert "; 1 of 2 calls would not have fitted into 22k without it" in line(evicted(window=22_000))
    assert "no call would have fitted into 10k" in line(evicted(window=10_000))
    lost = evicted().after_helper_call(Spent(role="judge", model="j", usd=3.0))
    assert "eviction cost $2.99 more than the simulated $0.111 without it" in line(lost)


def test_a_ledger_with_nothing_in_it_says_so() -> None:
    assert line(opened()) == "no call has reported what it used"
    assert table(opened()).split() == ["role", "model", "calls", "uncached", "write", "read", "output", "USD"]
    assert notes(opened()) == ()


def test_what_has_no_price_is_said() -> None:
    ledger = evicted().after_helper_call(Spent(role="digest", model="local", usage=Usage(uncached=50)))
    assert ", at least $0.100, " in line(ledger)
    assert notes(ledger)[0].text == "1 call of unknown price, not in the USD"
    assert table(ledger).splitlines()[2].endswith("?")


def test_the_table_has_a_line_for_each_account_and_one_for_all() -> None:
    ledger = evicted().after_helper_call(
        Spent(role="planner", model="a-model-with-a-name-that-is-long", usage=Usage(uncached=900), usd=2.0)
    )
    assert table(ledger, 64).splitlines() == [
        "role     model      calls  uncached  write  read  output     USD",
        "agent    m              2         0    23k  2.0k    1.0k  $0.100",
        "planner  a-model-…      1       900      0     0       0   $2.00",
        "all                     3       900    23k  2.0k    1.0k   $2.10",
    ]


@given(
    st.lists(
        st.builds(
            Spent,
            role=st.sampled_from(ROLES[1:]),
            model=st.text(max_size=60),
            usage=st.builds(Usage, uncached=st.integers(0, 10**12), output=st.integers(0, 10**12)),
            usd=st.none() | st.floats(0, 1e6),
        ),
        max_size=5,
    ),
    st.integers(75, 160),
)
def test_every_line_of_a_table_fits_and_nothing_in_it_obeys_a_terminal(calls: list[Spent], width: int) -> None:
    ledger = opened()
    for spent in calls:
        ledger = ledger.after_helper_call(spent)
    rows = table(ledger, width).split("\n")
    assert len({len(row) for row in rows}) == 1
    assert len(rows[0]) <= width
    assert all(row.isprintable() for row in rows)


@pytest.mark.parametrize(
    ("window", "planned", "labels"),
    [(0, 0.0, ["saved"]), (0, 3.0, ["lost"]), (22_000, 0.0, ["saved", "too large"]), (10_000, 0.0, ["too large"])],
)
def test_notes_say_how_what_was_saved_or_lost_was_found(window: int, planned: float, labels: list[str]) -> None:
    ledger = evicted(window=window)
    ledger = ledger.after_helper_call(Spent(role="planner", usd=planned)) if planned else ledger
    assert [note.label for note in notes(ledger)] == labels
