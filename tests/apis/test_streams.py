"""Replies put together from streams: as the SDKs bring them, and as servers that are only almost compatible do."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis import APIS
from tenure.apis.reply import Delta, ReplyStream, WholeReply, call_of
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Text, Thinking, ToolCall, Usage
from tenure.testing.script import Call, Reply, events, wire


def taken(assembly: ReplyStream, stream: Iterable[object]) -> list[Delta]:
    return [spoken for event in stream for spoken in assembly.take(event)]


def chunk(delta: object, stop: str | None = None) -> dict[str, object]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def chat(*deltas: object, stop: str = "stop") -> WholeReply:
    assembly = APIS["openai-chat"].reply()
    taken(assembly, [*map(chunk, deltas), chunk({}, stop)])
    whole = assembly.whole()
    assert whole is not None
    return whole


def message(whole: WholeReply) -> dict[str, object]:
    return json.loads(whole.reply)["choices"][0]["message"]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: text == text.strip())


@given(st.sampled_from(sorted(APIS)), texts, texts, st.lists(st.builds(Call, name=st.sampled_from(["read", "ls"])), max_size=3))
def test_what_a_stream_brings_is_what_the_whole_response_says(dialect: str, text: str, thinking: str, calls: list[Call]) -> None:
    reply = Reply(text=text, thinking=thinking, calls=tuple(calls))
    body = {"model": "m", "messages": [], "input": []}
    response = wire(reply, 0, body, rules_for("", "m", dialect), Usage(uncached=5, output=3))
    stream = [
        json.loads(data[6:])
        for event in events(response, dialect, include_usage=True)
        for data in event.split(b"\n")
        if b"data: {" in data
    ]
    assembly = APIS[dialect].reply()
    spoken = taken(assembly, stream)
    whole = assembly.whole()
    assert whole is not None
    parsed, wanted = APIS[dialect].parse_reply(whole.reply), APIS[dialect].parse_reply(response)
    assert (parsed.usage, parsed.model) == (wanted.usage, wanted.model)
    assert [block for block in parsed.blocks if block.text or isinstance(block, ToolCall)] == [
        block for block in wanted.blocks if block.text or isinstance(block, ToolCall)
    ]
    assert "".join(each.text for each in spoken if each.kind == "text") == whole.text == text
    assert "".join(each.text for each in spoken if each.kind == "thinking") == thinking
    assert [made.tool for made in whole.calls] == [call.name for call in calls]


@given(
    st.sampled_from(sorted(APIS)),
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: (
                st.lists(inner)
                | st.dictionaries(
                    st.sampled_from(["type", "choices", "delta", "index", "tool_calls", "content_block", "item", "usage"]), inner
                )
            ),
        )
    ),
)
def test_events_of_any_shape_are_nothing_rather_than_an_error(dialect: str, stream: list[object]) -> None:
    assembly = APIS[dialect].reply()
    taken(assembly, stream)
    assert assembly.whole() is None


@pytest.mark.parametrize("dialect", APIS)
def test_a_stream_that_ends_without_saying_why_has_no_end(dialect: str) -> None:
    response = wire(Reply(text="Hello, you."), 0, {"model": "m"}, rules_for("", "m", dialect), Usage())
    stream = [json.loads(data[6:]) for event in events(response, dialect) for data in event.split(b"\n") if b"data: {" in data]
    assembly = APIS[dialect].reply()
    taken(assembly, stream[:-2])
    assert assembly.whole() is None
    assert assembly.begun
    assert assembly.text.startswith("Hel")


@pytest.mark.parametrize(
    ("text", "kept", "broken"),
    [
        ("", "{}", False),
        ('{"a": 1E2}', '{"a": 1E2}', False),
        ('{"a"', '{"arguments":"{\\"a\\""}', True),
        ("[1]", '{"arguments":[1]}', True),
        ("null", '{"arguments":null}', True),
    ],
)
def test_arguments_that_are_no_object_are_kept_in_one(text: str, kept: str, broken: bool) -> None:
    made = call_of("c", "ls", text, [])
    assert (made.arguments, bool(made.broken)) == (kept, broken)


# --- Chat Completions, as it is spoken elsewhere


def test_calls_without_an_index_are_told_apart_by_their_ids_or_come_whole() -> None:
    two = [{"id": each, "function": {"name": "ls", "arguments": "{}"}} for each in ("c1", "c2")]
    assert [made.call_id for made in chat({"tool_calls": two}).calls] == ["c1", "c2"]
    parts = [
        {"tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": '{"a"'}}]},
        {"tool_calls": [{"function": {"arguments": ":1}"}}]},
    ]
    assert [made.arguments for made in chat(*parts).calls] == ['{"a":1}']


def test_arguments_may_come_as_an_object_and_ids_may_be_missing() -> None:
    (made,) = chat({"tool_calls": [{"index": 0, "function": {"name": "ls", "arguments": {"path": "."}}}]}).calls
    assert (made.call_id, made.arguments, made.broken) == ("call_0", '{"path":"."}', "")


def test_what_stands_beside_a_call_goes_back_to_the_provider() -> None:
    signed = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "extra_content": {"google": {"thought_signature": "s"}},
        "function": {"name": "ls"},
    }
    (call,) = message(chat({"tool_calls": [signed]}))["tool_calls"]
    assert call["extra_content"] == {"google": {"thought_signature": "s"}}
    assert call["function"]["arguments"] == "{}"


def test_reasoning_is_kept_under_the_name_it_came_by_and_told_once() -> None:
    assembly = APIS["openai-chat"].reply()
    spoken = taken(assembly, [chunk({"reasoning": "hm", "reasoning_content": "hm"}), chunk({"content": "ok"}, "stop")])
    assert [each.text for each in spoken] == ["hm", "ok"]
    details = [
        {"type": "reasoning.text", "index": 0, "text": "a"},
        {"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"},
    ]
    whole = chat(*({"reasoning_details": [each]} for each in details), {"content": "ok"})
    assert message(whole)["reasoning_details"] == [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}]


def test_an_error_in_the_stream_is_kept() -> None:
    assembly = APIS["openai-chat"].reply()
    taken(assembly, [chunk({"content": "a"}), {"error": "overloaded"}])
    assert assembly.error == {"message": "overloaded"}


# --- Responses


def test_items_that_were_done_stand_in_for_a_response_that_leaves_them_out() -> None:
    item = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
    assembly = APIS["openai-responses"].reply()
    done = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
    taken(assembly, [{"type": "response.output_item.done", "output_index": 0, "item": item}, done])
    whole = assembly.whole()
    assert whole is not None
    assert whole.text == "Hi."
    assert APIS["openai-responses"].parse_reply(whole.reply).blocks == (Text(text="Hi.", origin="model"),)


def test_reasoning_that_is_not_sealed_is_left_out_and_what_followed_loses_its_ids() -> None:
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": ""},
    ]
    for sealed in (False, True):
        items = [dict(output[0], encrypted_content="s"), *output[1:]] if sealed else output
        assembly = APIS["openai-responses"].reply()
        taken(assembly, [{"type": "response.completed", "response": {"status": "completed", "output": items}}])
        whole = assembly.whole()
        assert whole is not None
        kept = json.loads(whole.reply)["output"]
        assert [item["type"] for item in kept] == (["reasoning"] if sealed else []) + ["message", "function_call"]
        assert all(("id" in item) is sealed for item in kept)
        assert whole.calls[0].arguments == "{}"


@pytest.mark.parametrize(
    ("response", "ended"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        ({"status": "incomplete"}, "length"),
        ({}, "done"),
    ],
)
def test_a_response_says_how_it_ended(response: dict[str, object], ended: str) -> None:
    assembly = APIS["openai-responses"].reply()
    taken(assembly, [{"type": "response.completed", "response": response}])
    whole = assembly.whole()
    assert whole is not None
    assert whole.end == ended


# --- Messages


def test_blocks_of_every_kind_are_kept_as_the_provider_spelled_them() -> None:
    stream = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "claude", "usage": {"input_tokens": 9}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "xyz"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1E2, '}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '"b": "é"}'}},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "t2", "name": "ls", "input": {"c": 1}}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]  # fmt: skip
    assembly = APIS["anthropic"].reply()
    taken(assembly, stream)
    whole = assembly.whole()
    assert whole is not None
    assert whole.usage == Usage(uncached=9, output=7)
    draft = APIS["anthropic"].parse_reply(whole.reply)
    assert [type(block) for block in draft.blocks] == [Thinking, Thinking, ToolCall, ToolCall]
    assert b'"input":{"a": 1E2, "b": "\xc3\xa9"}' in whole.reply
    assert [made.arguments for made in whole.calls] == ['{"a": 1E2, "b": "é"}', '{"c":1}']
    assert b'"signature":"abc"' in whole.reply


def test_a_long_stream_takes_no_more_than_its_length() -> None:
    assembly = APIS["openai-chat"].reply()
    call = {"index": 0, "id": "c", "function": {"name": "write", "arguments": "x" * 10}}
    taken(assembly, (chunk({"tool_calls": [call]}) for _ in range(20_000)))
    taken(assembly, [chunk({}, "tool_calls")])
    whole = assembly.whole()
    assert whole is not None
    assert len(whole.calls[0].arguments) > 200_000


def test_signed_thinking_of_litellms_streams_is_kept_block_by_block() -> None:
    pieces = [
        {"type": "thinking", "thinking": "a"},
        {"type": "thinking", "thinking": "b"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "thinking", "thinking": "c"},
        {"type": "thinking", "thinking": "", "signature": "t"},
    ]
    whole = chat(*({"thinking_blocks": [each]} for each in pieces), {"content": "ok"})
    assert message(whole)["thinking_blocks"] == [
        {"type": "thinking", "thinking": "ab", "signature": "s"},
        {"type": "thinking", "thinking": "c", "signature": "t"},
    ]


def test_thinking_that_comes_whole_again_with_its_signature_is_not_doubled() -> None:
    pieces = [{"type": "thinking", "thinking": text} for text in "ab"]
    pieces.append({"type": "thinking", "thinking": "ab", "signature": "s"})
    whole = chat(*({"thinking_blocks": [each]} for each in pieces), {"content": "ok"})
    assert message(whole)["thinking_blocks"] == [{"type": "thinking", "thinking": "ab", "signature": "s"}]
