import json
from collections.abc import Mapping

import pytest
from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Media, Origin, Role, Thinking, ToolResult, Usage
from tenure.logs.detect import detect, read
from tenure.logs.inspect_log.reader import InspectLog
from tenure.logs.reader import Event, SubAgent
from work import growth


def log(*samples: Mapping[str, object]) -> bytes:
    return json.dumps({"version": 2, "status": "success", "eval": {"run_id": "r"}, "samples": samples}).encode()


def sample(messages: object, **more: object) -> dict[str, object]:
    return {"id": 1, "epoch": 1, "input": "go", "target": "", "messages": messages, **more}


def model_event(answer: object, *sent: object, **output: object) -> dict[str, object]:
    return {"event": "model", "input": sent, "output": {"choices": [{"message": answer}], **output}}


def read_log(*samples: Mapping[str, object]) -> list[Event]:
    return list(InspectLog().read([log(*samples)]))


def test_the_messages_are_the_conversation_and_the_events_do_not_double_it() -> None:
    texts = [text for _, text in said(events("inspect.json"))]
    assert texts.count("Let me look.") == 1
    assert texts.count("Woodruff is a herb of the woods.") == 1
    assert not any("GRADE" in text or "ground truth" in text or "as the API got it" in text for text in texts)


def test_each_sample_and_epoch_starts_a_window_of_its_own() -> None:
    found = events("inspect.json")
    starts = [event for event in rewritten(found) if event.reason == "new sample"]
    assert [drafts(found)[event.drop_before].blocks[0].text for event in starts] == [
        "Prune the roses.",
        "Water the ferns.",
        "Mow the lawn.",
    ]


def test_who_wrote_a_user_message_is_told_by_its_source() -> None:
    found = drafts(events("inspect.json"))[:13]
    origins = {draft.blocks[0].text[:10]: draft.blocks[0].origin for draft in found if draft.role is Role.USER}
    assert origins == {
        "Which herb": Origin.HUMAN,
        "The photo ": Origin.TOOL,
        "Please pro": Origin.HARNESS,
        "[CONTEXT C": Origin.HARNESS,
        "And in pot": Origin.HUMAN,
    }


def test_the_first_user_message_is_human_where_none_has_a_source() -> None:
    found = drafts(read_log(sample([{"role": "user", "content": "do"}, {"role": "user", "content": "go on"}])))
    assert [draft.blocks[0].origin for draft in found] == [Origin.HUMAN, Origin.HARNESS]


def test_attachments_are_put_back_in_text_parts_arguments_and_images() -> None:
    found = events("inspect.json")
    assert any(isinstance(block, Media) and block.width == 2 for block in drafts(found)[1].blocks)
    assert ("ToolCall", '{"bed":"north","why":"to see \\"what\\" grows"}') in said(found)
    assert ("Text", "The roses are pruned.") in said(found)


def test_a_reference_to_an_attachment_that_is_missing_stays_and_is_said() -> None:
    found = read_log(sample([{"role": "user", "content": "attachment://0f"}]))
    assert said(found) == [("Text", "attachment://0f")]
    assert "not in the log" in skipped(found)[0].reason


def test_text_that_only_talks_about_attachments_is_left_alone() -> None:
    text = 'see attachment://0f and "attachment://0f"'
    found = read_log(sample([{"role": "user", "content": text}], attachments={"0f": "no"}))
    assert said(found) == [("Text", text)]


def test_parts_keep_their_order_and_the_calls_follow() -> None:
    kinds = [kind for kind, _ in said(events("inspect.json"))][3:11]
    assert kinds == ["Thinking", "Thinking", "Text", "Opaque", "Opaque", "Opaque", "ToolCall", "ToolCall"]


def test_of_sealed_reasoning_the_summary_is_read() -> None:
    signed, redacted = [block for block in blocks(events("inspect.json")) if isinstance(block, Thinking)][:2]
    assert (signed.text, redacted.text) == ("Look at the bed first.", "Thinking about beds.")
    assert signed.signed
    assert redacted.signed
    assert signed.seal != redacted.seal


def test_a_document_of_text_is_read() -> None:
    part = {"type": "document", "document": "data:text/plain;base64,aGVsbG8=", "filename": "a.txt", "mime_type": "text/plain"}
    media = blocks(read_log(sample([{"role": "user", "content": [part]}])))[0]
    assert isinstance(media, Media)
    assert media.text == "a.txt\nhello"


def test_a_failed_tool_shows_its_error_and_what_it_hides_is_said() -> None:
    found = events("inspect.json")
    failed = [block for block in blocks(found) if isinstance(block, ToolResult) and block.error]
    assert [block.text for block in failed] == ["The spade broke.", "thorns"]
    assert any(event.bytes == len("half a hole") for event in skipped(found))


def test_calls_without_ids_get_some_and_their_results_find_them() -> None:
    found = events("inspect.json")
    assert calls(found) == ["c1", "c2", "c3", "call-1"]
    assert results(found) == ["c1", "c2", "c3", "call-1"]


def test_usage_time_and_model_come_from_the_event_of_the_call() -> None:
    first = drafts(events("inspect.json"))[2]
    assert first.usage == Usage(uncached=10, cache_write=30, cache_read=40, output=20)
    assert (first.at, first.model) == ("2026-03-01T10:00:03Z", "model-x-1")


def test_cached_tokens_that_were_counted_as_input_are_told_by_the_total() -> None:
    last = drafts(events("inspect.json"))[12]
    assert last.usage == Usage(uncached=10, cache_read=50, output=5)


def test_old_logs_without_ids_are_matched_by_text() -> None:
    old = [draft for draft in drafts(events("inspect.json"))[13:17] if draft.role is Role.ASSISTANT]
    assert [draft.usage for draft in old] == [Usage(uncached=1, output=2), Usage(uncached=4, output=5)]


def test_logs_without_events_have_the_usage_of_the_last_call() -> None:
    answer = {"role": "assistant", "content": "yes"}
    output = {"model": "m", "choices": [{"message": answer}], "usage": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}}
    found = drafts(read_log(sample([{"role": "user", "content": "?"}, answer], output=output)))
    assert found[1].usage == Usage(uncached=3, output=1)


def test_a_compaction_comes_before_its_summary_and_keeps_what_the_next_call_was_sent() -> None:
    found = events("inspect.json")
    compaction = next(event for event in rewritten(found) if "summary" in event.reason)
    assert drafts(found)[compaction.drop_before].blocks[0].text.startswith("[CONTEXT COMPACTION SUMMARY]")
    assert compaction.kept == (0, 1)


def test_a_compaction_that_blanks_results_names_their_calls() -> None:
    edit = next(event for event in rewritten(events("inspect.json")) if "edit" in event.reason)
    assert (edit.drop_before, edit.cleared) == (0, ("c3",))


def test_messages_sent_as_one_are_all_kept() -> None:
    messages = [
        {"id": "u1", "role": "user", "content": "one"},
        {"id": "a1", "role": "assistant", "content": "gone"},
        {"id": "u2", "role": "user", "content": "two"},
        {"id": "a2", "role": "assistant", "content": "done"},
    ]
    both = {"id": "x", "role": "user", "content": "one\ntwo", "metadata": {"combined_from": ["u1", "u2"]}}
    trace = [model_event(messages[1], messages[0]), {"event": "compaction", "type": "trim"}, model_event(messages[3], both)]
    compaction = rewritten(read_log(sample(messages, events=trace)))[0]
    assert (compaction.drop_before, compaction.kept) == (2, (0,))


def test_a_sub_agent_is_named_and_read_on_its_own() -> None:
    found = events("inspect.json")
    agents = [event for event in found if isinstance(event, SubAgent)]
    assert [(agent.id, agent.messages, agent.task) for agent in agents] == [
        ("1/s4", 5, "what is woodruff?"),
        ("2/subtask-3", 2, "Which shears?"),
    ]
    assert agents[0].line == 54
    data = (FIXTURES / "inspect.json").read_bytes()
    own = drafts(read([data], agent="1/s4")[1])
    assert [draft.role.value for draft in own] == ["system", "user", "assistant", "tool", "assistant"]
    assert own[4].blocks[0].text == "Woodruff is a herb of the woods."
    assert own[4].usage == Usage(uncached=7, output=8)
    assert not list(InspectLog().read_agent([data], "1/nobody"))


def test_calls_beside_the_conversation_are_said() -> None:
    reasons = [event.reason for event in skipped(events("inspect.json"))]
    assert len([reason for reason in reasons if reason.startswith("call beside")]) == 1
    assert len([reason for reason in reasons if "no longer holds" in reason]) == 1


def test_a_sample_without_messages_is_read_from_its_last_call() -> None:
    texts = [draft.blocks[0].text for draft in drafts(events("inspect.json"))[17:21]]
    assert texts == ["Water the ferns.", "First the big one.", "Go on.", "Now the small one."]


def test_a_sample_alone_is_read_too() -> None:
    data = json.dumps(sample([{"role": "user", "content": "go"}])).encode()
    reader, found = read([data])
    assert reader.name == "inspect"
    assert said(found) == [("Text", "go")]


@pytest.mark.parametrize("samples", [None, []])
def test_a_log_without_samples_says_so(samples: object) -> None:
    data = json.dumps({"version": 2, "status": "error", "eval": {"task_id": "t"}, "samples": samples}).encode()
    reader, found = read([data])
    assert reader.name == "inspect"
    assert "without samples" in skipped(found)[0].reason


def test_logs_are_recognised_whatever_the_order_of_their_keys() -> None:
    document = json.loads((FIXTURES / "inspect.json").read_bytes())
    for data in (document, {key: document[key] for key in reversed(document)}):
        for indent in (None, 4):
            reader = detect(json.dumps(data, indent=indent).encode()[: 64 * 2**10])
            assert reader is not None
            assert reader.name == "inspect"


def test_constants_that_are_no_json_do_not_matter_and_text_keeps_them() -> None:
    data = log(sample([{"role": "user", "content": 'NaN "Infinity" -Infinity'}], scores={"a": float("-inf"), "b": float("nan")}))
    assert said(InspectLog().read([data])) == [("Text", 'NaN "Infinity" -Infinity')]


def test_a_damaged_event_costs_its_usage_and_not_the_message() -> None:
    answer = {"id": "a", "role": "assistant", "content": "yes"}
    trace = [3, {"event": "model", "output": {"choices": [{"message": answer}], "usage": {"input_tokens": "many"}}}]
    found = read_log(sample([{"role": "user", "content": "?"}, answer], events=trace))
    assert [draft.blocks[0].text for draft in drafts(found)] == ["?", "yes"]
    assert any("damaged event" in event.reason for event in skipped(found))


def test_one_attachment_named_again_and_again_is_put_back_only_so_often() -> None:
    names = ['"attachment://0f"'] * 2_000
    message = b'{"role": "user", "content": [' + b",".join(b'{"type":"text","text":%s}' % n.encode() for n in names) + b"]}"
    data = log(sample(["MESSAGE"], attachments={"0f": "x" * 2**20})).replace(b'"MESSAGE"', message)
    found = list(InspectLog().read([data]))
    assert sum(len(block.text) for block in blocks(found)) < 100 * 2**20
    assert any("too often" in event.reason for event in skipped(found))


def test_ranges_that_name_the_pool_again_and_again_end() -> None:
    pool = [{"id": f"p{n}", "role": "user", "content": "x"} for n in range(100)]
    answer = {"id": "a", "role": "assistant", "content": "y"}

    def read_ranges(n: int) -> list[Event]:
        event = {"event": "model", "input": [], "input_refs": [[0, 10**9]] * n, "output": {"choices": [{"message": answer}]}}
        return read_log(sample([], events=[event], events_data={"messages": pool, "calls": []}))

    assert drafts(read_ranges(100_000))
    assert growth(lambda n: lambda: read_ranges(n), 10) < 6


def test_very_many_compactions_of_a_long_conversation_are_read() -> None:
    def compacted(n: int) -> dict[str, object]:
        messages: list[dict[str, object]] = [{"id": "u", "role": "user", "content": "go"}]
        trace: list[dict[str, object]] = []
        for at in range(n):
            messages.append({"id": f"a{at}", "role": "assistant", "content": "x"})
            trace += [{"event": "compaction", "type": "trim"}, model_event(messages[-1]) | {"input_refs": [[0, at + 1]]}]
        return sample(messages, events=trace, events_data={"messages": messages})

    found = read_log(compacted(3_000))  # what is looked at in all is bounded
    assert len(rewritten(found)) == 3_000
    assert len(drafts(found)) == 3_001
