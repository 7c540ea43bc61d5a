"""Claims on made-up rows."""

from importlib.resources import files
from typing import Any

import duckdb
import pytest
from msgspec import json

WINDOW = 267_000
SQL = files("tenure.lab.evidence").joinpath("claims.sql").read_text(encoding="utf-8")
PART = "struct(name varchar, calls bigint, record_tokens bigint, peak_view_tokens bigint, usd double, missed bigint, calls_missing bigint)[]"
COLUMNS = f"protocol varchar, policy varchar, variant varchar, ceiling bigint, first bigint, usd double, usd_again double, calls_missing bigint, parts {PART}"
SAVING, FREE, TIMES, JUMP, COMPACTION, ISOLATED = (
    "20-70 % cheaper than uncapped",
    "20-70 % cheaper than no limit at all",
    "3 times cheaper at 50k",
    "a jump above 120k",
    "23 % cheaper than compaction",
    "as cheap as isolated sessions",
)


def row(
    usd: float,
    ceiling: int | None = None,
    policy: str = "cwl",
    protocol: str = "accumulating",
    variant: str = "",
    missing: int = 0,
) -> tuple[object, ...]:
    part = {"name": "one", "calls": 9, "record_tokens": 9, "peak_view_tokens": 9, "usd": usd, "missed": 0, "calls_missing": 0}
    return protocol, policy if ceiling is not None else "none", variant, ceiling, usd, usd, missing, [part]


def claims_of(*rows: tuple[object, ...]) -> list[dict[str, Any]]:
    with duckdb.connect() as database:
        database.execute(f"create table sweep ({COLUMNS})")
        for n, each in enumerate(rows):
            database.execute("insert into sweep values (?, ?, ?, ?, ?, ?, ?, ?, ?)", [*each[:4], n, *each[4:]])
        database.execute(SQL)
        return [json.decode(line) for (line,) in database.execute("select line from claims order by n").fetchall()]


def one(key: str, *rows: tuple[object, ...], protocol: str = "accumulating") -> dict[str, Any]:
    (found,) = (each for each in claims_of(*rows) if each["claim"] == key and each["protocol"] == protocol)
    return found


@pytest.mark.parametrize(
    ("capped", "free", "verdict"),
    [
        (50, 100, "holds"),
        (20, 100, "holds"),
        (79, 100, "holds"),
        (95, 100, "partly"),
        (100, 100, "does not hold"),
        (130, 100, "does not hold"),
    ],
)
def test_a_saving_is_held_against_what_fills_the_window(capped: float, free: float, verdict: str) -> None:
    found = one(SAVING, row(capped, 80_000), row(free, WINDOW), row(500))
    assert found["verdict"] == verdict
    assert found["figures"][0]["value"] == pytest.approx(1 - capped / free)
    assert one(FREE, row(capped, 80_000), row(free))["verdict"] == verdict


def test_a_saving_beyond_the_claim_says_so() -> None:
    found = one(SAVING, row(10, 80_000), row(100, WINDOW))
    assert found["verdict"] == "holds"
    assert "more is saved" in found["because"]


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(10, 30, "holds"), (10, 25, "holds"), (10, 20, "partly"), (10, 10.5, "does not hold")]
)
def test_three_times_is_held_against_120k_and_above(low: float, high: float, verdict: str) -> None:
    assert one(TIMES, row(low, 50_000), row(high, 120_000))["verdict"] == verdict
    assert one(TIMES, row(low, 50_000), row(low, 120_000), row(high, WINDOW))["verdict"] == verdict


def test_three_times_less_than_a_window_says_how_little_it_is_against_120k() -> None:
    found = one(TIMES, row(10, 50_000), row(18, 120_000), row(33, WINDOW))
    assert (found["verdict"], found["because"]) == ("holds", "1.8 times less than at 120k, 3.3 times less than at 267k")


def test_calls_that_miss_stand_beside_the_saving() -> None:
    found = one(TIMES, row(10, 50_000, missing=30), row(30, 120_000, missing=10))
    assert found["figures"][-1]["value"] == 3.0


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [
        ((10, 11, 20), "holds"),  # flat below, steep above
        ((10, 15, 15 * 160 / 120), "does not hold"),  # with the ceiling, on both sides
        ((10, 12, 14), "partly"),
        ((10, 12, 12), "does not hold"),
        ((10, 10, 12), "holds"),
    ],
)
def test_a_jump_is_cost_that_grows_faster_above_than_below(costs: tuple[float, float, float], verdict: str) -> None:
    rows = [row(usd, ceiling) for usd, ceiling in zip(costs, (80_000, 120_000, 160_000), strict=True)]
    assert one(JUMP, *rows)["verdict"] == verdict


@pytest.mark.parametrize(("usd", "verdict"), [(77, "holds"), (90, "partly"), (101, "does not hold")])
def test_the_compaction_with_the_highest_trigger_is_the_harnesss_own(usd: float, verdict: str) -> None:
    summaries = (row(100, 167_000, "compaction", variant="brief"), row(50, 80_000, "compaction", variant="brief"))
    found = one(COMPACTION, row(usd, 80_000), *summaries)
    assert found["verdict"] == verdict
    assert len(found["figures"]) == 2


@pytest.mark.parametrize(("usd", "verdict"), [(105, "holds"), (50, "holds"), (115, "partly"), (150, "does not hold")])
def test_one_session_is_held_against_the_sum_of_isolated_ones(usd: float, verdict: str) -> None:
    assert one(ISOLATED, row(usd, 80_000), row(100, protocol="isolated"), row(900))["verdict"] == verdict


def test_a_claim_without_its_rows_cannot_be_tested_and_says_what_it_needs() -> None:
    found = {each["claim"]: each for each in claims_of(row(1, 60_000))}
    assert {each["verdict"] for each in found.values()} == {"cannot be tested"}
    assert found[TIMES]["because"] == "needs rows at 50k, 120k"


def test_sessions_that_cost_nothing_prove_nothing() -> None:
    rows = [row(0, ceiling) for ceiling in (50_000, 80_000, 120_000, 160_000, WINDOW)]
    assert {each["verdict"] for each in claims_of(*rows, row(0))} <= {"does not hold", "cannot be tested"}


def test_claims_are_tested_for_each_policy_and_protocol() -> None:
    rows = [row(1, 80_000, name, protocol) for name in ("a", "b") for protocol in ("isolated", "accumulating")]
    found = claims_of(*rows, row(2, 167_000, "compaction", variant="brief"))
    assert {(each["policy"], each["protocol"]) for each in found} == {
        (name, protocol) for name in ("a", "b") for protocol in ("isolated", "accumulating")
    }
    assert all(each["origin"] and each["says"] for each in found)
