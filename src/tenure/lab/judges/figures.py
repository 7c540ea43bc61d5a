"""What many verdicts come to.

Self-GC paper: the no-impact rate with its Wilson interval (Metrics), calibration by an A/B judge on disagreements (Main Results). The paper does
not say how a tie is counted, and its calibrated 87.46 % is no whole number of 332 sessions; here a tie counts half for each side. Agreement with
the mechanical detector, sensitivity on controls, bias by place and the tests are ours.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from tenure.lab.intervals import Share, sign_test
from tenure.lab.judges.asking import Spent
from tenure.lab.judges.cases import Facts
from tenure.lab.judges.preference import Both
from tenure.lab.judges.running import NOT_ASKED, Compared, Judged, Outcome


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
    """The figures of a run's outcomes. O(outcomes)."""
    held = list(outcomes)
    judged = [each for each in held if isinstance(each, Judged)]
    compared = [each for each in held if isinstance(each, Compared)]
    plans = [each for each in judged if not each.facts.control]
    failures = Counter(
        f"{each.failure.kind}: {each.failure.why}" for each in held if each.failure is not None and not _spared(each)
    )
    return Figures(
        rows=tuple(_row(policy, of) for policy, of in _by_policy(plans).items()),
        agreement=_agreement(plans),
        sensitivity=_sensitivity(judged, [each for each in compared if each.first.control]),
        bias=_bias(compared),
        against=_against(plans, [each for each in compared if not each.first.control], against) if against is not None else None,
        disagreements=tuple(found for each in plans if (found := _disagreement(each)) is not None),
        spent=sum((each.spent for each in held), Spent()),
        remembered=sum((each.earlier for each in held), Spent()),
        failures=dict(failures.most_common()),
        repaired=sum(each.repaired for each in judged),
        hidden=sum(each.hidden for each in plans),
    )


def _spared(outcome: Outcome) -> bool:
    """Whether it failed because nobody was asked any more."""
    return outcome.failure is not None and outcome.failure.why.startswith(NOT_ASKED)


def _by_policy(plans: Iterable[Judged]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {}
    for each in plans:
        found.setdefault(each.facts.policy, []).append(each)
    return found


def _row(policy: str, cases: Sequence[Judged]) -> Row:
    verdicts = [each.verdict for each in cases if each.verdict is not None]
    done = [each for each in cases if each.verdict is not None]
    not_asked = sum(_spared(each) for each in cases)
    return Row(
        policy=policy,
        cases=len(cases),
        pruned=sum(each.facts.pruned for each in cases) / len(cases),
        no_impact=Share(hits=sum(verdict.valid for verdict in verdicts), of=len(verdicts)),
        uncertain=sum(verdict.uncertain for verdict in verdicts),
        failed=len(cases) - len(verdicts) - not_asked,
        not_asked=not_asked,
        categories=dict(
            Counter(verdict.culprit.category.value for verdict in verdicts if verdict.culprit is not None).most_common()
        ),
        detector=Share(hits=sum(not each.lost for each in done), of=len(done)),
    )


def _agreement(plans: Iterable[Judged]) -> Agreement:
    counts = Counter((not each.verdict.valid, bool(each.lost)) for each in plans if each.verdict is not None)
    return Agreement(
        both=counts[True, True], judge_only=counts[True, False], detector_only=counts[False, True], neither=counts[False, False]
    )


def _sensitivity(judged: Iterable[Judged], compared: Iterable[Compared]) -> Sensitivity:
    controls = [each for each in judged if each.facts.control and each.verdict is not None]
    shown = [each for each in controls if each.facts.control == "needed" and each.lost]
    unused = [each for each in controls if each.facts.control == "unused"]
    pairs = [found.better for each in compared if (found := each.both) is not None]
    return Sensitivity(
        caught=Share(hits=sum(_has_impact(each) for each in shown), of=len(shown)),
        alarmed=Share(hits=sum(_has_impact(each) for each in unused), of=len(unused)),
        set_aside=sum(each.facts.control == "needed" and not each.lost for each in controls),
        preferred=Share(hits=pairs.count("first"), of=len(pairs)),
        reversed=pairs.count("second"),
    )


def _has_impact(judged: Judged) -> bool:
    return judged.verdict is not None and not judged.verdict.valid


def _bias(compared: Iterable[Compared]) -> Bias:
    held = list(compared)
    pairs: list[Both] = [found for each in held if (found := each.both) is not None]
    said = Counter(reply.verdict for each in held for reply in (each.forth, each.back) if reply is not None)
    first, second = said["A_better"], said["B_better"]
    return Bias(
        pairs=len(pairs),
        flipped=sum(each.flipped for each in pairs),
        unsteady=sum(each.forth != each.back and not each.flipped for each in pairs),
        first=Share(hits=first, of=first + second),
        p=sign_test(first, second),
    )


def _against(plans: Iterable[Judged], compared: Iterable[Compared], names: tuple[str, str]) -> Against:
    valid = {
        (each.facts.source, each.facts.cut, each.facts.policy): each.verdict.valid for each in plans if each.verdict is not None
    }
    cuts = dict.fromkeys((source, cut) for source, cut, _ in valid)
    paired = [pair for pair in cuts if all((*pair, name) in valid for name in names)]
    preferred = {(each.first.source, each.first.cut): found.better for each in compared if (found := each.both) is not None}
    hits = [0.0, 0.0]
    counts: Counter[str] = Counter()
    for pair in paired:
        first, second = (valid[*pair, name] for name in names)
        better = preferred.get(pair) if first != second else None
        if first != second:
            counts["only first" if first else "only second"] += 1
            counts[better or "not compared"] += 1
        told = {"first": (1.0, 0.0), "second": (0.0, 1.0), "tie": (0.5, 0.5)}.get(better or "", (float(first), float(second)))
        hits = [hits[0] + told[0], hits[1] + told[1]]
    return Against(
        first=names[0],
        second=names[1],
        cuts=len(paired),
        only_first=counts["only first"],
        only_second=counts["only second"],
        p=sign_test(counts["only first"], counts["only second"]),
        preferred=counts["first"],
        ties=counts["tie"],
        rejected=counts["second"],
        not_compared=counts["not compared"],
        preferred_p=sign_test(counts["first"], counts["second"]),
        calibrated=(Share(hits=hits[0], of=len(paired)), Share(hits=hits[1], of=len(paired))),
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
