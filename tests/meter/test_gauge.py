import pytest

from tenure.meter.gauge import Gauge, Severity


@pytest.mark.parametrize(
    ("tokens", "severity"),
    [(0, "ok"), (69_999, "ok"), (70_000, "warn"), (89_999, "warn"), (90_000, "critical"), (120_000, "critical")],
)
def test_severity_rises_at_70_and_90_percent(tokens: int, severity: Severity) -> None:
    assert Gauge(tokens=tokens, limit=100_000).severity == severity


def test_of_no_limit_anything_is_too_much() -> None:
    assert Gauge(tokens=1, limit=0).severity == "critical"
    assert Gauge(tokens=0, limit=0).severity == "ok"
