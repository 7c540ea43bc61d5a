"""A limit that is not kept says what holds the space, and every token counts under what really holds it."""

from collections.abc import Iterator

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Unmet
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.peers import PEERS
from tenure.engine.policies.policy import Conduct, Policy
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Draft
from tenure.engine.view.action import Action, Take
from tenure.engine.view.guard import Hold
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result, session, start_expl, system, thinking

RULES = Rules(provider="t", dialect="openai-chat")
LONG = " ".join(["line"] * 50)


class Idle(Struct, frozen=True, kw_only=True):
    """A policy that offers a few results, and no more."""

    name: str = "idle"
    offers: int = 0
    conduct: Conduct = Conduct(naming="nothing")

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        for span in situation.index.spans[: self.offers]:
            assert span.result is not None
            yield Take(how="prune", object=span.object, places=(span.call, span.result))


def steps(count: int) -> list[Draft]:
    """Steps of about 60 tokens."""
    pairs = [(reply(call("read", path=f"{n}.py")), result(LONG)) for n in range(count)]
    return [draft for pair in pairs for draft in pair]


def held(
    *drafts: Draft, policy: Policy | None, limit: int = 400, rules: Rules = RULES, hold: Hold | None = None
) -> dict[str, int]:
    """By what the space of a view is held, without what holds nothing."""
    kept = session(Setup(budget=Budget(ceiling=limit), rules=rules, policy=policy), *drafts)
    if hold is not None:
        kept.hold(hold)
    decision = kept.decide(extra=30)
    assert isinstance(decision, Unmet)
    assert decision.proposal is None
    assert sum(decision.held_by.values()) == decision.tokens == kept.view.tokens + 30
    assert "free" not in str(decision)
    return {name: tokens for name, tokens in decision.held_by.items() if tokens}


def test_what_a_policy_leaves_alone_by_its_own_rule_is_its_protection() -> None:
    found = held(system("Be brief."), human("do it"), *steps(20), policy=PEERS["opencode-prune"])
    assert found.keys() == {"prologue", "human_text", "tail", "policy_protection", "head"}
    assert found["policy_protection"] > 20 * 50 - found["tail"]


def test_without_a_policy_it_is_the_lack_of_one() -> None:
    found = held(human("do it"), *steps(20), policy=None)
    assert found.keys() == {"human_text", "tail", "lack_of_policy", "head"}


@pytest.mark.parametrize(("kind", "name"), [("pin", "pins"), ("approval", "holds"), ("handle", "holds")])
def test_what_the_host_holds_is_told_by_kind_both_call_and_result(kind: str, name: str) -> None:
    hold = Hold(kind=kind, object="read:3")  # type: ignore[arg-type]
    found = held(human("do it"), *steps(20), policy=Idle(), hold=hold)
    assert 55 <= found[name] <= 70


def test_an_open_episode_holds_its_newest_part() -> None:
    found = held(human("do it"), reply(start_expl("look")), result("ok"), *steps(20), policy=Cwl.paper())
    assert found["episode"] > 10 * 50


def test_a_call_that_is_not_answered_yet_holds_itself_and_what_stands_beside_it() -> None:
    open_call = reply(call("read", "late", path="late.py"), call("read", path="a.py"))
    found = held(human("do it"), open_call, result(LONG), *steps(20), policy=Idle())
    assert found["open_calls"] > 0


def test_reasoning_that_is_sealed_to_what_stays_is_told_apart() -> None:
    rules = replace(RULES, thinking="open_loop", reasoning_unit=True)
    sealed = reply(thinking(LONG, signed=True), call("read", "late", path="late.py"), call("read", path="a.py"))
    found = held(human("do it"), sealed, result(LONG), *steps(20), policy=Idle(), rules=rules)
    assert found["reasoning"] >= 50


def test_what_could_leave_and_saves_next_to_nothing_is_no_protection() -> None:
    found = held(human("do it"), *steps(90), policy=Idle(offers=1), limit=5_000)
    assert 0 < found["small_savings"] <= 70
    assert found["policy_protection"] > 60 * 50


def test_it_is_told_again_as_long_as_nothing_changes() -> None:
    kept = session(Setup(budget=Budget(ceiling=5_000), rules=RULES, policy=Idle(offers=1)), human("do it"), *steps(90))
    first, again = kept.decide(), kept.decide()
    assert isinstance(first, Unmet)
    assert first == again


def test_residues_are_told_of_the_view_as_it_will_be() -> None:
    kept: Session = session(
        Setup(budget=Budget(ceiling=400), rules=RULES),
        human("do it"),
        *steps(20),
        human(" ".join([LONG] * 9)),
        reply(LONG),
    )
    decision = kept.decide()
    assert isinstance(decision, Unmet)
    assert decision.proposal is not None
    assert decision.held_by["residues"] > 0
    assert sum(decision.held_by.values()) == decision.tokens == decision.proposal.commit.tokens_after
