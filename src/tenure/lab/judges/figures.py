"""What many verdicts come to: the queries of figures.sql as values.

Self-GC paper: the no-impact rate with its Wilson interval (Metrics), calibration by an A/B judge on disagreements (Main Results). The paper does
not say how a tie is counted, and its calibrated 87.46 % is no whole number of 332 sessions; here a tie counts half for each side. Agreement with
the mechanical detector, sensitivity on controls, bias by place and the tests are ours.
"""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal

from msgspec import Struct, convert

from tenure.lab.intervals import Share, sign_test
from tenure.lab.judges.cases import CaseFacts
from tenure.lab.judges.running import NOT_ASKED, JudgeCost, Outcome, PairOutcome, PlanOutcome


class PolicyRow(Struct, frozen=True, kw_only=True):
    """One policy over all its cases."""

    policy: str
    cases: int
    pruned: float  # mean share of the view
    no_impact: Share  # of those with a verdict
    uncertain: int
    failed: int
    not_asked: int
    categories: Mapping[str, int]  # of the worst loss, where there was an impact
    detector: Share  # no-impact by the mechanical detector, of the same cases, as far as the question shows


class Agreement(Struct, frozen=True, kw_only=True):
    """Judge against detector on the plans: how many have an impact by both, by one of them, by neither."""

    both: int
    judge_only: int
    detector_only: int
    neither: int

    @property
    def cases(self) -> int:
        """All that have a verdict."""
        return self.both + self.judge_only + self.detector_only + self.neither

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: agreement beyond what the two shares alone would bring; None where chance leaves no room for any."""
        if not self.cases:
            return None
        judge, detector = (self.both + self.judge_only) / self.cases, (self.both + self.detector_only) / self.cases
        chance = judge * detector + (1 - judge) * (1 - detector)
        return None if chance == 1 else ((self.both + self.neither) / self.cases - chance) / (1 - chance)


class Sensitivity(Struct, frozen=True, kw_only=True):
    """The judge on cases whose right answer is known."""

    caught: Share  # true positives: of `needed`, those judged to have an impact
    alarmed: Share  # false positives: of `unused`, those judged to have one
    set_aside: int  # `needed` that the question has no room to show
    preferred: Share  # of pairs put to the A/B judge, those in which it prefers the one that is right
    reversed: int  # those in which it prefers the wrong one


class Bias(Struct, frozen=True, kw_only=True):
    """Whether the A/B judge favours a place."""

    pairs: int
    flipped: int  # the same letter was better in both orders
    unsteady: int  # a tie in one order and none in the other
    first: Share  # of replies that prefer anything, those that prefer A
    p: float  # that so uneven a split comes by chance


class Against(Struct, frozen=True, kw_only=True):
    """Two policies on the cuts at which both have a verdict."""

    first: str
    second: str
    cuts: int
    only_first: int  # no impact by the first alone
    only_second: int
    p: float  # McNemar's exact test of these
    preferred: int  # by the A/B judge, on disagreements: the first
    ties: int
    rejected: int  # it prefers the second
    not_compared: int
    preferred_p: float
    calibrated: tuple[Share, Share]


class Disagreement(Struct, frozen=True, kw_only=True):
    """A case on which judge and detector differ, for somebody to look at."""

    facts: CaseFacts
    by: Literal["judge", "detector"]  # who alone says there was an impact
    what: str  # is said to be missing
    object: str
    category: str
    used_by: str
    line: int  # of the step that uses it, in its file; 0 where it is not known
    summary: str


class Figures(Struct, frozen=True, kw_only=True, tag="summary", tag_field="type"):
    """All figures of one run."""

    rows: tuple[PolicyRow, ...]
    agreement: Agreement
    sensitivity: Sensitivity
    bias: Bias
    against: Against | None
    disagreements: tuple[Disagreement, ...]
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
