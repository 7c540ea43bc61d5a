"""Replies of judges: whatever a model writes around its verdict is forgiven, and a verdict that is none is said in words."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_scenes import INVALID, TICKET, VALID, blamed, chosen, said
from tenure.apis.openai_chat.speech import is_strict
from tenure.lab.events import Category
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.contracts import AB, DIMENSIONS, LONGEST, NO_IMPACT, Unusable
from tenure.lab.judges.no_impact import NoImpact
from tenure.lab.judges.preference import Preference


def verdict(reply: str) -> NoImpact:
    found = no_impact.read(reply)
    assert isinstance(found, NoImpact), found
    return found


def problems(reply: str) -> str:
    found = no_impact.read(reply)
    assert isinstance(found, Unusable)
    return str(found)


# --- Schemas


@pytest.mark.parametrize("contract", [NO_IMPACT, AB], ids=lambda contract: contract.version)
def test_a_schema_is_one_that_providers_take_as_strict(contract: Any) -> None:
    assert is_strict(contract.schema)
    assert '"minimum"' not in json.dumps(contract.schema)  # Anthropic refuses bounds of numbers


def test_the_schemas_ask_for_all_that_the_papers_listings_ask_for() -> None:
    paper = {"valid", "uncertain", "overall_score", "summary", "dimension_scores", "failure_culprit"}
    assert set(NO_IMPACT.schema["required"]) == {*paper, "dependencies"}
    assert set(NO_IMPACT.schema["properties"]["dimension_scores"]["required"]) == {
        "goal_retention",
        "evidence_retention",
        "continuation_readiness",
        "compression_safety",
    }
    assert set(AB.schema["required"]) == {"verdict", "summary", "rationale", "stronger_aspects", "risks", "confidence"}


def test_a_reply_that_keeps_to_the_schema_is_a_verdict_and_all_of_it_is_kept() -> None:
    found = verdict(INVALID)
    assert not found.valid
    assert found.culprit is not None
    assert (found.culprit.target_id, found.culprit.category, found.culprit.missing) == ("read:1", Category.LOCATOR, TICKET)
    assert [(each.what, each.used_by, each.stands) for each in found.dependencies] == [(TICKET, "call 7", "lost")]
    assert [(each.name, each.score, each.verdict) for each in found.dimensions] == [(name, 5.0, "pass") for name in DIMENSIONS]
    assert verdict(VALID).valid


def test_a_verdict_survives_its_own_json() -> None:
    for reply in (VALID, INVALID):
        assert msgspec.json.decode(msgspec.json.encode(verdict(reply)), type=NoImpact) == verdict(reply)


# --- Form is forgiven


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```json\n{}\n```",
        "Here is my verdict:\n\n{}\n\nI hope that helps.",
        '<think>valid: false? {{"valid": false}}</think>\n{}',
        '{{"verdict": {}}}',
        '{{"answer": {{"result": {}}}}}',
        '{{"example": 1}} and now the answer: {}',
    ],
)
def test_what_stands_around_a_verdict_is_forgiven(around: str) -> None:
    assert verdict(around.format(INVALID)) == verdict(INVALID)


@pytest.mark.parametrize(
    "changed",
    [
        ('"valid": false', "'valid': False"),
        ('"valid": false', '"valid": "false"'),
        ('"valid": false', "valid: no"),
        ('"overall_score": 1', '"overall_score": "1"'),
        ('"overall_score": 1', '"overall_score": 1 // of five\n'),
        ('"verdict": "pass"', '"verdict": "PASS"'),
        ('"category": "locator-handle"', '"category": "Locator-Handle"'),
    ],
)
def test_how_a_field_is_written_is_forgiven(changed: tuple[str, str]) -> None:
    assert changed[0] in INVALID
    assert verdict(INVALID.replace(*changed)) == verdict(INVALID)


def test_of_two_verdicts_the_last_counts() -> None:
    assert verdict(f"{INVALID}\nOn reflection:\n{VALID}").valid
    assert not verdict(f"{VALID}\nOn reflection:\n{INVALID}").valid


# --- Substance is not


@pytest.mark.parametrize(
    ("reply", "said_of_it"),
    [
        ("", "the reply is empty"),
        ("<think>valid, I think</think>", "the reply is empty"),
        ("It is fine.", "no JSON object with 'valid'"),
        ('{"verdict": "A_better"}', "no JSON object with 'valid'"),
        (INVALID[: len(INVALID) // 2], "the JSON object has no end"),
        (json.dumps(said(valid="perhaps")), "valid: found 'perhaps', expected true or false"),
        (json.dumps(said(overall_score=11)), "overall_score: found '11', expected a number from 0 to 5"),
        (json.dumps(said(overall_score="NaN")), "overall_score: found 'NaN', expected a number from 0 to 5"),
        (json.dumps(said(uncertain=None)), "uncertain: found 'null', expected true or false"),
        (json.dumps(said(dimension_scores=3)), "dimension_scores: found '3', expected an object"),
        (json.dumps(said(dimension_scores={})), "dimension_scores.goal_retention: found nothing, expected an object"),
        (
            json.dumps(said(dependencies=[{"what": "x", "stands": "hidden"}])),
            "dependencies[0].stands: found 'hidden', expected one of visible, recoverable, lost",
        ),
        (
            json.dumps(blamed(failure_culprit={"target_id": "read:1", "category": "bad luck"})),
            "failure_culprit.category: found 'bad luck', expected one of evidence-detail, locator-handle",
        ),
        (json.dumps(blamed(failure_culprit="read:1")), "failure_culprit: found 'read:1', expected an object or null"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said_with_its_place(reply: str, said_of_it: str) -> None:
    assert said_of_it in problems(reply)


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert problems(json.dumps(said(overall_score=9, uncertain="so so"))).count("found") == 2


@pytest.mark.parametrize(
    ("reply", "said_of_it"),
    [
        (said(failure_culprit={"target_id": "read:1", "category": "live-state", "missing": "x"}), "beside valid true"),
        (said(dependencies=[{"what": "x", "used_by": "", "stands": "lost", "object": ""}]), "1 lost dependencies"),
        (blamed(failure_culprit=None), "found null beside valid false"),
        (blamed(dependencies=[]), "found false without a lost dependency"),
    ],
)
def test_a_judge_that_contradicts_itself_has_not_judged(reply: dict[str, Any], said_of_it: str) -> None:
    assert said_of_it in problems(json.dumps(reply))


def test_a_culprit_that_the_plan_did_not_touch_is_a_doubt_and_the_verdict_stands() -> None:
    for named, doubt in (
        ("read:1", ""),
        ("function:read:1@41aa", ""),
        ("read:9", "'read:9' is nothing"),
        ("that file", "no object's name"),
    ):
        culprit = {"target_id": named, "category": "live-state", "missing": ""}
        found = no_impact.read(json.dumps(blamed(failure_culprit=culprit)), {"read:1"})
        assert isinstance(found, NoImpact)
        assert not found.valid
        assert doubt in "; ".join(found.doubts)
        assert bool(doubt) is bool(found.doubts)


@given(st.text(max_size=400) | st.text(alphabet='{}[]":,valid true\n<think>', max_size=400))
def test_no_reply_raises(text: str) -> None:
    for reply in (text, text + VALID, VALID[:200] + text, VALID.replace("true", text)):
        assert isinstance(no_impact.read(reply), NoImpact | Unusable)
        assert isinstance(preference.read(reply), Preference | Unusable)


def test_gigantic_and_deep_replies_are_harmless() -> None:
    for reply in ("{" * 200_000, '{"valid":' * 100_000, "[" * 200_000 + VALID, "x" * (LONGEST + 10) + VALID, "{}" * 200_000):
        assert isinstance(no_impact.read(reply), NoImpact | Unusable)
    assert verdict("x" * (LONGEST + 10) + VALID).valid


# --- A/B


def preferred(word: str) -> Preference:
    found = preference.read(chosen(word))
    assert isinstance(found, Preference)
    return found


def test_a_preference_is_read_with_its_reasons() -> None:
    found = preferred("b_BETTER")
    assert found.verdict == "B_better"
    assert (found.stronger_aspects, found.risks, found.confidence) == (("keeps the ticket",), (), 0.9)
    assert isinstance(preference.read(chosen("both")), Unusable)
    assert "confidence: found '90'" in str(preference.read(chosen().replace("0.9", "90")))
