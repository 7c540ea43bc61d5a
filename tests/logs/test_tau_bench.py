import json

import pytest
from session_reading import FIXTURES, blocks, calls, drafts, events, results, rewritten, said, skipped

from tenure.apis.openai_chat import OpenAIChat
from tenure.engine.record.entry import Origin, Role, Text, ToolResult, Usage
from tenure.errors import InputError
from tenure.logs.reader import Event
from tenure.logs.tau_bench import TauBench


def read(sample: object) -> list[Event]:
    return list(TauBench().read([json.dumps(sample).encode()]))


def texts(found: list[Event]) -> list[str]:
    return [text for _, text in said(found)]


def origins(found: list[Event]) -> list[Origin]:
    return [block.origin for block in blocks(found)]


def test_the_policy_the_user_and_the_agent_are_who_they_are() -> None:
    found = drafts(events("tau_bench.json"))[:6]
    assert [draft.role.value for draft in found] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [draft.blocks[0].origin.value for draft in found] == ["harness", "human", "model", "tool", "model", "human"]
    assert [draft.line for draft in found] == [7, 8, 9, 11, 12, 13]


def test_nothing_that_decides_about_the_agent_is_read() -> None:
    for name in ("tau_bench.json", "tau2_results.json"):
        found = events(name)
        assert not any("Secret" in text for text in texts(found))
        assert not any(b"Secret" in draft.payload for draft in drafts(found))


def test_payloads_are_the_messages_that_were_sent() -> None:
    found = drafts(events("tau_bench.json"))
    for draft in found:
        (parsed,) = OpenAIChat().parse([draft.payload])
        assert [block.text for block in parsed.blocks] == [block.text for block in draft.blocks]
    assert not any(b"provider_specific_fields" in draft.payload for draft in found)


def test_each_sample_is_a_window_of_its_own() -> None:
    (new,) = rewritten(events("tau_bench.json"))
    assert (new.reason, new.drop_before, new.kept, new.line) == ("new sample", 6, (), 17)


def test_outputs_in_the_users_role_are_the_tools() -> None:
    last = drafts(events("tau_bench.json"))[-1]
    assert (last.role, last.blocks[0].origin) == (Role.USER, Origin.TOOL)


def test_one_element_and_lines_of_them_read_like_the_array() -> None:
    whole = json.loads((FIXTURES / "tau_bench.json").read_bytes())
    lines = b"\n".join(json.dumps(sample).encode() for sample in whole)
    assert TauBench().recognises(lines)
    assert texts(list(TauBench().read([lines]))) == texts(events("tau_bench.json"))
    assert texts(read(whole[0])) == texts(events("tau_bench.json"))[:7]


def test_the_policy_of_tau2_is_said_once_and_stays() -> None:
    found = events("tau2_results.json")
    assert texts(found).count("# Tea policy") == 1
    assert [(event.reason, event.drop_before, event.kept) for event in rewritten(found)] == [
        ("oldest messages left out", 2, (0,)),
        ("new sample", 7, (0,)),
    ]


def test_the_greeting_is_the_harness_and_what_follows_the_model() -> None:
    found = drafts(events("tau2_results.json"))
    assert [draft.blocks[0].origin.value for draft in found[:4]] == ["harness", "harness", "human", "model"]
    assert (found[1].model, found[3].model, found[6].model) == ("", "model-x-1", "model-x")
    assert found[3].usage == Usage(uncached=100, output=9)
    assert found[6].usage == Usage(uncached=50, cache_read=30, output=5)


def test_the_users_own_tools_are_counted_and_not_shown() -> None:
    reasons = [skip.reason for skip in skipped(events("tau2_results.json"))]
    assert any("simulated user's own tools" in reason and "2 times" in reason for reason in reasons)
    assert any("reasoning" in reason for reason in reasons)
    assert any("'judge'" in reason for reason in reasons)


def test_results_of_several_tools_are_taken_apart_and_find_their_calls() -> None:
    found = events("tau2_results.json")
    assert calls(found) == results(found) == ["c1", "call-3-1"]
    assert [block.error for block in blocks(found) if isinstance(block, ToolResult)] == [True, False]


def test_a_simulation_alone_is_read_with_its_own_policy() -> None:
    results_ = json.loads((FIXTURES / "tau2_results.json").read_bytes())
    alone = results_["simulations"][1] | {"policy": "# Own policy"}
    assert TauBench().recognises(json.dumps(alone).encode())
    assert texts(read(alone)) == ["# Own policy", "Hi! How can I help you today?", "Coffee."]


def test_a_system_message_stands_for_the_policy() -> None:
    sample = {"task_id": "0", "termination_reason": "x", "policy": "p", "messages": [{"role": "system", "content": "s: p"}]}
    assert texts(read(sample)) == ["s: p"]


def test_calls_in_the_shape_of_openai_keep_their_arguments() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}]
    found = read({"task_id": "0", "reward_info": {}, "messages": messages})
    assert texts(found) == ['{"a": 1}', "ok"]
    assert calls(found) == results(found) == ["c"]


def test_a_spoken_simulation_is_one_draft_for_each_utterance() -> None:
    ticks = [
        {"tick_id": 0, "agent_chunk": {"content": "Hel"}, "user_chunk": {"content": None}},
        {"tick_id": 1, "agent_chunk": {"content": "lo."}, "user_chunk": {"content": "Te"}},
        {"tick_id": 2, "user_chunk": {"content": "a!"}, "user_tool_calls": [{"id": "u", "name": "look", "arguments": {}}]},
        {"tick_id": 3, "agent_chunk": {"content": "So"}},
        {
            "tick_id": 4,
            "agent_chunk": {"content": "on."},
            "agent_tool_calls": [{"id": "c", "name": "brew", "arguments": {}}],
            "agent_tool_results": [{"role": "tool", "id": "c", "content": "ok"}],
        },
        {"tick_id": 5, "agent_chunk": {"content": "Done."}, "user_chunk": {"content": "Thanks."}},
    ]
    found = read({"task_id": "0", "termination_reason": "user_stop", "messages": None, "ticks": ticks})
    assert texts(found) == ["Hello.", "Tea!", "Soon.", "{}", "ok", "Done.", "Thanks."]
    assert any("simulated user's own tools" in skip.reason for skip in skipped(found))


def test_the_script_stands_for_sound() -> None:
    said_aloud = {"role": "user", "content": "UklGRg==", "is_audio": True, "audio_script_gold": "Tea."}
    assert texts(read({"task_id": "0", "termination_reason": "x", "messages": [said_aloud]})) == ["Tea."]


def test_a_damaged_message_costs_that_message() -> None:
    traj = [{"role": "user", "content": "a"}, {"role": "nobody", "content": "b"}, 3, {"role": "assistant", "content": "c"}]
    found = read({"task_id": 0, "traj": traj})
    assert texts(found) == ["a", "c"]
    assert len(skipped(found)) == 2


def test_results_without_their_simulations_say_so() -> None:
    whole = json.loads((FIXTURES / "tau2_results.json").read_bytes()) | {"simulations": []}
    assert ["files of their own" in skip.reason for skip in skipped(read(whole))] == [True]
    assert ["no conversation" in skip.reason for skip in skipped(read({"task_id": 0, "info": {}}))] == [True]


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(InputError, match="traj"):
        list(TauBench().read([b'{"traj": 3']))


def test_other_benchmarks_are_not_taken_for_this_one() -> None:
    other = {"task_id": "0", "messages": [{"role": "user", "content": "x"}]}
    assert not TauBench().recognises(json.dumps(other).encode())
    assert not TauBench().recognises(json.dumps({"info": {}, "messages": []}).encode())
    assert isinstance(drafts(events("tau_bench.json"))[0].blocks[0], Text)
    assert origins(events("tau_bench.json"))[0] is Origin.HARNESS
