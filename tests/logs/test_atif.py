import json

from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.atif import Atif
from tenure.logs.reader import Event, HasAgents, SubAgent


def trajectory(*steps: dict[str, object], **rest: object) -> bytes:
    numbered = [{"step_id": number + 1, **step} for number, step in enumerate(steps)]
    return json.dumps({"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": numbered} | rest).encode()


def read(*parts: bytes) -> list[Event]:
    return list(Atif().read(parts))


def texts(found: list[Event]) -> list[str]:
    return [text for _, text in said(found)]


def test_a_step_is_a_draft_and_each_result_follows() -> None:
    roles = [draft.role.value for draft in drafts(events("atif.json"))]
    assert roles[:8] == ["system", "user", "user", "assistant", "tool", "tool", "assistant", "user"]


def test_the_turn_carries_thinking_words_calls_model_time_and_usage() -> None:
    turn = next(draft for draft in drafts(events("atif.json")) if draft.role is Role.ASSISTANT)
    assert [type(block) for block in turn.blocks] == [Thinking, Text, ToolCall, ToolCall]
    assert (turn.model, turn.at, turn.line) == ("model-y", "2026-01-02T03:04:07Z", 17)
    assert turn.usage == Usage(uncached=10, cache_write=30, cache_read=60, output=20)


def test_arguments_lose_the_layout_of_the_file_and_text_stays() -> None:
    sent = [block.text for block in blocks(events("atif.json")) if isinstance(block, ToolCall)]
    assert sent == ['{"path":"a.css"}', '{"prompt":"Find tests."}', "not json", "{}"]


def test_images_and_sound_are_media_where_they_were_shown() -> None:
    found = drafts(events("atif.json"))
    assert [block.media_type for block in found[1].blocks if isinstance(block, Media)] == ["image/png", "audio/wav"]
    (result,) = found[4].blocks
    assert isinstance(result, ToolResult)
    assert (result.text, [media.text for media in result.media]) == ("a { }", ["images/a.png"])


def test_only_the_words_of_a_human_are_the_humans() -> None:
    human = [block.text for block in blocks(events("atif.json")) if block.origin is Origin.HUMAN and isinstance(block, Text)]
    assert human == ["Fix the button.", "An example of old."]


def test_a_result_that_names_no_call_is_text_of_a_tool() -> None:
    screen = next(block for block in blocks(events("atif.json")) if block.text == "a screen")
    assert (type(screen), screen.origin) == (Text, Origin.TOOL)


def test_calls_without_ids_get_one_and_failed_results_say_so() -> None:
    found = events("atif.json")
    assert calls(found) == ["c1", "c2", "call-1", "c3"]
    assert [block.error for block in blocks(found) if isinstance(block, ToolResult)] == [False, True]


def test_what_a_converter_wrote_for_a_call_is_left_out_and_counted() -> None:
    found = events("atif.json")
    assert not any("Executed" in text for text in texts(found))
    assert any("note of a converter" in skip.reason for skip in skipped(found))


def test_labels_of_an_interface_are_left_out_where_the_agent_is_known_to_write_them() -> None:
    label = {"source": "agent", "message": "Running command: ls", "tool_calls": [{"tool_call_id": "c", "function_name": "run"}]}
    notice = {"source": "system", "message": "Added workspace context"}
    agents = [{"name": name, "version": "1"} for name in ("openhands", "another")]
    first, second = [texts(read(trajectory(label, notice, agent=agent))) for agent in agents]
    assert first == ["{}"]
    assert second == ["Running command: ls", "{}", "Added workspace context"]


def test_a_dispatch_without_a_model_is_the_harness() -> None:
    (lint,) = [block for block in blocks(events("atif.json")) if isinstance(block, ToolCall) and block.name == "lint"]
    assert lint.origin is Origin.HARNESS


def test_a_compaction_leaves_the_system_prompt_and_what_is_copied_and_says_its_summary() -> None:
    found = events("atif.json")
    (compaction,) = rewritten(found)
    assert (compaction.reason, compaction.drop_before, compaction.kept) == ("compaction", 9, (0, 2))
    after = drafts(found[found.index(compaction) :])
    assert [draft.blocks[0].text for draft in after][:3] == ["Summary: a button in a.css.", "An example of old.", "Done."]
    assert after[0].blocks[0].origin is Origin.HARNESS
    assert "Made the context smaller." not in texts(found)


def test_sub_agents_are_named_and_read_apart() -> None:
    found = events("atif.json")
    agents = [event for event in found if isinstance(event, SubAgent)]
    assert [(agent.id, agent.messages, agent.task, agent.line) for agent in agents] == [
        ("sub", 2, "Find tests.", 51),
        ("sub-2", 1, "Find tests.", 57),
    ]
    reader, data = Atif(), (FIXTURES / "atif.json").read_bytes()
    assert isinstance(reader, HasAgents)
    inner = list(reader.read_agent([data], "sub"))
    assert texts(inner) == ["Find tests.", "There are none."]
    assert drafts(inner)[1].model == "model-z"
    assert texts(list(reader.read_agent([data], "sub-2"))) == ["Deeper."]
    assert list(reader.read_agent([data], "none")) == []


def test_what_is_elsewhere_or_unknown_is_said() -> None:
    reasons = [skip.reason for skip in skipped(events("atif.json"))]
    assert any("goes on in another file: 'trajectory.cont-1.json'" in reason for reason in reasons)
    assert any("in a file of its own" in reason for reason in reasons)
    assert any("'narrator'" in reason for reason in reasons)


def test_a_continuation_in_the_same_file_says_nothing_twice() -> None:
    found = events("atif_lines.jsonl")
    compaction, new = rewritten(found)
    assert (compaction.drop_before, compaction.kept) == (3, (0,))
    assert (new.reason, new.drop_before, new.kept, new.line) == ("new trajectory", 3, (0,), 3)
    assert len(texts(found)) == len(set(texts(found)))


def test_terminus_has_the_task_in_its_system_step() -> None:
    first, *_, handoff, _ = drafts(events("atif_lines.jsonl"))
    assert (first.role, first.blocks[0].origin) == (Role.USER, Origin.HUMAN)
    assert handoff.blocks[0].origin is Origin.HARNESS


def test_results_wait_for_a_call_that_is_further_down() -> None:
    found = events("atif_late_calls.json")
    kinds = [(type(block).__name__, block.text) for block in blocks(found)]
    assert kinds[1:] == [
        ("Text", "I try."),
        ("ToolCall", '{"path":"a"}'),
        ("ToolCall", '{"command":"ls"}'),
        ("ToolResult", "no such folder"),
        ("Text", "nobody asked"),
    ]
    assert (calls(found), results(found)) == (["t1", "t2"], ["t1"])
    late = drafts(found)[2]
    assert (late.at, late.line) == ("2026-01-02T03:04:06.000Z", 7)
    assert any(isinstance(block, ToolResult) and block.error for block in blocks(found))


def test_a_continued_session_of_claude_code_is_a_compaction() -> None:
    told = "This session is being continued from a previous conversation that ran out of context. Summary: x"
    found = read(trajectory({"source": "user", "message": "Go."}, {"source": "user", "message": told}))
    assert [(event.drop_before, event.kept) for event in rewritten(found)] == [(1, ())]
    assert drafts(found)[1].blocks[0].origin is Origin.HARNESS


def test_copied_context_that_is_not_in_the_file_is_said() -> None:
    copied = {"source": "user", "message": "Go on.", "is_copied_context": True}
    assert texts(read(trajectory(copied, copied, {"source": "agent", "message": "Yes."}))) == ["Go on.", "Go on.", "Yes."]


def test_an_array_of_trajectories_is_read_one_after_the_other() -> None:
    one = trajectory({"source": "user", "message": "Go."})
    assert Atif().recognises(b"[" + one + b"]")
    found = read(b"[" + one + b",\n" + one + b"]")
    assert texts(found) == ["Go.", "Go."]
    assert [event.drop_before for event in rewritten(found)] == [1]
    assert [draft.line for draft in drafts(found)] == [1, 2]


def test_a_trajectory_that_is_there_twice_is_read_once() -> None:
    one = trajectory({"source": "user", "message": "Go."}, session_id="s")
    found = read(one + b"\n" + one)
    assert texts(found) == ["Go."]
    assert ["there before" in skip.reason for skip in skipped(found)] == [True]


def test_a_damaged_line_costs_that_line() -> None:
    one = trajectory({"source": "user", "message": "Go."})
    found = read(b"{{{\n" + one + b"\n" + one[:-2] + b"\n" + one + b"\n")
    assert texts(found) == ["Go.", "Go.", "Go."]
    assert {skip.line for skip in skipped(found)} == {1, 3}


def test_a_field_of_another_shape_costs_no_text() -> None:
    step = {
        "source": "agent",
        "message": "Hello.",
        "metrics": ["?"],
        "timestamp": {},
        "tool_calls": 7,
        "is_copied_context": "yes",
    }
    found = read(trajectory(step))
    assert texts(found) == ["Hello."]
    assert skipped(found)


def test_steps_are_recognised_without_a_version_and_in_any_order() -> None:
    steps = b'{"steps": [{"message": "x", "source": "user", "step_id": 1}], "agent": {}}'
    assert Atif().recognises(steps)
    assert not Atif().recognises(b'{"steps": [{"action": "x", "thought": "y"}]}')
    assert not Atif().recognises(b'{"messages": [{"role": "user", "content": "{\\"schema_version\\": \\"ATIF-v1.4\\"}"}]}')


def test_steps_keep_their_own_result_when_ids_come_again() -> None:
    def step(n: int) -> dict[str, object]:
        called = [{"tool_call_id": "call_0", "function_name": "f", "arguments": {"n": n}}]
        return {
            "source": "agent",
            "message": "",
            "tool_calls": called,
            "observation": {"results": [{"source_call_id": "call_0", "content": str(n)}]},
        }

    assert texts(read(trajectory(step(1), step(2)))) == ['{"n":1}', "1", '{"n":2}', "2"]


def test_deep_nests_of_sub_agents_end() -> None:
    inner = trajectory({"source": "user", "message": "x"})
    for _ in range(12):
        inner = trajectory({"source": "user", "message": "x"}, subagent_trajectories=[json.loads(inner)])
    found = read(inner)
    assert len([event for event in found if isinstance(event, SubAgent)]) == 8
    assert any("nested deeper" in skip.reason for skip in skipped(found))
    assert all(isinstance(event, Draft) is False or event.blocks for event in found)
