import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tenure.errors import Failure, InputError, ModelError
from tenure.models import Answer, AnthropicModel, Model, OpenAIModel, Question, TextModel
from tenure.models.blocking import Stopped, run
from tenure.models.hosts import host_of, secrets_of
from tenure.models.speaker import bounded

HI = Question(system="Be brief.", messages=("hi",))


def test_importing_the_models_loads_no_sdk() -> None:
    script = (
        "import sys, tenure.models, tenure.testing.model; assert not {'openai', 'anthropic', 'genai_prices'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("made", "extra"), [(OpenAIModel, "openai"), (AnthropicModel, "anthropic")])
def test_a_missing_sdk_is_named_with_the_extra_that_brings_it(made: Any, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(InputError, match=rf"pip install 'tenure\[{extra}\]'"):
        made("any")


def test_any_callable_of_the_shape_is_a_model() -> None:
    def echo(question: Question, *, cancel: Any = None) -> Answer:
        return Answer(text=str(question.messages[0]))

    model: Model = echo
    assert model(HI).text == "hi"


def test_a_function_of_text_is_asked_in_one_text() -> None:
    assert TextModel(lambda text: f"<{text}>")(HI) == Answer(text="<Be brief.\n\nhi>", model="function", stop="stop")


def test_what_a_function_raises_is_a_model_error() -> None:
    def broken(_: str) -> str:
        raise OSError("no line, key sk-abcdefgh")

    with pytest.raises(ModelError, match="no line") as caught:
        TextModel(broken)(HI)
    assert caught.value.kind is Failure.UNAVAILABLE
    assert "sk-abcdefgh" not in str(caught.value)


@pytest.mark.parametrize(("said", "schema"), [("", None), ("  ", None), ("no json", {"type": "object"})])
def test_an_answer_of_no_use_is_a_bad_reply(said: str, schema: Any) -> None:
    with pytest.raises(ModelError) as caught:
        TextModel(lambda _: said)(Question(messages=("x",), schema=schema))
    assert caught.value.kind is Failure.BAD_REPLY


def test_a_function_cannot_take_a_prefix_and_is_not_asked_when_cancelled() -> None:
    asked: list[str] = []
    model = TextModel(lambda text: asked.append(text) or "x")
    with pytest.raises(InputError, match="prefix"):
        model(Question(messages=("x",), prefix=b"{}"))
    with pytest.raises(ModelError) as caught:
        model(HI, cancel=lambda: True)
    assert (caught.value.kind, asked) == (Failure.CANCELLED, [])


async def endless() -> AsyncGenerator[object, None]:
    while True:
        yield "x" * 1_000_000


async def drained() -> list[object]:
    return [event async for event in bounded(endless())]


def test_a_stream_without_end_is_left() -> None:
    with pytest.raises(OSError, match="does not end"):
        run(drained)


def test_an_error_in_a_call_is_raised_where_it_was_made() -> None:
    async def refuse() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(refuse)


def test_a_call_gives_its_result_and_one_that_takes_too_long_is_left() -> None:
    async def three() -> int:
        return 3

    async def silence() -> None:
        await asyncio.Event().wait()

    assert run(three, total_s=60) == 3
    assert run(silence, total_s=0) is Stopped.TIMED_OUT
    assert run(silence, cancel=lambda: True) is Stopped.CANCELLED


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://api.openai.com/v1/", "api.openai.com"), ("http://me:secret@host:81/p?key=x", "host:81"), ("", "")],
)
def test_only_the_host_of_an_address_is_shown(url: str, shown: str) -> None:
    assert host_of(url) == shown
    assert all(secret not in shown for secret in secrets_of(url, "", None, object()))
