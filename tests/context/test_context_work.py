"""What a context does for one message or call does not grow with the session, nor with what stands beside it in one message."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tenure import Budget, Context
from work import growth

Message = dict[str, Any]


def use(n: int, name: str = "read") -> Message:
    return {"type": "tool_use", "id": f"c{n}", "name": name, "input": {"path": f"{n}.py"}}


def answer(n: int, text: str = "ok") -> Message:
    return {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}


def user(content: object) -> Message:
    return {"role": "user", "content": content}


def said(content: object) -> Message:
    return {"role": "assistant", "content": content}


def opened(dialect: str = "anthropic", ceiling: int = 400, policy: str = "graph") -> Context:
    return Context(dialect=dialect, budget=Budget(ceiling=ceiling), store="sqlite:///:memory:", policy=policy)


def reads(number: int) -> list[Message]:
    """So many calls, each with its result."""
    pairs = [[said([use(n)]), user([answer(n, f"text {n} of {number} " * 20)])] for n in range(number)]
    return [user("go"), *(message for pair in pairs for message in pair)]


def request(context: Context) -> None:
    context.request(model="m", max_tokens=9)


def in_one_message(calls: int) -> Callable[[], object]:
    def play() -> None:
        with opened() as context:
            context.extend([user("go"), said([use(n) for n in range(calls)]), user([answer(n) for n in range(calls)])])
            request(context)
            for _ in range(6):
                context.extend([said("done"), user("more")])
                request(context)

    return play


def one_by_one(calls: int) -> Callable[[], object]:
    def made(n: int) -> Message:
        return {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": f"{n}.py"})}}

    def play() -> None:
        with opened("openai-chat") as context:
            context.extend([user("go"), {"role": "assistant", "content": None, "tool_calls": [made(n) for n in range(calls)]}])
            for n in range(calls):
                context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": "ok"}])
            request(context)

    return play


@pytest.mark.parametrize("play", [in_one_message, one_by_one])
def test_many_parallel_calls_of_one_reply_are_taken_in_linear_steps(play: Callable[[int], Callable[[], object]]) -> None:
    assert growth(play, 150) < 5.5


def one_more_request(messages: int) -> Callable[[], object]:
    context = opened(ceiling=180_000)
    context.extend([{"role": "system", "content": "be brief"}, user("go")])
    context.extend([said("done"), user("more")] * (messages // 2))

    def play() -> None:
        context.extend([said("done"), user("more")])
        context.wire(model="m", max_tokens=9)

    play()  # the first request makes every message
    return play


def test_a_request_takes_no_more_steps_after_a_long_session_than_after_a_short_one() -> None:
    assert growth(one_more_request, 300) < 1.2


def many_reads(number: int) -> Context:
    """A context of so many results, of which all but the newest were folded or cleared."""
    context = opened(ceiling=2_000, policy="tiered")
    context.extend(reads(number + 20))
    request(context)
    return context


def restores(number: int) -> Callable[[], object]:
    """One restore after the other, of that many objects."""
    contexts = [many_reads(number), many_reads(number)]

    def play() -> None:
        context = contexts.pop()
        assert all(context.restore(f"read:{n + 1}") for n in range(number))

    return play


def undoes(number: int) -> Callable[[], object]:
    """The newest ten of that many restores undone."""
    contexts = [many_reads(number), many_reads(number)]
    for context in contexts:
        for n in range(number):
            context.restore(f"read:{n + 1}")

    def play() -> None:
        context = contexts.pop()
        for n in range(10):
            assert context.undo(len(context.session.commits) - 1 - 2 * n).edits

    return play


@pytest.mark.parametrize("play", [restores, undoes])
def test_hundreds_of_restores_take_linear_steps_and_an_undo_as_many_as_the_log_is_long(
    play: Callable[[int], Callable[[], object]],
) -> None:
    assert growth(play, 80) < 5.5


@pytest.mark.parametrize("policy", ["graph", "tiered", "cwl"])
def test_the_first_request_after_very_many_messages_takes_linear_steps(policy: str) -> None:
    def first(number: int) -> Callable[[], object]:
        contexts = [opened(ceiling=2_000, policy=policy), opened(ceiling=2_000, policy=policy)]
        for context in contexts:
            context.extend(reads(number))
        return lambda: request(contexts.pop())

    assert growth(first, 200) < 5.0
