import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis import APIS
from tenure.apis.reply import ENDS, ReplyStream
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.errors import Failure
from tenure.models.model import shortfall
from tenure.models.question import Question, answer_in, json_in, without_thinking
from tenure.testing.script import Reply, events, wire

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = (
    "choices delta content refusal usage message type text stop_reason finish_reason tool_calls function index error content_block model "
    "output_index item phase response status incomplete_details reason name prompt_tokens prompt_tokens_details input_tokens "
    "input_tokens_details cached_tokens output_tokens"
).split()
KINDS = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "message_delta", "error", "ping", "function_call"),
        *("response.created", "response.output_item.added", "response.output_item.done", "response.output_text.delta", "message"),
        *("response.refusal.delta", "response.completed", "response.incomplete", "response.failed", "commentary"),
    ]
)
shaped = st.recursive(
    json_values | KINDS | st.just(float("nan")) | st.just(float("inf")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=20,
)


def stream(name: str, reply: Reply) -> list[Any]:
    body = wire(reply, 0, {"model": "m"}, rules_for("", "m", name), Usage(uncached=7, cache_read=2, output=3))
    lines = b"".join(events(body, name, include_usage=True)).decode().split("\n")
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


def heard(name: str, events_: list[Any]) -> ReplyStream:
    assembly = APIS[name].reply()
    for event in events_:
        list(assembly.take(event))
    return assembly


def kind(found: ReplyStream) -> Failure | None:
    """What keeps a stream that is over from being an answer; None when nothing does."""
    whole = found.whole()
    if whole is None:
        return Failure.CUT_SHORT
    if missing := shortfall(whole):
        return missing[0]
    return None if without_thinking(found.answer) else Failure.BAD_REPLY


@given(name=st.sampled_from(sorted(APIS)), said=st.text(min_size=1), thinking=st.text())
def test_a_reader_hears_what_was_said(name: str, said: str, thinking: str) -> None:
    found = heard(name, stream(name, Reply(text=said, thinking=thinking)))
    assert found.answer == said
    assert found.usage == Usage(uncached=7, cache_read=2, output=3)
    assert found.model == "m"


@given(name=st.sampled_from(sorted(APIS)), said=st.text(min_size=1), cut=st.integers(min_value=0))
def test_a_stream_is_an_answer_from_its_last_words_on_and_never_before(name: str, said: str, cut: int) -> None:
    whole = stream(name, Reply(text=said + "."))
    found = heard(name, whole[: cut % (len(whole) + 1)])
    assert said.startswith(found.answer) or found.answer == said + "."
    if kind(found) is None:
        assert found.answer == said + "."


@given(name=st.sampled_from(sorted(APIS)), noise=st.lists(shaped, max_size=6))
def test_events_of_any_shape_are_harmless(name: str, noise: list[Any]) -> None:
    found = heard(name, noise)
    assert found.answer.encode().decode() == found.answer
    assert kind(found) in (None, *Failure)


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}], **fields}


def over(status: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, **fields}}


def item(place: int, state: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{state}", "output_index": place, "item": fields}


def test_what_a_model_says_on_its_way_is_no_part_of_the_answer() -> None:
    events_ = [
        item(0, "added", type="message", phase="commentary"),
        {"type": "response.output_text.delta", "output_index": 0, "delta": "I am looking."},
        item(1, "added", type="message", phase="final_answer"),
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Done."},
        over("completed"),
    ]
    assert heard("openai-responses", events_).answer == "Done."


def test_an_item_that_comes_whole_is_heard_with_and_without_its_deltas() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "delta": "Do"}
    for before in ([], [delta]):
        found = heard("openai-responses", [*before, item(0, "done", **message("Done.")), over("completed")])
        assert (found.answer, kind(found)) == ("Done.", None)


def test_an_answer_that_comes_only_in_the_last_event_is_heard() -> None:
    output = [message("Looking.", phase="commentary"), message("Done.")]
    found = heard("openai-responses", [over("completed", output=output)])
    assert (found.answer, kind(found)) == ("Done.", None)


def test_a_stream_that_is_given_up_says_why_in_the_providers_terms() -> None:
    found = heard("openai-chat", [{"choices": [{"delta": {"content": "a"}, "finish_reason": "insufficient_system_resource"}]}])
    assert (found.whole(), found.shortfall) == (None, "the provider ran out of resources")
    assert heard("openai-chat", []).shortfall == "the stream broke off"


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (over("incomplete", incomplete_details={"reason": "max_output_tokens"}), Failure.CUT_SHORT),
        (over("incomplete", incomplete_details={"reason": "content_filter"}), Failure.REFUSED),
        (over("incomplete", incomplete_details={"reason": "a word of next year"}), Failure.CUT_SHORT),
        (over("incomplete"), Failure.CUT_SHORT),
        ({"type": "response.completed", "response": {"status": "incomplete"}}, Failure.CUT_SHORT),
        ({"type": "response.incomplete", "response": {"status": "completed"}}, Failure.CUT_SHORT),
        ({"type": "response.completed"}, None),
        (item(1, "done", type="custom_tool_call", name="apply"), Failure.CUT_SHORT),
        (item(1, "done", type="web_search_call"), Failure.CUT_SHORT),
    ],
)
def test_a_response_is_an_answer_when_it_says_so(event: dict[str, Any], expected: Failure | None) -> None:
    assert kind(heard("openai-responses", [item(0, "done", **message("x")), event])) is expected


@pytest.mark.parametrize("called", ["function_call", "custom_tool_call", "shell_call", "mcp_approval_request"])
def test_an_item_that_waits_for_the_host_is_a_call_and_one_that_does_not_is_none(called: str) -> None:
    said = [item(0, "done", **message("x")), item(2, "done", type="web_search_call"), over("completed")]
    assert kind(heard("openai-responses", said)) is None
    whole = heard("openai-responses", [item(1, "added", type=called), *said]).whole()
    assert whole
    assert shortfall(whole) == (Failure.BAD_REPLY, f"the model called {called!r}")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slowly", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slowly"}},
        over("failed", error={"code": "rate_limit_exceeded", "message": "slowly"}),
    ],
)
def test_a_response_that_fails_says_why_however_it_is_put(event: dict[str, Any]) -> None:
    found = heard("openai-responses", [event, over("failed", error={"code": "rate_limit_exceeded", "message": "slowly"})])
    assert found.error
    assert (found.error["code"], found.error["message"]) == ("rate_limit_exceeded", "slowly")


def test_a_response_that_fails_without_a_word_has_failed() -> None:
    assert heard("openai-responses", [over("failed", error=None)]).error
    assert ENDS["failed"][0] is None


def test_a_lone_surrogate_becomes_a_sign_that_can_be_written() -> None:
    assert heard("openai-chat", [{"choices": [{"delta": {"content": "\ud800"}}]}]).answer == "\ufffd"


def test_of_several_choices_the_first_counts() -> None:
    choices = [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]
    assert heard("openai-chat", [{"choices": choices}]).answer == "yes"


CALL = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("delta", "stop", "expected"),
    [
        ({"content": "a"}, "stop", None),
        ({"content": "a"}, "a word of next year", None),
        ({"content": "a"}, None, Failure.CUT_SHORT),
        ({"content": "a"}, "model_context_window_exceeded", Failure.CUT_SHORT),
        ({"content": "a", **CALL}, "stop", Failure.BAD_REPLY),
        ({"content": "a"}, "tool_calls", Failure.BAD_REPLY),
        ({"content": "<think>hm</think>"}, "stop", Failure.BAD_REPLY),
        ({"refusal": "no"}, "stop", Failure.REFUSED),
    ],
)
def test_an_answer_has_words_and_an_end(delta: dict[str, Any], stop: str | None, expected: Failure | None) -> None:
    assert kind(heard("openai-chat", [{"choices": [{"delta": delta, "finish_reason": stop}]}])) is expected


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
    assert without_thinking("<think>\nor {1}?\n</think>\n\nyes") == "yes"
    assert without_thinking("<think>open") == "<think>open"
    assert answer_in('<think>{"b": 2}</think>{"a": 1}', Question(messages=("x",), schema={})) == '{"a": 1}'
