import json
from typing import Any

from dialect_messages import PNG

from tenure.apis.api import Head
from tenure.apis.openai_chat import OpenAIChat
from tenure.engine.record.entry import Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.engine.view.piece import Piece

DIALECT = OpenAIChat()
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"a":1}'}, "x": 1}
CUSTOM = {"id": "call_2", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}


def one(**message: Any) -> Draft:
    (draft,) = DIALECT.parse([message])
    return draft


def piece(draft: Draft, *kept: int, **changed: Any) -> Piece:
    blocks = tuple(changed.get(f"b{n}", draft.blocks[n]) for n in kept)
    return Piece(role=draft.role, blocks=blocks, dialect=draft.dialect, payload=draft.payload, kept=kept, edited=True)


def shown(*pieces: Piece) -> list[Any]:
    return [json.loads(message) for message in DIALECT.render(pieces)]


def test_an_assistant_message_has_its_blocks_in_order() -> None:
    draft = one(role="assistant", content="hi", reasoning_content="hm", tool_calls=[CALL, CUSTOM], refusal=None)
    assert draft.blocks == (
        Thinking(text="hm"),
        Text(text="hi", origin=Origin.MODEL),
        ToolCall(call_id="call_1", name="read", arguments='{"a":1}'),
        ToolCall(call_id="call_2", name="patch", arguments="*** Begin"),
    )


def test_reasoning_details_are_one_block_and_sealed_by_their_signatures() -> None:
    details = [{"type": "reasoning.text", "text": "a", "signature": "s"}, {"type": "reasoning.encrypted", "data": "d"}]
    draft = one(role="assistant", content="hi", reasoning="a", reasoning_details=details)
    assert isinstance(draft.blocks[0], Thinking)
    assert (draft.blocks[0].text, draft.blocks[0].signed) == ("a", True)
    assert shown(piece(draft, 1)) == [{"role": "assistant", "content": "hi"}]


def test_a_dropped_call_leaves_the_others_as_they_were() -> None:
    draft = one(role="assistant", content=None, tool_calls=[CALL, CUSTOM], x=2)
    assert shown(piece(draft, 1)) == [{"role": "assistant", "content": None, "tool_calls": [CUSTOM], "x": 2}]


def test_dropping_all_calls_takes_their_list_out() -> None:
    assert shown(piece(one(role="assistant", content="hi", tool_calls=[CALL]), 0)) == [{"role": "assistant", "content": "hi"}]


def test_dropping_the_words_leaves_an_empty_content() -> None:
    draft = one(role="assistant", content="hi", tool_calls=[CALL])
    assert shown(piece(draft, 1)) == [{"role": "assistant", "content": "", "tool_calls": [CALL]}]


def test_reasoning_alone_is_not_rendered() -> None:
    assert shown(piece(one(role="assistant", content="hi", reasoning_content="hm"), 0)) == []


def test_a_legacy_function_call_and_its_answer_pair_by_name() -> None:
    call = one(role="assistant", content=None, function_call={"name": "f", "arguments": "{}"})
    answer = one(role="function", name="f", content="42")
    assert call.blocks == (ToolCall(call_id="f", name="f", arguments="{}"),)
    assert answer.blocks == (ToolResult(call_id="f", text="42"),)
    replaced = piece(answer, 0, b0=ToolResult(call_id="f", text="-"))
    assert shown(replaced) == [{"role": "function", "name": "f", "content": "-"}]


def test_images_files_audio_and_unknown_parts() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "hologram", "data": 1},
    ]
    blocks = one(role="user", content=parts).blocks
    kinds = [(block.media_type, block.width) if isinstance(block, Media) else block.text for block in blocks]
    assert kinds == [("image/png", 2), ("", 0), ("", 0), ("audio/wav", 0), '{"type":"hologram","data":1}']
    assert isinstance(blocks[-1], Opaque)


def test_a_tool_result_with_images_of_another_dialect_names_them() -> None:
    media = Media(media_type="image/png", sha256="0", width=2, height=3, origin=Origin.TOOL)
    result = Piece(role=Role.TOOL, blocks=(ToolResult(call_id="c", text="seen", media=(media,)),))
    assert shown(result) == [{"role": "tool", "tool_call_id": "c", "content": "seen\n[image/png, 2x3]"}]


def test_an_anthropic_user_message_comes_apart() -> None:
    blocks = (ToolResult(call_id="c", text="body"), Text(text="go on", origin=Origin.HUMAN))
    assert [message["role"] for message in shown(Piece(role=Role.USER, blocks=blocks))] == ["tool", "user"]


def test_a_completion_becomes_its_message() -> None:
    message = '{"role": "assistant", "content": "hi", "refusal": null}'
    usage = '{"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}'
    reply = f'{{"model":"gpt","created":1700000000,"choices":[{{"message":{message}}}],"usage":{usage}}}'.encode()
    draft = DIALECT.parse_reply(reply)
    assert draft.payload == message.encode()
    assert (draft.at, draft.model) == ("", "gpt")  # the server's clock is not ours
    assert draft.usage == Usage(uncached=6, cache_read=4, output=2)


def test_deepseek_names_cache_hits_otherwise() -> None:
    usage = {"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2, "completion_tokens": 1}
    assert DIALECT.parse_usage(usage) == Usage(uncached=2, cache_read=8, output=1)


def test_the_heads_system_prompts_are_the_first_messages() -> None:
    prompt = Draft(role=Role.SYSTEM, blocks=(Text(text="rules", origin=Origin.HARNESS),))
    body = json.loads(DIALECT.join(Head(system=(prompt,), fields={"model": "m"}), [b'{"role":"user","content":"x"}']))
    assert body == {"model": "m", "messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": "x"}]}


def test_a_reply_with_neither_content_nor_calls_is_not_sent_back() -> None:
    for nothing in ({"content": None}, {"content": []}, {}, {"content": None, "reasoning_content": "hm"}):
        draft = one(role="assistant", **nothing)
        assert shown(Piece(role=draft.role, blocks=draft.blocks, dialect="openai-chat", payload=draft.payload)) == []
    draft = one(role="assistant", content="")
    assert shown(Piece(role=draft.role, blocks=draft.blocks, dialect="openai-chat", payload=draft.payload)) != []
