"""What happens without anybody's word: plans, handoffs, boundaries, and what a provider's reports teach."""

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from math import nan
from threading import Event
from typing import Any

import pytest

from tenure import Budget, Context, Propose, Stay
from tenure.engine.lifecycle.decision import Decision
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.planners.selfgc.setting import SelfGc
from tenure.engine.record.entry import Usage
from tenure.errors import InputError, StoreError
from tenure.models.question import Answer, Question
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"{n}: the value of part {n * n} is known" for n in range(120))
BRIEF = "\n\n".join(
    f"## {section.title}\nThe parser of part one was mended in part_one.py; make 3 passed." for section in SECTIONS
)


class Clock:
    """A clock that stands until it is told."""

    def __init__(self) -> None:
        self.minute = 0

    def __call__(self) -> str:
        return f"2026-01-01T{10 + self.minute // 60}:{self.minute % 60:02}:00Z"


def brief() -> str:
    from tenure.engine.planners.handoff.sections import END

    return f"{BRIEF}\n{END}"


class Run:
    """A run of an agent that calls `make` again and again, and a provider that reports usage."""

    def __init__(self, *, reads: bool = True, **settings: Any) -> None:
        self.decisions: list[Decision] = []
        self.clock = Clock()
        usual = {"policy": None, "budget": Budget(window=50_000), "clip": 0, "selfgc": SelfGc(bounded=False, by_part=False)}
        settings = usual | settings
        self.context = Context(
            dialect="openai-chat", store=MemoryStore(), on_decision=self.decisions.append, clock=self.clock, **settings
        )
        self.context.extend([{"role": "user", "content": "Mend the parser of part one."}])
        self.n = self.prompt = 0
        self.reads = reads

    def step(self, prompt: int = 0) -> dict[str, Any]:
        """One call and its result; `prompt` tokens are reported for it."""
        self.n += 1
        request = self.context.request(model="gpt-5")
        made = {
            "id": f"c{self.n}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": f"make {self.n}"})},
        }
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": self.prompt if self.reads else 0},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [made]}
        reply: dict[str, Any] = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
        self.context.append(reply | ({"usage": usage} if prompt else {}))
        self.context.extend([{"role": "tool", "tool_call_id": f"c{self.n}", "content": LINES}])
        self.prompt = prompt
        return request

    def briefs(self) -> int:
        """How many briefs stand in the view."""
        return sum(insert.text.startswith(OPENING) for insert in self.context.session.view.inserts)


def test_history_is_handed_off_inside_one_long_run_once_the_provider_reports_that_the_window_is_nearly_full() -> None:
    run = Run(summariser=ScriptedModel(then=Line(text=brief())))
    for n in range(6):
        run.step(prompt=2_000 * (n + 1))
    assert not run.briefs()
    run.step(prompt=43_000)
    request = run.step(prompt=8_000)
    assert run.briefs() == 1
    assert OPENING in json.dumps(request)
    assert any(isinstance(decision, Propose) and decision.commit.policy == "handoff" for decision in run.decisions)


def test_no_handoff_is_made_of_an_estimate_nor_twice_of_one_report_nor_while_messages_wait() -> None:
    model = ScriptedModel(then=Line(text=brief()))
    run = Run(summariser=model, handoff_at="2k")
    for _ in range(6):
        run.step()
    assert not model.questions
    run.context.queued = True
    run.step(prompt=9_000)
    run.step()
    assert not model.questions
    run.context.queued = False
    for _ in range(4):
        run.step()
    assert len(model.questions) == 1


def test_zero_is_off() -> None:
    run = Run(summariser=ScriptedModel(), handoff_at=0)
    for _ in range(6):
        run.step(prompt=49_000)
    assert not run.briefs()


@pytest.mark.parametrize("then", [Line(text=""), Line(text="Sure! What next?"), Line(play="down"), Line(play="rubbish")])
def test_a_summariser_that_fails_leaves_everything_as_it_was_and_is_not_asked_again_for_the_same(then: Line) -> None:
    model = ScriptedModel(then=then)
    run = Run(summariser=model)
    for _ in range(6):
        run.step(prompt=9_000)
    run.step(prompt=45_000)
    before = run.context.request(model="gpt-5")
    assert run.context.request(model="gpt-5") == before
    assert len(model.questions) == 1
    assert any("the summariser failed: " in str(each) or "no brief" in str(each) for each in run.decisions)


def test_a_planner_is_asked_from_a_share_of_the_limit_on_and_not_at_every_call() -> None:
    model = ScriptedModel(then=Line(text=json.dumps({"gc_plan": {"fold": [], "mask": [], "prune": [{"target": "bash:1"}]}})))
    run = Run(planner=model, budget=Budget(window=20_000))
    for _ in range(12):
        run.step()
    assert 2 <= len(model.questions) <= 7


def test_a_planner_that_fails_does_not_stop_the_agent() -> None:
    run = Run(planner=ScriptedModel(then="down"), budget=Budget(window=20_000))
    for _ in range(12):
        run.step()
    assert any("the planner failed: " in str(decision) for decision in run.decisions)


def test_a_plan_that_does_not_pay_waits_until_the_cache_is_cold() -> None:
    run = Run(policy="cwl", budget=Budget(target=13_000, floor=12_000))
    while not isinstance(run.context.decision, Stay) or run.context.decision.price is None:
        run.clock.minute += 1
        run.step(prompt=1_300 * (run.n + 1))
    assert isinstance(run.context.settle("turn-end"), Stay)
    run.clock.minute += 70
    decision = run.context.settle("idle")
    assert isinstance(decision, Propose)
    assert decision.commit.moment == "idle"
    assert "costs nothing, as the cache is cold" in str(decision)


def test_a_collapse_of_the_providers_cache_is_told() -> None:
    run = Run()
    for n in range(8):
        run.step(prompt=3_000 * (n + 1))
    assert run.context.collapse is None
    run.reads = False
    run.step(prompt=30_000)
    assert run.context.collapse is not None
    assert "the provider read 0 of" in str(run.context.collapse)


def test_where_nothing_is_ever_cached_a_break_costs_nothing() -> None:
    run = Run(reads=False, policy="tiered", budget=Budget(target=5_000))
    for n in range(60):
        run.step(prompt=2_000 * (n + 1))
    prices = [each.commit.price for each in run.decisions if isinstance(each, Propose)]
    assert prices
    last = prices[-1]
    assert last is not None
    assert last.r == pytest.approx(last.w, rel=0.2)


def test_earlier_conversations_say_how_long_this_one_may_last() -> None:
    store = MemoryStore()
    for _ in range(3):
        context = Context(dialect="openai-chat", store=store)
        context.extend([{"role": "user", "content": "Go."}])
        for _ in range(50):
            context.request(model="gpt-5")
            usage = {"prompt_tokens": 9, "completion_tokens": 1}
            context.append({"choices": [{"message": {"role": "assistant", "content": "Yes."}}], "usage": usage})
    assert Context(dialect="openai-chat", store=store).session.setup.calls_seen == (50, 50, 50)


def test_an_unknown_gate_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="priced, bounded, selfgc-paper"):
        Context(store=MemoryStore(), gate="free")  # type: ignore[arg-type]


def test_a_conversation_that_is_opened_again_knows_how_long_it_rested() -> None:
    run = Run(policy="cwl")
    run.step(prompt=2_000)
    store, clock = run.context.store, run.clock
    again = Context(dialect="openai-chat", store=store, conversation=run.context.conversation, clock=clock)
    assert again.session.calls.idle_s(clock()) == 0.0
    clock.minute += 9
    assert again.session.calls.idle_s(clock()) == 540.0


def test_a_planner_is_never_asked_blindly_after_a_restart() -> None:
    model = ScriptedModel(then=Line(text="{}"))
    run = Run(policy="cwl", budget=Budget(window=20_000))
    for _ in range(12):
        run.step()
    again = Context(
        dialect="openai-chat",
        store=run.context.store,
        conversation=run.context.conversation,
        planner=model,
        selfgc=SelfGc(bounded=False),
    )
    again.request(model="gpt-5")
    assert not model.questions
    again.request(model="gpt-5")
    assert model.questions[0].prefix
    other = Context(dialect="openai-chat", store=run.context.store, conversation=run.context.conversation)
    by_hand = ScriptedModel(then=Line(text="{}"))
    other.collect(by_hand)
    assert b"Mend the parser of part one." in by_hand.questions[0].prefix


def test_instructions_go_with_every_brief_also_with_those_made_without_asking() -> None:
    run = Run(
        summariser=ScriptedModel(then=Line(text=brief())), instructions={"AGENTS.md": "Never push to main."}, handoff_at="2k"
    )
    for _ in range(3):
        for _ in range(8):
            run.step()
        run.step(prompt=9_000)
        run.step()
        (standing,) = [insert.text for insert in run.context.session.view.inserts if insert.text.startswith(OPENING)]
        assert "Never push to main." in standing


def test_reports_that_stay_above_the_threshold_do_not_make_a_brief_at_every_call() -> None:
    model = ScriptedModel(then=Line(text=brief()))
    run = Run(summariser=model, budget=Budget(window=24_000))
    for n in range(40):
        run.step(prompt=min(1_250 * (n + 1), 21_000))
    assert 1 <= len(model.questions) <= 13  # 50,000 tokens came, and 24 reports of more than 85 %


def broken(error: Exception) -> Callable[..., Answer]:
    """A callable of the host that raises; it counts."""

    def model(question: Question, **_: Any) -> Answer:
        asked.append(question)
        raise error

    asked: list[Question] = []
    model.questions = asked  # type: ignore[attr-defined]
    return model


class Speechless(Exception):
    """An error of a host that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError


ERRORS = [
    Speechless(),
    ValueError("no"),
    RuntimeError("off\nmore"),
    KeyError("x"),
    TimeoutError(),
    StoreError("locked"),
    AssertionError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_a_planner_or_a_summariser_raises_requests_go_on_and_it_is_told(error: Exception) -> None:
    run = Run(
        planner=broken(error),
        summariser=broken(error),
        digest=broken(error),
        handoff_at="4k",
        budget=Budget(window=20_000),
        clip=500,
        digest_above=600,
    )
    for n in range(12):
        assert run.step(prompt=1_800 * (n + 1))["messages"]
    told = [str(each) for each in run.decisions]
    for who in ("planner", "summariser"):
        assert any(f"the {who} failed: {type(error).__name__}" in line for line in told)
    assert not any("\n" in line for line in told)


NO_ANSWERS: list[Any] = [
    *(None, "a plan", 7, Answer(text=None)),  # type: ignore[arg-type]
    *(Answer(text="x", usage="12"), Answer(text="x", model=5), Answer(text="x", cost_usd="1")),  # type: ignore[arg-type]
    *(Answer(text="x", cost_usd=cost) for cost in (nan, -1.0)),
]


@pytest.mark.parametrize("answer", NO_ANSWERS)
def test_a_helper_that_returns_no_answer_is_one_that_failed(answer: Any) -> None:
    run = Run(planner=lambda question, **_: answer, budget=Budget(window=20_000))
    for _ in range(12):
        run.step()
    assert any("the planner failed: it returned a" in str(each) for each in run.decisions)


def test_options_of_the_sdks_call_are_no_part_of_the_request_that_a_planner_is_asked_behind() -> None:
    asked: list[Question] = []
    context = Context(
        planner=lambda question, **_: asked.append(question) or Answer(text="<gc_plan></gc_plan>"),
        budget=Budget(ceiling=4_000),
        store=MemoryStore(),
        selfgc=SelfGc(bounded=False),
    )
    context.extend([{"role": "user", "content": "Go."}])
    more = {"thinking": {"type": "enabled", "budget_tokens": 1_024}, "stop_sequences": ["a"]}
    for n in range(4):
        context.request(model="claude-opus-5", max_tokens=9, timeout=30, extra_headers={"x-key": "y"}, extra_body=more)
        call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {}}
        context.extend([{"role": "assistant", "content": [call]}])
        result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"line {n}\n" * 150}
        context.extend([{"role": "user", "content": [result]}])
    assert asked
    assert asked[0].prefix is not None
    prefix = json.loads(asked[0].prefix)
    assert prefix.keys() == {"model", "max_tokens", "thinking", "tools", "messages"}
    assert prefix["thinking"] == more["thinking"]


@pytest.mark.parametrize("then", [Line(play="down"), Line(text="Sure! What next?")])
def test_a_planner_that_fails_or_says_nothing_of_use_is_asked_ever_more_rarely(then: Line) -> None:
    useless, useful = ScriptedModel(then=then), ScriptedModel(then=Line(text="<gc_plan></gc_plan>"))
    for model in (useless, useful):
        run = Run(planner=model, budget=Budget(window=20_000))
        for _ in range(80):
            run.step()
    assert len(useful.questions) > 30
    assert 3 <= len(useless.questions) <= 7  # 1, 3, 7, 15, … times a tenth of the limit


def test_a_summariser_that_fails_is_asked_ever_more_rarely_and_one_that_recovers_is_not() -> None:
    model = ScriptedModel(*["down"] * 3, then=Line(text=brief()))
    run = Run(summariser=model, handoff_at="2k", budget=Budget(window=20_000))
    asked: list[int] = []
    for n in range(40):
        run.step(prompt=9_000)
        asked += [n] * (len(model.questions) - len(asked))
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert gaps[:3] == sorted(gaps[:3])
    assert gaps[2] >= 3 * gaps[0]
    assert gaps[-1] <= gaps[0]


def test_a_digest_that_fails_again_and_again_is_asked_for_ever_fewer_results() -> None:
    model = ScriptedModel(then=Line(play="down"))
    context = Context(dialect="openai-chat", store=MemoryStore(), clip=300, digest=model, digest_above=400)
    context.extend([{"role": "user", "content": "Go."}])
    for n in range(64):
        made = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        context.extend([{"role": "assistant", "content": None, "tool_calls": [made]}])
        context.extend([{"role": "tool", "tool_call_id": f"c{n}", "content": f"{n}\n{LINES}"}])
    assert 4 <= len(model.questions) <= 8


@pytest.mark.parametrize("usage", [None, Usage(uncached=2_000, cache_read=8_000, output=100)])
def test_a_plan_of_a_model_of_unknown_price_is_priced_and_says_that_it_is_assumed(usage: Usage | None) -> None:
    text = json.dumps({"gc_plan": {"prune": [f"bash:{n}" for n in range(1, 9)]}})
    run = Run(planner=ScriptedModel(then=Line(text=text, usage=usage)), budget=Budget(window=30_000))
    for _ in range(30):
        run.step()
    proposals = [each.commit for each in run.decisions if isinstance(each, Propose)]
    assert proposals
    for commit in proposals:
        assert commit.price is not None
        assert commit.price.g > 0.001
        assert "price is assumed" in commit.reason
    if usage is not None:
        assert run.context.ledger.savings.helpers_usd > 0
        assert not run.context.ledger.savings.is_priced
    assert run.context.ledger.total.usd == 0


def test_in_the_background_no_request_waits_for_a_planner_and_its_plan_is_taken_up_when_it_has_come() -> None:
    gate, asked = Event(), Event()

    def planner(question: Question, **_: object) -> Answer:
        asked.set()
        gate.wait(30)
        return Answer(text="<gc_plan><prune>bash:1-4</prune></gc_plan>", cost_usd=0.0001)

    run = Run(planner=planner, in_background=True, budget=Budget(window=20_000))
    for _ in range(9):
        run.step()  # returns although the planner does not
    assert asked.wait(30)
    assert not any("planned by a model" in str(each) or "nothing leaves yet" in str(each) for each in run.decisions)
    gate.set()
    for thread in threading.enumerate():
        if thread.name == "tenure-planner":
            thread.join(30)
    before = len(run.decisions)
    run.context.request(model="gpt-5")
    assert any(isinstance(each, Propose) or "nothing leaves yet" in str(each) for each in run.decisions[before:])


def test_a_planner_that_raises_in_the_background_is_told_of_and_harms_nothing() -> None:
    run = Run(planner=broken(RuntimeError("down")), in_background=True, budget=Budget(window=20_000))
    for _ in range(12):
        run.step()
        for thread in threading.enumerate():
            if thread.name == "tenure-planner":
                thread.join(30)
    assert any("the planner failed: " in str(each) for each in run.decisions)
