import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import Failure
from tenure.models.question import Question
from tenure.models.replies import ChatReader, Heard, MessageReader, answered, json_in, shortfall, spoken
from tenure.record.entry import Usage
from tenure.rules.tables import rules_for
from tenure.testing.script import Reply, wire
from tenure.testing.streams import events

READERS: dict[str, Any] = {"openai-chat": ChatReader, "anthropic": MessageReader}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = "choices delta content refusal usage message type text stop_reason finish_reason tool_calls function index error content_block model".split()
KINDS = st.sampled_from(["message_start", "content_block_start", "content_block_delta", "message_delta", "error", "ping"])
shaped = st.recursive(
    json_values | KINDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


def stream(name: str, reply: Reply) -> list[Any]:
    body = wire(reply, 0, {"model": "m"}, rules_for("", "m", name), Usage(uncached=7, cache_read=2, output=3))
    lines = b"".join(events(body, name, include_usage=True)).decode().split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


def heard(name: str, events_: list[Any]) -> Heard:
    reader = READERS[name]()
    for event in events_:
        reader.take(event)
    return reader.heard()


@given(name=st.sampled_from(sorted(READERS)), said=st.text(min_size=1), thinking=st.text())
def test_a_reader_hears_what_was_said(name: str, said: str, thinking: str) -> None:
    found = heard(name, stream(name, Reply(text=said, thinking=thinking)))
    assert found.text == said
    assert found.usage == Usage(uncached=7, cache_read=2, output=3)
    assert found.model == "m"


@given(name=st.sampled_from(sorted(READERS)), said=st.text(min_size=1), cut=st.integers(min_value=0))
def test_a_stream_is_an_answer_from_its_last_words_on_and_never_before(name: str, said: str, cut: int) -> None:
    whole = stream(name, Reply(text=said + "."))
    found = heard(name, whole[: cut % (len(whole) + 1)])
    assert said.startswith(found.text) or found.text == said + "."
    if shortfall(found) is None:
        assert found.text == said + "."


@given(name=st.sampled_from(sorted(READERS)), noise=st.lists(shaped, max_size=6))
def test_events_of_any_shape_are_harmless(name: str, noise: list[Any]) -> None:
    found = heard(name, noise)
    assert found.text.encode().decode() == found.text
    assert isinstance(shortfall(found), tuple | None)


def test_a_lone_surrogate_becomes_a_sign_that_can_be_written() -> None:
    assert heard("openai-chat", [{"choices": [{"delta": {"content": "\ud800"}}]}]).text == "\ufffd"


def test_of_several_choices_the_first_counts() -> None:
    choices = [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]
    assert heard("openai-chat", [{"choices": choices}]).text == "yes"


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (Heard(text="a", stop="stop"), None),
        (Heard(text="a", stop="a word of next year"), None),
        (Heard(text="a"), Failure.CUT_SHORT),
        (Heard(text="a", stop="model_context_window_exceeded"), Failure.CUT_SHORT),
        (Heard(text="a", stop="stop", calls=("read",)), Failure.BAD_REPLY),
        (Heard(text="<think>hm</think>", stop="stop"), Failure.BAD_REPLY),
        (Heard(refusal="no", stop="stop"), Failure.REFUSED),
    ],
)
def test_an_answer_has_words_and_an_end(found: Heard, kind: Failure | None) -> None:
    assert (shortfall(found) or (None,))[0] is kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ("Here: [1, 2] - is that right?", "[1, 2]"),
        ("42", "42"),
        ("no", None),
        ("{", None),
        ("", None),
        ("[" * 100_000, None),
        ("[" * 100_000 + "]" * 100_000, None),
    ],
)
def test_json_is_found_between_words_and_fences(text: str, value: str | None) -> None:
    assert json_in(text) == value


def test_reasoning_in_the_text_is_no_part_of_the_answer() -> None:
    assert spoken("<think>\nor {1}?\n</think>\n\nyes") == "yes"
    assert spoken("<think>open") == "<think>open"
    assert answered('<think>{"b": 2}</think>{"a": 1}', Question(messages=("x",), schema={})) == '{"a": 1}'
