import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tenure import Budget, Conflict, Context, InputError, Propose, Unmet
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(60))
DIALECTS = ("anthropic", "openai-chat", "openai-responses")
MODELS = {"anthropic": "claude-opus-5", "openai-chat": "gpt-5", "openai-responses": "gpt-5"}


def estimate(text: str) -> int:
    return len(text) // 4 + 1


def mark(**arguments: Any) -> Call:
    return Call(name="delimiter", arguments=json.dumps(arguments))


def script(tasks: int) -> Script:
    """An agent that explores with parallel reads, acts on what it found, and ends and starts in one message."""
    replies: list[Reply] = []
    for n in range(tasks):
        read = Call(name="read", arguments=json.dumps({"path": f"src/part_{n}.py"}))
        grep = Call(name="grep", arguments=json.dumps({"pattern": f"part_{n}"}))
        replies += [
            Reply(
                text=f"Looking at part {n}.",
                thinking=f"first find part {n}",
                calls=(mark(action="start", name=f"find-{n}", type="expl"),),
            ),
            Reply(thinking="both at once", calls=(read, grep)),
            Reply(
                calls=(
                    mark(action="end", description=f"part {n} is in src/part_{n}.py"),
                    mark(action="start", name=f"change-{n}", type="act", dependencies=[f"find-{n}"]),
                    Call(name="edit", arguments=json.dumps({"path": f"src/part_{n}.py", "old": "a", "new": "b" * 400})),
                )
            ),
            Reply(calls=(mark(action="end"),)),
            Reply(text=f"Part {n} is done."),
        ]
    return Script(replies=tuple(replies))


def calls_of(dialect: str, reply: Any) -> list[tuple[Any, str]]:
    """The reply's calls, each with its tool's name."""
    match dialect:
        case "anthropic":
            return [(part, part.name) for part in reply.content if part.type == "tool_use"]
        case "openai-responses":
            return [(item, item.name) for item in reply.output if item.type == "function_call"]
        case _:
            return [(call, call.function.name) for call in reply.choices[0].message.tool_calls or []]


def result_of(dialect: str, call: Any, text: str) -> dict[str, Any]:
    match dialect:
        case "anthropic":
            return {"type": "tool_result", "tool_use_id": call.id, "content": text}
        case "openai-responses":
            return {"type": "function_call_output", "call_id": call.call_id, "output": text}
        case _:
            return {"role": "tool", "tool_call_id": call.id, "content": text}


@contextmanager
def caller(dialect: str, url: str) -> Iterator[Callable[..., Any]]:
    """The official SDK's call for a dialect."""
    if dialect == "anthropic":
        with anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as client:
            yield client.messages.create
    else:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client:
            yield client.chat.completions.create if dialect == "openai-chat" else client.responses.create


def work(context: Context, send: Callable[..., Any], dialect: str, task: str) -> None:
    """One task as an agent's loop runs it: request, reply, results, until there are no calls."""
    context.extend([{"role": "user", "content": task}])
    fields: dict[str, Any] = {"model": MODELS[dialect]} | ({"max_tokens": 99} if dialect == "anthropic" else {})
    while True:
        reply = send(**context.request(**fields))
        context.append(reply)
        made = calls_of(dialect, reply)
        if not made:
            return
        answers = [context.call(call) or result_of(dialect, call, f"{name}\n{LINES}") for call, name in made]
        context.extend([{"role": "user", "content": answers}] if dialect == "anthropic" else answers)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_agent_of_either_sdk_works_for_long_under_a_small_budget_and_no_request_is_refused(
    dialect: str, tmp_path: Path
) -> None:
    provider = FakeProvider(script(12))
    budget = Budget(ceiling=9_000, window=50_000)
    decisions: list[object] = []
    with serve(provider.app) as url, caller(dialect, url) as send:
        context = Context(
            dialect=dialect,
            model=MODELS[dialect],
            budget=budget,
            store=f"sqlite:///{tmp_path / 'agent.db'}",
            tokenizer=estimate,
            on_decision=decisions.append,
        )
        with context:
            for n in range(12):
                work(context, send, dialect, f"Change part {n}.")
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    assert len(provider.seen) == 60
    assert any(isinstance(decision, Propose) for decision in decisions)
    assert not any(isinstance(decision, Unmet) for decision in decisions)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_after_a_restart_has_the_same_bytes(dialect: str, tmp_path: Path) -> None:
    provider = FakeProvider(script(6))
    url_of_store = f"sqlite:///{tmp_path / 'agent.db'}"
    settings: dict[str, Any] = {"dialect": dialect, "budget": Budget(ceiling=6_000, window=50_000), "tokenizer": estimate}
    with serve(provider.app) as url, caller(dialect, url) as send, Context(store=url_of_store, **settings) as context:
        for n in range(6):
            work(context, send, dialect, f"Change part {n}.")
        context.extend([{"role": "user", "content": "What did you do?"}])
        before = json.dumps(context.request(model=MODELS[dialect]))
        name, held = context.conversation, context.session.freeze()
    with Context(store=url_of_store, conversation=name, **settings) as again:
        assert again.session.freeze() == held
        assert json.dumps(again.request(model=MODELS[dialect])) == before


def test_what_left_comes_back_whole_by_handle_and_by_search() -> None:
    context = Context(store=MemoryStore(), budget=Budget(ceiling=3_000, window=9_000), tokenizer=estimate)
    context.extend([{"role": "user", "content": "go"}])
    for n in range(30):
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"src/file_{n}.py"}}
        context.extend([{"role": "assistant", "content": [call]}])
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"needle_{n}\n{LINES[:1200]}"}
        context.extend([{"role": "user", "content": [result]}])
        context.request(model="m")
    assert not context.session.view.shows(*context.session.index.spans[0].call)
    assert f"needle_0\n{LINES[:1200]}" in context.recall("read:1")
    ask = {"type": "tool_use", "id": "r1", "name": "recall", "input": {"words": "needle_3"}}
    context.extend([{"role": "assistant", "content": [ask]}])
    answer = context.call(ask)
    assert answer is not None
    assert "read:4@" in answer["content"]


def test_a_refused_delimiter_says_what_to_do_and_an_unknown_handle_what_there_is() -> None:
    context = Context(store=MemoryStore(), tokenizer=estimate)
    wrong = {
        "type": "tool_use",
        "id": "a",
        "name": "delimiter",
        "input": {"action": "start", "name": "x", "type": "act", "dependencies": []},
    }
    lost = {"type": "tool_use", "id": "b", "name": "recall", "input": {"handle": "read:7"}}
    context.extend([{"role": "user", "content": "go"}, {"role": "assistant", "content": [wrong, lost]}])
    refused, unknown = context.call(wrong), context.call(lost)
    assert refused is not None
    assert refused["is_error"]
    assert "at least one ended expl episode" in refused["content"]
    assert unknown is not None
    assert "a tool that was called" in unknown["content"]
    assert context.call({"type": "tool_use", "id": "c", "name": "bash", "input": {}}) is None


def test_a_pinned_object_stays_and_an_undone_commit_is_undone() -> None:
    context = Context(store=MemoryStore(), budget=Budget(ceiling=4_000, window=9_000), tokenizer=estimate)
    context.extend([{"role": "user", "content": "go"}])
    for n in range(20):
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"src/file_{n}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": LINES[:1500]}
        context.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
        if n == 0:
            context.pin("read:1")
        context.request(model="m")
    spans = context.session.index.spans
    assert context.session.view.shows(*spans[0].call)
    assert not context.session.view.shows(*spans[1].call)
    assert spans[1].call in context.diff(2, 19).gone
    context.undo(0)
    assert context.session.view.shows(*spans[1].call)
    assert context.unpin("read:1")
    assert not context.unpin("read:1")


def test_a_writer_that_was_not_first_gets_a_conflict_and_changes_nothing() -> None:
    store = MemoryStore()
    first = Context(store=store, tokenizer=estimate)
    second = Context(store=store, conversation=first.conversation, tokenizer=estimate)
    first.extend([{"role": "user", "content": "one"}])
    with pytest.raises(Conflict):
        second.extend([{"role": "user", "content": "two"}])
    assert second.session.length == 0
    assert [entry.blocks[0].text for entry in store.entries(first.conversation)] == ["one"]


def test_what_cannot_be_understood_names_the_message_and_stores_nothing() -> None:
    context = Context(store=MemoryStore(), tokenizer=estimate)
    with pytest.raises(InputError, match="message 1"):
        context.extend([{"role": "user", "content": "fine"}, {"role": "nobody", "content": "?"}])
    assert context.session.length == 0
    with pytest.raises(InputError, match="one of openai-chat"):
        Context(dialect="smoke-signals", store=MemoryStore())
    with pytest.raises(InputError, match="policy"):
        Context(policy="hope", store=MemoryStore())


def test_a_provider_that_insists_on_turns_gets_them_although_a_note_was_inserted() -> None:
    model = "gemini-3-pro"
    context = Context(
        dialect="openai-chat", model=model, store=MemoryStore(), budget=Budget(ceiling=900, window=9_000), tokenizer=estimate
    )
    assert context.rules.alternation
    for n in range(12):
        context.extend(
            [{"role": "user", "content": f"question {n} " * 10}, {"role": "assistant", "content": f"answer {n} " * 20}]
        )
    context.extend([{"role": "user", "content": "and now?"}])
    roles = [message["role"] for message in context.request(model=model, annotate=False)["messages"]]
    assert isinstance(context.decision, Propose)
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]


@pytest.mark.parametrize(("compat", "name"), [("", "graph"), ("paper", "cwl-paper"), ("pi-cwl", "pi-cwl")])
def test_a_published_version_is_followed_by_name(compat: str, name: str) -> None:
    context = Context(compat=compat, store=MemoryStore(), tokenizer=estimate)
    assert context.session.setup.policy is not None
    assert context.session.setup.policy.name == name
    with pytest.raises(InputError, match="one of paper, pi-cwl"):
        Context(compat="hope", store=MemoryStore())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_lone_surrogate_in_a_message_does_not_make_every_later_request_fail(dialect: str) -> None:
    context = Context(dialect=dialect, store=MemoryStore(), tokenizer=estimate)
    context.extend([b'{"role":"user","content":"half \\ud83d a smile"}', {"role": "user", "content": "half \ud83d a smile"}])
    context.extend([b'{"role":"user","content":"one","content":"two","n":1E2}'])
    body = context.request(model="m")
    assert "half \ufffd a smile" in json.dumps(body, ensure_ascii=False)
    json.dumps(body, ensure_ascii=False).encode()  # as the SDKs send it


def test_what_makes_no_sense_as_a_call_a_search_or_a_kind_is_said() -> None:
    context = Context(store=MemoryStore(), tokenizer=estimate)
    calls = [
        {"type": "tool_use", "id": f"r{n}", "name": "recall", "input": query}
        for n, query in enumerate(
            [{"words": "   "}, {"handle": "user:1", "lines": "9-1"}, {"handle": 5}, {"pattern": "("}, {"when": "now"}]
        )
    ]
    context.extend([{"role": "user", "content": "go"}, {"role": "assistant", "content": calls}])
    for call in calls:
        answer = context.call(call)
        assert answer is not None
        assert answer["is_error"], call
    for strange in ("x", 5, {"name": "recall"}):
        with pytest.raises(InputError, match="tool call"):
            context.call(strange)
    with pytest.raises(InputError, match="one of bulk, intermediate, durable"):
        context.request(model="m", tools=[{"name": "look", "input_schema": {}, "x-tenure-kind": "silly"}])
