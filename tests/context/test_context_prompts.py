"""Messages of a system inside a conversation stay where they stand, byte for byte; a prompt and the caller's `system` stand together."""

import json
from typing import Any

import pytest
from anthropic.types import TextBlock

from tenure import Budget, Context
from tenure.apis.rules import rules_for
from tenure.engine.policies import COMPAT, PEERS, POLICIES
from tenure.engine.policies.policy import Policy
from tenure.testing.store import MemoryStore
from tenure.testing.validity import violations

MODEL = "claude-opus-5"
OLD = "claude-sonnet-4-5"
EVERY: dict[str, Policy] = {**POLICIES, **PEERS, **COMPAT}
SETTING = b'{"role": "system", "content": [], "output_config": {"effort": "low"}}'


def rule(n: int) -> bytes:
    return json.dumps({"role": "system", "content": f"Rule {n}: never push to main. " + "Mind it well. " * 30}).encode()


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]}


def opened(policy: Policy | None = None, model: str = MODEL, ceiling: int = 110_000) -> Context:
    return Context(policy=policy, model=model, store=MemoryStore(), budget=Budget(ceiling=ceiling), tokenizer=len, clip=0)


def lived(context: Context, model: str, tasks: int = 8) -> list[dict[str, Any]]:
    """The requests of a session as Claude Code holds it: instructions of the host behind a person's words and behind results."""
    bodies: list[dict[str, Any]] = []
    for n in range(tasks):
        context.extend([user(f"Task {n}."), rule(n), SETTING])
        for m in range(4):
            bodies.append(context.request(model=model, max_tokens=9, system="Be brief."))
            call = {"type": "tool_use", "id": f"c{n}_{m}", "name": "read", "input": {"path": f"{n}/{m}.py"}}
            context.extend([{"role": "assistant", "content": [{"type": "text", "text": "Next."}, call]}])
            lines = "\n".join(f"line {line} of {n}/{m}" for line in range(400))
            context.extend([user({"type": "tool_result", "tool_use_id": call["id"], "content": lines})])
            context.extend([rule(100 * n + m)] if m == 2 else [])
        bodies.append(context.request(model=model, max_tokens=9, system="Be brief."))
        context.extend([{"role": "assistant", "content": f"Task {n} is done."}])
    context.extend([user("What is left?")])
    bodies.append(context.request(model=model, max_tokens=9, system="Be brief."))
    return bodies


@pytest.mark.parametrize("name", EVERY)
def test_instructions_inside_a_conversation_stay_byte_for_byte_whatever_leaves(name: str) -> None:
    context = opened(EVERY[name])
    bodies = lived(context, MODEL)
    assert len(context.session.commits) or name == "pi-cwl"  # which weighs in its own way
    rules = rules_for("anthropic", MODEL, "anthropic")
    assert [wrong for body in bodies for wrong in violations(body, rules)] == []
    sent = [message["content"] for message in bodies[-1]["messages"] if message["role"] == "system"]
    recorded = [entry.payload for entry in context.store.entries(context.conversation) if entry.role == "system"]
    assert [said[0]["text"] if said and isinstance(said, list) else said for said in sent] == [
        json.loads(each)["content"] for each in recorded
    ]
    assert [part["text"] for part in bodies[-1]["system"]] == ["Be brief."]
    assert (
        sum(payload not in context.wire(model=MODEL, max_tokens=9) for payload in recorded) <= 1
    )  # one may carry a cache marker


@pytest.mark.parametrize("name", EVERY)
def test_models_that_take_no_instructions_there_read_them_as_a_users_reminder(name: str) -> None:
    context = opened(EVERY[name], OLD)
    bodies = lived(context, OLD)
    rules = rules_for("anthropic", OLD, "anthropic")
    assert [wrong for body in bodies for wrong in violations(body, rules)] == []
    said = json.dumps(bodies[-1]["messages"])
    assert all(f"<system-reminder>\\nRule {n}: never push" in said for n in range(8))


def test_a_request_extends_the_one_before_it_with_instructions_among_the_messages() -> None:
    context = opened()
    context.extend([user("Go."), rule(1)])
    first = context.wire(model=MODEL)
    context.extend([{"role": "assistant", "content": "Yes."}, user("And?"), SETTING])
    body = json.loads(context.wire(model=MODEL))
    assert [message["role"] for message in json.loads(first)["messages"]] == ["user", "system"]
    assert [message["role"] for message in body["messages"]] == ["user", "system", "assistant", "user", "system"]


def test_instructions_stand_behind_results_and_before_the_model_where_a_host_put_them_elsewhere() -> None:
    call = {"type": "tool_use", "id": "c", "name": "read", "input": {}}
    context = opened()
    context.extend([user("Go."), {"role": "assistant", "content": [call]}, rule(1)])
    context.extend([user({"type": "tool_result", "tool_use_id": "c", "content": "x"}), user("And?")])
    body = context.request(model=MODEL, max_tokens=9)
    assert violations(body, rules_for("anthropic", MODEL, "anthropic")) == ()
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "user", "system"]


def test_the_records_prompt_stands_behind_the_callers_system_and_once() -> None:
    context = opened()
    context.extend([{"role": "system", "content": "Never push to main."}, user("Go.")])
    texts = [
        [part["text"] for part in context.request(model=MODEL, **fields)["system"]]
        for fields in ({}, {"system": "Be brief."}, {"system": [{"type": "text", "text": "Never push to main."}]})
    ]
    assert texts == [["Never push to main."], ["Be brief.", "Never push to main."], ["Never push to main."]]
    assert context.request(model=MODEL, system="Be brief.")["messages"][0]["role"] == "user"


@pytest.mark.parametrize("listed", [tuple, iter, lambda parts: [TextBlock(**part) for part in parts]])
def test_the_callers_system_may_be_any_iterable_of_the_sdks_types(listed: Any) -> None:
    context = opened()
    context.extend([{"role": "system", "content": "Never push to main."}, user("Go.")])
    body = context.request(model=MODEL, max_tokens=9, system=listed([{"type": "text", "text": "Be brief."}]))
    assert [part["text"] for part in body["system"]] == ["Be brief.", "Never push to main."]
    assert "cache_control" in body["system"][-1]
    assert json.loads(context.wire(model=MODEL, max_tokens=9, system=listed([{"type": "text", "text": "Be brief."}]))) == body


def test_a_model_that_is_named_with_the_request_alone_decides_what_it_takes() -> None:
    context = opened(model="")
    context.extend([user("Go."), rule(1)])
    roles = {
        model: [message["role"] for message in context.request(model=model)["messages"]]
        for model in (MODEL, OLD, "deepseek-chat")
    }
    assert roles == {MODEL: ["user", "system"], OLD: ["user", "user"], "deepseek-chat": ["user", "user"]}


@pytest.mark.parametrize("name", EVERY)
def test_what_declares_a_tool_is_never_evicted_replaced_nor_clipped(name: str) -> None:
    context = Context(
        policy=EVERY[name], model=MODEL, store=MemoryStore(), budget=Budget(ceiling=110_000), tokenizer=len, clip=200
    )
    references = [{"type": "tool_reference", "tool_name": f"mcp__tickets__tool_{n}"} for n in range(20)]
    search = {"type": "tool_use", "id": "s1", "name": "ToolSearch", "input": {"query": "tickets"}}
    again = {"type": "tool_use", "id": "s2", "name": "ToolSearch", "input": {"query": "tickets"}}
    context.extend([user("Find the tools.")])
    for each in (search, again):
        context.extend([{"role": "assistant", "content": [each]}])
        context.extend([user({"type": "tool_result", "tool_use_id": each["id"], "content": references})])
    body = lived(context, MODEL)[-1]
    parts = [part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]]
    found = {part["tool_use_id"]: part["content"] for part in parts if part["type"] == "tool_result"}
    assert (found["s1"], found["s2"]) == (references, references)
    assert len(context.session.commits) or name == "pi-cwl"


def test_notes_stand_before_a_systems_message_that_goes_before_the_reply() -> None:
    context = opened()
    context.extend([user("Go."), rule(1)])
    body = context.request(model=MODEL, max_tokens=9, notes="It is late.")
    assert [message["role"] for message in body["messages"]] == ["user", "user", "system"]
    assert not violations(
        json.loads(context.wire(model=MODEL, max_tokens=9, notes="It is late.")), rules_for("anthropic", MODEL, "anthropic")
    )


def test_a_systems_message_with_half_a_surrogate_pair_keeps_its_place_between_user_and_model() -> None:
    context = opened()
    context.extend([user("Go."), {"role": "system", "content": "Mind \ud83d it."}, user("Now.")])
    assert [message["role"] for message in context.request(model=MODEL, max_tokens=9)["messages"]] == ["user", "user", "system"]
