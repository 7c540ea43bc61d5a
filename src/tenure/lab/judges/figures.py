"""What many verdicts come to.

Self-GC paper: the no-impact rate with its Wilson interval (Metrics), calibration by an A/B judge on disagreements (Main Results). The paper does
not say how a tie is counted, and its calibrated 87.46 % is no whole number of 332 sessions; here a tie counts half for each side. Agreement with
the mechanical detector, sensitivity on controls, bias by place and the tests are ours.
"""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, convert

from tenure.lab.intervals import Share, sign_test
from tenure.lab.judges.asking import Spent
from tenure.lab.judges.cases import Facts
from tenure.lab.judges.running import NOT_ASKED, Compared, Judged, Outcome

if TYPE_CHECKING:
    from tenure.lab.query import Events


class Row(Struct, frozen=True, kw_only=True):
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

    facts: Facts
    by: Literal["judge", "detector"]  # who alone says there was an impact
    what: str  # is said to be missing
    object: str
    category: str
    used_by: str
    line: int  # of the step that uses it, in its file; 0 where it is not known
    summary: str


class Figures(Struct, frozen=True, kw_only=True, tag="summary", tag_field="type"):
    """All figures of one run."""

    rows: tuple[Row, ...]
    agreement: Agreement
    sensitivity: Sensitivity
    bias: Bias
    against: Against | None
    disagreements: tuple[Disagreement, ...]
    spent: Spent  # now
    remembered: Spent  # by earlier runs, for verdicts that are used again
    failures: Mapping[str, int]  # by kind and reason
    repaired: int
    hidden: int  # needs that the detector calls lost and no question shows


def figures(outcomes: Iterable[Outcome], against: tuple[str, str] | None = None) -> Figures:
    """The figures of a run's outcomes, by the queries of figures.sql. O(outcomes)."""
    from tenure.lab.query import Events  # needs DuckDB, which other commands do without

    held = list(outcomes)
    plans = [each for each in held if isinstance(each, Judged) and not each.facts.control]
    with Events.of(held) as events:
        events.view("judged", Judged)
        events.view("compared", Compared)
        events.script(f"set variable not_asked = '{NOT_ASKED}'")
        events.script(files("tenure.lab.judges").joinpath("figures.sql").read_text(encoding="utf-8"))

        def one(sql: str, **values: object) -> dict[str, Any]:
            return events.ask(sql, **values).dicts[0]

        return Figures(
            rows=_rows(events),
            agreement=Agreement(**one("from agreement")),
            sensitivity=_sensitivity(one("from sensitivity"), one("from controls")),
            bias=_bias(one("from bias"), one("from letters")),
            against=_against(one("from against($a, $b)", a=against[0], b=against[1]), against) if against is not None else None,
            disagreements=tuple(found for each in plans if (found := _disagreement(each)) is not None),
            spent=convert(one("from sums('spent')"), Spent),
            remembered=convert(one("from sums('earlier')"), Spent),
            failures=dict(events.ask("from failures").rows),
            repaired=one("select count(*) as n from judged where repaired")["n"],
            hidden=one("select coalesce(sum(hidden), 0)::bigint as n from judged_plans")["n"],
        )


def _rows(events: "Events") -> tuple[Row, ...]:
    kinds: dict[str, dict[str, int]] = {}
    for policy, category, count in events.ask("from categories").rows:
        kinds.setdefault(policy, {})[category] = count
    return tuple(
        Row(
            policy=row["policy"],
            cases=row["cases"],
            pruned=sum(row["pruned"]) / row["cases"],
            no_impact=Share(hits=row["valid"], of=row["judged"]),
            uncertain=row["uncertain"],
            failed=row["cases"] - row["judged"] - row["not_asked"],
            not_asked=row["not_asked"],
            categories=kinds.get(row["policy"], {}),
            detector=Share(hits=row["detector"], of=row["judged"]),
        )
        for row in events.ask("from rows_").dicts
    )


def _sensitivity(plans: Mapping[str, int], pairs: Mapping[str, int]) -> Sensitivity:
    return Sensitivity(
        caught=Share(hits=plans["caught"], of=plans["shown"]),
        alarmed=Share(hits=plans["alarmed"], of=plans["unused"]),
        set_aside=plans["set_aside"],
        preferred=Share(hits=pairs["preferred"], of=pairs["pairs"]),
        reversed=pairs["reversed"],
    )


def _bias(pairs: Mapping[str, int], letters: Mapping[str, int]) -> Bias:
    a, b = letters["a"], letters["b"]
    return Bias(**pairs, first=Share(hits=a, of=a + b), p=sign_test(a, b))


def _against(found: dict[str, Any], names: tuple[str, str]) -> Against:
    calibrated = tuple(Share(hits=found.pop(field), of=found["cuts"]) for field in ("first_hits", "second_hits"))
    return Against(
        **found,
        first=names[0],
        second=names[1],
        p=sign_test(found["only_first"], found["only_second"]),
        preferred_p=sign_test(found["preferred"], found["rejected"]),
        calibrated=(calibrated[0], calibrated[1]),
    )


def _disagreement(judged: Judged) -> Disagreement | None:
    verdict = judged.verdict
    if verdict is None or (not verdict.valid) == bool(judged.lost):
        return None
    if verdict.culprit is not None:
        lost = next((each for each in verdict.dependencies if each.stands == "lost"), None)
        return Disagreement(
            facts=judged.facts,
            by="judge",
            what=verdict.culprit.missing or (lost.what if lost is not None else ""),
            object=verdict.culprit.target_id,
            category=verdict.culprit.category.value,
            used_by=lost.used_by if lost is not None else "",
            line=0,
            summary=verdict.summary,
        )
    need = judged.lost[0]
    return Disagreement(
        facts=judged.facts,
        by="detector",
        what=need.text,
        object=need.objects[0] if need.objects else f"entry:{need.held[0][0]}",
        category=need.category.value,
        used_by=f"call {need.call}",
        line=need.line,
        summary=verdict.summary,
    )
