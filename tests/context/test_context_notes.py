"""The agent's notes through the front door: they stand in every view, also after a restart, in a fork and behind a brief."""

import json
from pathlib import Path
from typing import Any

import pytest

from tenure import Budget, Context, Propose
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.view.action import Take
from tenure.testing.model import ScriptedModel
from tenure.testing.store import MemoryStore
from view_laws import notes_readable

LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(60))
KEEP = "the fix belongs into parse_row, never touch the header"


def estimate(text: str) -> int:
    return len(text) // 4 + 1


def opened(store: Any = None, *, ceiling: int = 6_000, **settings: Any) -> Context:
    budget = Budget(ceiling=ceiling, window=50_000)
    return Context(store=store or MemoryStore(), budget=budget, tokenizer=estimate, **({"notes": True} | settings))


def work(context: Context, steps: int, start: int = 0) -> str:
    """Reads, each followed by a request; the last request as JSON."""
    sent = ""
    for n in range(start, start + steps):
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"src/file_{n}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"needle_{n}\n{LINES}"}
        context.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
        sent = json.dumps(context.request(model="m"))
    return sent


def note(context: Context, call_id: str, **arguments: str) -> str:
    """A call of notes as the model makes it, its answer taken into the conversation."""
    call = {"type": "tool_use", "id": call_id, "name": "notes", "input": arguments}
    context.extend([{"role": "assistant", "content": [call]}])
    answer = context.call(call)
    assert answer is not None
    context.extend([{"role": "user", "content": [answer]}])
    return answer["content"]


def is_whole(context: Context) -> bool:
    return not list(notes_readable(context.session.freeze(), context.session.index))


def test_notes_stay_while_all_around_them_leaves_and_older_ones_go() -> None:
    context = opened()
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add="a first thought")
    work(context, 2)
    assert note(context, "n2", add=KEEP).endswith(f"]\na first thought\n{KEEP}")
    sent = work(context, 30, 2)
    assert len(context.session.commits) > 1
    assert KEEP in sent
    assert "needle_1\\n" not in sent
    assert is_whole(context)
    first = context.session.index.span("notes", 1)
    assert first is not None
    assert not context.session.view.shows(*first.call)


@pytest.mark.parametrize("policy", ["tiered", "discard-all", "sliding-window", "cline", "observation-masking"])
def test_notes_stay_whatever_the_policy(policy: str) -> None:
    context = opened(policy=policy)
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add=KEEP)
    assert KEEP in work(context, 30)
    assert is_whole(context)


@pytest.mark.parametrize("compat", ["paper", "pi-cwl"])
def test_notes_stay_in_published_versions_of_a_policy(compat: str) -> None:
    context = opened(compat=compat)
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add=KEEP)
    assert KEEP in work(context, 30)


def test_notes_are_there_after_a_restart_and_can_be_gone_on_with(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with opened(url) as context:
        context.extend([{"role": "user", "content": "go"}])
        note(context, "n1", add=KEEP)
        work(context, 20)
        name = context.conversation
    with opened(url, conversation=name) as again:
        assert is_whole(again)
        assert note(again, "n2", add="and run the tests").endswith(f"{KEEP}\nand run the tests")
        assert "and run the tests" in work(again, 10, 20)


def test_notes_that_were_superseded_stand_in_a_fork_from_before_that() -> None:
    store = MemoryStore()
    context = opened(store, ceiling=40_000)
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add=KEEP)
    at = context.session.length
    note(context, "n2", replace="something else")
    work(context, 6)
    first = context.session.index.span("notes", 1)
    assert first is not None
    assert first.result is not None
    taking = Take(how="prune", object="notes:1", places=(first.call, first.result))
    decision = context.session.plan("by-hand", (taking,), reason="superseded", forced=True)
    assert isinstance(decision, Propose)
    store.commit(context.conversation, decision.commit)
    store.fork(context.conversation, at, "forked")
    fork = opened(store, conversation="forked")
    assert [commit.policy for commit in fork.session.commits] == []
    assert is_whole(fork)
    assert KEEP in json.dumps(fork.request(model="m"))
    assert note(fork, "n3").endswith(KEEP)


def test_notes_stay_when_history_is_handed_off() -> None:
    context = opened(ceiling=40_000)
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add=KEEP)
    work(context, 12)
    told = "\n\n".join(
        f"## {section.title}\nThe parser keeps comments now; its {section.key} is told here." for section in SECTIONS
    )
    answered = context.handoff(ScriptedModel(told + "\n[end of brief]"))
    assert answered is not None
    sent = json.dumps(context.request(model="m"))
    assert "source of truth" in sent
    assert "needle_1\\n" not in sent
    assert KEEP in sent
    assert is_whole(context)


def test_notes_are_never_clipped() -> None:
    context = opened(clip=200, ceiling=50_000)
    context.extend([{"role": "user", "content": "go"}])
    told = note(context, "n1", replace="word " * 1_500)
    assert told in [part["content"] for message in context.request(model="m")["messages"] for part in parts(message)]


def parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in message["content"] if isinstance(part, dict) and "content" in part]


def test_notes_are_offered_only_where_they_are_asked_for() -> None:
    context = opened(notes=False)
    context.extend([{"role": "user", "content": "go"}])
    assert [tool["name"] for tool in context.request(model="m")["tools"]] == ["recall"]
    call = {"type": "tool_use", "id": "n", "name": "notes", "input": {"add": "x"}}
    context.extend([{"role": "assistant", "content": [call]}])
    assert context.call(call) is None
    assert [tool["name"] for tool in opened().request(model="m", annotate=False)["tools"]] == ["notes"]


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_notes_are_answered_in_every_dialect(dialect: str) -> None:
    context = opened(dialect=dialect)
    arguments = json.dumps({"add": KEEP})
    call: dict[str, Any]
    if dialect == "openai-chat":
        call = {"id": "n", "type": "function", "function": {"name": "notes", "arguments": arguments}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
    else:
        said = call = {"type": "function_call", "call_id": "n", "name": "notes", "arguments": arguments}
    context.extend([{"role": "user", "content": "go"}, said])
    answer = context.call(call)
    assert answer is not None
    context.extend([answer])
    assert context.session.index.notes.text == KEEP


def test_a_refusal_is_said_and_the_notes_stay_as_they_were() -> None:
    context = opened()
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", add=KEEP)
    assert "at most 2,000 are kept" in note(context, "n2", add="x" * 9_000)
    assert note(context, "n3").endswith(KEEP)


def test_words_of_older_notes_are_found_once_and_by_what_wrote_them() -> None:
    context = opened(ceiling=40_000)
    context.extend([{"role": "user", "content": "go"}])
    for n in range(5):
        note(context, f"n{n}", add=f"fact number {n} about zebras")
    note(context, "last", replace="nothing")
    assert context.recall(words="zebras").count("zebras") == 5


def test_a_limit_that_cannot_be_kept_says_what_the_notes_weigh() -> None:
    context = opened(ceiling=1_000)
    context.extend([{"role": "user", "content": "go"}])
    note(context, "n1", replace="word " * 1_500)
    work(context, 8)
    context.request(model="m")
    assert context.decision is not None
    assert context.decision.held_by["notes"] > 1_500  # type: ignore[union-attr]
