"""Clients that send their whole history: found again, changed only where something left, our tools hidden from them."""

from collections.abc import Sequence
from typing import Any

import pytest
from wire_client import CASES, Client, upstream

from tenure.apis.server import Call, Reply
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import ToolCall
from tenure.testing.store import MemoryStore

TIGHT = Management(budget=Budget(ceiling=2_000), gate="priced")  # offers `recall` with the first commit, whatever that costs
LONG = "".join(f"line {n}: the value of item {n} is {n * 7919}\n" for n in range(120))


def reads(steps: int) -> Any:
    """A script that reads files, and says done after so many."""
    count = iter(range(10_000))

    def script(_tools: Sequence[str]) -> Reply:
        n = next(count)
        if n and n % steps == 0:
            return Reply(text=f"done {n}")
        return Reply(thinking=f"hm {n}", text=f"look {n}", calls=(Call(name="read", arguments=f'{{"path": "f{n}.py"}}'),))

    return script


def work(client: Client, steps: int, text: str = LONG) -> None:
    calls = client.turn(client.user("please do it"))
    for _ in range(steps):
        said = client.results(calls, lambda call: f"{call.arguments}\n{text}") if calls else [client.user("go on")]
        calls = client.turn(*said)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_what_was_not_changed_goes_out_as_the_client_wrote_it(name: str, model: str, stream: bool) -> None:
    histories = Histories(MemoryStore())
    client = Client(histories, upstream(name, model, reads(9)), stream=stream)
    sent: list[bytes] = []
    ask = client.ask
    client.ask = lambda raw, **options: (sent.append(raw), ask(raw, **options))[1]  # type: ignore[method-assign]
    work(client, 5, "short")
    assert client.upstream.bodies == sent
    (only,) = histories.store.conversations()
    assert only.length == 12 + (name == "openai-chat")  # whose system prompt is a message


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_what_leaves_stays_gone_and_requests_stay_valid(name: str, model: str, stream: bool) -> None:
    histories = Histories(MemoryStore(), TIGHT)
    client = Client(histories, upstream(name, model, reads(9)), stream=stream, mark=name == "anthropic")
    work(client, 14)
    (only,) = histories.store.conversations()
    assert only.commits
    assert only.length == 30 + (name == "openai-chat")
    last = client.upstream.bodies[-1]
    assert len(last) < len(client.body(client.history)) / 2
    assert b"recall" in last


def calls_in(client: Client, body: bytes) -> list[str]:
    """The tools that the history of a request calls, and those it offers."""
    head, messages = client.api.split(body)
    offered = [each.get("function", each).get("name", "") for each in client.api.declarations(head.fields.get("tools") or [])]
    drafts = client.api.parse(messages)
    return offered + [block.name for draft in drafts for block in draft.blocks if isinstance(block, ToolCall)]


def recalls(steps: int) -> Any:
    """A script that recalls what has left as soon as it can: beside a call of the client's, and alone, twice in a row."""
    read = reads(steps)
    told: list[str] = []

    def script(tools: Sequence[str]) -> Reply:
        if "recall" not in tools:
            return read(tools)
        told.append("")
        recall = Call(name="recall", arguments='{"words": "value of item"}')
        match len(told) % 5:
            case 1:
                return Reply(thinking=f"t{len(told)}", text="let me see", calls=(recall,))
            case 2:
                return Reply(text="and again", calls=(recall, recall))
            case 3:
                return Reply(
                    thinking=f"t{len(told)}", text="both", calls=(recall, Call(name="read", arguments='{"path": "z.py"}'))
                )
            case _:
                return read(tools)

    return script


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_calls_of_our_tools_are_answered_and_the_client_sees_none(name: str, model: str, stream: bool) -> None:
    histories = Histories(MemoryStore(), TIGHT)
    client = Client(histories, upstream(name, model, recalls(9)), stream=stream)
    work(client, 20)
    assert "recall" not in calls_in(client, client.body(client.history))
    assert len(histories.store.conversations()) == 1
    assert client.upstream.bodies[-1].count(b"and again")
    assert "value of item" in client.upstream.bodies[-1].decode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_a_request_without_tools_has_none_of_ours(name: str, model: str, stream: bool) -> None:
    histories = Histories(MemoryStore(), TIGHT)
    client = Client(histories, upstream(name, model, recalls(9)), stream=stream)
    work(client, 20)
    if calls := client.turn(client.user("go on")):
        client.history += client.results(calls, lambda _: "ok")
    _, exchange = client.ask(client.body([*client.history, client.user("sum it up")], tools=False))
    assert exchange.is_changed
    assert "recall" not in calls_in(client, client.upstream.bodies[-1])
