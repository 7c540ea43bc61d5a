"""What many verdicts come to: the queries of figures.sql as values.

Self-GC paper: the no-impact rate with its Wilson interval (Metrics), calibration by an A/B judge on disagreements (Main Results). The paper does
not say how a tie is counted, and its calibrated 87.46 % is no whole number of 332 sessions; here a tie counts half for each side. Agreement with
the mechanical detector, sensitivity on controls, bias by place and the tests are ours.
"""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from msgspec import Struct, convert

from tenure.lab.intervals import sign_test
from tenure.lab.judges.running import NOT_ASKED, JudgeCost, Outcome, PairOutcome, PlanOutcome

Row = dict[str, Any]  # of a view of figures.sql, which says what its columns are; a share is `{hits, of}`


class Figures(Struct, frozen=True, kw_only=True, tag="summary", tag_field="type"):
    """All figures of one run."""

    rows: tuple[Row, ...]  # by policy
    agreement: Row
    sensitivity: Row
    bias: Row
    against: Row | None
    disagreements: tuple[Row, ...]
    spent: JudgeCost  # now
    remembered: JudgeCost  # by earlier runs, for verdicts that are used again
    failures: Mapping[str, int]  # by kind and reason
    repaired: int
    hidden: int  # needs that the detector calls lost and no question shows


def figures(outcomes: Iterable[Outcome], against: tuple[str, str] | None = None) -> Figures:
    """The figures of a run's outcomes. O(outcomes)."""
    from tenure.lab.query import Events  # needs DuckDB, which other commands do without

    with Events.of(outcomes) as events:
        events.view("judged", PlanOutcome)
        events.view("compared", PairOutcome)
        events.script(f"set variable not_asked = '{NOT_ASKED}'")
        events.script(files("tenure.lab.judges").joinpath("figures.sql").read_text(encoding="utf-8"))

        def one(sql: str, **values: object) -> dict[str, Any]:
            return events.ask(sql, **values).dicts[0]

        bias = one("from bias")
        pair = one("from against($a, $b)", a=against[0], b=against[1]) if against is not None else None
        if pair is not None:
            pair["p"] = sign_test(pair["only_first"], pair["only_second"])
            pair["preferred_p"] = sign_test(pair["preferred"], pair["rejected"])
        return convert(
            {
                "type": "summary",
                "rows": events.ask("select * exclude (place) from policies order by place").dicts,
                "agreement": one("from agreement"),
                "sensitivity": one("from sensitivity, controls"),
                "bias": bias | {"p": sign_test(bias["first"]["hits"], bias["first"]["of"] - bias["first"]["hits"])},
                "against": pair,
                "disagreements": events.ask("select * exclude (n) from disagreements order by n").dicts,
                "spent": one("from sums('spent')"),
                "remembered": one("from sums('earlier')"),
                "failures": dict(events.ask("from failures").rows),
                **one("from totals"),
            },
            Figures,
        )
