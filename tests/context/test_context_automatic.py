"""What happens without anybody's word: plans, handoffs, boundaries, and what a provider's reports teach."""

import json
from typing import Any

import pytest

from tenure import Budget, Context, Propose, Stay
from tenure.errors import InputError
from tenure.lifecycle.decision import Decision
from tenure.planners.handoff_sections import SECTIONS
from tenure.planners.handoff_transcript import OPENING
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
    from tenure.planners.handoff_sections import END

    return f"{BRIEF}\n{END}"


class Run:
    """A run of an agent that calls `make` again and again, and a provider that reports usage."""

    def __init__(self, *, reads: bool = True, **settings: Any) -> None:
        self.decisions: list[Decision] = []
        self.clock = Clock()
        settings = {"policy": None, "budget": Budget(window=50_000)} | settings
        self.context = Context(
            dialect="openai-chat", store=MemoryStore(), on_decision=self.decisions.append, clock=self.clock, clip=0, **settings
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
    with pytest.raises(InputError, match="priced, selfgc-paper"):
        Context(store=MemoryStore(), gate="free")


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
    again = Context(dialect="openai-chat", store=run.context.store, conversation=run.context.conversation, planner=model)
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
