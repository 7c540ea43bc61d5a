"""Asking: one repair, every failure a value, and what it cost; over scripts and over the official SDKs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest

from judge_scenes import INVALID, VALID, case, chosen, said
from tenure.engine.record.entry import Draft, Usage
from tenure.errors import Failure, InputError, ModelError
from tenure.lab.judges import no_impact, preference
from tenure.lab.judges.no_impact import NoImpact
from tenure.lab.judges.running import JudgeCost, Judgement, NoVerdict, ask
from tenure.models import AnthropicModel, Model, OpenAIModel, Patience, TextModel
from tenure.testing.builders import by_words
from tenure.testing.model import RUBBISH, Line, ScriptedModel
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Fault, Reply, Script

ASKED = no_impact.ask(case(), count=by_words)
USED = Usage(uncached=100, output=10)


def judgement(model: Model) -> Judgement[NoImpact]:
    return ask(model, ASKED.question, lambda reply: no_impact.read(reply, ASKED.objects))


def failure(model: Model) -> NoVerdict:
    failure = judgement(model).failure
    assert failure is not None
    return failure


def test_a_verdict_comes_with_what_it_cost() -> None:
    found = judgement(ScriptedModel(Line(text=INVALID, usage=USED, cost_usd=0.25)))
    assert found.verdict is not None
    assert (found.spent, found.repaired) == (JudgeCost(questions=1, usage=USED, usd=0.25), False)


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_with_what_was_wrong() -> None:
    model = ScriptedModel(
        Line(text=json.dumps(said(overall_score=50)), usage=USED, cost_usd=0.25), Line(text=VALID, usage=USED, cost_usd=0.5)
    )
    found = judgement(model)
    assert found.verdict is not None
    assert found.repaired
    assert (found.spent.questions, found.spent.usd, found.spent.usage.output) == (2, 0.75, 20)
    first, second = model.questions
    assert second.messages[0] == first.messages[0]  # so that the cache of it is read
    assert (second.system, second.schema) == (first.system, first.schema)
    reply, words = second.messages[1:]
    assert isinstance(reply, Draft)
    assert reply.blocks[0].text == json.dumps(said(overall_score=50))
    assert "overall_score: found '50', expected a number from 0 to 5" in str(words)


def test_two_replies_that_cannot_be_read_are_a_failure_that_says_why() -> None:
    found = failure(ScriptedModel(then="rubbish"))
    assert found.kind is Failure.BAD_REPLY
    assert "no JSON object with 'valid'" in found.why


def test_json_that_only_a_forgiving_reader_understands_needs_no_second_question() -> None:
    """A model's own check wants strict JSON and raises; what it said is read all the same."""
    model = ScriptedModel(VALID.replace('"', "'"))
    assert judgement(model).verdict is not None
    assert len(model.questions) == 1


def test_after_an_empty_reply_the_question_is_asked_again_without_it() -> None:
    model = ScriptedModel("", VALID)
    assert judgement(model).verdict is not None
    assert [type(message) for message in model.questions[1].messages] == [str, str]


@pytest.mark.parametrize("kind", [kind for kind in Failure if kind is not Failure.BAD_REPLY])
def test_a_failing_model_is_a_failure_of_its_kind_and_is_not_asked_again(kind: Failure) -> None:
    model = ScriptedModel(ModelError(kind, "no luck today", usage=USED, cost_usd=0.1))
    found = judgement(model)
    assert found.failure == NoVerdict(kind=kind, why="no luck today")
    assert found.spent == JudgeCost(questions=1, usage=USED, usd=0.1)
    assert len(model.questions) == 1


def test_a_second_question_that_fails_is_that_failure_and_both_are_paid_for() -> None:
    model = ScriptedModel(
        Line(text=RUBBISH, cost_usd=0.5, usage=USED), ModelError(Failure.RATE_LIMITED, "slow down", cost_usd=0.25)
    )
    found = judgement(model)
    assert found.failure is not None
    assert (found.failure.kind, found.spent.usd, found.spent.questions) == (Failure.RATE_LIMITED, 0.75, 2)


def test_a_broken_connection_of_anybodys_callable_is_a_failure() -> None:
    def broken(question: object, *, cancel: object = None) -> Any:
        raise ConnectionResetError("the line went dead")

    assert failure(broken) == NoVerdict(kind=Failure.UNAVAILABLE, why="the line went dead")


def test_a_question_that_cannot_be_put_is_an_error_of_the_caller() -> None:
    def refuses(question: object, *, cancel: object = None) -> Any:
        raise InputError("question", "a prefix", "none")

    with pytest.raises(InputError):
        judgement(refuses)


def test_what_nobody_prices_or_reports_is_counted_as_such() -> None:
    found = judgement(ScriptedModel(VALID))
    assert (found.spent.unreported, found.spent.unpriced, found.spent.usd) == (1, 1, 0.0)
    priced = judgement(ScriptedModel(Line(text=VALID, usage=Usage(uncached=1_000_000)), name="gpt-5"))
    assert priced.spent.unpriced == 0
    assert priced.spent.usd > 0


def test_a_model_behind_a_function_of_text_can_judge() -> None:
    def plain(text: str) -> str:
        assert "Answer with one JSON value" in text  # the schema, in words
        return f"My verdict:\n{INVALID}"

    assert judgement(TextModel(plain)).verdict is not None


# --- The official SDKs


def chat(url: str) -> Model:
    return OpenAIModel("gpt-5-mini", base_url=f"{url}/v1", api_key="-", patience=Patience(retries=0), structured=True)


def responses(url: str) -> Model:
    return OpenAIModel(
        "gpt-5-mini", api="responses", base_url=f"{url}/v1", api_key="-", patience=Patience(retries=0), structured=True
    )


def messages(url: str) -> Model:
    return AnthropicModel("claude-opus-4-5", base_url=url, api_key="-", patience=Patience(retries=0))


every = pytest.mark.parametrize("made", [chat, responses, messages])


@contextmanager
def provided(*replies: Reply | Fault) -> Iterator[tuple[FakeProvider, str]]:
    provider = FakeProvider(Script(replies=replies), clock=lambda: 0.0)
    with serve(provider.app) as url:
        yield provider, url


@every
def test_a_judge_answers_over_an_sdk_and_a_bad_reply_is_repaired(made: Callable[[str], Model]) -> None:
    with provided(Reply(text=json.dumps(said(overall_score=50))), Reply(text=INVALID)) as (provider, url):
        found = judgement(made(url))
    assert found.verdict is not None
    assert found.repaired
    first, second = (json.loads(seen.body) for seen in provider.seen)
    assert "failure_culprit" in json.dumps(first)
    roles = [message["role"] for message in second.get("messages") or second["input"]]
    assert [role for role, _ in groupby(roles)][-3:] == ["user", "assistant", "user"]
    assert found.spent.usage.prompt > 2 * 500


@every
def test_both_orders_are_asked_over_an_sdk(made: Callable[[str], Model]) -> None:
    request = preference.ask(case(), case(), count=by_words)
    with provided(Reply(text=chosen("A_better"))) as (_, url):
        found = ask(made(url), request.question, preference.read)
    assert found.verdict is not None
    assert found.verdict.verdict == "A_better"


@every
def test_what_goes_wrong_at_a_provider_is_a_failure(made: Callable[[str], Model]) -> None:
    for replies, kind in (
        ((Fault(status=401),), Failure.NOT_ACCEPTED),
        ((Fault(status=429),), Failure.RATE_LIMITED),
        ((Fault(status=503),), Failure.UNAVAILABLE),
        ((Reply(text=VALID, stop="length"),), Failure.CUT_SHORT),
        ((Reply(text="no", stop="refusal"),), Failure.REFUSED),
    ):
        with provided(*replies) as (_, url):
            assert failure(made(url)).kind is kind, replies
