"""Runs of a judge: every case has an outcome, nothing is asked twice, and asking stops when it is of no use."""

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from judge_scenes import INVALID, VALID, case, chosen, harmless, piece
from tenure.engine.record.entry import Usage
from tenure.errors import Failure, InputError, ModelError, StoreError
from tenure.lab.judges.cases import Case
from tenure.lab.judges.running import (
    IN_A_ROW,
    NOT_ASKED,
    Book,
    FailedLine,
    Judge,
    Outcome,
    PairOutcome,
    PlanOutcome,
    PreferenceLine,
    VerdictLine,
    foreseen,
    run,
)
from tenure.models.question import Answer, Cancel, Model, Question
from tenure.testing.builders import by_words
from tenure.testing.model import Line, ScriptedModel

AGAINST = ("cwl", "tool-prune")


def ran(
    cases: Sequence[Case], model: Model, book: Book | None = None, *, against: tuple[str, str] | None = None
) -> list[Outcome]:
    judge = Judge(model=model, name="scripted", count=by_words)
    return list(run(cases, judge, book if book is not None else Book(), against=against))


def judged(outcomes: Sequence[Outcome]) -> list[PlanOutcome]:
    return [each for each in outcomes if isinstance(each, PlanOutcome)]


def compared(outcomes: Sequence[Outcome]) -> list[PairOutcome]:
    return [each for each in outcomes if isinstance(each, PairOutcome)]


def distinct(number: int) -> list[Case]:
    """Cases of which no two are the same question."""
    return [case(cut=n, kept=(*case().kept, piece(3, "words", f"step {n}"))) for n in range(number)]


def test_every_case_has_an_outcome_in_order() -> None:
    outcomes = judged(ran(distinct(3), ScriptedModel(VALID, INVALID, VALID)))
    assert [(each.facts.cut, each.verdict is not None and each.verdict.valid) for each in outcomes] == [
        (0, True),
        (1, False),
        (2, True),
    ]


def test_two_policies_with_the_same_plan_are_one_question() -> None:
    model = ScriptedModel(INVALID)
    outcomes = judged(ran([case(policy="cwl"), case(policy="tool-prune")], model))
    assert len(model.questions) == 1
    assert [each.verdict for each in outcomes] == [outcomes[0].verdict] * 2


def test_an_outcome_has_what_the_detector_finds_lost_in_what_the_question_shows() -> None:
    shown, hidden = judged(ran([case(), case(cut=1, removed=())], ScriptedModel(then=Line(text=VALID))))
    assert ([each.text for each in shown.lost], shown.hidden) == (["TICKET-90417753.txt"], 0)
    assert (hidden.lost, hidden.hidden) == ((), 1)


# --- Failures


def test_a_failure_is_an_outcome_and_the_next_case_is_judged_all_the_same() -> None:
    model = ScriptedModel(VALID, ModelError(Failure.TOO_LONG, "too much for its window"), VALID)
    first, second, third = judged(ran(distinct(3), model))
    assert (first.failure, third.failure) == (None, None)
    assert second.verdict is None
    assert second.failure is not None
    assert (second.failure.kind, second.failure.why) == (Failure.TOO_LONG, "too much for its window")


def test_after_a_few_failures_in_a_row_nobody_is_asked_any_more_and_every_case_says_so() -> None:
    model = ScriptedModel(then="down")
    outcomes = judged(ran(distinct(8), model))
    assert len(model.questions) == IN_A_ROW
    assert [each.failure is not None and each.failure.why.startswith(NOT_ASKED) for each in outcomes] == [
        n >= IN_A_ROW for n in range(8)
    ]
    assert "3 failures in a row" in str(outcomes[-1].failure)


def test_a_verdict_between_failures_starts_the_count_anew() -> None:
    down = ModelError(Failure.UNAVAILABLE, "down")
    model = ScriptedModel(*[down] * (IN_A_ROW - 1), VALID, *[down] * (IN_A_ROW - 1), VALID)
    assert len(ran(distinct(2 * IN_A_ROW), model)) == 2 * IN_A_ROW
    assert len(model.questions) == 2 * IN_A_ROW


def test_what_will_fail_until_somebody_changes_it_is_asked_once() -> None:
    model = ScriptedModel(ModelError(Failure.NOT_ACCEPTED, "the key is wrong"))
    outcomes = judged(ran([case(), harmless(cut=1)], model))
    assert len(model.questions) == 1
    assert outcomes[1].failure is not None
    assert "the key is wrong" in outcomes[1].failure.why


# --- Two policies


def differing() -> list[Case]:
    """At one cut the first policy keeps the ticket and the second does not."""
    return [harmless(policy="cwl"), case(policy="tool-prune")]


def test_where_verdicts_differ_both_plans_are_compared_in_both_orders() -> None:
    model = ScriptedModel(VALID, INVALID, chosen("A_better"), chosen("B_better"))
    (found,) = compared(ran(differing(), model, against=AGAINST))
    assert (found.first.policy, found.second.policy) == AGAINST
    assert found.forth is not None
    assert found.back is not None
    assert (found.forth.verdict, found.back.verdict) == ("A_better", "B_better")
    forth, back = (str(question.messages[0]) for question in model.questions[2:])
    assert forth != back


def test_where_verdicts_agree_or_one_is_missing_nothing_is_compared() -> None:
    assert compared(ran(differing(), ScriptedModel(VALID, VALID), against=AGAINST)) == []
    failing = ScriptedModel(VALID, ModelError(Failure.REFUSED, "no"))
    assert compared(ran(differing(), failing, against=AGAINST)) == []
    assert compared(ran(differing(), ScriptedModel(VALID, INVALID))) == []


def test_controls_are_compared_too_the_harmless_one_first() -> None:
    pair = [harmless(policy="control", control="unused"), case(policy="control", control="needed")]
    model = ScriptedModel(VALID, INVALID, chosen("A_better"), chosen("B_better"))
    (found,) = compared(ran(pair, model, against=AGAINST))
    assert (found.first.control, found.second.control) == ("unused", "needed")


def test_a_comparison_that_fails_in_one_order_is_no_comparison_and_says_why() -> None:
    model = ScriptedModel(VALID, INVALID, chosen("A_better"), ModelError(Failure.REFUSED, "no more"))
    (found,) = compared(ran(differing(), model, against=AGAINST))
    assert found.back is None
    assert found.failure is not None
    assert found.failure.why == "no more"


def test_plans_of_other_cuts_are_never_compared() -> None:
    apart = [harmless(policy="cwl", cut=0), case(policy="tool-prune", cut=1)]
    assert compared(ran(apart, ScriptedModel(VALID, INVALID), against=AGAINST)) == []


# --- The book


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    path = str(tmp_path / "verdicts.jsonl")
    lines = (Line(text=text, usage=Usage(output=5), cost_usd=0.5) for text in (VALID, INVALID, chosen("A_better"), chosen("tie")))
    with Book(path) as book:
        first = ran(differing(), ScriptedModel(*lines), book, against=AGAINST)
    silent = ScriptedModel()
    with Book(path) as book:
        second = ran(differing(), silent, book, against=AGAINST)
    assert silent.questions == []
    assert [each.verdict for each in judged(first)] == [each.verdict for each in judged(second)]
    assert [(each.forth, each.back) for each in compared(first)] == [(each.forth, each.back) for each in compared(second)]
    assert (sum(each.spent.usd for each in first), sum(each.earlier.usd for each in second)) == (2.0, 2.0)
    assert sum(each.spent.questions for each in second) == 0


def test_a_run_that_was_broken_off_goes_on_where_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "verdicts.jsonl")
    cases = [case(), harmless(cut=1)]
    first = ScriptedModel(VALID)

    def interrupted(question: Question, *, cancel: Cancel | None = None) -> Answer:
        if first.questions:
            raise KeyboardInterrupt
        return first(question, cancel=cancel)

    with Book(path) as book, pytest.raises(KeyboardInterrupt):
        ran(cases, interrupted, book)
    model = ScriptedModel(INVALID)
    with Book(path) as book:
        outcomes = judged(ran(cases, model, book))
    assert len(model.questions) == 1
    assert [each.verdict is not None and each.verdict.valid for each in outcomes] == [True, False]


def test_failures_are_written_down_and_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with Book(str(path)) as book:
        ran([case()], ScriptedModel(then="down"), book)
        assert len(book) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["failure"]["kind"] == "unavailable"
    with Book(str(path)) as book:
        (found,) = judged(ran([case()], ScriptedModel(VALID), book))
    assert found.verdict is not None


def test_another_model_or_contract_is_another_question(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with Book(str(path)) as book:
        (found,) = judged(ran([case()], ScriptedModel(VALID), book))
    with Book(str(path)) as book:
        assert book.line(found.key, found.contract, "scripted") is not None
        assert book.line(found.key, found.contract, "another") is None
        assert book.line(found.key, "no-impact/0", "scripted") is None
        assert book.line("another", found.contract, "scripted") is None


@pytest.mark.parametrize(
    "damage", [b'{"type":"verdict","key":"a', b"\x00\xff\n", b"[" * 5_000 + b"\n", b'{"type":"news"}\n', b"{}\n"]
)
def test_a_damaged_line_costs_that_line_alone(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with Book(str(path)) as book:
        ran([case()], ScriptedModel(VALID), book)
    path.write_bytes(path.read_bytes() + damage)
    with Book(str(path)) as book:
        assert (len(book), book.unread) == (1, 1)
        ran([case(), harmless(cut=1)], ScriptedModel(INVALID), book)
    with Book(str(path)) as book:
        assert (len(book), book.unread) == (2, 1)


def test_a_file_that_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file of verdicts"):
        Book(str(tmp_path))
    with Book(str(tmp_path / "no" / "such" / "folder.jsonl")) as book, pytest.raises(StoreError, match="cannot be written"):
        ran([case()], ScriptedModel(VALID), book)


def test_every_line_of_a_book_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    model = ScriptedModel(VALID, INVALID, chosen("A_better"), ModelError(Failure.REFUSED, "no"))
    with Book(str(path)) as book:
        ran(differing(), model, book, against=AGAINST)
    decoder = msgspec.json.Decoder[VerdictLine | PreferenceLine | FailedLine](VerdictLine | PreferenceLine | FailedLine)
    lines = [decoder.decode(line) for line in path.read_bytes().splitlines()]
    assert [type(line) for line in lines] == [VerdictLine, VerdictLine, PreferenceLine, FailedLine]
    assert [msgspec.json.encode(line) for line in lines] == path.read_bytes().splitlines()


def test_a_book_without_a_path_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = ScriptedModel(VALID)
    ran([case(), case()], model)
    assert len(model.questions) == 1  # the same question within one run, too
    assert list(tmp_path.iterdir()) == []


def test_what_would_be_asked_is_known_without_asking(tmp_path: Path) -> None:
    judge = Judge(model=ScriptedModel(), name="scripted", count=by_words)
    path = str(tmp_path / "verdicts.jsonl")
    with Book(path) as book:
        ran([case()], ScriptedModel(VALID), book)
        found = list(foreseen([case(), harmless(cut=1)], judge, book))
    assert [each.remembered for each in found] == [True, False]
    assert all(each.tokens > 0 for each in found)


def test_what_no_file_can_hold_is_spelled_otherwise(tmp_path: Path) -> None:
    """A reply with half a character in it, and a failure whose words hold one."""
    path = tmp_path / "verdicts.jsonl"
    model = ScriptedModel(
        Answer(text=VALID.replace("All is there.", "All \ud800 is there.")), ModelError(Failure.REFUSED, "no \udcff")
    )
    with Book(str(path)) as book:
        outcomes = judged(ran(distinct(2), model, book))
    assert outcomes[0].verdict is not None
    assert outcomes[0].verdict.summary == "All ? is there."
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
