"""What a host hands in may raise or give nonsense: requests go on, or the error says whose it is, and nothing is lost."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure import Budget, Context
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.view.action import Level, Shorten, Strip, Take, Unstrip
from tenure.errors import InputError
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"{n}: the value of part {n * n} is known" for n in range(120))


class Mine:
    """A policy of the host."""

    name = "mine"
    conduct = Conduct()

    def __init__(self, offer: Callable[[Situation], Any]) -> None:
        self.offer = offer

    def __call__(self, situation: Situation, /) -> Any:
        return self.offer(situation)


def failing(*_: object) -> Any:
    raise ValueError("a bug of the host")


def late(_: Situation) -> Iterator[Shorten]:
    yield Shorten(span=0, how="clear", text="x")
    raise KeyError("later")


def opened(store: MemoryStore | None = None, **settings: Any) -> Context:
    settings = {"budget": Budget(ceiling=8_000)} | settings
    context = Context(dialect="openai-chat", store=store or MemoryStore(), clip=0, **settings)
    context.extend([{"role": "user", "content": "Go."}])
    for n in range(9):
        made = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": f"{n}"})}}
        context.extend([{"role": "assistant", "content": None, "tool_calls": [made]}])
        context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": LINES}])
    return context


OFFERS: dict[str, Callable[[Situation], Any]] = {
    "raises": failing,
    "raises later": late,
    "nothing": lambda _: None,
    "no action": lambda _: ["prune read:1"],
    "no such span": lambda _: [Shorten(span=999, how="clear", text="x")],
    "no span": lambda _: [Shorten(span=-1, how="clear", text="x")],
    "no text": lambda _: [Shorten(span=0, how="clear", text=5)],  # type: ignore[arg-type]
    "no such block": lambda _: [Shorten(span=-1, at=(2, 9), how="clear", text="x")],
    "no such episode": lambda _: [Strip(episode=99, level=Level.EPISODE)],
    "no such episode to restore": lambda _: [Unstrip(episode=-3)],
    "no such place": lambda _: [Take(how="prune", object="x", places=((999, 0),))],
    "no such entry": lambda _: [Take(how="fold", object="x", places=((1, 0),), pointer="p", before_entry=10**6)],
}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
def test_a_policy_that_raises_or_yields_nonsense_is_an_error_that_names_it(offer: Callable[[Situation], Any]) -> None:
    context = opened(policy=Mine(offer))
    before = context.session.length
    with pytest.raises(InputError, match="policy 'mine'"):
        context.request(model="gpt-5")
    assert context.session.length == before
    assert not len(context.session.commits)
    context.session.setup = opened(policy="graph").session.setup
    assert context.request(model="gpt-5")["messages"]


@pytest.mark.parametrize("policy", [7, failing, lambda _: []])
def test_what_is_no_policy_is_refused_when_it_is_handed_in(policy: Any) -> None:
    with pytest.raises(InputError, match="a name and a conduct"):
        opened(policy=policy)


@pytest.mark.parametrize("tokenizer", [failing, lambda _: None, lambda _: -1, lambda text: len(text) / 4])
def test_a_tokenizer_that_does_not_count_is_an_error_that_says_so(tokenizer: Any) -> None:
    with pytest.raises(InputError, match="tokenizer"):
        opened(tokenizer=tokenizer)


def test_what_on_decision_raises_comes_out_and_what_was_decided_stands() -> None:
    told: list[Decision] = []

    def tell(decision: Decision) -> None:
        told.append(decision)
        if len(told) == 1:
            failing()

    store = MemoryStore()
    context = opened(store, on_decision=tell)
    with pytest.raises(ValueError, match="a bug of the host"):
        context.request(model="gpt-5")
    assert len(context.session.commits) == 1 == len(store.commits(context.conversation))
    assert context.request(model="gpt-5")["messages"]
