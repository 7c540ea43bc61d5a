import json
from typing import Any

from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Media, Origin, Role, Text, Thinking, ToolResult, Usage
from tenure.logs.detect import read
from tenure.logs.reader import Event, SubAgent


def document(name: str) -> Any:
    return json.loads((FIXTURES / name).read_bytes())


def rows() -> list[Any]:
    return [json.loads(line) for line in (FIXTURES / "openhands_output.jsonl").read_bytes().splitlines()]


def read_again(value: object) -> list[Event]:
    return list(read([json.dumps(value).encode()])[1])


def texts(found: list[Event]) -> list[str]:
    return [text for _, text in said(found)]


def test_calls_of_one_response_are_one_draft_and_their_results_follow() -> None:
    found = drafts(events("openhands_output.jsonl"))
    assert [draft.role.value for draft in found[:5]] == ["system", "user", "assistant", "tool", "tool"]
    assert calls([found[2]]) == results(found[:5]) == ["c1", "c2"]
    assert [type(block) for block in found[2].blocks[:2]] == [Thinking, Text]


def test_usage_is_the_responses_own_or_what_the_total_grew_by() -> None:
    found = [draft for draft in drafts(events("openhands_output.jsonl")) if draft.role is Role.ASSISTANT]
    assert found[0].usage == Usage(uncached=10, cache_write=30, cache_read=60, output=9)
    assert found[1].usage == Usage(uncached=150, output=7)
    assert found[3].usage == Usage(uncached=20, cache_write=10, cache_read=20, output=4)


def test_an_output_has_what_openhands_writes_around_it() -> None:
    text = drafts(events("openhands_trajectory.json"))[8].blocks[0].text
    assert text.startswith("built\n[The command completed with exit code 0.]\n[Current working directory: /workspace]")
    assert text.endswith("[Command finished with exit code 0]")


def test_the_middle_of_a_long_observation_was_never_sent() -> None:
    row = rows()[0]
    cut = "".join(texts(read_again(row)))
    row["metadata"]["llm_config"]["max_message_chars"] = None
    whole = "".join(texts(read_again(row)))
    assert "[Current working directory: /workspace]" not in cut
    assert "[Current working directory: /workspace]" in whole
    assert "and one more, far too long" in cut  # a file that was read is sent whole
    assert any("cut out" in event.reason for event in skipped(events("openhands_output.jsonl")))


def test_an_error_without_a_call_is_the_harness() -> None:
    errors = [block for block in blocks(events("openhands_output.jsonl")) if block.text.startswith("Missing parameter")]
    assert [error.origin for error in errors] == [Origin.HARNESS]


def test_what_moves_only_the_controller_says_nothing() -> None:
    found = events("openhands_output.jsonl")
    assert all("agent_state" not in event.reason for event in skipped(found))
    assert "Fix a.c, please." in texts(found)
    assert texts(found).count("Fix a.c, please.") == 1


def test_recalled_context_is_shown_unless_the_run_had_extensions_off() -> None:
    assert any("recalled" in event.reason for event in skipped(events("openhands_output.jsonl")))
    row = rows()[0]
    row["metadata"]["agent_config"] = {"enable_prompt_extensions": True}
    recalled = [block.text for block in blocks(read_again(row)) if "Commit often." in block.text]
    assert len(recalled) == 1
    assert any("Run make." in text and "$**KEY**: a key" in text for text in texts(read_again(row)))


def test_knowledge_that_was_called_up_before_is_not_sent_again() -> None:
    found = texts(events("openhands_trajectory.json"))
    assert sum("Commit often." in text for text in found) == 1
    assert sum("Prefer pnpm." in text for text in found) == 1
    assert sum("<REPOSITORY_INFO>" in text for text in found) == 1


def test_each_line_is_a_sample_and_one_without_events_is_said() -> None:
    found = events("openhands_output.jsonl")
    assert [(event.reason, event.line, event.drop_before) for event in rewritten(found)] == [("new sample", 2, 9)]
    assert any(event.line == 3 and "without events" in event.reason for event in skipped(found))


def test_the_instruction_stands_in_only_where_the_history_lacks_the_task() -> None:
    human = [block.text for block in blocks(events("openhands_output.jsonl")) if block.origin is Origin.HUMAN]
    assert human == ["Fix a.c, please.", "Yes, go on.", "https://example.org/a.png", "Say what is here."]


def test_a_list_of_events_reads_like_the_sample_they_are_in() -> None:
    trajectory = document("openhands_trajectory.json")["trajectory"]
    whole = [draft.blocks for draft in drafts(events("openhands_trajectory.json"))]
    as_list, as_lines = read_again(trajectory), read([b"\n".join(json.dumps(one).encode() for one in trajectory)])[1]
    assert [draft.blocks for draft in drafts(as_list)] == [draft.blocks for draft in drafts(as_lines)] == whole


def test_a_users_command_and_its_output_are_told_as_such() -> None:
    command, output = drafts(events("openhands_trajectory.json"))[3:5]
    assert (command.blocks[0].text, command.blocks[0].origin) == ("User executed the command:\nenv", Origin.HUMAN)
    assert output.blocks[0].text.startswith("\nObserved result of command executed by user:\nHOME=/root")
    assert output.blocks[0].origin is Origin.TOOL


def test_a_delegate_is_read_apart_and_its_result_stays() -> None:
    found = events("openhands_trajectory.json")
    assert [event for event in found if isinstance(event, SubAgent)] == [
        SubAgent(id="BrowsingAgent-1", line=99, messages=2, bytes=2430, task="Find the docs.")
    ]
    assert "The docs say: make." not in texts(found)
    assert "Use make." in texts(found)
    delegate = list(read([(FIXTURES / "openhands_trajectory.json").read_bytes()], agent="BrowsingAgent-1")[1])
    assert texts(delegate) == ["Find the docs.", '{"code": "goto(\'x\')"}', "The docs say: make."]


def test_a_condensation_drops_what_was_forgotten_with_its_calls_and_results() -> None:
    first, second = rewritten(events("openhands_trajectory.json"))
    assert (first.drop_before, first.kept) == (7, (0, 1, 2))
    assert (second.drop_before, second.kept) == (12, (0, 1, 2))  # and the summary that the second replaced


def test_a_rejection_is_the_result() -> None:
    rejected = [block for block in blocks(events("openhands_trajectory.json")) if isinstance(block, ToolResult) and block.error]
    assert [block.text for block in rejected] == ["OBSERVATION:\nNot that.\n[Last action has been rejected by the user]"]


def test_an_action_whose_response_is_lost_is_the_call_it_was() -> None:
    found = events("openhands_trajectory.json")
    assert calls(found)[-1] == results(found)[-1] == "call-19"
    assert [block.name for block in blocks(found) if getattr(block, "call_id", "") == "call-19" and hasattr(block, "name")] == [
        "fetch"
    ]


def test_an_observation_of_an_unknown_kind_is_kept_and_said() -> None:
    found = events("openhands_trajectory.json")
    assert "Something new." in texts(found)
    assert any("from_the_future" in event.reason for event in skipped(found))


def test_pairs_from_before_there_were_calls_are_text() -> None:
    found = events("openhands_pairs.json")
    assert texts(found)[:3] == [
        "Count the lines.",
        "I count.\n<execute_bash>\nwc -l a\n</execute_bash>",
        "OBSERVATION:\n7 a\n[Command finished with exit code 0]",
    ]
    assert [block.origin for block in blocks(found)][:3] == [Origin.HUMAN, Origin.MODEL, Origin.TOOL]
    assert "AAAA" not in "".join(texts(found))


def test_calls_of_one_response_come_together_in_version_1() -> None:
    found = drafts(events("openhands_sdk.jsonl"))
    assert calls([found[2]]) == ["t1", "t2"]
    assert [type(block).__name__ for block in found[2].blocks] == ["Thinking", "Text", "ToolCall", "ToolCall"]
    assert results(found)[:3] == ["t1", "t2", "t3"]
    assert [block.error for block in blocks(found) if isinstance(block, ToolResult)][:3] == [False, True, True]


def test_what_the_context_adds_to_a_message_is_the_harness() -> None:
    system, message = drafts(events("openhands_sdk.jsonl"))[:2]
    assert [block.text for block in system.blocks] == ["You are OpenHands.", "Today is Monday."]
    assert [block.origin for block in message.blocks] == [Origin.HUMAN, Origin.HUMAN, Origin.HARNESS]
    assert isinstance(message.blocks[1], Media)
    assert ("Text", "Hook: go on.") in said(events("openhands_sdk.jsonl"))


def test_only_the_branch_that_lives_is_read() -> None:
    found = events("openhands_sdk.jsonl")
    assert "A second answer." in texts(found)
    assert not {"A first answer.", "No, otherwise."} & set(texts(found))
    assert any("abandoned branch" in event.reason for event in skipped(found))


def test_a_condensation_of_version_1_names_its_events() -> None:
    (condensation,) = rewritten(events("openhands_sdk.jsonl"))
    assert (condensation.drop_before, condensation.kept) == (5, (0, 1))  # the error left with the call it answers


def test_a_call_behind_a_protocol_is_read_once_it_ended() -> None:
    found = said(events("openhands_sdk.jsonl"))
    at = found.index(("ToolCall", '{"path":"b"}'))
    assert found[at + 1] == ("ToolResult", "b is here")


def test_a_screenshot_is_part_of_the_result() -> None:
    results_ = [block for block in blocks(events("openhands_sdk.jsonl")) if isinstance(block, ToolResult)]
    assert results_[-1].text == "A page.\nRule: be brief."
    assert [media.media_type for media in results_[-1].media] == ["image/png"]


def test_a_cycle_of_parents_ends() -> None:
    one = {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": "x"}, "timestamp": "t"}
    found = read_again([one | {"id": "a", "parent_id": "b"}, one | {"id": "b", "parent_id": "a"}])
    assert texts(found) == ["x", "x"]


def test_the_same_event_twice_is_read_once() -> None:
    trajectory = document("openhands_trajectory.json")["trajectory"]
    found = read_again([event for event in trajectory for _ in (1, 2)])
    assert len(drafts(found)) == len(drafts(events("openhands_trajectory.json")))


def test_an_event_of_another_shape_costs_that_event() -> None:
    row = rows()[0]
    row["history"][5]["args"] = 7
    row["history"][10]["timestamp"] = {}
    found = read_again(row)
    assert "Shall I go on?" in texts(found)
    assert any("damaged event" in event.reason for event in skipped(found))
    assert calls(found) == ["c1", "c2", "c3"]


def test_the_resolvers_output_is_read_however_long_the_issue() -> None:
    data = (FIXTURES / "openhands_resolver.jsonl").read_bytes()
    assert data.index(b'"history"') > 64 * 2**10
    assert read([data])[0].name == "openhands"
    found = events("openhands_resolver.jsonl")
    assert [(kind, text) for kind, text in said(found) if kind == "Text"] == [
        ("Text", "Please fix the issue."),
        ("Text", "I look."),
        ("Text", "Fixed."),
        ("Text", "Second."),
    ]
    assert calls(found) == results(found) == ["t1"]
    assert [(each.reason, each.drop_before) for each in rewritten(found)] == [("new sample", 4)]
