import pytest

from tenure.engine.lifecycle.automatic import Absolute, Automatic, OfWindow, Threshold, is_reached, threshold_of
from tenure.errors import InputError


def test_a_handoff_is_due_at_the_threshold_once_a_provider_said_so() -> None:
    automatic = Automatic()
    assert not automatic.handoff_is_due(100_000, 90_000)
    assert not automatic.after_report(84_999).handoff_is_due(100_000, 90_000)
    assert automatic.after_report(85_000).handoff_is_due(100_000, 90_000)
    assert Automatic(threshold=Absolute(tokens=60_000)).after_report(60_000).handoff_is_due(0, 90_000)


@pytest.mark.parametrize(
    ("prompt", "window", "threshold", "is_due"),
    [
        (850, 1_000, OfWindow(), True),
        (849, 1_000, OfWindow(), False),
        (850, 0, OfWindow(), False),  # the window is not known
        (850, 1_000, OfWindow(percent=0), False),
        (850, 1_000, OfWindow(percent=-1), False),
        (850, 1_000, OfWindow(percent=float("nan")), False),
        (80_000, 0, Absolute(tokens=80_000), True),
        (79_999, 100_000, Absolute(tokens=80_000), False),
        (90_000, 100_000, Absolute(tokens=0), False),
        (0, 1_000, OfWindow(), False),
    ],
)
def test_a_handoff_is_due_from_85_percent_of_the_window_or_an_absolute_number_on(
    prompt: int, window: int, threshold: Threshold, is_due: bool
) -> None:
    assert is_reached(threshold, prompt, window) == is_due


@pytest.mark.parametrize("threshold", [OfWindow(percent=0), Absolute(tokens=0)])
def test_a_threshold_of_nothing_is_off(threshold: OfWindow | Absolute) -> None:
    assert not Automatic(threshold=threshold).after_report(10**6).handoff_is_due(100_000, 90_000)


def test_one_report_makes_one_handoff_and_queued_messages_none() -> None:
    full = Automatic().after_report(90_000)
    assert full.handoff_is_due(100_000, 90_000)
    assert not full.handoff_is_due(100_000, 90_000, queued=True)
    assert not full.after_handoff(80_000).handoff_is_due(100_000, 90_000)
    assert not full.after_handoff(80_000).after_report(0).handoff_is_due(100_000, 90_000)
    assert full.after_handoff(80_000).after_report(90_001).handoff_is_due(100_000, 90_000)


def test_a_planner_is_asked_from_a_share_of_the_limit_on_and_again_when_enough_has_come() -> None:
    automatic = Automatic()
    assert not automatic.plan_is_due(29_999, 100_000, 29_999)
    assert automatic.plan_is_due(30_000, 100_000, 30_000)
    asked = automatic.after_plan(30_000)
    assert not asked.plan_is_due(39_000, 100_000, 39_999)
    assert asked.plan_is_due(39_000, 100_000, 40_000)
    assert not automatic.plan_is_due(30_000, 0, 30_000)


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("85%", OfWindow(percent=85.0)),
        ("62.5 %", OfWindow(percent=62.5)),
        ("120k", Absolute(tokens=120_000)),
        (90_000, Absolute(tokens=90_000)),
        (0, Absolute(tokens=0)),
        ("0%", Absolute(tokens=0)),
    ],
)
def test_a_threshold_is_written_as_a_share_or_as_tokens(text: str | int, threshold: OfWindow | Absolute) -> None:
    assert threshold_of(text) == threshold


@pytest.mark.parametrize("text", ["", "full", "120%", "-1", "1e9999"])
def test_a_threshold_that_is_nonsense_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        threshold_of(text)
