import json
from typing import Any

from dialect_messages import PNG

from tenure.apis.openai_responses import OpenAIResponses
from tenure.engine.record.entry import Draft, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.engine.view.piece import Piece

DIALECT = OpenAIResponses()
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}
WORDS = {"type": "output_text", "text": "hi", "annotations": []}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [WORDS],
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"a":1}', "status": "completed"}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "body"}


def piece(draft: Draft, *kept: int, **changed: Any) -> Piece:
    blocks = tuple(changed.get(f"b{n}", draft.blocks[n]) for n in kept)
    return Piece(role=draft.role, blocks=blocks, dialect=draft.dialect, payload=draft.payload, kept=kept, edited=True)


def shown(*pieces: Piece) -> list[Any]:
    return [json.loads(message) for message in DIALECT.render(pieces)]


def test_what_the_model_made_in_a_row_is_one_draft() -> None:
    items: list[Any] = [{"role": "user", "content": "go"}, REASONING, MESSAGE, CALL, CUSTOM, OUTPUT]
    drafts = DIALECT.parse(items)
    assert [draft.role for draft in drafts] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [type(block) for block in drafts[1].blocks] == [Thinking, Text, ToolCall, ToolCall]
    assert json.loads(drafts[1].payload) == items[1:5]


def test_every_item_field_survives_an_edit_of_its_neighbours() -> None:
    (draft,) = DIALECT.parse([REASONING, MESSAGE, CALL, CUSTOM])
    assert shown(piece(draft, 0, 1, 3)) == [REASONING, MESSAGE, CUSTOM]
    assert shown(piece(draft, 1, b1=Text(text="h", origin=Origin.MODEL))) == [MESSAGE | {"content": [WORDS | {"text": "h"}]}]


def test_reasoning_goes_with_everything_it_led_to() -> None:
    other = REASONING | {"id": "rs_2"}
    (draft,) = DIALECT.parse([REASONING, MESSAGE, CALL, other, CUSTOM])
    assert shown(piece(draft, 0, 3, 4)) == [other, CUSTOM]
    assert shown(piece(draft, 0, 2, 3)) == [REASONING, CALL]


def test_reasoning_is_sealed_by_its_content_or_its_id() -> None:
    (draft,) = DIALECT.parse(
        [REASONING, REASONING | {"encrypted_content": None}, REASONING | {"encrypted_content": None, "id": "rs_2"}]
    )
    seals = {block.seal for block in draft.blocks if isinstance(block, Thinking)}
    assert len(seals) == 3
    assert shown(piece(draft, 0, b0=Thinking(text="h"))) == []


def test_a_cleared_output_keeps_its_item() -> None:
    (draft,) = DIALECT.parse([OUTPUT | {"id": "fco_1", "status": "completed"}])
    cleared = shown(piece(draft, 0, b0=ToolResult(call_id="call_1", text="-")))
    assert cleared == [OUTPUT | {"id": "fco_1", "status": "completed", "output": "-"}]


def test_a_list_output_keeps_the_images_that_are_shown() -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    (draft,) = DIALECT.parse([OUTPUT | {"output": [{"type": "input_text", "text": "body"}, image]}])
    (block,) = draft.blocks
    assert isinstance(block, ToolResult)
    assert (block.text, block.media[0].width) == ("body", 2)
    clipped = ToolResult(call_id="call_1", text="-", media=block.media)
    assert shown(piece(draft, 0, b0=clipped))[0]["output"] == [{"type": "input_text", "text": "-"}, image]


def test_local_shell_and_hosted_tools() -> None:
    shell = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_3", "action": {"type": "exec", "command": ["ls"]}}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    (draft,) = DIALECT.parse([shell, search])
    call, opaque = draft.blocks
    assert call == ToolCall(call_id="call_3", name="local_shell", arguments='{"type":"exec","command":["ls"]}')
    assert isinstance(opaque, Opaque)
    assert opaque.type == "web_search_call"


def test_developer_items_belong_to_the_harness() -> None:
    (draft,) = DIALECT.parse([{"role": "developer", "content": [{"type": "input_text", "text": "rules"}]}])
    assert (draft.role, draft.blocks[0].origin) == (Role.SYSTEM, Origin.HARNESS)


def test_a_result_inserted_for_a_custom_call_is_of_its_kind() -> None:
    (draft,) = DIALECT.parse([CUSTOM])
    call = Piece(role=draft.role, blocks=draft.blocks, dialect=draft.dialect, payload=draft.payload)
    result = Piece(role=Role.TOOL, blocks=(ToolResult(call_id="call_2", text="ok"),))
    assert shown(call, result)[1] == {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"}


def test_a_string_as_input_and_instructions() -> None:
    head, messages = DIALECT.split({"model": "m", "instructions": "rules", "input": "hello"})
    assert messages == (b'{"role":"user","content":"hello"}',)
    assert json.loads(DIALECT.join(head, messages))["instructions"] == "rules"


def test_a_response_becomes_its_output() -> None:
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}
    draft = DIALECT.parse_reply({"model": "gpt", "created_at": 1700000000.0, "output": [REASONING, CALL], "usage": usage})
    assert json.loads(draft.payload) == [REASONING, CALL]
    assert (draft.usage, draft.at) == (Usage(uncached=6, cache_read=4, output=3), "")  # the server's clock is not ours
    assert DIALECT.parse([REASONING, CALL])[0].blocks == draft.blocks


def test_an_item_without_type_or_role_is_refused_or_a_reference() -> None:
    (draft,) = DIALECT.parse([{"id": "msg_1"}])
    assert isinstance(draft.blocks[0], Opaque)


def test_a_screenshot_is_the_media_of_its_output_and_stays() -> None:
    screenshot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}
    item = {"type": "computer_call_output", "call_id": "call_1", "output": screenshot}
    (draft,) = DIALECT.parse([item])
    (block,) = draft.blocks
    assert isinstance(block, ToolResult)
    assert (block.text, block.media[0].width) == ("", 2)
    assert shown(piece(draft, 0, b0=ToolResult(call_id="call_1", text="-"))) == [item]
