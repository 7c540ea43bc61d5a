import json
from functools import partial

import pytest
from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.apis.anthropic import Anthropic
from tenure.engine.record.entry import Media, Origin, Role, Text, Thinking, ToolResult, Usage
from tenure.logs.cline import ClineReader
from tenure.logs.detect import detect, read
from tenure.logs.reader import Event, Rewritten
from work import growth

NAMES = sorted(path.name for path in FIXTURES.glob("cline*"))


def history(*messages: object) -> list[Event]:
    return list(read([json.dumps(list(messages)).encode()])[1])


def user(*texts: str, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts], "ts": 1750000000000, **fields}


def plainly(found: list[Event]) -> list[object]:
    """The texts, those that are JSON by their value."""
    return [json.loads(text) if text.startswith("{") else text for _, text in said(found)]


def origins(*texts: str) -> list[str]:
    return [block.origin.value for block in blocks(history(user("<task>\nx\n</task>"), user(*texts)))][1:]


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_the_family_is_recognised(name: str) -> None:
    reader = detect((FIXTURES / name).read_bytes())
    assert reader is not None
    assert reader.name == "cline"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", NAMES)
def test_spelling_and_order_of_keys_do_not_matter(name: str, indent: int | None) -> None:
    value = json.loads((FIXTURES / name).read_bytes())
    assert detect(json.dumps(value, indent=indent, sort_keys=True).encode()) is not None
    found = list(read([json.dumps(value, indent=indent, sort_keys=True).encode()])[1])
    assert plainly(found) == plainly(events(name))


def test_plain_messages_of_the_provider_are_not_taken() -> None:
    plain = [
        {"role": "user", "content": "hello <task> of mine"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]},
    ]
    assert not ClineReader().recognises(json.dumps(plain).encode())
    assert read([json.dumps(plain).encode()])[0].name == "anthropic-messages"


def test_who_wrote_what_is_told_block_by_block() -> None:
    found = drafts(events("cline_xml.json"))
    assert [[block.origin.value for block in draft.blocks] for draft in found if draft.role is Role.USER] == [
        ["human", "harness"],
        ["tool", "tool", "tool", "harness"],
        ["human", "tool", "human"],
        ["harness", "human"],
        ["tool", "harness"],
    ]


def test_a_result_that_speaks_of_feedback_stays_a_tools() -> None:
    assert origins("[read_file for 'a.xml'] Result:", "<config>\n  <answer>42</answer>\n</config>") == ["tool", "tool"]
    assert origins("[search_files for '<task>'] Result:\nnone") == ["tool"]


def test_what_a_human_adds_to_the_harness_is_the_humans() -> None:
    assert origins("<environment_details>\nx\n</environment_details>") == ["harness"]
    assert origins("<environment_details>\nx\n</environment_details>\nand mine") == ["human"]
    assert origins("You seem to be having trouble proceeding.\n<feedback>\ntry b\n</feedback>") == ["human"]
    assert origins("You seem to be having trouble proceeding.") == ["harness"]


def test_usage_and_model_stand_at_the_answer_and_cached_tokens_count_once() -> None:
    answer = drafts(events("cline_xml.json"))[1]
    assert answer.usage == Usage(uncached=40, cache_read=60, output=20)
    assert answer.model == "model-x"
    assert drafts(events("cline_sdk.messages.json"))[2].usage == Usage(uncached=10, cache_write=10, cache_read=30, output=5)


def test_payloads_are_the_messages_without_clines_own_fields() -> None:
    for name in NAMES:
        for draft in drafts(events(name)):
            if draft.payload:
                (parsed,) = Anthropic().parse([draft.payload])
                assert [block.text for block in parsed.blocks] == [block.text for block in draft.blocks]
                assert set(json.loads(draft.payload)) == {"role", "content"}


def test_a_compaction_of_clines_keeps_the_first_two_messages() -> None:
    (compaction,) = rewritten(events("cline_xml.json"))
    assert (compaction.drop_before, compaction.kept) == (8, (0, 1))


def test_a_condensation_the_user_accepted_keeps_the_newest_two_as_well() -> None:
    words = "The user has accepted the condensed conversation summary you generated. This summary covers the rest."
    found = history(*(user(f"<feedback>\n{n}\n</feedback>") for n in range(6)), user("[condense] Result:", words))
    assert [(each.drop_before, each.kept) for each in rewritten(found)] == [(4, (0, 1))]


def test_what_a_summary_or_a_window_hides_leaves_where_it_stands() -> None:
    found = events("cline_condensed.json")
    assert [(each.reason, each.drop_before, each.kept) for each in rewritten(found)] == [
        ("sliding window truncation", 3, (0,)),
        ("condensation", 6, (0, 3)),
        ("condensation", 9, ()),
    ]
    assert any("no longer in the file" in each.reason for each in skipped(found))


def test_a_parent_that_is_not_there_hides_nothing() -> None:
    found = history(user("<task>\nx\n</task>"), user("again", condenseParent="lost", truncationParent="lost"))
    assert rewritten(found) == []


def test_reasoning_between_messages_belongs_to_the_answer_that_follows() -> None:
    answer = drafts(events("cline_condensed.json"))[1]
    assert [type(block).__name__ for block in answer.blocks] == ["Thinking", "Text", "ToolCall"]
    assert isinstance(answer.blocks[0], Thinking)
    assert answer.blocks[0].signed


def test_reasoning_in_two_spellings_is_read_once() -> None:
    texts = [block.text for block in blocks(events("cline_condensed.json"))]
    assert texts.count("Two lines, two files.") == 1
    assert texts.count("Read a.") == 1


def test_a_text_that_answers_a_real_call_is_its_result() -> None:
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "call_id": "c", "name": "use_subagents", "input": {}}],
    }
    found = history(
        user("<task>\na\n</task>"), call, user("[subagents] Result:\nTotal: 5", "<environment_details>\n</environment_details>")
    )
    assert results(found) == ["c"]
    assert [block.origin.value for block in blocks(found)] == ["human", "model", "tool", "harness"]


def test_the_sdks_session_brings_its_prompt_files_and_pictures() -> None:
    found = events("cline_sdk.messages.json")
    prompt, task, _, result, summary, _ = drafts(found)
    assert prompt.role is Role.SYSTEM
    assert [block.origin for block in task.blocks] == [Origin.HUMAN, Origin.HUMAN, Origin.HARNESS]
    assert isinstance(result.blocks[0], ToolResult)
    assert len(result.blocks[0].media) == 1
    assert result.blocks[0].text == 'a picture\n<file_content path="/w/b.txt">\nthree\n</file_content>'
    assert summary.blocks[0].origin is Origin.HARNESS
    assert "root-1" in skipped(found)[0].reason


def test_version_two_of_roo_code_is_read() -> None:
    found = events("cline_roo_two.json")
    assert calls(found) == results(found) == ["k1", "k2", "k3"]
    failed = next(block for block in blocks(found) if isinstance(block, ToolResult) and block.error)
    assert failed.text == '{"why":"read only"}'
    assert sum(isinstance(block, Media) for block in blocks(found)) == 1


def test_a_screen_is_read_line_by_line() -> None:
    found = events("cline_screen.json")
    assert [text for kind, text in said(found) if kind == "Text"] == [
        "Find the slow test.",
        "I look at the durations.",
        "It is test_b.",
        "And why?",
        "It sleeps.",
    ]
    assert results(found) == ["call-1"]
    assert ("ToolResult", "3.10s test_b") in said(found)
    assert [draft.usage for draft in drafts(found) if draft.usage] == [
        Usage(uncached=10, cache_write=3, cache_read=2, output=5),
        Usage(uncached=40, cache_read=60, output=6),
    ]
    assert not any("REQ_APP" in text or "HAS_CHANGES" in text for _, text in said(found))
    assert any("not read (3 times)" in each.reason for each in skipped(found))
    assert any("unknown to this version (2 times)" in each.reason for each in skipped(found))
    assert rewritten(found) == []


def test_results_on_a_screen_answer_the_call_before_them() -> None:
    found = events("cline_screen_bare.json")
    assert calls(found) == ["call-1", "call-2", "call-3", "call-4"]
    assert results(found) == ["call-2", "call-3"]
    assert ("ToolResult", "1 a\ndone") in said(found)
    assert [block.origin for block in blocks(found) if isinstance(block, Text) and block.text == "late"] == [Origin.TOOL]
    assert [each.drop_before for each in rewritten(found)] == [8]


def test_a_damaged_message_costs_only_itself() -> None:
    found = history(user("<task>\na\n</task>"), {"role": "user", "content": 3}, 7, user("<feedback>\nb\n</feedback>"))
    assert len(drafts(found)) == 2
    assert len(skipped(found)) == 2


def test_many_summaries_that_hide_one_message_each_are_read_in_linear_steps() -> None:
    def summaries(n: int) -> list[dict[str, object]]:
        messages = [user("<task>\na\n</task>")]
        for at in range(n):
            messages.append(user("b", condenseParent=str(at)))
            messages.append({"role": "assistant", "content": "s", "isSummary": True, "condenseId": str(at)})
        return messages

    found = history(*summaries(1_000))
    assert len(drafts(found)) == 2_001
    assert any(isinstance(event, Rewritten) for event in found)
    assert growth(lambda n: partial(history, *summaries(n)), 100) < 6
