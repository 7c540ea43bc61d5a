"""What a client's conversation costs beside the client alone: at any length next to nothing more, and its head stays cached until that is paid."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from test_histories import LONG, calls_in, reads, work
from wire_client import Client, Upstream, upstream

from tenure.apis import APIS
from tenure.apis.server import Call, Reply
from tenure.context.exchange import Management
from tenure.context.histories import Histories
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.price import prices_for
from tenure.testing.prefix import PrefixCache
from tenure.testing.store import MemoryStore

WORDS = "".join(f"Part {n} of this file reads a value, and gives it to the part behind it.\n" for n in range(20))
CEILING = Management(budget=Budget(ceiling=9_000))
NAMES = (("anthropic", "claude-opus-4-1"), ("openai-chat", "gpt-5"), ("openai-responses", "gpt-5"))


def cached(name: str, model: str, steps: int = 999) -> Upstream:
    return Upstream(APIS[name], model, reads(steps), cache=PrefixCache(lambda text: len(text) // 4 + 1))


def costs(upstream: Upstream) -> list[float]:
    """USD after each call."""
    prices = prices_for(upstream.model, upstream.rules.provider)
    return list(accumulate(map(prices.cost_usd, upstream.usages)))


@pytest.mark.parametrize(("name", "model"), NAMES)
def test_a_target_never_costs_one_percent_more_whenever_the_session_ends_and_saves_in_a_long_one(name: str, model: str) -> None:
    bills: list[list[float]] = []
    commits = 0
    for management in (Management(mode="shadow"), Management(budget=Budget(target=6_000))):
        histories = Histories(MemoryStore(), management, background=lambda task: task())
        client = Client(histories, cached(name, model), mark=name == "anthropic", stream=False)
        work(client, 130, WORDS)
        bills.append(costs(client.upstream))
        commits = sum(sheet.commits for sheet in histories.store.conversations())
    worst = max(on / alone for on, alone in zip(bills[1], bills[0], strict=True))
    assert worst <= 1.01
    assert commits
    assert bills[1][-1] < bills[0][-1]


def test_a_ceiling_that_a_young_session_passes_leaves_the_clients_head_as_it_is_cached() -> None:
    client = Client(Histories(MemoryStore(), CEILING), cached("anthropic", "claude-opus-4-1"), mark=True)
    work(client, 14)
    assert len(client.upstream.bodies[-1]) < len(client.body(client.history)) / 2, "something left"
    assert client.upstream.seen[-1]["tools"] == client.upstream.seen[0]["tools"]


def test_recall_is_answered_before_it_is_declared_and_declared_from_then_on() -> None:
    told: list[str] = []

    def script(tools: Sequence[str]) -> Reply:
        told.append("recall" if "recall" in tools else "")
        if len(told) == 15:
            return Reply(text="let me see", calls=(Call(name="recall", arguments='{"words": "value of item"}'),))
        return Reply(text=f"look {len(told)}", calls=(Call(name="read", arguments=f'{{"path": "f{len(told)}.py"}}'),))

    client = Client(Histories(MemoryStore(), CEILING), upstream("anthropic", "claude-opus-4-1", script), mark=True)
    client.upstream.cache = PrefixCache(lambda text: len(text) // 4 + 1)
    work(client, 15)
    assert told[:15] == [""] * 15
    assert set(told[15:]) == {"recall"}
    assert "recall" in calls_in(client, client.upstream.bodies[15])
    assert "recall" not in calls_in(client, client.body(client.history))


def test_no_result_is_clipped_before_what_brings_it_back_is_declared() -> None:
    client = Client(Histories(MemoryStore(), Management(clip=1_000)), cached("anthropic", "claude-opus-4-1"), mark=True)
    work(client, 3, LONG * 4)
    assert client.upstream.bodies[-1] == client.body(client.history[:-1]), "as the client wrote it"
