from threading import Event

import pytest

from tenure.engine.record.entry import Usage
from tenure.errors import Failure, ModelError
from tenure.models import Answer, Question
from tenure.testing.model import Line, Play, ScriptedModel

HI = Question(messages=("hi",))
USAGE = Usage(uncached=5, output=2)


def test_lines_are_said_in_turn_and_questions_kept() -> None:
    model = ScriptedModel("one", Line(text="two", usage=USAGE, cost_usd=0.5), Answer(text="three", model="m"))
    second = Question(messages=("and?",))
    answers = [model(HI), model(second), model(HI)]
    assert [answer.text for answer in answers] == ["one", "two", "three"]
    assert (answers[1].usage, answers[1].cost_usd, answers[2].model) == (USAGE, 0.5, "m")
    assert model.questions == [HI, second, HI]


def test_one_question_more_than_the_script_has_lines_is_a_defect_of_the_test() -> None:
    with pytest.raises(AssertionError, match="asked for one more"):
        ScriptedModel()(HI)


def test_an_error_in_the_script_is_raised() -> None:
    limited = ModelError(Failure.RATE_LIMITED, "later", retry_after_s=3)
    model = ScriptedModel(limited, "then")
    with pytest.raises(ModelError) as caught:
        model(HI)
    assert caught.value is limited
    assert model(HI).text == "then"


@pytest.mark.parametrize(
    ("play", "kind"), [("down", Failure.UNAVAILABLE), ("cut short", Failure.CUT_SHORT), ("rubbish", Failure.BAD_REPLY)]
)
def test_it_fails_as_a_real_model_does(play: Play, kind: Failure) -> None:
    model = ScriptedModel(then=Line(text='{"plan": 1}', usage=USAGE, play=play))
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            model(Question(messages=("plan",), schema={"type": "object"}))
        assert caught.value.kind is kind
    assert caught.value.said == {"down": "", "cut short": '{"pla', "rubbish": caught.value.said}[play]
    assert caught.value.usage == (None if play == "down" else USAGE)


def test_rubbish_is_an_answer_where_any_text_is() -> None:
    assert ScriptedModel(then="rubbish")(HI).text


def test_a_slow_model_takes_its_time() -> None:
    passed: list[float] = []
    assert ScriptedModel(Line(text="at last", play="slow"), wait=passed.append)(HI).text == "at last"
    assert sum(passed) == pytest.approx(60)


def test_a_slow_model_can_be_cancelled() -> None:
    cancel = Event()
    model = ScriptedModel(then="slow", wait=lambda _: cancel.set())
    with pytest.raises(ModelError) as caught:
        model(HI, cancel=cancel)
    assert caught.value.kind is Failure.CANCELLED
