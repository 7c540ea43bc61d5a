"""Whatever clients do to their histories, requests stay valid, human words stay, and a history that was only spelled anew is one conversation."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_client import CASES, Client, upstream

from tenure.apis.server import Call, Reply
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.testing.store import MemoryStore

TIGHT = Management(budget=Budget(ceiling=2_000))
LONG = "".join(f"line {n}: the value of item {n} is {n * 7919}\n" for n in range(90))
RECALL = Call(name="recall", arguments='{"words": "value of item"}')
quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def acting(*, thinks: bool) -> Callable[[Sequence[str]], Reply]:
    """A script that calls, speaks, and recalls where it can, each every few replies."""
    count = iter(range(10_000))

    def script(tools: Sequence[str]) -> Reply:
        n = next(count)
        thinking = f"hm {n}" if thinks and n % 2 else ""
        read = Call(name="read", arguments=f'{{"path": "f{n}.py", "limit": {n}}}')
        calls = {0: (), 3: (read, read), 4: (RECALL,), 5: (RECALL, read)}.get(n % 7, (read,))
        offered = tuple(call for call in calls if call.name in tools)
        return Reply(thinking=thinking, text=f"said {n}", calls=offered)

    return script


def respelled(value: Any, ways: frozenset[str]) -> Any:
    """A message as another client spells it."""
    if isinstance(value, list):
        return [respelled(each, ways) for each in value]
    if not isinstance(value, dict):
        return value
    fields = {key: respelled(each, ways) for key, each in value.items()}
    if "reorder" in ways:
        fields = dict(reversed(fields.items()))
        if isinstance(fields.get("arguments"), str):
            fields["arguments"] = json.dumps(dict(reversed(json.loads(fields["arguments"]).items())), indent=1)
    if "add" in ways and fields.get("type") in ("function_call", "function_call_output"):
        fields["content"] = None
    if "list" in ways and fields.get("role") == "user" and isinstance(fields.get("content"), str):
        fields["content"] = [{"type": "text", "text": fields["content"]}]
    return fields


def texts(history: Sequence[Any], api: Any) -> list[str]:
    """What a person said."""
    found: list[str] = []
    for draft in api.parse(history):
        found += [block.text for block in draft.blocks if getattr(block, "origin", "") == "human" and getattr(block, "text", "")]
    return found


WAYS = st.frozensets(st.sampled_from(["reorder", "add", "list"]))


@quick
@given(case=st.sampled_from(CASES), ways=st.lists(WAYS, min_size=12, max_size=12), stream=st.booleans(), mark=st.booleans())
def test_a_history_that_is_spelled_anew_is_the_same_conversation(
    case: tuple[str, str], ways: list[frozenset[str]], stream: bool, mark: bool
) -> None:
    name, model = case
    ways = [each - {"list"} if name in ("openai-responses", "gemini") else each for each in ways]
    histories = Histories(MemoryStore(), TIGHT)
    client = Client(histories, upstream(name, model, acting(thinks=False)), stream=stream, mark=mark)
    calls = client.turn(client.user("please do it"))
    for n, each in enumerate(ways):
        client.history = respelled(client.history, each)
        calls = client.turn(
            *(client.results(calls, lambda call: f"{call.arguments}{LONG}") if calls else [client.user(f"go on {n}")])
        )
    assert len(histories.store.conversations()) == 1
    assert "recall" not in json.dumps(client.history)


OPS = st.lists(
    st.sampled_from(["turn", "turn", "turn", "aside", "bare aside", "title", "retry", "rewind", "append", "restart", "replica"]),
    min_size=4,
    max_size=16,
)


@quick
@given(case=st.sampled_from(CASES), ops=OPS, stream=st.booleans(), mark=st.booleans())
def test_whatever_a_client_does_its_requests_are_valid_and_keep_what_people_said(
    case: tuple[str, str], ops: list[str], stream: bool, mark: bool
) -> None:
    name, model = case
    store = MemoryStore()
    replicas = [Histories(store, TIGHT), Histories(store, TIGHT)]
    client = Client(replicas[0], upstream(name, model, acting(thinks=True)), stream=stream, mark=mark)
    calls = client.turn(client.user("please do it"))
    points: list[list[Any]] = []
    rewinds = 0
    for n, op in enumerate(["turn", "turn", "turn", *ops, "turn"]):
        said = client.results(calls, lambda call: f"{call.arguments}{LONG}") if calls else [client.user(f"go on {n}")]
        match op:
            case "aside" | "bare aside":
                asked = [*client.history, *said, client.user(f"what is {n}?")]
                if name == "gemini":
                    asked = [*client.history, *said]
                client.ask(
                    client.body(asked, tools=op == "aside" or "fable" in model), aside=True
                )  # whose thinking is bound to its tools
                continue
            case "title":
                client.ask(client.body([client.user("title?")], tools=False))
                continue
            case "retry":
                client.ask(client.body([*client.history, *said]))
            case "rewind" if points:
                client.history, calls = list(points[n % len(points)]), []
                said = [client.user(f"rather do {n}")]
                rewinds += 1
            case "append" if name == "anthropic":
                said[-1] = {**said[-1], "content": [*_listed(said[-1]["content"]), {"type": "text", "text": f"and {n}"}]}
            case "restart":
                replicas = [Histories(store, TIGHT), replicas[1]]
            case "replica":
                replicas.reverse()
            case _:
                pass
        client.histories = replicas[0]
        calls = client.turn(*said)
        if not calls:
            points.append(list(client.history))
        sent = client.upstream.bodies[-1]
        for text in texts([message for message in client.history if message], client.api):
            assert text in json.dumps(json.loads(sent), ensure_ascii=False), text
        assert "recall" not in json.dumps(client.history)
    assert len(store.conversations()) <= 2 + rewinds + ops.count("retry") + len([op for op in ops if "aside" in op])


def _listed(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


@pytest.mark.parametrize(("name", "model"), CASES)
def test_a_clients_own_compaction_begins_a_segment_whose_recall_reaches_what_it_dropped(name: str, model: str) -> None:
    store = MemoryStore()
    summary = "\n".join(f"The user wanted thing number {n}, and it was done in file f{n}.py by hand." for n in range(12))
    plain = acting(thinks=False)
    client = Client(Histories(store, TIGHT), upstream(name, model, plain))
    calls = client.turn(client.user("please do it"))
    for n in range(6):
        calls = client.turn(
            *(client.results(calls, lambda call, n=n: f"SECRET-{n} {LONG}") if calls else [client.user(f"go on {n}")])
        )
    first = store.conversations()[0]
    client.upstream.script = lambda _: Reply(text=summary)
    client.ask(client.body([*client.history, *client.results(calls, lambda _: "x"), client.user("Summarise all of it.")]))
    client.upstream.script = plain
    client.history = []
    client.turn(client.user(f"This session goes on from another one.\n\n{summary}\n\nGo on with it."))
    segment = next(each for each in store.conversations() if each.id != first.id)
    assert (segment.parent, segment.forked_at) == (first.id, 0)
    context = client.last.context
    assert context is not None
    assert "SECRET-" in context.recall(words="SECRET")
