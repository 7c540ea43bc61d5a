import json

from session_reading import blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Media, Origin, Role, ToolResult, Usage
from tenure.logs.opencode import OpenCode


def test_each_step_is_an_assistant_draft_followed_by_its_results() -> None:
    roles = [draft.role.value for draft in drafts(events("opencode.json"))]
    assert roles[:5] == ["user", "assistant", "tool", "tool", "assistant"]


def test_usage_is_the_steps_own() -> None:
    first, second = [draft.usage for draft in drafts(events("opencode.json")) if draft.role is Role.ASSISTANT][:2]
    assert first == Usage(uncached=10, cache_write=3, cache_read=7, output=7)
    assert second == Usage(uncached=20, output=6)


def test_a_call_that_had_not_ended_has_no_result() -> None:
    found = events("opencode.json")
    assert calls(found) == ["c1", "c2", "c3"]
    assert results(found) == ["c1", "c2"]


def test_an_error_is_the_result() -> None:
    errors = [block for block in blocks(events("opencode.json")) if isinstance(block, ToolResult) and block.error]
    assert [error.text for error in errors] == ["no such file"]


def test_a_pruning_comes_before_the_first_message_after_it() -> None:
    found = events("opencode.json")
    pruning = rewritten(found)[0]
    assert pruning.cleared == ("c1",)
    assert ("Text", "Fix it.") in said(found[: found.index(pruning)])
    assert ("ToolCall", '{"path":"a"}') in said(found[found.index(pruning) :])


def test_a_summary_drops_what_came_before_its_question() -> None:
    found = events("opencode.json")
    compaction = rewritten(found)[1]
    assert drafts(found)[compaction.drop_before].blocks[0].text == "What did we do so far?"


def test_synthetic_text_is_the_harness_and_text_files_are_not_shown_twice() -> None:
    first = drafts(events("opencode.json"))[0]
    assert [block.origin for block in first.blocks] == [Origin.HUMAN, Origin.HARNESS, Origin.HUMAN]
    assert isinstance(first.blocks[2], Media)


def test_a_failed_call_and_the_parent_session_are_said() -> None:
    parent, failed = skipped(events("opencode.json"))
    assert "ses_0" in parent.reason
    assert "failed" in failed.reason
    assert failed.line == 22


def test_lines_are_where_the_messages_start() -> None:
    assert [draft.line for draft in drafts(events("opencode.json"))][:2] == [4, 7]


def test_a_message_of_the_wrong_shape_is_skipped_and_the_others_are_read() -> None:
    good = {"info": {"role": "user"}, "parts": [{"type": "text", "text": "hello"}]}
    found = list(OpenCode().read([json.dumps({"info": {}, "messages": [good, {"info": 3}, good]}).encode()]))
    assert len(drafts(found)) == 2
    assert "info" in skipped(found)[0].reason
