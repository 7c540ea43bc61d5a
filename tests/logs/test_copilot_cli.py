from session_reading import FIXTURES, blocks, calls, chunked, drafts, events, results, rewritten, said, skipped

from tenure.engine.record.entry import Origin, ToolResult, Usage
from tenure.logs.copilot_cli import CopilotCli
from tenure.logs.detect import read
from tenure.logs.reader import SubAgent

FOUND = events("copilot_cli.jsonl")


def test_a_session_is_recognised_and_read_in_order() -> None:
    assert read([(FIXTURES / "copilot_cli.jsonl").read_bytes()])[0].name == "copilot-cli"
    assert [draft.role.value for draft in drafts(FOUND)] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "user", "user", "assistant",
    ]  # fmt: skip
    assert calls(FOUND) == results(FOUND) == ["c1", "c2"]


def test_what_was_sent_around_a_humans_words_is_the_harnesss() -> None:
    asked = drafts(FOUND)[1]
    assert [(block.text, block.origin) for block in asked.blocks] == [
        ("<current_datetime>2026-03-10</current_datetime>", Origin.HARNESS),
        ("Count the tests.", Origin.HUMAN),
        ("<reminder>be short</reminder>", Origin.HARNESS),
    ]
    assert drafts(FOUND)[7].blocks[0].origin is Origin.HARNESS


def test_a_reply_has_its_reasoning_model_time_and_usage() -> None:
    reply = drafts(FOUND)[2]
    assert [type(block).__name__ for block in reply.blocks] == ["Thinking", "Text", "ToolCall"]
    assert (reply.model, reply.at) == ("claude-sonnet-4.6", "2026-03-10T07:14:52.000Z")
    assert reply.usage == Usage(uncached=10, cache_write=30, cache_read=60, output=20)
    assert drafts(FOUND)[4].model == "gpt-5"


def test_messages_of_one_call_are_one_reply() -> None:
    assert [(type(block).__name__, block.text) for block in drafts(FOUND)[4].blocks] == [
        ("Text", "I ask another."),
        ("ToolCall", '{"prompt":"count"}'),
    ]


def test_a_failed_call_shows_its_error() -> None:
    failed = next(block for block in blocks(FOUND) if isinstance(block, ToolResult) and block.error)
    assert failed.text == "the agent stopped"


def test_what_left_the_window_is_named_where_it_left() -> None:
    assert [(each.reason, each.drop_before, each.kept) for each in rewritten(FOUND)] == [
        ("truncation", 3, (0,)),
        ("compaction", 6, ()),
    ]
    assert drafts(FOUND)[6].blocks[0].origin is Origin.HARNESS


def test_a_sub_agents_messages_are_a_conversation_of_its_own() -> None:
    (agent,) = [event for event in FOUND if isinstance(event, SubAgent)]
    assert (agent.id, agent.messages) == ("c2", 1)
    data = (FIXTURES / "copilot_cli.jsonl").read_bytes()
    assert said(CopilotCli().read_agent(chunked(data), "c2")) == [("Text", "There are two.")]


def test_unknown_and_repeated_events_are_counted() -> None:
    assert [each.reason for each in skipped(FOUND)] == [
        "event that was there before",
        "event unknown to this version: 'hologram.message'",
    ]
