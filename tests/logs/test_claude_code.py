import json
from functools import partial

from msgspec.structs import replace
from session_reading import FIXTURES, blocks, calls, chunked, drafts, events, results, rewritten, said, skipped

from tenure.apis.anthropic import Anthropic
from tenure.engine.record.entry import Media, Origin, Role, Text, Thinking, ToolResult, Usage
from tenure.logs.claude_code import HARNESS_ELEMENTS, ClaudeCode, written_by
from tenure.logs.reader import SubAgent
from work import growth


def line(uuid: str, parent: str | None, text: str, role: str = "user", at: int = 0, **more: object) -> bytes:
    message = {"role": role, "content": text, "id": f"msg_{uuid}"}
    fields = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}
    return json.dumps(fields | ({"timestamp": f"2026-03-01T09:00:{at:02}Z"} if at else {}) | more).encode()


def texts(*lines: bytes) -> list[str]:
    return [text for _, text in said(ClaudeCode().read(chunked(b"\n".join(lines))))]


def test_lines_of_one_api_message_become_one_draft_with_its_last_usage() -> None:
    message = next(draft for draft in drafts(events("claude_code.jsonl")) if draft.role is Role.ASSISTANT)
    assert [type(block).__name__ for block in message.blocks] == ["Thinking", "Text", "ToolCall", "ToolCall"]
    assert message.usage == Usage(uncached=3, cache_write=100, cache_read=50, output=40)
    assert (message.line, message.at, message.model) == (6, "2026-03-01T09:00:04.000Z", "claude-x")


def test_each_result_follows_the_message_that_called() -> None:
    found = events("claude_code.jsonl")
    assert calls(found) == ["toolu_1", "toolu_2", "toolu_3"]
    assert results(found) == ["toolu_1", "toolu_2"]
    assert [draft.line for draft in drafts(found)][3:6] == [6, 9, 12]


def test_payloads_parse_to_the_blocks_of_their_drafts() -> None:
    for name in ("claude_code.jsonl", "claude_code_compacted.jsonl"):
        for draft in drafts(events(name)):
            (parsed,) = Anthropic().parse([draft.payload])
            assert parsed.role == draft.role
            assert [replace(b, origin=Origin.HUMAN) for b in parsed.blocks] == [
                replace(b, origin=Origin.HUMAN) for b in draft.blocks
            ]


def test_payload_keeps_the_bytes_of_every_part() -> None:
    source = (FIXTURES / "claude_code.jsonl").read_bytes()
    for draft in drafts(events("claude_code.jsonl")):
        content = draft.payload.partition(b'"content":')[2][:-1]
        for part in content[1:-1].split(b',{"type"') if content.startswith(b"[") else [content]:
            assert part in source or b'{"type"' + part in source
    assert b'"limit":1E2' in drafts(events("claude_code.jsonl"))[3].payload


def test_thinking_is_sealed_by_the_hash_of_its_signature() -> None:
    thinking = next(block for block in blocks(events("claude_code.jsonl")) if isinstance(block, Thinking))
    assert thinking.signed
    assert "c2ln" not in thinking.seal


def test_images_in_results_are_media_beside_the_joined_text() -> None:
    result = next(block for block in blocks(events("claude_code.jsonl")) if isinstance(block, ToolResult) and block.error)
    assert result.text == "no such file\ntest_rows.py"
    assert [(media.media_type, media.width, media.height) for media in result.media] == [("image/png", 2, 3)]


def test_human_words_and_the_harness_come_apart() -> None:
    human = [block.text for block in blocks(events("claude_code.jsonl")) if block.origin is Origin.HUMAN]
    assert human == [
        "Why does the parser drop the last row?",
        "Fix it, please.",
        "And add a test.",
        "<bash-input>git status</bash-input>",
    ]


def test_every_harness_element_is_the_harness() -> None:
    for name in HARNESS_ELEMENTS:
        assert written_by(f"<{name}>words</{name}>") is Origin.HARNESS
        assert written_by(f"<{name}>words</{name}>\n\nand a question") is Origin.HUMAN


def test_words_that_only_mention_an_element_are_human() -> None:
    assert written_by("What does <system-reminder> mean?") is Origin.HUMAN
    assert written_by("Caveat: this is mine") is Origin.HUMAN
    assert written_by("") is Origin.HUMAN


def test_what_is_left_out_is_counted_by_kind() -> None:
    reasons = {skip.line: skip.reason for skip in skipped(events("claude_code.jsonl"))}
    assert set(reasons) == {13, 14, 21, 23}
    assert "uuid" in reasons[13]
    assert "abandoned branch: 2" in reasons[14]
    assert "never-heard-of" in reasons[23]


def test_nothing_of_an_abandoned_branch_is_a_draft() -> None:
    assert not any("taken back" in text for _, text in said(events("claude_code.jsonl")))


def test_compaction_drops_what_came_before_and_the_summary_is_the_harness() -> None:
    found = events("claude_code_compacted.jsonl")
    compaction = rewritten(found)[1]
    summary = drafts(found)[compaction.drop_before]
    assert compaction.line == 7
    assert summary.blocks == (Text(text="Summary: two files were listed.", origin=Origin.HARNESS),)


def test_microcompaction_names_the_cleared_calls() -> None:
    assert rewritten(events("claude_code_compacted.jsonl"))[0].cleared == ("t1",)


def test_a_parent_that_is_not_in_the_file_means_the_line_before() -> None:
    assert texts(line("a", None, "one"), line("b", "lost", "two"), line("c", "b", "three")) == ["one", "two", "three"]


def test_lines_without_ids_are_read_in_order() -> None:
    bare = [
        json.dumps({"type": "user", "sessionId": "s", "message": {"role": "user", "content": text}}).encode() for text in "abc"
    ]
    assert texts(*bare) == ["a", "b", "c"]


def test_cyclic_parents_end() -> None:
    assert texts(line("a", "b", "one"), line("b", "a", "two")) == ["one", "two"]
    assert texts(line("a", "a", "one")) == ["one"]


def test_the_branch_lives_that_was_written_to_last_wherever_it_stands() -> None:
    newer, older = line("b", "a", "new", at=9), line("c", "a", "old", at=5)
    assert texts(line("a", None, "one", at=1), newer, older) == ["one", "new"]
    assert texts(newer, older, line("a", None, "one", at=1)) == ["one", "new"]


def test_an_abandoned_line_between_two_harmless_ones_does_not_break_the_chain() -> None:
    note = json.dumps({"type": "progress", "uuid": "p", "parentUuid": "a", "sessionId": "s"}).encode()
    assert texts(line("a", None, "one"), note, line("b", "p", "two")) == ["one", "two"]


def test_a_file_that_is_one_sub_agents_log_is_read_as_a_session() -> None:
    own = [
        line("a", None, "task", isSidechain=True, agentId="x"),
        line("b", "a", "done", "assistant", isSidechain=True, agentId="x"),
    ]
    assert texts(*own) == ["task", "done"]


def test_a_lone_surrogate_is_replaced_in_the_text_and_stays_in_the_payload() -> None:
    raw = line("a", None, "cut \ud83d here", extra="\udc00")
    (draft,) = drafts(ClaudeCode().read([raw]))
    assert draft.blocks[0].text == "cut \ufffd here"
    assert b"cut \\ud83d here" in draft.payload


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    raw = line("a", None, "x").replace(b'"x"', b'"\xff\x00"')
    (draft,) = drafts(ClaudeCode().read([raw]))
    assert draft.blocks[0].text == "\ufffd\x00"
    draft.payload.decode()


def test_a_damaged_line_says_line_column_and_what_is_expected() -> None:
    found = list(ClaudeCode().read([line("a", None, "one") + b'\n{"type": oops}\n' + line("b", "a", "two")]))
    (damage,) = skipped(found)
    assert damage.line == 2
    assert "column 10" in damage.reason
    assert "expected" in damage.reason
    assert [text for _, text in said(found)] == ["one", "two"]


def test_media_of_a_human_is_the_humans() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhBAAFAA=="}}
    raw = json.dumps({"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": [image]}}).encode()
    (block,) = blocks(ClaudeCode().read([raw]))
    assert isinstance(block, Media)
    assert (block.width, block.height, block.origin) == (4, 5, Origin.HUMAN)


def test_a_file_written_twice_reads_like_once() -> None:
    for name in ("claude_code.jsonl", "claude_code_compacted.jsonl"):
        data = (FIXTURES / name).read_bytes()
        once, twice = list(ClaudeCode().read([data])), list(ClaudeCode().read([data + data]))
        assert drafts(twice) == drafts(once)
        assert rewritten(twice) == rewritten(once)


def test_results_side_by_side_follow_their_calls_in_any_order() -> None:
    def call(id_: str) -> list[dict[str, object]]:
        return [{"type": "tool_use", "id": id_, "name": "Read", "input": {}}]

    def result(id_: str) -> list[dict[str, object]]:
        return [{"type": "tool_result", "tool_use_id": id_, "content": id_}]

    def row(uuid: str, parent: str | None, role: str, content: object) -> bytes:
        message = {"role": role, "content": content, "id": "msg"}
        return json.dumps({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message}).encode()

    rows = [
        row("q", None, "user", "question"),
        row("a1", "q", "assistant", call("c1")),
        row("a2", "a1", "assistant", call("c2")),
        row("a3", "a2", "assistant", call("c3")),
        row("r3", "a3", "user", result("c3")),
        row("r1", "a1", "user", result("c1")),
        row("next", "r3", "user", "and now"),
    ]
    found = list(ClaudeCode().read([b"\n".join(rows)]))
    assert calls(found) == ["c1", "c2", "c3"]
    assert results(found) == ["c3", "c1"]
    assert said(found)[-1] == ("Text", "and now")
    assert not skipped(found)


def test_a_compaction_that_kept_the_newest_messages_drops_those_before() -> None:
    kept = {"type": "system", "subtype": "compact_boundary", "uuid": "cb", "parentUuid": None, "sessionId": "s"}
    kept["compactMetadata"] = {"trigger": "auto", "preservedSegment": {"headUuid": "b", "anchorUuid": "x", "tailUuid": "c"}}
    rows = [
        line("a", None, "one"),
        line("b", "a", "two"),
        line("c", "b", "three"),
        json.dumps(kept).encode(),
        line("d", "c", "four"),
    ]
    found = list(ClaudeCode().read([b"\n".join(rows)]))
    assert [event.drop_before for event in rewritten(found)] == [1]
    assert [text for _, text in said(found)] == ["one", "two", "three", "four"]


def test_a_branch_whose_newest_line_has_no_time_lives_on() -> None:
    log = [
        line("u1", None, "Ask.", at=1),
        line("a1", "u1", "Taken back.", "assistant", at=2),
        line("a2", "u1", "Answered.", "assistant", at=3),
        line("u2", "a2", "Thanks."),
    ]
    assert texts(*log) == ["Ask.", "Answered.", "Thanks."]


def agents(*lines: bytes) -> list[tuple[str, int, str]]:
    found = ClaudeCode().read(chunked(b"\n".join(lines)))
    return [(event.id, event.messages, event.task) for event in found if isinstance(event, SubAgent)]


def of_agent(agent: str, *lines: bytes) -> list[str]:
    return [text for _, text in said(ClaudeCode().read_agent(chunked(b"\n".join(lines)), agent))]


def progress(uuid: str, text: str, agent: str = "ag", role: str = "user") -> bytes:
    inner = {"type": role, "uuid": f"in-{uuid}", "message": {"role": role, "content": text, "id": uuid}}
    data = {"type": "agent_progress", "agentId": agent, "prompt": "Look around.", "message": inner}
    return json.dumps({"type": "progress", "uuid": uuid, "parentUuid": "u1", "sessionId": "s", "data": data}).encode()


def test_side_chains_are_conversations_of_their_own() -> None:
    log = [
        line("u1", None, "Find it."),
        line("s1", None, "Search a.", isSidechain=True, agentId="one"),
        line("s2", "s1", "Found a.", "assistant", isSidechain=True, agentId="one"),
        line("a1", "u1", "Two are searching.", "assistant"),
        line("t1", None, "Search b.", isSidechain=True, agentId="two"),
    ]
    assert texts(*log) == ["Find it.", "Two are searching."]
    assert agents(*log) == [("one", 2, ""), ("two", 1, "")]
    assert of_agent("one", *log) == ["Search a.", "Found a."]
    assert of_agent("two", *log) == ["Search b."]
    assert of_agent("three", *log) == []


def test_side_chains_without_ids_are_told_apart_by_their_first_lines() -> None:
    log = [
        line("u1", None, "Find it."),
        line("s1", None, "Search a.", isSidechain=True),
        line("t1", None, "Search b.", isSidechain=True),
        line("s2", "s1", "Found a.", "assistant", isSidechain=True),
    ]
    assert agents(*log) == [("s1", 2, ""), ("t1", 1, "")]
    assert of_agent("s1", *log) == ["Search a.", "Found a."]


def test_a_sub_agents_messages_on_progress_lines_are_its_conversation() -> None:
    log = [line("u1", None, "Find it."), progress("p1", "Search."), progress("p2", "Done.", role="assistant")]
    log += [line("a1", "p2", "It was there.", "assistant")]
    assert texts(*log) == ["Find it.", "It was there."]
    assert agents(*log) == [("ag", 2, "Look around.")]
    assert of_agent("ag", *log) == ["Search.", "Done."]


def test_a_field_of_another_shape_costs_that_field_and_is_said() -> None:
    log = [line("u1", None, "Hello.", timestamp=17), line("a1", "u1", "Hi.", "assistant", agentId=["x"])]
    found = list(ClaudeCode().read(chunked(b"\n".join(log))))
    assert [text for _, text in said(found)] == ["Hello.", "Hi."]
    assert [(skip.line, skip.reason.split(":")[0]) for skip in skipped(found)] == [
        (1, "field `timestamp` left out"),
        (2, "field `agentId` left out"),
    ]


def test_many_elements_that_are_never_closed_are_told_in_linear_steps() -> None:
    assert written_by("<system-reminder>x<bash-stdout>y" * 20_000) is Origin.HARNESS
    assert written_by("<system-reminder>x" * 20_000 + "</system-reminder> and mine") is Origin.HUMAN
    assert growth(lambda n: partial(written_by, "<system-reminder>x<bash-stdout>y" * n), 500) < 6


def test_a_task_notification_is_not_what_a_human_wrote() -> None:
    notification = "<task-notification>\n<status>completed</status>\n</task-notification>\n"
    assert written_by(notification) is Origin.HARNESS
    assert written_by(notification + "Read the output file to retrieve the result: /tmp/tasks/b.output") is Origin.HARNESS
    assert written_by(notification + "and stop the others") is Origin.HUMAN
