import pytest
from session_reading import FIXTURES, calls, chunked, drafts, events, results, said, skipped

from tenure.engine.record.entry import Role
from tenure.logs.detect import read
from tenure.logs.messages import ApiMessages

NAMES = {
    "openai_chat.json": "openai-messages",
    "openai_lines.jsonl": "openai-messages",
    "anthropic_request.json": "anthropic-messages",
    "responses_request.json": "openai-responses",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_api_is_told_from_the_content(name: str) -> None:
    assert read(chunked((FIXTURES / name).read_bytes()))[0].name == NAMES[name]


@pytest.mark.parametrize("name", ["openai_chat.json", "anthropic_request.json", "responses_request.json"])
def test_system_prompt_question_call_and_result_are_read(name: str) -> None:
    found = events(name)
    assert drafts(found)[0].role is Role.SYSTEM
    assert [text for _, text in said(found)][:4] == ["Be helpful.", "What is the weather?", '{"city": "Oslo"}', "Rain."]
    assert calls(found) == results(found)


def test_payloads_are_the_messages_bytes() -> None:
    source = (FIXTURES / "openai_chat.json").read_bytes()
    assert all(draft.payload in source for draft in drafts(events("openai_chat.json")))


def test_a_message_of_no_known_shape_is_skipped() -> None:
    found = list(read([b'[{"role":"user","content":"a"},{"role":"nobody"},{"role":"user","content":"b"}]'])[1])
    assert [text for _, text in said(found)] == ["a", "b"]
    assert "nobody" in skipped(found)[0].reason


def test_adjacent_items_of_a_reply_share_a_draft() -> None:
    items = b'[{"type":"reasoning","id":"r","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]'
    reader, found = read([items])
    assert isinstance(reader, ApiMessages)
    assert [len(draft.blocks) for draft in drafts(found)] == [2]
