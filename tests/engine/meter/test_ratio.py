import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.ratio import WINDOW, Ratio, is_credible

GROWTHS = st.lists(st.integers(2_000, 30_000), min_size=6, max_size=60)  # enough to be believed


def reports(ratio: float, head: int, growths: list[int], start: int = 0) -> list[tuple[int, int]]:
    """Calls of a growing view: what the provider says, and what was counted."""
    counted, calls = start, []
    for growth in growths:
        counted += growth
        calls.append((round(head + ratio * counted), counted))
    return calls


def learned(calls: list[tuple[int, int]], ratio: Ratio | None = None) -> Ratio:
    ratio = ratio or Ratio()
    for reported, counted in calls:
        ratio = ratio.learn(reported, counted)
    return ratio


@given(true=st.floats(0.5, 4), head=st.integers(0, 60_000), growths=GROWTHS)
def test_ratio_and_head_are_learned_when_the_head_is_unknown(true: float, head: int, growths: list[int]) -> None:
    ratio = learned(reports(true, head, growths))
    assert abs(ratio.value - true) < 0.02 * true + 1e-9
    assert abs(ratio.head - head) <= 0.02 * true * sum(growths) + 2


@given(true=st.floats(0.5, 4), growths=GROWTHS)
def test_a_counted_head_teaches_from_the_first_call(true: float, growths: list[int]) -> None:
    ratio = learned(reports(true, 0, growths[:1]), Ratio(head_counted=True))
    assert abs(ratio.value - true) < 0.02 * true
    assert ratio.head == 0


@given(true=st.floats(0.5, 4), head=st.integers(0, 60_000), growths=GROWTHS)
def test_the_newest_report_is_reproduced(true: float, head: int, growths: list[int]) -> None:
    calls = reports(true, head, growths)
    assert abs(learned(calls).provider_tokens(calls[-1][1]) - calls[-1][0]) <= 1


def test_the_first_call_of_a_long_session_sizes_the_head_only() -> None:
    ratio = Ratio().learn(130_000, 80_000)
    assert (ratio.value, ratio.head) == (1.0, 50_000)


def test_a_tool_list_that_grows_once_does_not_poison_the_ratio() -> None:
    calls = reports(1.3, 5_000, [2_000] * 10)
    grown = [(reported + 20_000, counted) for reported, counted in reports(1.3, 5_000, [2_000] * 3, start=20_000)]
    ratio = learned(calls + grown)
    assert abs(ratio.value - 1.3) < 0.01
    assert abs(ratio.head - 25_000) < 100


def test_an_eviction_speaks_for_the_ratio_too() -> None:
    assert learned([(100_000, 60_000), (50_000, 35_000)]).value == 2.0


def test_a_ratio_is_not_capped() -> None:
    assert abs(learned(reports(3.7, 0, [2_000] * 5)).value - 3.7) < 0.01


def test_a_few_small_growths_are_not_believed_yet() -> None:
    """A log of Gemini CLI holds thoughts that are never sent again: its first calls would teach a third of the truth."""
    assert learned([(7_382, 599), (7_577, 1_210), (7_785, 1_643), (7_862, 1_786)]).value == 1.0


def test_reports_that_say_nothing_change_nothing() -> None:
    ratio = learned(reports(1.3, 0, [1_000] * 5))
    assert ratio.learn(0, 9_000) is ratio
    assert ratio.learn(ratio.reported + 3, ratio.counted + 1).value == ratio.value  # too small to count


def test_what_is_remembered_is_bounded() -> None:
    assert len(learned(reports(1.3, 0, [1_000] * 200)).growths) == WINDOW


@pytest.mark.parametrize("reported", [1, 10, 1_000, 5_000, 10**6, 10**9])
def test_reports_that_cannot_be_true_do_not_move_the_ratio(reported: int) -> None:
    counted = [20_000 + 1_000 * n for n in range(40)]
    alone = learned([(reported, each) for each in counted], Ratio(head_counted=True))
    assert alone.value == 1.0
    among = learned([(round(1.3 * each), each) for each in counted] + [(reported, 60_000)] * 3, Ratio(head_counted=True))
    assert among.value == pytest.approx(1.3, rel=0.01)


@given(growths=st.lists(st.integers(200, 3_000), min_size=10, max_size=60))
def test_a_server_that_reports_only_what_is_new_teaches_nothing_once_less_than_half_is_new(growths: list[int]) -> None:
    ratio, counted = Ratio(head_counted=True), 5_000
    for growth in growths:
        counted += growth
        ratio = ratio.learn(growth, counted)
    assert ratio.value == 1.0


def test_a_report_is_credible_that_a_tokenizer_or_an_unknown_head_can_explain() -> None:
    window = 100_000
    assert is_credible(500, 1_000, window)
    assert is_credible(8_000, 1_000, window)
    assert is_credible(30_000, 1_000, window)  # a head that the host does not know of
    assert is_credible(150_000, 100_000, window)
    assert not is_credible(499, 1_000, window)
    assert not is_credible(10, 27_000, window)
    assert not is_credible(10**9, 27_000, window)
