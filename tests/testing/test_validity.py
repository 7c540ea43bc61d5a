from typing import Any

import pytest
from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.apis.seals import seal, sealed_call_id
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import units
from tenure.testing.validity import violations

CLAUDE = rules_for("anthropic", "claude-opus-5", "anthropic")
CHAT = rules_for("openai", "gpt-5", "openai-chat")
RESPONSES = rules_for("openai", "gpt-5", "openai-responses")


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts)}


def text(said: str = "hi", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(call: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "read", "input": {}}


def result(call: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": "x"}


def thought(signature: str, said: str = "hm") -> dict[str, Any]:
    return {"type": "thinking", "thinking": said, "signature": signature}


SEAL = seal("hm")
SEALED = sealed_call_id(SEAL, 1)
OPEN = [user(text()), model(thought(SEAL), use(SEALED)), user(result(SEALED))]
CLOSED = [*OPEN, model(text("done"))]


@pytest.mark.parametrize(
    "messages", [OPEN, CLOSED, [*CLOSED, user(text())], [user(text()), user(text())], [{"role": "user", "content": "x"}]]
)
def test_valid_messages_pass(messages: list[Any]) -> None:
    assert violations({"messages": messages}, CLAUDE) == ()


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], "at least one"),
        ([model(text())], "first message"),
        ([user(text()), {"role": "tool", "content": "x"}], "unexpected role 'tool'"),
        ([user()], "non-empty content"),
        ([user(text(" "))], "non-whitespace"),
        ([user(text()), model(use())], "without `tool_result`"),
        ([user(text()), model(use()), user(text())], "without `tool_result`"),
        ([user(text()), model(use()), user(text(), result())], "without `tool_result`"),
        ([user(text()), model(use()), user(text()), user(result())], "without `tool_result`"),
        ([user(result())], "unexpected `tool_use_id`"),
        ([user(text()), model(use()), user(result(), result())], "unexpected `tool_use_id`"),
        ([user(text()), model(use(), use()), user(result())], "unique"),
        ([user(text()), model(thought("s"))], "final block"),
        ([user(text()), model(thought(SEAL, "changed"), text())], "Invalid `signature`"),
        ([user(*(text(cache_control={"type": "ephemeral"}) for _ in range(5)))], "maximum of 4"),
        ([user(text()), model(thought("s") | {"cache_control": {}}, text())], "cache_control"),
    ],
)
def test_invalid_messages_are_named(messages: list[Any], found: str) -> None:
    first, *_ = violations({"messages": messages}, CLAUDE)
    assert found in first


BARE = [user(text()), model(use(SEALED)), user(result(SEALED))]  # the call is there, the thinking that led to it is not
MISSING = {
    "in the open exchange": BARE,
    "in the newest assistant message, a human spoke since": [*BARE, user(text())],
    "in an older one": [*BARE, model(text("done"))],
}


@pytest.mark.parametrize(
    ("thinking", "refused"),
    [
        ("none", []),
        ("last_message", ["in the open exchange", "in the newest assistant message, a human spoke since"]),
        ("open_loop", ["in the open exchange", "in the newest assistant message, a human spoke since"]),
        ("prefix_bound", []),
    ],
)
def test_each_rule_says_which_thinking_may_go(thinking: Any, refused: list[str]) -> None:
    rules = replace(CLAUDE, thinking=thinking)
    assert [case for case, messages in MISSING.items() if violations({"messages": messages}, rules)] == refused


def test_the_open_loop_reaches_back_to_the_newest_human_text() -> None:
    first, second = [user(text()), model(thought(SEAL), use(SEALED))], sealed_call_id(SEAL, 2)
    loop = [user(result(SEALED)), model(thought(SEAL), use(second)), user(result(second))]
    cut = [first[0], model(use(SEALED))]
    rules = {name: replace(CLAUDE, thinking=name) for name in ("last_message", "open_loop")}
    assert violations({"messages": [*first, *loop]}, rules["open_loop"]) == ()
    assert violations({"messages": [*cut, *loop]}, rules["open_loop"])
    assert violations({"messages": [*cut, *loop]}, rules["last_message"]) == ()


def test_bound_thinking_is_refused_after_any_change_before_it() -> None:
    rules = replace(CLAUDE, thinking="prefix_bound")
    body = {"system": "rules", "messages": [user(text())]}
    bound = seal("hm", [unit.text for unit in units(body, rules)])
    reply = model(thought(bound), text())
    marked = user(text(cache_control={"type": "ephemeral"}))
    assert violations({"system": "rules", "messages": [marked, reply]}, rules) == ()
    assert "different conversation" in violations({"system": "rule", "messages": [user(text()), reply]}, rules)[0]
    assert "different conversation" in violations({"system": "rules", "messages": [user(text("ha")), reply]}, rules)[0]


def test_enabled_thinking_must_lead_the_open_exchange() -> None:
    body = {"thinking": {"type": "enabled"}, "messages": [user(text()), model(use()), user(result())]}
    assert "Expected `thinking`" in violations(body, CLAUDE)[0]
    assert violations(body, replace(CLAUDE, thinking="none")) == ()


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
ASK, ANSWER = {"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c1", "content": "y"}


@pytest.mark.parametrize(
    ("messages", "found", "rules"),
    [
        ([ASK, CALL, ANSWER], "", CHAT),
        ([ASK, CALL], "c1", CHAT),
        ([ASK, CALL, ASK, ANSWER], "must be followed", CHAT),
        ([ASK, ANSWER], "preceeding message", CHAT),
        ([ASK, CALL, ANSWER, ANSWER], "preceeding message", CHAT),
        ([{"role": "assistant", "content": None}], "got null", CHAT),
        ([ASK, CALL | {"tool_calls": []}], "empty array", CHAT),
        ([{"role": "alien", "content": ""}], "alien", CHAT),
        ([ASK, ASK], "alternate", replace(CHAT, alternation=True)),
        ([ASK, CALL, ANSWER, ANSWER | {"tool_call_id": "c2"}], "preceeding", replace(CHAT, alternation=True)),
        ([ASK, CALL, ANSWER], "reasoning_content", replace(CHAT, call_reasoning=True)),
    ],
)
def test_chat_messages(messages: list[Any], found: str, rules: Rules) -> None:
    broken = violations({"messages": messages}, rules)
    assert (found in broken[0]) if found else not broken


THINK = {"type": "reasoning", "id": "rs_r1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": seal("hm")}
DO = {"type": "function_call", "id": "fc_r1_1", "call_id": "c1", "name": "f", "arguments": "{}"}
DONE = {"type": "function_call_output", "call_id": "c1", "output": "y"}


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([ASK, THINK, DO, DONE], ""),
        ([ASK, DO, DONE], "required 'reasoning' item: 'rs_r1'"),
        ([ASK, THINK], "required following item"),
        ([ASK, THINK, ASK], "required following item"),
        ([ASK, THINK | {"summary": []}, DO, DONE], "could not be verified"),
        ([ASK, THINK, DO], "No tool output"),
        ([ASK, DONE], "No tool call"),
        ([ASK, THINK, DO, DONE, DONE], "No tool call"),
        ([ASK, THINK, DO, DONE, THINK, {"role": "assistant", "content": "x"}], "Duplicate"),
        ([{"role": "user", "content": []}], "content"),
    ],
)
def test_responses_items(items: list[Any], found: str) -> None:
    broken = violations({"input": items}, RESPONSES)
    assert (found in broken[0]) if found else not broken


def test_without_the_unit_rule_reasoning_may_go() -> None:
    assert violations({"input": [ASK, DO, DONE]}, replace(RESPONSES, reasoning_unit=False)) == ()
