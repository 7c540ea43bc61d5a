import json

from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Media, Origin, Role, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.detect import detect, read
from tenure.logs.goose import Goose
from tenure.logs.reader import Event
from work import growth


def session(*messages: object) -> list[Event]:
    return list(Goose().read([json.dumps({"working_dir": "/w", "conversation": list(messages)}).encode()]))


def message(role: str, text: str, *, user: bool = True, agent: bool = True) -> dict[str, object]:
    shown = {"userVisible": user, "agentVisible": agent}
    return {"role": role, "created": 1, "content": [{"type": "text", "text": text}], "metadata": shown}


def test_both_forms_are_recognised_and_the_order_of_keys_does_not_matter() -> None:
    for name in ("goose_lines.jsonl", "goose_export.json"):
        reader = detect((FIXTURES / name).read_bytes())
        assert reader is not None
        assert reader.name == "goose"
    value = json.loads((FIXTURES / "goose_export.json").read_bytes())
    for text in (json.dumps(value, sort_keys=True), json.dumps({"conversation": value["conversation"]})):
        reader, found = read([text.encode()])
        assert reader.name == "goose"
        assert drafts(found)[0].blocks[0].text == "Tidy the folder."


def test_lines_without_the_sessions_own_are_read() -> None:
    data = (FIXTURES / "goose_lines.jsonl").read_bytes().partition(b"\n")[2]
    reader, found = read([data])
    assert reader.name == "goose"
    assert len(drafts(found)) == len(drafts(events("goose_lines.jsonl")))


def test_what_is_for_the_users_eyes_is_left_out() -> None:
    texts = [text for _, text in said(events("goose_lines.jsonl"))]
    assert "1 a" in texts
    assert not any("**1 a**" in text or "Allow?" in text or "too long" in text for text in texts)


def test_words_and_calls_of_one_answer_are_one_draft_before_the_results() -> None:
    found = events("goose_lines.jsonl")
    answer, returned = drafts(found)[1:3]
    assert [type(block).__name__ for block in answer.blocks] == ["Thinking", "Text", "ToolCall", "ToolCall"]
    assert returned.role is Role.TOOL
    assert calls(found) == results(found) == ["c1", "c2"]


def test_a_call_that_could_not_be_read_keeps_what_is_known_of_it() -> None:
    call = next(block for block in blocks(events("goose_lines.jsonl")) if isinstance(block, ToolCall) and block.call_id == "c2")
    result = next(block for block in blocks(events("goose_lines.jsonl")) if isinstance(block, ToolResult) and block.error)
    assert call.arguments == "Could not interpret tool use parameters"
    assert result.text == "no such call"


def test_pictures_are_the_tools_in_results_and_the_humans_beside_them() -> None:
    found = blocks(events("goose_lines.jsonl"))
    assert [block.origin for block in found if isinstance(block, Media)] == [Origin.HUMAN]
    assert [len(block.media) for block in found if isinstance(block, ToolResult)] == [1, 0]


def test_an_error_that_goose_put_into_the_models_mouth_is_the_harness() -> None:
    (error,) = [block for block in blocks(events("goose_lines.jsonl")) if block.text.startswith("Ran into")]
    assert error.origin is Origin.HARNESS


def test_compactions_stand_at_their_summaries() -> None:
    found = events("goose_export.json")
    first, second, calls_gone = rewritten(found)
    assert (first.drop_before, first.kept) == (2, ())
    assert (second.drop_before, second.kept) == (5, ())
    assert (calls_gone.drop_before, calls_gone.kept) == (10, (5, 6, 7))
    assert drafts(found)[first.drop_before].blocks[0].text == "First summary."
    assert drafts(found)[second.drop_before].blocks[0].text == "Second summary."


def test_what_goose_hides_from_the_user_is_its_own_but_for_the_humans_words() -> None:
    shown = {draft.blocks[0].text[:20]: draft.blocks[0].origin for draft in drafts(events("goose_export.json"))}
    assert shown["Second summary."] is Origin.HARNESS
    assert shown["Something of goose's"] is Origin.HARNESS
    assert shown["Now the names."] is Origin.HUMAN
    assert shown["Start working toward"] is Origin.HUMAN


def test_what_was_never_for_the_agent_is_left_out_and_counted() -> None:
    found = events("goose_export.json")
    assert not any(text in ("/compact", "Goal set.") for _, text in said(found))
    assert any("for the user alone" in each.reason and "2 times" in each.reason for each in skipped(found))


def test_without_a_compaction_hidden_words_were_never_sent() -> None:
    found = session(message("user", "Hi."), message("assistant", "Status: fine", agent=False), message("assistant", "Hello."))
    assert [text for _, text in said(found)] == ["Hi.", "Hello."]
    assert rewritten(found) == []


def test_messages_that_a_compaction_spared_stay() -> None:
    found = session(
        message("user", "Old.", agent=False),
        message("assistant", "Newer."),
        message("user", "Summary.", user=False),
        message("assistant", "The previous message contains a summary of it.", user=False),
    )
    assert [(each.drop_before, each.kept) for each in rewritten(found)] == [(1, ())]
    assert [block.origin for block in blocks(found)] == [Origin.HUMAN, Origin.MODEL, Origin.HARNESS, Origin.HARNESS]


def test_thinking_copied_beside_a_parallel_call_is_read_once() -> None:
    thoughts = [block.text for block in blocks(events("goose_export.json")) if isinstance(block, Thinking)]
    assert thoughts == ["Rename."]


def test_a_call_handed_to_the_users_side_is_not_a_second_one() -> None:
    assert calls(events("goose_export.json")) == ["c1", "c2"]


def test_usage_counts_cached_tokens_once_and_models_are_the_messages_or_the_sessions() -> None:
    answers = [draft for draft in drafts(events("goose_export.json")) if draft.model]
    assert answers[0].usage == Usage(uncached=10, cache_write=30, cache_read=60, output=7)
    assert [draft.model for draft in answers][:2] == ["model-y", "model-x"]


def test_a_damaged_message_costs_only_itself() -> None:
    found = session(message("user", "Hi."), {"role": "user", "content": "text"}, 3, message("assistant", "Hello."))
    assert len(drafts(found)) == 2
    assert len(skipped(found)) == 2


def test_hidden_calls_and_compactions_are_read_in_linear_steps() -> None:
    call = {"type": "toolRequest", "id": "c", "toolCall": {"status": "success", "value": {"name": "x", "arguments": {}}}}
    hidden = {"role": "assistant", "created": 1, "content": [call], "metadata": {"userVisible": True, "agentVisible": False}}
    several = [hidden, message("user", "It was called.", user=False), message("user", "Go on.")]
    ends = [message("user", "S", user=False), message("assistant", "The previous message contains a summary", user=False)]
    assert len(drafts(session(*several * 500, *ends * 250))) == 2000
    assert growth(lambda n: lambda: session(*several * n), 100) < 6
    assert growth(lambda n: lambda: session(*several * n, *ends * n), 100) < 6
