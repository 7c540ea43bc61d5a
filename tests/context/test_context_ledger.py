"""The ledger and the gauge through the front door, live and after a restart."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure import Budget, Context
from tenure.engine.meter.ledger import Account, Ledger
from tenure.engine.meter.price import prices_for
from tenure.engine.record.entry import Usage
from tenure.errors import ModelError
from tenure.lab.loading import kept_ledger
from tenure.store.records import Conversation
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.store import MemoryStore

MODEL = "claude-sonnet-4-5"
LINES = "\n".join(f"line {n} of a file that is long enough to matter" for n in range(120))
HEAD = 700  # provider tokens of system prompt and tools


def estimate(text: str) -> int:
    return len(text) // 4 + 1


def opened(store: Any, conversation: str = "", *, ceiling: int = 6_000, **more: Any) -> Context:
    settings_: dict[str, Any] = {"budget": Budget(ceiling=ceiling, window=40_000), "tokenizer": estimate, "model": MODEL}
    return Context(store=store, conversation=conversation, clock=lambda: "", **settings_ | more)


class Agent:
    """Works in a context as an agent does, and reports usage as a provider does."""

    def __init__(self, context: Context) -> None:
        self.context, self.steps = context, context.session.length
        if not self.steps:
            context.extend([{"role": "user", "content": "go"}])

    def step(self, size: int, *, tool: str = "read", output: int = 90, prompt: int = 0, **arguments: str) -> None:
        """One call of a tool, and its result."""
        context = self.context
        self.steps += 1
        context.request(model=MODEL, max_tokens=99)
        use = {"type": "tool_use", "id": f"t{self.steps}", "name": tool, "input": arguments or {"path": f"src/{self.steps}.py"}}
        prompt = prompt or int(context.session.view.tokens * 1.2) + HEAD
        usage = {"input_tokens": 5, "cache_creation_input_tokens": 300, "cache_read_input_tokens": prompt - 305}
        context.append(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "stop_reason": "tool_use",
                "content": [use],
                "usage": usage | {"output_tokens": output},
            }
        )
        answer = context.call(use) or {"type": "tool_result", "tool_use_id": use["id"], "content": LINES[: 4 * size]}
        context.extend([{"role": "user", "content": [answer]}])


def plan(*targets: str) -> Line:
    steps = {"fold": [], "mask": [], "prune": [{"target": each} for each in targets]}
    text = json.dumps({"above_conversation_summary": "x", "gc_plan": steps})
    return Line(text=text, usage=Usage(cache_read=5_000, uncached=700, output=60), cost_usd=0.004)


def account(ledger: Ledger, role: str) -> Account:
    (found,) = (each for each in ledger.accounts if each.role == role)
    return found


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 1_200)),
        st.tuples(st.just("recall"), st.integers(1, 3)),
        st.tuples(st.just("plan"), st.integers(1, 4)),
        st.tuples(st.just("fail"), st.just(0)),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=25,
)


def test_a_ceiling_holds_for_the_tokens_that_the_provider_counts_though_we_count_fewer() -> None:
    context = opened(MemoryStore(), policy="graph", ceiling=16_000)
    agent, sent = Agent(context), 0
    while True:
        view, size = context.session.view.tokens, 300
        dense = size * max(0, agent.steps - 15)  # of later texts the provider counts twice as many tokens as of the earlier ones
        agent.step(size, prompt=int(view + dense) + HEAD)
        if context.session.commits:
            break
        sent = int(view + dense) + HEAD
    assert 15_000 < sent <= 16_000


@given(ACTS, st.sampled_from([2_500, 6_000, 40_000]), st.sampled_from([0, 150]))
@settings(max_examples=60, deadline=None)
def test_reopening_gives_an_equal_ledger_and_gauge(acts: list[tuple[str, int]], ceiling: int, clip: int) -> None:
    store = MemoryStore()
    context = opened(store, ceiling=ceiling, clip=clip)
    name = context.conversation
    agent = Agent(context)
    for act, number in acts:
        context = agent.context
        match act:
            case "step":
                agent.step(number)
            case "recall":
                agent.step(0, tool="recall", handle=f"read:{number}")
            case "plan":
                context.collect(ScriptedModel(plan(f"read:{number}")))
            case "fail":
                failing = Line(text="half a plan", usage=Usage(uncached=9), cost_usd=0.001, play="cut short")
                with suppress(ModelError):
                    context.handoff(ScriptedModel(failing))
            case "undo" if len(context.session.commits) > number:
                context.undo(number)
            case _:
                agent.context = opened(store, name, ceiling=ceiling, clip=clip)
    again = opened(store, name, ceiling=ceiling, clip=clip)
    assert again.ledger == agent.context.ledger
    assert again.gauge.estimated == agent.context.gauge.estimated
    if not again.gauge.estimated:
        assert again.gauge == agent.context.gauge
    calls = sum(act in ("step", "recall") for act, _ in acts)
    assert account(again.ledger, "agent").calls == calls if calls else not again.ledger.compared.calls
    if not len(again.session.commits):
        assert again.ledger.savings.without_usd == again.ledger.savings.with_usd


def test_the_ledger_of_a_stored_conversation_can_be_read_without_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with opened(f"sqlite:///{path}") as context:
        agent = Agent(context)
        for _ in range(14):
            agent.step(1_000)
        agent.step(0, tool="recall", handle="read:1")
        context.collect(ScriptedModel(plan("read:12")))
        live = context.ledger
        name = context.conversation
    with opened(f"sqlite:///{path}", name) as again:
        assert again.ledger == live
    assert kept_ledger(str(path), estimate) == live
    assert kept_ledger(f"{path}#{name}", estimate) == live
    assert live.recalls.answers == 1
    assert live.savings.beyond == 0
    assert live.savings.breaks_usd > 0


def test_what_a_helper_model_costs_is_noted_also_when_it_fails() -> None:
    store = MemoryStore()
    context = opened(store, ceiling=30_000)
    agent = Agent(context)
    for _ in range(8):
        agent.step(900)
    context.extend([{"role": "assistant", "content": "Done."}, {"role": "user", "content": "More."}])
    usage = Usage(uncached=800, output=40)
    context.collect(ScriptedModel(plan("read:1"), name="p"))
    with pytest.raises(ModelError):
        context.handoff(ScriptedModel(Line(text="half", usage=usage, cost_usd=0.25, play="cut short"), name="s"))
    with pytest.raises(ModelError):
        context.handoff(ScriptedModel(then="down", name="s"))
    context.handoff(ScriptedModel(Line(text="no brief", usage=usage), name="s"))
    planner, summariser = account(context.ledger, "planner"), account(context.ledger, "summariser")
    assert (planner.model, planner.calls, planner.usage, planner.usd) == ("p", 1, plan().usage, 0.004)
    assert (summariser.model, summariser.calls, summariser.unpriced, summariser.usd) == ("s", 2, 1, 0.25)
    assert [spent.role for spent in store.asides(context.conversation)] == ["planner", "summariser", "summariser"]
    assert context.ledger.savings.helpers_usd == pytest.approx(
        0.254 + 800 * 3e-6 + 40 * 1.5e-5
    )  # the unpriced one at an assumed price,
    assert not context.ledger.savings.is_priced  # which is said


def test_a_digest_is_paid_by_its_own_role() -> None:
    digest = ScriptedModel(then=Line(text="It says nothing new.", usage=Usage(uncached=900, output=9), cost_usd=0.01), name="d")
    context = opened(MemoryStore(), ceiling=30_000, clip=200, digest=digest, digest_above=200)
    Agent(context).step(1_000)
    assert account(context.ledger, "digest").calls == 1
    assert account(context.ledger, "digest").usd == 0.01


def test_each_call_is_priced_by_the_model_that_answered() -> None:
    context = opened(MemoryStore(), model="")
    agent = Agent(context)
    agent.step(100)
    (agents,) = context.ledger.accounts
    assert (agents.model, agents.unpriced) == (MODEL, 0)
    assert agents.usd > 0


def test_the_gauge_starts_from_what_was_reported_and_output_is_no_context() -> None:
    context = opened(MemoryStore(), ceiling=30_000)
    assert context.gauge.estimated
    agent = Agent(context)
    agent.step(500, output=0)
    calm = context.gauge
    other = opened(MemoryStore(), ceiling=30_000)
    Agent(other).step(500, output=25_000)
    assert not calm.estimated
    assert other.gauge == calm
    assert calm.tokens >= HEAD + 500


def test_after_a_commit_the_gauge_is_estimated_until_usage_comes() -> None:
    context = opened(MemoryStore())
    agent = Agent(context)
    while not len(context.session.commits):
        agent.step(800)
        before = context.gauge
        context.request(model=MODEL, max_tokens=99)
    assert context.gauge.estimated
    assert context.gauge.tokens < before.tokens
    agent.step(10)
    assert not context.gauge.estimated


def test_a_result_clipped_from_its_birth_leaves_the_gauge_as_certain_as_it_was() -> None:
    context = opened(MemoryStore(), ceiling=30_000, clip=200)
    Agent(context).step(2_000)
    assert len(context.session.commits) == 1
    assert not context.gauge.estimated


def test_a_fork_does_not_pay_again_for_what_it_shares() -> None:
    store = MemoryStore()
    context = opened(store, ceiling=30_000)
    agent = Agent(context)
    for _ in range(12):
        agent.step(800)
    fork = store.fork(context.conversation, 11, "fork")
    forked = opened(store, fork.id, ceiling=30_000)
    assert forked.ledger.total.calls == 0
    assert not forked.gauge.estimated
    Agent(forked).step(100)
    assert forked.ledger.total.calls == 1


def test_a_conversation_of_an_older_version_is_priced_from_its_reports() -> None:
    store = MemoryStore()
    store.create(Conversation(id="old", model=MODEL, dialect="anthropic"))
    with opened(store, "old") as context:
        context.extend([{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone"}])
    store.observe("old", 1, Usage(uncached=1_000_000, output=0), MODEL)
    (only,) = opened(store, "old").ledger.accounts
    assert (only.model, only.usd) == (MODEL, pytest.approx(prices_for(MODEL, prompt=1_000_000).uncached * 1_000_000))
