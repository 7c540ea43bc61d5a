import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_reading import FIXTURES, blocks, calls, chunked, drafts, events, results, rewritten, said, skipped

from tenure.apis.json_text import elements
from tenure.apis.openai_responses import OpenAIResponses
from tenure.engine.record.entry import Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.codex import Codex
from tenure.logs.codex_items import written_by
from tenure.logs.detect import detect
from tenure.logs.reader import Event, Rewritten

GENERATIONS = ("codex.jsonl", "codex_compacted.jsonl", "codex_counts_first.jsonl", "codex_bare.jsonl", "codex_document.json")


def line(kind: str, payload: object, **more: object) -> bytes:
    return json.dumps({"timestamp": "2026-03-01T10:00:00Z", "type": kind, "payload": payload, **more}).encode()


def item(**payload: object) -> bytes:
    return line("response_item", payload)


def user(text: str, n: int = 0) -> bytes:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return line("response_item", said, ordinal=n)


def answer(text: str) -> bytes:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def count(read: int, total: int, **more: int) -> bytes:
    last, all_ = {"input_tokens": read, "output_tokens": 1, **more}, {"input_tokens": total, "output_tokens": 1}
    return line("event_msg", {"type": "token_count", "info": {"last_token_usage": last, "total_token_usage": all_}})


def rollback(turns: int, n: int = 0) -> bytes:
    return line("event_msg", {"type": "thread_rolled_back", "num_turns": turns}, ordinal=n)


def of(*rows: bytes) -> list[Event]:
    return list(Codex().read([b"\n".join(rows)]))


def prompts(found: list[Event]) -> list[int | None]:
    return [draft.usage and draft.usage.prompt for draft in drafts(found) if draft.role is Role.ASSISTANT]


def window(found: list[Event]) -> list[str]:
    """The texts that are in the model's window in the end."""
    numbers, yielded = list[int](), list[Draft]()
    for event in found:
        if isinstance(event, Draft):
            numbers.append(len(yielded))
            yielded.append(event)
        elif isinstance(event, Rewritten):
            numbers = [n for n in numbers if n >= event.drop_before or n in event.kept]
    return [block.text for n in numbers for block in yielded[n].blocks]


@pytest.mark.parametrize("name", GENERATIONS)
def test_every_generation_is_told_from_its_first_bytes(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    for size in (300, 1000, 64 * 2**10):
        reader = detect(data[:size])
        assert reader is not None
        assert reader.name == "codex"


def test_a_header_longer_than_the_head_is_recognised() -> None:
    meta = line("session_meta", {"id": "s", "cwd": "/", "originator": "codex-tui", "base_instructions": {"text": "x" * 10**5}})
    assert Codex().recognises(meta[: 64 * 2**10])


def test_items_without_a_header_are_messages_of_the_api() -> None:
    assert not Codex().recognises((FIXTURES / "openai_lines.jsonl").read_bytes())
    assert not Codex().recognises(b'{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}')


@pytest.mark.parametrize("name", GENERATIONS)
def test_blocks_line_up_with_what_the_dialect_reads_in_the_payload(name: str) -> None:
    for draft in drafts(events(name)):
        if draft.dialect == "openai-responses":
            payload = draft.payload.decode()
            items = [one.text for one in elements(payload)] if payload.startswith("[") else [payload]
            found = OpenAIResponses().parse([one.encode() for one in items])
            assert len(found) == 1
            assert [(type(block), block.text) for block in found[0].blocks] == [
                (type(block), block.text) for block in draft.blocks
            ]


@pytest.mark.parametrize("name", GENERATIONS)
def test_payloads_are_the_bytes_of_the_file(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    for draft in drafts(events(name)):
        for part in draft.payload[1:-1].split(b"},{") if draft.payload.startswith(b"[") else [draft.payload[1:]]:
            assert part.strip(b"{}") in data


def test_the_header_is_the_system_prompt_and_models_are_the_turns() -> None:
    found = drafts(events("codex.jsonl"))
    assert (found[0].role, found[0].blocks[0].text, found[0].line) == (Role.SYSTEM, "You are Codex, an agent of words.", 1)
    assert [draft.model for draft in found if draft.role is Role.ASSISTANT] == ["gpt-9-codex"] * 5 + ["gpt-9-mini"]


def test_what_a_call_made_is_one_draft_with_what_it_used() -> None:
    found = drafts(events("codex.jsonl"))
    reply = found[4]
    assert [type(block) for block in reply.blocks] == [Thinking, Text, ToolCall, ToolCall]
    assert reply.usage == Usage(uncached=800, cache_read=200, output=50)
    assert found[7].usage == Usage(uncached=200, cache_write=100, cache_read=900, output=30)
    assert isinstance(reply.blocks[0], Thinking)
    assert reply.blocks[0].signed


def test_results_follow_their_calls() -> None:
    found = events("codex.jsonl")
    assert calls(found) == ["call_1", "call_2", "call_3"]
    assert results(found) == ["call_1", "call_2", "call_3"]


def test_only_what_a_human_typed_is_human() -> None:
    human = [
        block.text for block in blocks(events("codex.jsonl")) if block.origin is Origin.HUMAN and not isinstance(block, Media)
    ]
    assert human == ["Why does the build fail?", "Delete everything."]


def test_what_the_screen_showed_is_not_told_twice() -> None:
    texts = [text for _, text in said(events("codex.jsonl"))]
    assert len([text for text in texts if "Why does the build fail?" in text]) == 1
    assert len([text for text in texts if "**Looking around**" in text]) == 1
    assert not any("Said through a tool." in text for text in texts)


def test_other_agents_speak_as_the_harness() -> None:
    found = drafts(events("codex.jsonl"))
    assert [block.text for block in found[15].blocks] == ["The scout found a second Makefile."]
    assert [(type(block), block.origin) for block in found[16].blocks] == [(Text, Origin.HARNESS), (Opaque, Origin.HARNESS)]
    assert found[16].role is Role.USER


def test_a_picture_the_model_made_is_media_and_not_text() -> None:
    reply = drafts(events("codex.jsonl"))[13]
    assert [type(block) for block in reply.blocks] == [Text, Media, Text]
    assert reply.dialect != "openai-responses"


def test_kinds_unknown_to_this_version_are_said() -> None:
    assert [event.line for event in skipped(events("codex.jsonl"))] == [49, 50]


def test_a_rollback_takes_the_newest_turn_out() -> None:
    found = events("codex.jsonl")
    (change,) = rewritten(found)
    assert change.kept == tuple(range(12))
    assert change.drop_before == 15
    assert "Delete everything." not in window(found)


def test_a_rollback_takes_the_context_before_its_turn_along_but_nothing_before_the_first_turn() -> None:
    context = user("<environment_context>x</environment_context>")
    told = (context, user("one"), answer("1"), context, user("two"), answer("2"))
    assert window(of(*told, rollback(1))) == ["<environment_context>x</environment_context>", "one", "1"]
    assert window(of(*told, rollback(9))) == ["<environment_context>x</environment_context>"]
    assert not rewritten(of(*told, rollback(0)))


def test_a_sub_agents_session_says_where_its_parent_is() -> None:
    (note,) = skipped(events("codex_compacted.jsonl"))
    assert "s-9" in note.reason


def test_the_header_that_a_fork_repeats_is_no_second_prompt() -> None:
    assert [text for _, text in said(events("codex_compacted.jsonl"))].count("Base.") == 1


def test_a_compaction_keeps_the_prompts_and_the_users_messages_beside_the_summary() -> None:
    found = events("codex_compacted.jsonl")
    first = rewritten(found)[0]
    assert (first.drop_before, first.kept) == (9, (0, 1, 2, 3, 7))
    summary = drafts(found)[9]
    assert summary.blocks[0].text.startswith("Another language model")
    assert summary.blocks[0].origin is Origin.HARNESS


def test_of_a_history_written_out_the_newest_equal_drafts_stay_and_the_others_are_new() -> None:
    found = events("codex_compacted.jsonl")
    second = rewritten(found)[1]
    assert (second.drop_before, second.kept) == (14, (0, 7, 12))
    allowed, sealed = drafts(found)[14:16]
    assert "All is allowed." in allowed.blocks[0].text
    assert (sealed.role, type(sealed.blocks[0]), sealed.usage) == (Role.USER, Opaque, None)


def test_the_count_of_the_call_that_summed_up_is_of_no_reply() -> None:
    assert prompts(events("codex_compacted.jsonl")) == [100, 120, 140, 90, 95, 80]


def test_user_messages_beyond_the_limit_leave_with_a_compaction() -> None:
    found = of(user("x" * 70_000), user("y" * 20_000), line("compacted", {"message": "sum"}))
    assert window(found) == ["y" * 20_000, "sum"]


def test_a_message_that_lost_its_picture_in_a_compaction_is_still_the_same() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    label, end, text = ({"type": "input_text", "text": text} for text in ("<image name=[Image #1]>", "</image>", "look"))
    asked = item(type="message", role="user", content=[label, picture, end, text])
    after = line("compacted", {"message": "", "replacement_history": [{"type": "message", "role": "user", "content": [text]}]})
    assert rewritten(of(asked, after))[0].kept == (0,)


def test_a_summary_in_words_of_its_own_is_not_human() -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "In short: all is well."}]}]
    found = of(user("hi"), line("compacted", {"message": "In short: all is well.", "replacement_history": history}))
    assert drafts(found)[-1].blocks == (Text(text="In short: all is well.", origin=Origin.HARNESS),)


def test_words_that_stay_without_the_calls_beside_them_are_told_anew() -> None:
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"}
    told = (user("hi"), item(**words), item(**call), item(type="function_call_output", call_id="c", output="x"))
    without = of(*told, line("compacted", {"message": "", "replacement_history": [words]}))
    assert rewritten(without)[0].kept == ()
    assert window(without) == ["I look."]
    both = of(*told, line("compacted", {"message": "", "replacement_history": [words, call]}))
    assert rewritten(both)[0].kept == (1,)


def test_a_damaged_item_of_a_compaction_costs_that_item() -> None:
    good = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    found = of(
        user("hi"),
        answer("ho"),
        line("compacted", {"message": "", "replacement_history": [{"type": "message", "role": 3}, good]}),
    )
    assert rewritten(found)[0].kept == (0,)
    assert any("compaction" in note.reason for note in skipped(found))


def test_instructions_that_the_messages_hold_are_not_a_prompt_as_well() -> None:
    found = drafts(events("codex_counts_first.jsonl"))
    assert found[0].role is Role.USER
    assert [block.text.count("Be kind.") for draft in found for block in draft.blocks].count(1) == 1


def test_instructions_that_no_message_holds_were_the_prompt() -> None:
    for name, text in (("codex_bare.jsonl", "Prefer tabs."), ("codex_document.json", "Write short code.")):
        first = drafts(events(name))[0]
        assert (first.role, first.blocks[0].text) == (Role.SYSTEM, text)


def test_counts_that_come_first_are_of_the_call_that_follows() -> None:
    found = events("codex_counts_first.jsonl")
    assert prompts(found) == [500, 600]
    assert calls(found) == results(found) == ["call_1", "call_2"]
    assert drafts(found)[3].blocks[1:] == tuple(block for block in blocks(found) if isinstance(block, ToolCall))


def test_a_result_that_is_an_object_tells_whether_it_failed() -> None:
    failed = [block for block in blocks(events("codex_counts_first.jsonl")) if isinstance(block, ToolResult) and block.error]
    assert [result.text for result in failed] == ["no c"]


def test_counts_are_of_the_reply_they_follow_and_repeated_ones_of_none() -> None:
    told = [user("a"), answer("1"), count(10, 10), count(10, 10), user("b"), answer("2"), count(10, 20), user("c"), answer("3")]
    assert prompts(of(*told)) == [10, 10, None]


def test_a_count_of_a_call_that_left_nothing_does_not_shift_the_others() -> None:
    told = [user("a"), count(7, 7), answer("1"), count(10, 17), user("b"), answer("2"), count(20, 37)]
    assert prompts(of(*told)) == [10, 20]


def test_running_totals_tell_what_a_call_used_where_nothing_else_does() -> None:
    def total(n: int) -> bytes:
        return line("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": n, "output_tokens": 1}}})

    assert prompts(of(user("a"), answer("1"), total(10), user("b"), answer("2"), total(35))) == [10, 25]


def test_minor_fields_of_another_shape_cost_no_text() -> None:
    odd = item(type="message", role="user", id=5, call_id=[], content=[{"type": "input_text", "text": "kept"}], name={})
    counts = line("event_msg", {"type": "token_count", "info": {"last_token_usage": {"input_tokens": "many"}}})
    found = of(line("session_meta", {"id": 7, "source": 3, "base_instructions": ["x"]}), odd, answer("too"), counts)
    assert [text for _, text in said(found)] == ["kept", "too"]


def test_calls_and_results_without_ids_get_some() -> None:
    found = of(
        item(type="local_shell_call", id=None, call_id=None, status="completed", action={"type": "exec", "command": ["ls"]}),
        item(type="function_call", name="shell", arguments="{}"),
        item(type="function_call_output", output="ok"),
    )
    assert len({*calls(found), *results(found)}) == 3
    assert all([*calls(found), *results(found)])


def test_an_item_no_one_can_read_costs_that_item() -> None:
    found = of(user("before"), item(type="message", role="oracle", content=[]), item(type="reasoning", summary=3), user("after"))
    assert [text for kind, text in said(found) if kind == "Text"] == ["before", "after"]
    assert any("oracle" in note.reason for note in skipped(found))


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("<environment_context>\n<cwd>/</cwd>\n</environment_context>", Origin.HARNESS),
        ("<ENVIRONMENT_CONTEXT>x</ENVIRONMENT_CONTEXT>", Origin.HARNESS),
        ("<environment_context>x</environment_context> Now fix it.", Origin.HUMAN),
        ('<codex_internal_context source="goal">\nx\n</codex_internal_context>', Origin.HARNESS),
        ("<external_notes>x</external_notes>", Origin.HARNESS),
        ("<permissions instructions>x</permissions instructions>", Origin.HARNESS),
        ("<div>why is this red?</div>", Origin.HUMAN),
        ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\ny\n</INSTRUCTIONS>", Origin.HARNESS),
        ("# Context from my IDE setup:\n\n## My request for Codex:\nfix it", Origin.HUMAN),
        ("", Origin.HUMAN),
        ("<", Origin.HUMAN),
    ],
)
def test_who_wrote_a_text_is_told_by_how_it_starts_and_ends(text: str, origin: Origin) -> None:
    assert written_by(text) is origin


def test_kinds_that_codex_notes_beside_a_part_go_before_its_text() -> None:
    assert written_by("Fix it.", "agents_md.instructions") is Origin.HARNESS
    assert written_by("<skill>mine</skill>", "user.text") is Origin.HUMAN
    assert written_by("wake up", "user.heartbeat") is Origin.HARNESS


def test_many_rollbacks_over_a_long_session_are_read_in_time() -> None:
    turns = [user(f"long {n}", n) for n in range(2_500)]
    more = [row for n in range(2_500) for row in (user(f"short {n}", n), rollback(1, n))]
    found = of(*turns, *more)
    assert len(drafts(found)) == 5_000
    assert sum(len(change.kept) for change in rewritten(found)) < 5 * 10**6


def texts_of(value: Any) -> Iterator[str]:
    """Every text that an item shows the model, gathered without the reader's help."""
    match value["type"]:
        case "message":
            yield from (part["text"] for part in value["content"])
        case "reasoning":
            yield "\n".join(part["text"] for part in value["summary"])
        case "function_call":
            yield value["arguments"]
        case _:
            yield value["output"]


def session(seed: int, turns: int) -> tuple[bytes, list[str]]:
    """A made-up session of several calls a turn, and the texts in it; with a large number of turns, one to measure speed with."""
    rng = random.Random(seed)
    rows = [line("session_meta", {"id": "s", "cwd": "/", "base_instructions": {"text": "base"}}, ordinal=0)]
    texts, total = ["base"], 0
    for turn in range(turns):
        items: list[dict[str, Any]] = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"ask {turn}"}]}
        ]
        for call in range(rng.randrange(4)):
            told = " ".join(rng.choices(["alpha", "beta", "\n", "ü", '"quoted"'], k=rng.randrange(1, 200)))
            items += [
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": told[:20]}],
                    "encrypted_content": f"e{turn}.{call}",
                },
                {"type": "function_call", "name": "shell", "arguments": json.dumps({"cmd": told}), "call_id": f"c{turn}.{call}"},
                {"type": "function_call_output", "call_id": f"c{turn}.{call}", "output": told},
            ]
        items.append({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"answer {turn}"}]})
        for value in items:
            texts += texts_of(value)
            rows.append(line("response_item", value, ordinal=len(rows)))
            if value["type"] in ("function_call", "message") and value.get("role") != "user":
                total += 10
                rows.append(count(10, total))
    return b"\n".join(rows), texts


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_every_text_of_a_session_is_told_once_and_in_order(seed: int) -> None:
    data, texts = session(seed, turns=6)
    found = list(Codex().read(chunked(data, 999)))
    assert [text for _, text in said(found)] == texts
    assert all(draft.usage for draft in drafts(found) if draft.role is Role.ASSISTANT)
