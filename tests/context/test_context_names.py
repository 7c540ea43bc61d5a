"""A host's own tool named as one of ours: it keeps its name, ours gets another, and its calls are never ours."""

import json
from typing import Any

import pytest

from tenure import Context
from tenure.apis import APIS
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import ToolCall
from tenure.testing.store import MemoryStore
from tenure.testing.validity import violations

DIALECTS = ("anthropic", "openai-chat", "openai-responses")
NAMES = ("recall", "delimiter", "notes", "mcp__memory__recall")
ARGUMENTS = {"handle": "user:1", "action": "start", "name": "find", "type": "expl"}


def tool(dialect: str, name: str) -> dict[str, Any]:
    schema = {"type": "object"}
    match dialect:
        case "anthropic":
            return {"name": name, "input_schema": schema}
        case "openai-chat":
            return {"type": "function", "function": {"name": name, "parameters": schema}}
        case _:
            return {"type": "function", "name": name, "parameters": schema}


def names_of(body: dict[str, Any]) -> list[str]:
    return [each.get("function", each)["name"] for each in body["tools"]]


def call(dialect: str, name: str, call_id: str, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """A message that calls a tool, and the call as `Context.call` takes it."""
    match dialect:
        case "anthropic":
            made: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            return {"role": "assistant", "content": [made]}, made
        case "openai-chat":
            made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            return {"role": "assistant", "content": None, "tool_calls": [made]}, made
        case _:
            made = {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}
            return made, made


def done(context: Context, dialect: str, call_id: str, answer: Any = None) -> None:
    result = answer or APIS[dialect].result(ToolCall(call_id=call_id, name="x", arguments=""), "x")
    context.extend([{"role": "user", "content": [result]} if dialect == "anthropic" else result])


def opened(dialect: str, store: MemoryStore, conversation: str = "") -> Context:
    return Context(dialect=dialect, store=store, conversation=conversation, policy="cwl", notes=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("imported", [False, True])
def test_a_hosts_tool_of_a_name_of_ours_is_never_answered_nor_counted_as_ours(dialect: str, name: str, imported: bool) -> None:
    store = MemoryStore()
    context = opened(dialect, store)
    context.extend([{"role": "user", "content": "Go."}])
    message, made = call(dialect, name, "c1", ARGUMENTS)
    if not imported:  # the tool is known before its first call
        context.request(model="m", tools=[tool(dialect, name)])
    context.extend([message])
    if imported:
        done(context, dialect, "c1")
        context.request(model="m", tools=[tool(dialect, name)])
    for each in (context, opened(dialect, store, context.conversation)):
        assert each.call(made) is None
        index = each.session.index
        assert (dict(index.recalls), index.graph.open, index.answers) == ({}, None, {})
        assert [span.object for span in index.spans] == [f"{name}_tool:1"]
    if not imported:
        done(context, dialect, "c1")
    body = context.request(model="m", tools=[tool(dialect, name)])
    assert violations(body, rules_for("", "", dialect)) == ()
    ours = {"recall", "delimiter", "notes"} - {name}
    assert sorted(names_of(body)) == sorted(
        [name, *ours, *([f"tenure_{name}"] if name in ("recall", "delimiter", "notes") else [])]
    )


@pytest.mark.parametrize("name", ["recall", "delimiter", "notes"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_ours_answers_under_its_other_name_also_after_a_restart_and_without_the_hosts_tool(dialect: str, name: str) -> None:
    store = MemoryStore()
    context = opened(dialect, store)
    context.extend([{"role": "user", "content": "Go."}])
    declared = context.request(model="m", tools=[tool(dialect, name)])["tools"]
    arguments = {
        "recall": {"handle": "user:1"},
        "delimiter": {"action": "start", "name": "find", "type": "expl"},
        "notes": {"add": "a"},
    }[name]
    message, made = call(dialect, f"tenure_{name}", "c1", arguments)
    again = opened(dialect, store, context.conversation)
    again.extend([message])
    answer = again.call(made)
    assert answer is not None
    done(again, dialect, "c1", answer)
    assert again.request(model="m", tools=[tool(dialect, name)])["tools"] == declared
    assert f"tenure_{name}" in names_of(again.request(model="m"))
    index = again.session.index
    assert {"recall": bool(index.recalls), "delimiter": index.graph.open is not None, "notes": bool(index.notes.text)}[name]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_ours_stay_ours_when_a_hosts_tool_of_the_name_comes_later(dialect: str) -> None:
    store = MemoryStore()
    context = opened(dialect, store)
    context.extend([{"role": "user", "content": "Go."}])
    context.request(model="m")
    message, made = call(dialect, "delimiter", "c1", {"action": "start", "name": "find", "type": "expl"})
    context.extend([message])
    done(context, dialect, "c1", context.call(made))
    body = context.request(model="m", tools=[tool(dialect, "delimiter")])
    assert names_of(body).count("delimiter") == 1
    message, made = call(dialect, "delimiter", "c2", {"action": "end", "description": "theirs"})
    context.extend([message])
    for each in (context, opened(dialect, store, context.conversation)):
        assert each.call(made) is None
        assert [episode.name for episode in each.session.index.episodes if episode.declared and not episode.closed] == ["find"]
        assert [span.object for span in each.session.index.spans] == ["delimiter:1", "delimiter_tool:1"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_host_may_have_tools_of_both_names(dialect: str) -> None:
    context = opened(dialect, MemoryStore())
    context.extend([{"role": "user", "content": "Go."}])
    body = context.request(model="m", tools=[tool(dialect, "recall"), tool(dialect, "tenure_recall")])
    assert violations(body, rules_for("", "", dialect)) == ()
    assert "tenure_recall_" in names_of(body)
