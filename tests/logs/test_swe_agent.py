import json
from typing import Any

from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.detect import read
from tenure.logs.reader import Event, SubAgent


def changed(name: str, **fields: Any) -> list[Event]:
    """The events of a fixture with other members at the top; None takes one out."""
    document = json.loads((FIXTURES / name).read_bytes()) | fields
    return read_again({key: value for key, value in document.items() if value is not None})


def read_again(document: object) -> list[Event]:
    return list(read([json.dumps(document).encode()])[1])


def texts(found: list[Event]) -> list[str]:
    return [text for _, text in said(found)]


def test_the_history_is_told_once_and_the_trajectory_not_again() -> None:
    history = json.loads((FIXTURES / "swe_agent_text.traj").read_bytes())["history"]
    main = [message["content"] for message in history if message["agent"] == "primary"]
    assert texts(events("swe_agent_text.traj")) == main[:-1]


def test_only_the_task_is_the_humans() -> None:
    found = events("swe_agent_text.traj")
    assert [block.text for block in blocks(found) if block.origin is Origin.HUMAN] == ["ISSUE: the sum is off by one."]
    assert [block.origin for draft in drafts(found) for block in draft.blocks if draft.role is Role.USER][2:] == [Origin.TOOL] * 2


def test_a_demonstration_is_the_harness_whatever_its_roles() -> None:
    found = drafts(events("swe_agent_calls.traj"))
    assert [draft.role.value for draft in found[:4]] == ["system", "user", "assistant", "tool"]
    assert {block.origin for draft in found[:4] for block in draft.blocks} == {Origin.HARNESS}
    assert found[2].model == ""


def test_calls_are_answered_by_their_ids() -> None:
    found = events("swe_agent_calls.traj")
    assert calls(found) == results(found) == ["demo_1", "call_a", "call_b"]


def test_thinking_is_sealed_by_its_signature_and_cache_marks_stay_out_of_the_message() -> None:
    answer, result = drafts(events("swe_agent_calls.traj"))[5:7]
    assert isinstance(answer.blocks[0], Thinking)
    assert answer.blocks[0].signed
    assert answer.model == "some/model-1"
    assert set(json.loads(result.payload)) == {"role", "content", "tool_call_id"}


def test_reasoning_beside_a_step_belongs_to_its_message() -> None:
    assert ("Thinking", "Done, I think.") in said(events("swe_agent_calls.traj"))


def test_an_image_in_the_task_is_the_humans() -> None:
    task = drafts(events("swe_agent_calls.traj"))[4]
    assert isinstance(task.blocks[1], Media)
    assert task.blocks[1].origin is Origin.HUMAN


def test_an_attempt_that_was_taken_back_is_said() -> None:
    found = events("swe_agent_calls.traj")
    assert "I forgot the call." not in texts(found)
    assert ["taken back" in event.reason for event in skipped(found)] == [True]


def test_a_notice_in_the_models_place_is_not_the_models() -> None:
    assert [event.reason for event in skipped(events("swe_agent_text.traj"))] == [
        "notice that the run stopped: written after the last call"
    ]


def test_a_sub_agent_is_read_apart() -> None:
    agents = [event for event in events("swe_agent_text.traj") if isinstance(event, SubAgent)]
    assert [(agent.id, agent.messages, agent.task) for agent in agents] == [("reader", 3, "what is here")]
    found = list(read([(FIXTURES / "swe_agent_text.traj").read_bytes()], agent="reader")[1])
    assert texts(found) == ["You only read.", "what is here", "two tests"]


def test_attempts_are_conversations_one_after_another_and_not_repeated_from_the_top() -> None:
    found = events("swe_agent_attempts.traj")
    assert [event.drop_before for event in rewritten(found)] == [6]
    assert texts(found).count("ISSUE: attempt 2.") == 1


def test_a_history_that_ends_too_early_is_continued_from_the_steps() -> None:
    last = drafts(events("swe_agent_attempts.traj"))[-2:]
    assert [type(block) for draft in last for block in draft.blocks] == [Text, ToolCall, ToolResult]
    assert [block.text for draft in last for block in draft.blocks] == ["Done 2.", '{"action":"submit"}', "patch 2"]


def test_without_a_history_the_steps_tell_all_but_what_was_taken_back() -> None:
    whole, without = events("swe_agent_calls.traj"), changed("swe_agent_calls.traj", history=None)
    assert texts(without)[:8] == texts(whole)[:8]
    assert texts(without)[-1] == "Submitted."
    assert "I forgot the call." not in texts(without)
    assert texts(changed("swe_agent_text.traj", history=None))[:2] == ["Look first.\n```\nfind tests\n```", "tests/test_a.py"]


def test_an_observation_between_a_short_history_and_the_steps_is_not_lost() -> None:
    history = json.loads((FIXTURES / "swe_agent_text.traj").read_bytes())["history"]
    found = texts(changed("swe_agent_text.traj", history=history[:4]))
    assert found[4:6] == ["tests/test_a.py", "Ask.\n```\nask what is here\n```"]


def test_a_trajectory_that_tells_it_in_other_words_is_left_alone() -> None:
    steps = [{"action": "ls", "observation": "a", "response": "something else", "thought": ""}]
    assert texts(changed("swe_agent_text.traj", trajectory=steps)) == texts(events("swe_agent_text.traj"))


def test_a_result_without_a_call_is_text() -> None:
    history = [{"role": "tool", "content": "stray", "agent": "main", "message_type": "observation", "tool_call_ids": ["x"]}]
    found = [event for event in read_again({"history": history, "trajectory": []}) if isinstance(event, Draft)]
    assert [draft.role for draft in found] == [Role.USER]


def test_a_message_of_another_shape_costs_that_message() -> None:
    history = json.loads((FIXTURES / "swe_agent_text.traj").read_bytes())["history"]
    found = changed("swe_agent_text.traj", history=[*history[:3], {"role": 7, "content": 7, "agent": "primary"}, *history[3:]])
    assert texts(found) == texts(events("swe_agent_text.traj"))
    assert any("role" in event.reason for event in skipped(found))


def test_lines_are_where_the_messages_start() -> None:
    data = (FIXTURES / "swe_agent_text.traj").read_text().splitlines()
    assert [data[draft.line - 1].strip() for draft in drafts(events("swe_agent_text.traj"))] == ["{"] * 7
    assert drafts(events("swe_agent_text.traj"))[0].line == data.index('  "history": [') + 2
