import json
from hashlib import sha256
from typing import Any

import pytest
from dialect_messages import PNG, anthropic
from hypothesis import given
from hypothesis import strategies as st

from tenure.apis.anthropic import Anthropic, render_system
from tenure.apis.anthropic.markers import markers_of, place_markers, strip_markers
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

DIALECT = Anthropic()


def one(role: str, *parts: Any) -> Draft:
    (draft,) = DIALECT.parse([{"role": role, "content": list(parts)}])
    return draft


def piece(draft: Draft, *kept: int, **changed: Any) -> Piece:
    blocks = tuple(changed.get(f"b{n}", draft.blocks[n]) for n in kept)
    return Piece(role=draft.role, blocks=blocks, dialect=draft.dialect, payload=draft.payload, kept=kept, edited=True)


def whole(draft: Draft) -> Piece:
    return Piece(role=draft.role, blocks=draft.blocks, dialect=draft.dialect, payload=draft.payload)


def shown(*pieces: Piece) -> list[Any]:
    return [json.loads(message) for message in DIALECT.render(pieces)]


def said(text: str) -> Piece:
    return Piece(role=Role.USER, blocks=(Text(text=text, origin=Origin.HARNESS),))


CALL = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"b": 1, "a": 2}}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "body"}


def test_every_kind_of_part_has_its_block() -> None:
    draft = one("assistant", THINKING, {"type": "redacted_thinking", "data": "xyz"}, {"type": "text", "text": "hi"}, CALL)
    assert draft.blocks == (
        Thinking(text="hm", seal=sha256(b"c2ln").hexdigest()),
        Thinking(text="", seal=sha256(b"xyz").hexdigest()),
        Text(text="hi", origin=Origin.MODEL),
        ToolCall(call_id="toolu_1", name="read", arguments='{"b":1,"a":2}'),
    )


def test_a_user_message_mixes_results_and_words() -> None:
    draft = one("user", RESULT | {"is_error": True}, {"type": "text", "text": "go on"})
    assert draft.blocks == (ToolResult(call_id="toolu_1", text="body", error=True), Text(text="go on", origin=Origin.HUMAN))


def test_an_image_is_measured() -> None:
    (block,) = one("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}).blocks
    assert isinstance(block, Media)
    assert (block.media_type, block.width, block.height, block.size > 0) == ("image/png", 2, 3, True)


def test_documents_come_by_text_url_and_file() -> None:
    kinds = [{"type": "text", "media_type": "text/plain", "data": "words"}, {"type": "url", "url": "http://x/y.pdf"}]
    kinds.append({"type": "file", "file_id": "file_1"})
    blocks = one("user", *({"type": "document", "title": "T", "source": kind} for kind in kinds)).blocks
    assert [block.text for block in blocks] == ["T\nwords", "T\nhttp://x/y.pdf", "T\nfile_1"]


def test_an_unknown_part_is_opaque() -> None:
    part = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    (block,) = one("assistant", part).blocks
    assert isinstance(block, Opaque)
    assert (block.type, json.loads(block.text), block.origin) == ("server_tool_use", part, Origin.MODEL)


def test_a_list_result_joins_its_texts_and_keeps_its_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    draft = one("user", RESULT | {"content": [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]})
    (block,) = draft.blocks
    assert isinstance(block, ToolResult)
    assert (block.text, len(block.media)) == ("a\nb", 1)
    clipped = ToolResult(call_id="toolu_1", text="short", media=block.media)
    assert shown(piece(draft, 0, b0=clipped))[0]["content"][0]["content"] == [{"type": "text", "text": "short"}, image]


def test_a_cleared_result_keeps_its_other_fields() -> None:
    draft = one("user", RESULT | {"cache_control": {"type": "ephemeral"}, "x": 1})
    cleared = piece(draft, 0, b0=ToolResult(call_id="toolu_1", text="[read:1]"))
    expected = RESULT | {"content": "[read:1]", "cache_control": {"type": "ephemeral"}, "x": 1}
    assert shown(cleared)[0]["content"] == [expected]


def test_changed_signed_thinking_goes_whole() -> None:
    draft = one("assistant", THINKING, {"type": "text", "text": "hi"})
    assert shown(piece(draft, 0, 1, b0=Thinking(text="h")))[0]["content"] == [{"type": "text", "text": "hi"}]


def test_thinking_that_led_to_a_dropped_call_goes_with_it() -> None:
    draft = one("assistant", {"type": "text", "text": "hi"}, THINKING, CALL)
    assert shown(piece(draft, 0, 1))[0]["content"] == [{"type": "text", "text": "hi"}]
    assert shown(piece(one("assistant", THINKING, CALL), 0)) == []


def test_results_come_first_when_something_was_inserted_before_them() -> None:
    pieces = [whole(one("assistant", CALL)), said("pointer"), whole(one("user", RESULT))]
    assert shown(*pieces)[1:] == [{"role": "user", "content": [RESULT, {"type": "text", "text": "pointer"}]}]


def test_results_of_two_messages_come_before_the_words_between_them() -> None:
    second = RESULT | {"tool_use_id": "toolu_2"}
    pieces = [whole(one("user", RESULT)), said("note"), whole(one("user", second)), said("tail")]
    first, last = shown(*pieces)
    assert first["content"] == [RESULT, second, {"type": "text", "text": "note"}]
    assert last["content"] == [{"type": "text", "text": "tail"}]


def test_neighbours_in_a_valid_order_stay_apart_and_verbatim() -> None:
    messages = [
        b'{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}',
        b'{"role": "user", "content": "x"}',
    ]
    assert DIALECT.render([*map(whole, DIALECT.parse(messages)), said("y")])[:2] == tuple(messages)


def test_the_clients_own_odd_order_is_not_touched() -> None:
    messages = [b'{"role":"user","content":"x"}', b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}']
    assert DIALECT.render([whole(draft) for draft in DIALECT.parse(messages)]) == tuple(messages)


def test_reused_and_foreign_call_ids_are_made_fit_and_unique() -> None:
    call = Piece(role=Role.ASSISTANT, blocks=(ToolCall(call_id="functions.read:0", name="read", arguments="{}"),))
    result = Piece(role=Role.TOOL, blocks=(ToolResult(call_id="functions.read:0", text="x"),))
    messages = shown(call, result, call, result)
    ids = [part.get("id") or part.get("tool_use_id") for message in messages for part in message["content"]]
    assert ids == ["functions_read_0", "functions_read_0", "functions_read_0_2", "functions_read_0_2"]


def test_arguments_that_are_no_object_are_wrapped() -> None:
    call = Piece(role=Role.ASSISTANT, blocks=(ToolCall(call_id="c", name="patch", arguments="*** Begin"),))
    assert shown(call)[0]["content"][0]["input"] == {"arguments": "*** Begin"}


def test_a_reply_becomes_the_message_that_is_sent_back() -> None:
    content = '[{"type": "text", "text": "hi", "citations": null}]'
    usage = '{"input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 2}'
    draft = DIALECT.parse_reply(f'{{"id":"m","model":"claude","role":"assistant","content":{content},"usage":{usage}}}'.encode())
    assert draft.payload == f'{{"role":"assistant","content":{content}}}'.encode()
    assert (draft.model, draft.usage) == ("claude", Usage(uncached=3, cache_write=5, cache_read=7, output=2))


def test_the_system_prompt_goes_out_as_it_came_in() -> None:
    system = [{"type": "text", "text": "rules", "cache_control": {"type": "ephemeral"}}]
    head, _ = DIALECT.split({"system": system, "messages": []})
    assert json.loads(render_system(head.system)) == system
    foreign = Draft(role=Role.SYSTEM, blocks=(Text(text="rules", origin=Origin.HARNESS),))
    assert json.loads(render_system([foreign])) == [{"type": "text", "text": "rules"}]


def test_a_pdf_from_a_chat_file_keeps_its_bytes() -> None:
    from tenure.apis.openai_chat import OpenAIChat

    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
    (draft,) = OpenAIChat().parse([{"role": "user", "content": [file]}])
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert shown(whole(draft))[0]["content"] == [{"type": "document", "source": source}]


def test_media_without_bytes_become_a_note() -> None:
    draft = one("user", {"type": "image", "source": {"type": "file", "file_id": "file_1"}})
    neutral = Piece(role=Role.USER, blocks=draft.blocks)
    assert shown(neutral)[0]["content"] == [{"type": "text", "text": "[media, file_1]"}]


@given(anthropic(), st.lists(st.integers(-3, 3), max_size=4), st.sampled_from(["", "1h"]))
def test_markers_change_neither_the_entry_nor_the_stripped_message(messages: list[Any], positions: list[int], ttl: str) -> None:
    listed = [
        m if isinstance(m["content"], list) else m | {"content": [{"type": "text", "text": m["content"]}]} for m in messages
    ]
    plain = [json.dumps(message).encode() for message in listed]
    marked = place_markers(plain, [position for position in positions if -len(plain) <= position < len(plain)], ttl)
    assert [strip_markers(message) for message in marked] == plain
    one, other = Chain(), Chain()
    for a, b in zip(DIALECT.parse(plain), DIALECT.parse(marked), strict=True):
        if not any(isinstance(block, Opaque) for block in b.blocks):
            assert one.place(a, (0,) * len(a.blocks)).id == other.place(b, (0,) * len(b.blocks)).id


def test_markers_are_stripped_from_parts_but_not_from_what_a_tool_was_given() -> None:
    call = CALL | {"input": {"cache_control": 1}, "cache_control": {"type": "ephemeral"}}
    stripped = json.loads(strip_markers(json.dumps({"role": "assistant", "content": [call]}).encode()))
    assert stripped["content"] == [CALL | {"input": {"cache_control": 1}}]


def test_thinking_carries_no_marker() -> None:
    message = json.dumps({"role": "assistant", "content": [{"type": "text", "text": "a"}, THINKING]}).encode()
    (marked,) = place_markers([message], [-1])
    assert ["cache_control" in part for part in json.loads(marked)["content"]] == [True, False]


def test_objects_of_the_sdk_may_stand_in_a_dictionary() -> None:
    from anthropic.types import TextBlock

    block = TextBlock.model_validate({"type": "text", "text": "hi"})
    assert one("assistant", block).blocks == (Text(text="hi", origin=Origin.MODEL),)


def test_markers_of_the_head_are_counted() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    body = {"system": [{"type": "text", "text": "a"} | mark], "tools": [{"name": "t"}, {"name": "u"} | mark], "messages": []}
    assert [len(markers_of(request)) for request in (body, body | mark, {"system": "a"})] == [2, 3, 0]


def test_markers_inside_results_and_documents_are_stripped_too() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    text = {"type": "text", "text": "a", **mark}
    document = {"type": "document", "source": {"type": "content", "content": [text]}, **mark}
    parts = [{"type": "tool_result", "tool_use_id": "c", "content": [document, text]}, document, "cache_control"]
    assert b"ephemeral" not in strip_markers(json.dumps({"role": "user", "content": parts, **mark}).encode())


def test_a_marker_needs_a_message() -> None:
    with pytest.raises(InputError, match="positions"):
        place_markers([b"{}"], [1])


def test_a_system_prompt_may_be_null() -> None:
    assert DIALECT.split(b'{"system": null, "messages": []}')[0].system == ()


def test_words_before_a_result_in_its_own_message_come_behind_it() -> None:
    first, last = {"type": "text", "text": "before"}, {"type": "text", "text": "behind"}
    (message,) = shown(whole(one("user", first, RESULT, last)))
    assert message["content"] == [RESULT, first, last]
    second = RESULT | {"tool_use_id": "toolu_2"}
    (message,) = shown(whole(one("user", first, RESULT)), whole(one("user", second, last)))
    assert message["content"] == [RESULT, second, first, last]


def test_blank_texts_of_the_host_or_the_model_are_not_sent() -> None:
    blank, words = {"type": "text", "text": " \n"}, {"type": "text", "text": "words"}
    assert shown(whole(one("user", words, blank)))[0]["content"] == [words]
    assert shown(whole(one("user", RESULT | {"content": [blank, words]})))[0]["content"] == [RESULT | {"content": [words]}]
    assert shown(whole(one("assistant"))) == []
    (draft,) = DIALECT.parse([{"role": "user", "content": ""}])
    assert shown(whole(draft)) == []


def test_a_systems_message_without_words_carries_settings_and_stays() -> None:
    setting = b'{"role":"system","content":[],"output_config":{"effort":"low"}}'
    assert DIALECT.render([whole(draft) for draft in DIALECT.parse([setting])]) == (setting,)
