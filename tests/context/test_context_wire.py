"""A request as bytes: the same as the dictionary, and the same as the time before up to what is new."""

import json
from typing import Any

import pytest

from tenure import Budget, Context
from tenure.apis.request_builder import LARGE
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.testing.store import MemoryStore

DIALECTS = ["anthropic", "openai-chat", "openai-responses"]
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
EPHEMERAL = {"type": "ephemeral"}


def opened(dialect: str, *messages: Any, **settings: Any) -> Context:
    context = Context(
        **({"dialect": dialect, "store": MemoryStore(), "tokenizer": len, "budget": Budget(ceiling=100_000)} | settings)
    )
    context.extend([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}, *messages])
    return context


def sent(context: Context, **settings: Any) -> dict[str, Any]:
    return json.loads(context.wire(tools=TOOLS, model="m", **settings))


def bare(value: Any) -> Any:
    """Without cache markers, and with texts that a marker made a list of."""
    match value:
        case dict():
            return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
        case [{"type": "text", "text": str(text), **rest}] if rest.keys() <= {"cache_control"}:
            return text
        case list():
            return [bare(inner) for inner in value]
        case _:
            return value


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_bytes_say_what_the_dictionary_says(dialect: str) -> None:
    one, other = opened(dialect), opened(dialect)
    asked = {**other.request(tools=TOOLS, model="m")}
    assert bare(sent(one)) == bare(json.loads(json.dumps(asked)))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("size", [1, LARGE])
def test_what_a_caller_does_to_a_request_is_in_no_later_one(dialect: str, size: int) -> None:
    context = opened(
        dialect, {"role": "assistant", "content": [{"type": "text", "text": "x" * size}]}, {"role": "user", "content": "On."}
    )
    before = json.dumps(context.request(model="m"))
    for message in context.request(model="m")["input" if dialect == "openai-responses" else "messages"]:
        if isinstance(message["content"], list):
            message["content"][0]["text"] = "changed"
        message.clear()
    assert json.dumps(context.request(model="m")) == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_notes_stand_last_and_in_no_later_request(dialect: str) -> None:
    context = opened(dialect)
    key = "input" if dialect == "openai-responses" else "messages"
    first = sent(context, notes="[now]")
    assert "[now]" in json.dumps(first[key][-1])
    assert "[now]" not in json.dumps(sent(context))
    assert bare(first[key][:-1]) == bare(sent(context)[key])


def test_notes_join_the_words_of_a_user_where_turns_must_alternate() -> None:
    context = opened("openai-chat", model="gemini-2.5-pro")
    assert sent(context, notes="[now]")["messages"][-1] == {"role": "user", "content": "Go.\n\n[now]"}
    context.extend([{"role": "assistant", "content": "Look."}, {"role": "user", "content": [{"type": "text", "text": "And?"}]}])
    assert sent(context, notes="[now]")["messages"][-1]["content"] == [
        {"type": "text", "text": "And?"},
        {"type": "text", "text": "[now]"},
    ]


def test_markers_sit_on_the_prompt_on_the_newest_message_and_where_the_last_request_ended() -> None:
    context = opened("anthropic")
    first = sent(context, notes="[now]")
    assert first["system"][-1]["cache_control"] == EPHEMERAL
    assert first["messages"][0]["content"][-1]["cache_control"] == EPHEMERAL
    assert "cache_control" not in json.dumps(first["messages"][-1])
    context.extend([{"role": "assistant", "content": [{"type": "text", "text": "Look."}]}, {"role": "user", "content": "And?"}])
    marked = [json.dumps(message).count("cache_control") for message in sent(context)["messages"]]
    assert marked == [1, 0, 1]


def test_a_marker_asks_for_the_life_that_the_host_pays_for() -> None:
    context = opened("anthropic", cache_life="1h", model="claude-opus-4-5")
    assert sent(context)["messages"][0]["content"][-1]["cache_control"] == EPHEMERAL | {"ttl": "1h"}


def test_results_that_were_recorded_one_by_one_are_sent_as_one_message() -> None:
    made = [{"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}} for n in range(2)]
    results = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"r{n}"}]} for n in range(2)
    ]
    context = opened("anthropic", {"role": "assistant", "content": made}, *results, {"role": "user", "content": "And?"})
    shown = bare(sent(context))["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user", "user"]
    assert [part["content"] for part in shown[2]["content"]] == ["r0", "r1"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_half_of_a_surrogate_pair_is_sent_as_what_can_be_read_and_a_whole_one_as_it_is(dialect: str) -> None:
    context = opened(dialect, {"role": "user", "content": "a \ud83d b \ud83d\ude00"})
    context.extend([b'{"role":"user","content":"raw \\uD83D\\uDE00 \\ud83d"}', b'{"role":"user","content":"\\uD83D\\uDE00"}'])
    body = context.wire(model="m", notes="[now]")
    assert json.loads(body.decode("utf-8"))
    assert not [sign for sign in json.loads(body.decode()).__repr__() if "\ud800" <= sign <= "\udfff"]
    assert body.count(b"\\ud83d") == 0
    assert b"\\uD83D\\uDE00" in body  # what can be sent is not rewritten
    assert "\ufffd".encode() in body


def test_drafts_are_taken_as_they_are() -> None:
    context = opened("anthropic")
    context.extend([Draft(role=Role.USER, blocks=(Text(text="[a word of the host]", origin=Origin.HARNESS),))])
    assert len(context.session.index.turns) == 1
    assert "[a word of the host]" in json.dumps(sent(context))


def test_a_planner_is_asked_behind_the_request_without_its_notes() -> None:
    context = opened("openai-chat")
    context.wire(model="m", notes="[now]")
    assert b"[now]" not in context._requests.prefix()
    assert b"Go." in context._requests.prefix()
