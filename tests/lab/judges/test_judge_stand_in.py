"""The rule that stands in for a judge: the detector, reading a question as a model would."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_scenes import TICKET, case, harmless, piece, recorded, residue
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.cases import Case, cases
from tenure.lab.judges.no_impact import NoImpact
from tenure.lab.judges.running import ask
from tenure.lab.judges.stand_in import NAME, DetectorJudge
from tenure.lab.loading import source
from tenure.models.question import Question
from tenure.testing.builders import by_words

TOKENIZER = o200k()


def judged(given_case: Case) -> NoImpact:
    request = no_impact.ask(given_case, count=by_words)
    verdict = ask(DetectorJudge(), request.question, lambda reply: no_impact.read(reply, request.objects)).verdict
    assert verdict is not None
    return verdict


def test_it_finds_what_was_removed_and_is_wanted() -> None:
    found = judged(case())
    assert not found.valid
    assert found.culprit is not None
    assert (found.culprit.target_id, found.culprit.missing) == ("read:1", TICKET)
    assert [(each.what, each.used_by, each.stands) for each in found.dependencies] == [(TICKET, "call 7", "lost")]
    assert found.doubts == ()


def test_what_is_still_in_view_is_not_missed() -> None:
    assert judged(harmless()).valid


def test_a_pointer_with_a_handle_and_a_cue_is_a_way_back_and_one_without_a_cue_is_none() -> None:
    human = piece(0, "human", "Find the ticket, then close it.")
    routed = judged(case(kept=(human, residue(1, "[folded: read:1@41aa, the open ticket 90417753: recall it]"))))
    assert routed.valid
    assert [each.stands for each in routed.dependencies] == ["recoverable"]
    unrouted = judged(case(kept=(human, residue(1, "[folded: read:1@41aa, something]"))))
    assert unrouted.culprit is not None
    assert unrouted.culprit.category.value == "recovery-routing"


def test_a_placeholder_with_a_cue_is_a_way_back_too() -> None:
    human = piece(0, "human", "Find the ticket, then close it.")
    called = piece(1, "call", '{"path":"tickets.txt"}', name="read:1@41aa")
    gone = piece(2, "result", f"open: {TICKET}", name="read:1@41aa", is_part=True)
    for words, stands in (("of tickets.txt, 90417753 among them", "recoverable"), ("of something", "lost")):
        placeholder = piece(2, "result", f"[the result {words}, is out of view: recall read:1@41aa]", name="read:1@41aa")
        found = judged(case(kept=(human, called, placeholder), removed=(gone,)))
        assert [each.stands for each in found.dependencies] == [stands]


def test_what_the_future_gives_itself_before_it_is_used_is_not_missed() -> None:
    again = (
        piece(10, "call", '{"command":"ls"}', name="bash:1@77b0"),
        piece(11, "result", f"open: {TICKET}", name="bash:1@77b0"),
        piece(12, "call", f'{{"path":"{TICKET}"}}', name="read:3@77b1"),
    )
    assert judged(case(future=again, needs=())).valid


def test_it_prefers_the_plan_that_loses_less_in_either_place() -> None:
    for first, second, verdict in ((harmless(), case(), "A_better"), (case(), harmless(), "B_better"), (case(), case(), "tie")):
        request = preference.ask(first, second, count=by_words)
        found = ask(DetectorJudge(), request.question, preference.read).verdict
        assert found is not None
        assert found.verdict == verdict


def test_it_says_that_it_is_unsure_where_a_question_leaves_something_out() -> None:
    assert not judged(case()).uncertain
    long = tuple(piece(20 + n, "result", "word " * 3_000) for n in range(40))
    assert judged(case(future=(*case().future, *long))).uncertain


@pytest.mark.parametrize("name", ["tool-prune", "cwl", "graph", "tiered"])
def test_where_a_question_shows_all_it_says_what_the_detector_says(name: str, tmp_path: Path) -> None:
    policy = PEERS[name] if name in PEERS else POLICIES[name]
    path = recorded(tmp_path, wanted=2)
    compared = 0
    for made in cases(source(str(path)), {name: policy}, TOKENIZER, pairs=1):
        request = no_impact.ask(made, count=TOKENIZER, room=10**6)
        assert (request.shortened, request.left_out) == (0, 0)
        found = ask(DetectorJudge(), request.question, no_impact.read).verdict
        assert found is not None
        assert found.valid is not any(need.stands == "lost" for need in made.needs)
        compared += 1
    assert compared >= 4


def test_its_name_is_versioned_since_its_verdicts_are_remembered() -> None:
    assert DetectorJudge().name == NAME == "stand-in/1"


@given(st.text(max_size=300))
def test_any_question_is_answered(text: str) -> None:
    answer = DetectorJudge()(
        Question(messages=(text or "x", f"[{'0' * 8} case: x]\n[{'0' * 8} future entry 1: the agent]\n{text}"))
    )
    assert isinstance(no_impact.read(answer.text), NoImpact)
    assert (answer.cost_usd, answer.usage is not None) == (0.0, True)
