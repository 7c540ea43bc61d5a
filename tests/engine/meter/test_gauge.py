import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.gauge import Gauge, Reported, Severity, gauge


@pytest.mark.parametrize(
    ("tokens", "severity"),
    [
        (0, "ok"),
        (69_499, "ok"),
        (69_500, "warn"),
        (70_000, "warn"),
        (89_499, "warn"),
        (89_500, "critical"),
        (120_000, "critical"),
    ],
)
def test_severity_rises_at_what_is_written_as_70_and_90_percent(tokens: int, severity: Severity) -> None:
    assert Gauge(tokens=tokens, limit=100_000).severity == severity


def test_of_no_limit_anything_is_too_much() -> None:
    assert Gauge(tokens=1, limit=0).severity == "critical"
    assert Gauge(tokens=0, limit=0).severity == "ok"


def test_before_any_report_the_gauge_is_an_estimate_of_view_and_head() -> None:
    assert gauge(None, counted=900, head=100, ratio=1.5, limit=2_000) == Gauge(tokens=1_500, limit=2_000, estimated=True)
    assert gauge(None, counted=900, head=None, ratio=1.0, limit=2_000).tokens == 900


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0.5, 2))
def test_a_report_is_shown_as_it_is_until_something_comes(prompt: int, counted: int, ratio: float) -> None:
    reported = Reported(prompt=prompt, counted=counted)
    assert gauge(reported, counted=counted, head=7, ratio=ratio, limit=10) == Gauge(tokens=prompt, limit=10, estimated=False)


def test_what_came_or_left_since_the_report_is_added_to_it() -> None:
    reported = Reported(prompt=10_000, counted=7_000, head=500)
    assert reported.now(7_400, 500, 1.5) == 10_600
    assert reported.now(7_400, 900, 1.5) == 11_200
    assert reported.now(7_400, None, 1.5) == 10_600
    assert reported.now(0, 0, 2.0) == 0


def test_after_a_commit_the_gauge_is_an_estimate_until_the_next_report() -> None:
    stale = Reported(prompt=10_000, counted=7_000, is_stale=True)
    assert gauge(stale, counted=5_000, head=None, ratio=1.0, limit=9_000) == Gauge(tokens=8_000, limit=9_000, estimated=True)
