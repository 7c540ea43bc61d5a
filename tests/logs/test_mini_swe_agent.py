from session_reading import calls, drafts, events, results, skipped

from tenure.apis.openai_chat import OpenAIChat
from tenure.engine.record.entry import Origin, Role, Usage


def test_only_the_first_user_message_is_the_humans() -> None:
    origins = [draft.blocks[0].origin for draft in drafts(events("mini_v1.traj.json"))]
    assert origins == [Origin.HARNESS, Origin.HUMAN, Origin.MODEL, Origin.TOOL]


def test_the_answer_carries_usage_and_model_but_not_the_raw_response() -> None:
    answer = next(draft for draft in drafts(events("mini_v1.traj.json")) if draft.role is Role.ASSISTANT)
    assert answer.usage == Usage(uncached=70, cache_read=30, output=20)
    assert answer.model == "model-x"
    assert b"hidden" not in answer.payload
    assert b"extra" not in answer.payload


def test_version_2_has_real_calls() -> None:
    found = events("mini_v2.traj.json")
    assert calls(found) == results(found) == ["c1"]
    assert ["exit" in skip.reason for skip in skipped(found)] == [True]


def test_payloads_parse_to_the_blocks_of_their_drafts() -> None:
    for name in ("mini_v1.traj.json", "mini_v2.traj.json"):
        for draft in drafts(events(name)):
            (parsed,) = OpenAIChat().parse([draft.payload])
            assert [block.text for block in parsed.blocks] == [block.text for block in draft.blocks]
