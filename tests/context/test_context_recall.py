"""Recall through the front door: what the field's tools got wrong, case by case."""

import json
from pathlib import Path
from typing import Any

import pytest

from tenure import Budget, Context
from tenure.engine.record.entry import ToolResult
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(60))


def estimate(text: str) -> int:
    return len(text) // 4 + 1


def opened(store: Any = None, *, ceiling: int = 6_000, **settings: Any) -> Context:
    budget = Budget(ceiling=ceiling, window=50_000)
    return Context(store=store or MemoryStore(), budget=budget, policy="cwl", tokenizer=estimate, **settings)


def work(context: Context, steps: int, start: int = 0, *, annotate: bool = True) -> dict[str, Any]:
    """Reads, each followed by a request; the last request."""
    body: dict[str, Any] = {}
    if not start:
        context.extend([{"role": "user", "content": "go"}])
    for n in range(start, start + steps):
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"src/file_{n}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"needle_{n}\n{LINES}"}
        context.extend([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}])
        body = context.request(model="m", annotate=annotate)
    return body


def ask(context: Context, number: int, **query: str) -> str:
    """A recall as the model makes it, its answer taken into the conversation."""
    call = {"type": "tool_use", "id": f"r{number}", "name": "recall", "input": query}
    context.extend([{"role": "assistant", "content": [call]}])
    answer = context.call(call)
    assert answer is not None
    context.extend([{"role": "user", "content": [answer]}])
    return answer["content"]


def names(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in body.get("tools", [])]


def test_a_marker_without_a_tool_to_redeem_it_is_never_sent() -> None:
    context = opened()
    bodies = [work(context, 1, n, annotate=False) for n in range(20)]
    evicted = ["[evicted: " in json.dumps(body) for body in bodies]
    assert any(evicted)
    assert not evicted[0]
    assert [names(body) == ["recall"] for body in bodies] == evicted
    assert names(work(context, 1, 20)) == ["delimiter", "recall"]


def test_handles_are_not_lost_on_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    with opened(url) as context:
        body = work(context, 20)
        name = context.conversation
        index = context.session.index
        handles = [index.handle(span.object, span.call[0]) for span in index.spans]
    assert "[evicted: " in json.dumps(body)
    with opened(url, conversation=name) as again:
        for n, handle in enumerate(handles):
            assert again.recall(handle).endswith(f"[result]\nneedle_{n}\n{LINES}")
        assert f"{handles[3]} line 1: needle_3" in again.recall(words="needle_3").splitlines()[1]
        assert f"{handles[3]} line 1: needle_3" in again.recall(pattern="^needle_3$")
        assert handles[0] in again.recall(path="src/file_0.py")
        assert f"needle_2\n{LINES}" in ask(again, 0, handle=handles[2])


def test_recall_output_is_not_clipped_again() -> None:
    """A recall's answer stays byte for byte while the model works with it, though everything about it leaves."""
    context = opened(ceiling=12_000)
    work(context, 30)
    told = ask(context, 0, handle="read:1")
    assert told.endswith(f"needle_0\n{LINES}")
    for later in range(3):
        sent = [
            part["content"]
            for message in context.request(model="m")["messages"]
            for part in message["content"]
            if isinstance(part, dict) and part.get("tool_use_id") == "r0"
        ]
        assert sent == [told], later
        work(context, 1, 30 + later)


def test_an_answer_is_never_more_than_its_share_of_the_budget_and_goes_on_where_it_ended() -> None:
    context = opened(ceiling=20_000)
    work(context, 6)
    told = ask(context, 0, handle="user:1")
    assert estimate(told) <= 2_000
    assert "Go on with: recall handle=" in told
    small = opened(ceiling=20_000, recall_cap=1_000)
    work(small, 6)
    assert estimate(ask(small, 0, handle="user:1")) <= 1_000
    assert small.recall("user:1").count("needle_") == 6  # a person gets it whole


def test_a_loop_of_recalls_is_noticed_and_costs_little() -> None:
    context = opened(ceiling=40_000)
    work(context, 2)
    first, second, third = (ask(context, n, handle="read:1") for n in range(3))
    assert first.endswith(LINES)
    assert "Still in your context" in second
    assert "exactly this 3 times" in third
    assert estimate(third) < 120


def test_an_answer_that_has_left_the_view_is_given_again() -> None:
    context = opened(ceiling=12_000)
    work(context, 3)
    ask(context, 0, handle="read:1")
    work(context, 30, 3)
    span = next(span for span in context.session.index.spans if span.tool == "recall")
    assert span.result is not None
    assert not context.session.view.shows(*span.result)
    assert ask(context, 1, handle="read:1").endswith(LINES)


@pytest.mark.parametrize(
    "query", [{"handle": "read:1"}, {"words": "needle_1"}, {"pattern": "needle_1"}, {"path": "src/file_1.py"}]
)
def test_a_recall_never_changes_what_is_recorded_or_shown(query: dict[str, str]) -> None:
    context = opened()
    work(context, 20)
    before = context.session.freeze(), context.session.length
    context.recall(**query)
    assert (context.session.freeze(), context.session.length) == before


def test_a_call_that_recalls_nothing_is_refused_as_a_result_that_can_be_sent() -> None:
    context = opened()
    work(context, 2)
    call = {"type": "tool_use", "id": "r", "name": "recall", "input": {"pattern": "(a|aa"}}
    context.extend([{"role": "assistant", "content": [call]}])
    answer = context.call(call)
    assert answer is not None
    assert answer["is_error"]
    context.extend([{"role": "user", "content": [answer]}])
    entry = context.store.entry(context.conversation, context.session.length - 1)
    assert isinstance(entry.blocks[0], ToolResult)
    assert entry.blocks[0].error
