"""Figures over verdicts: rates, agreement, sensitivity, bias by place, and what two policies come to."""

import itertools
from typing import Any

import pytest

from judge_scenes import INVALID, VALID, chosen, facts, need
from tenure.engine.record.entry import Usage
from tenure.errors import Failure
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.cases import Control
from tenure.lab.judges.figures import Figures, figures
from tenure.lab.judges.no_impact import NoImpact
from tenure.lab.judges.preference import Preference
from tenure.lab.judges.running import NOT_ASKED, JudgeCost, NoVerdict, Outcome, PairOutcome, PlanOutcome

PAIR = ("cwl", "tool-prune")
COUNTED = ("both", "judge_only", "detector_only", "neither")


def share(hits: float, of: int) -> dict[str, float]:
    return {"hits": hits, "of": of}


def verdict(*, valid: bool) -> NoImpact:
    found = no_impact.read(VALID if valid else INVALID)
    assert isinstance(found, NoImpact)
    return found


def judged(
    valid: bool | None = True, *, policy: str = "cwl", cut: int = 0, lost: bool = False, control: Control = "", **changes: Any
) -> PlanOutcome:
    """A case with a verdict, or without one."""
    return PlanOutcome(
        facts=facts(policy, cut=cut, control=control),
        key="k",
        contract="c",
        tokens=100,
        shortened=0,
        left_out=0,
        lost=(need(),) if lost else (),
        hidden=0,
        verdict=None if valid is None else verdict(valid=valid),
        **changes,
    )


def preferred(word: str) -> Preference:
    found = preference.read(chosen(word))
    assert isinstance(found, Preference)
    return found


def compared(forth: str, back: str, *, cut: int = 0, control: bool = False) -> PairOutcome:
    first, second = (("control", "unused"), ("control", "needed")) if control else ((PAIR[0], ""), (PAIR[1], ""))
    return PairOutcome(
        first=facts(first[0], cut=cut, control=first[1]),  # type: ignore[arg-type]
        second=facts(second[0], cut=cut, control=second[1]),  # type: ignore[arg-type]
        keys=("a", "b"),
        contract="c",
        forth=preferred(forth),
        back=preferred(back),
    )


def test_a_policys_rate_is_of_those_with_a_verdict_and_failures_are_counted_beside_it() -> None:
    down = NoVerdict(kind=Failure.UNAVAILABLE, why="down")
    spared = NoVerdict(kind=Failure.CANCELLED, why=f"{NOT_ASKED}3 failures in a row")
    found = figures([judged(), judged(False), judged(cut=1), judged(None, failure=down), judged(None, failure=spared)])
    (row,) = found.rows
    assert (row["cases"], row["no_impact"], row["failed"], row["not_asked"]) == (5, share(2, 3), 1, 1)
    assert row["categories"] == {"locator-handle": 1}
    assert found.failures == {"unavailable: down": 1}


def test_rows_are_of_policies_and_controls_are_in_none() -> None:
    found = figures([judged(policy="b"), judged(policy="a"), judged(False, policy="control", control="needed")])
    assert [row["policy"] for row in found.rows] == ["b", "a"]
    assert sum(found.agreement[name] for name in COUNTED) == 2


# --- Agreement


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ((20, 5, 10, 15), 0.4),
        ((20, 10, 5, 15), 0.4),
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
        ((5, 5, 5, 5), 0.0),
        ((7, 0, 0, 0), None),
        ((0, 0, 0, 0), None),
    ],
)
def test_kappa_is_cohens(table: tuple[int, int, int, int], kappa: float | None) -> None:
    """The first is the worked example of Cohen's kappa that textbooks give: 20, 5, 10 and 15 of 50. It does not care who is called the judge."""
    kinds = ((False, True), (False, False), (True, True), (True, False))
    outcomes = [judged(valid, lost=lost) for (valid, lost), count in zip(kinds, table, strict=True) for _ in range(count)]
    found = figures(outcomes).agreement["kappa"]
    assert found == (pytest.approx(kappa) if kappa is not None else None)


def test_agreement_holds_the_verdict_against_what_the_detector_lost_in_sight() -> None:
    found = figures([judged(False, lost=True), judged(False), judged(True, lost=True), judged(True), judged(True)]).agreement
    assert [found[name] for name in COUNTED] == [1, 1, 1, 2]


def test_disagreements_name_who_the_place_and_what_is_missing() -> None:
    found = figures([judged(False, lost=True), judged(False, cut=1), judged(True, lost=True, cut=2), judged(True, cut=3)])
    judge, detector = found.disagreements
    assert (judge["by"], judge["facts"]["cut"], judge["object"], judge["category"], judge["used_by"]) == (
        "judge",
        1,
        "read:1",
        "locator-handle",
        "call 7",
    )
    assert (detector["by"], detector["facts"]["cut"], detector["what"], detector["used_by"], detector["line"]) == (
        "detector",
        2,
        "TICKET-90417753.txt",
        "call 7",
        22,
    )


# --- Sensitivity


def test_a_judge_is_measured_on_cases_whose_answer_is_known() -> None:
    found = figures(
        [
            judged(False, control="needed", lost=True),
            judged(True, control="needed", lost=True),
            judged(True, control="unused"),
            judged(False, control="unused"),
            judged(True, control="unused"),
            compared("A_better", "B_better", control=True),
            compared("B_better", "A_better", control=True, cut=1),
            compared("tie", "tie", control=True, cut=2),
        ]
    ).sensitivity
    assert (found["caught"], found["alarmed"]) == (share(1, 2), share(1, 3))
    assert (found["preferred"], found["reversed"]) == (share(1, 3), 1)


def test_a_control_that_the_question_had_no_room_to_show_is_set_aside() -> None:
    found = figures([judged(True, control="needed", lost=False), judged(None, control="needed", lost=True)]).sensitivity
    assert (found["caught"]["of"], found["set_aside"]) == (0, 1)


# --- Two policies


def against(*outcomes: Outcome) -> Figures:
    return figures(outcomes, PAIR)


def cuts(*valid: tuple[bool | None, bool | None]) -> list[Outcome]:
    return [judged(value, policy=name, cut=cut) for cut, pair in enumerate(valid) for name, value in zip(PAIR, pair, strict=True)]


def test_two_policies_are_held_against_each_other_where_both_have_a_verdict() -> None:
    found = against(*cuts((True, True), (True, False), (False, True), (True, False), (None, False))).against
    assert found is not None
    assert (found["cuts"], found["only_first"], found["only_second"], found["not_compared"]) == (4, 2, 1, 3)
    assert found["p"] == pytest.approx(1.0)
    assert found["calibrated"] == [share(3, 4), share(2, 4)]


def test_on_disagreements_the_a_b_judge_decides_and_a_tie_counts_half() -> None:
    found = against(
        *cuts((True, True), (True, False), (True, False), (False, True)),
        compared("A_better", "B_better", cut=1),
        compared("B_better", "A_better", cut=2),
        compared("tie", "tie", cut=3),
    ).against
    assert found is not None
    assert (found["preferred"], found["rejected"], found["ties"]) == (1, 1, 1)
    assert found["calibrated"] == [share(2.5, 4), share(2.5, 4)]


WORDS = ("A_better", "B_better", "tie")
IN_ORDER = {("A_better", "B_better"): "preferred", ("B_better", "A_better"): "rejected"}


@pytest.mark.parametrize(("forth", "back"), list(itertools.product(WORDS, WORDS)))
def test_what_holds_in_one_order_only_is_a_tie(forth: str, back: str) -> None:
    """Swapping the plans swaps the answer, and the same letter in both orders is a flip."""
    found = against(*cuts((True, False)), compared(forth, back))
    assert found.against is not None
    counted = {name: found.against[name] for name in ("preferred", "rejected", "ties")}
    assert counted == {name: int(name == IN_ORDER.get((forth, back), "ties")) for name in counted}
    assert found.bias["flipped"] == (forth == back != "tie")
    assert found.bias["unsteady"] == (forth != back and "tie" in (forth, back))


def test_calibration_leaves_cuts_alone_on_which_the_verdicts_agree() -> None:
    found = against(*cuts((True, True), (False, False)), compared("A_better", "B_better", cut=1)).against
    assert found is not None
    assert found["calibrated"] == [share(1, 2), share(1, 2)]


def test_the_papers_disagreements_are_tested_as_a_sign_test() -> None:
    """Self-GC paper, Main Results: of 20 disagreements 11 for Self-GC, two for the baseline, seven ties."""
    says = [("A_better", "B_better")] * 11 + [("B_better", "A_better")] * 2 + [("tie", "tie")] * 7
    pairs = [(True, False)] * 20
    found = against(*cuts(*pairs), *(compared(*said, cut=cut) for cut, said in enumerate(says))).against
    assert found is not None
    assert (found["preferred"], found["rejected"], found["ties"]) == (11, 2, 7)
    assert found["preferred_p"] == pytest.approx(0.0225, abs=1e-4)


def test_a_judge_that_favours_a_place_is_found_out() -> None:
    steady = figures([compared("A_better", "B_better", cut=n) for n in range(6)]).bias
    biased = figures([compared("A_better", "A_better", cut=n) for n in range(6)]).bias
    assert (steady["pairs"], steady["flipped"], steady["first"], steady["p"]) == (6, 0, share(6, 12), pytest.approx(1.0))
    assert (biased["flipped"], biased["first"]) == (6, share(12, 12))
    assert biased["p"] < 0.001
    assert figures([compared("tie", "A_better")]).bias["unsteady"] == 1


def test_what_was_paid_now_and_what_was_remembered_are_told_apart() -> None:
    paid = JudgeCost(questions=1, usage=Usage(output=3), usd=0.5)
    found = figures([judged(spent=paid), judged(cut=1, spent=paid), judged(cut=2, earlier=paid)])
    assert (found.spent.questions, found.spent.usd, found.spent.usage.output) == (2, 1.0, 6)
    assert found.remembered == paid


def test_nothing_judged_gives_figures_without_a_claim() -> None:
    found = figures([], PAIR)
    assert found.rows == ()
    assert found.agreement["kappa"] is None
    assert found.against is not None
    assert found.against["calibrated"][0] == share(0, 0)
