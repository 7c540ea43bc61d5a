"""A limit that cannot be met costs a decision no more the longer the session is, and says what a look at everything would say."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Unmet
from tenure.engine.lifecycle.exhaustion import PATIENCE
from tenure.engine.lifecycle.held import Holders
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies import DEFAULT, policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.policy import Policy
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.action import Action
from tenure.engine.view.guard import Hold
from tenure.engine.view.rules import Rules
from tenure.testing.builders import by_words, call, human, reply, result, session, start_expl, thinking, weigh_words
from work import growth

RULES = Rules(provider="t", dialect="openai-chat")
SEALED = replace(RULES, thinking="open_loop", reasoning_unit=True)
EVERY = 10**6
LONG = " ".join(["line"] * 30)


def talk(turns: int) -> Iterator[Draft]:
    """Turns of a person who says more than the window may hold."""
    for n in range(turns):
        yield human(f"question {n} " + LONG)
        yield reply(call("read", f"c{n}", path=f"{n}.py"))
        yield result(f"{n} is short", f"c{n}")
        yield reply(f"answer {n}")


def mixed(turns: int) -> Iterator[Draft]:
    """Turns with calls that are answered late or never, reasoning that is sealed, and an episode that is never ended."""
    for n in range(turns):
        yield human(f"question {n} " + LONG)
        yield reply(thinking(LONG, signed=True), call("read", f"c{n}", path=f"{n}.py"), call("bash", f"d{n}", command="make"))
        yield result(LONG, f"c{n}")
        if n % 3:
            yield reply(thinking("hm", signed=True), call("recall", f"r{n}", query="read:1"))
            yield result(f"brought back {n}", f"r{n}")
        if n % 4 == 2:
            yield reply(start_expl(f"look-{n}"))
            yield result("ok")
        if n % 5 == 3:
            yield result(LONG, f"d{n - 1}")
        yield reply(f"answer {n}")


def play(
    drafts: Iterator[Draft], policy: Policy | None, *, holds: int = 0, rules: Rules = RULES
) -> Iterator[tuple[Session, Unmet]]:
    """The session at each limit that it cannot meet, before what can leave all the same has left."""
    kept = Session(Setup(budget=Budget(ceiling=400), rules=rules, policy=policy), weigh=weigh_words, count=by_words)
    for n, draft in enumerate(drafts):
        kept.append(draft)
        if n < holds:
            kept.hold(Hold(object=f"entry:{n}"))
            kept.hold(Hold(object=f"user:{len(kept.index.turns) // 2 or 1}", kind="handle"))  # one that was summed up
        decision = kept.decide()
        proposal = decision
        if isinstance(decision, Unmet):
            yield kept, decision
            proposal = decision.proposal
        if isinstance(proposal, Propose):
            kept.commit(proposal.commit)


@pytest.mark.parametrize("policy", [Cwl(), None], ids=["cwl", "no-policy"])
@pytest.mark.parametrize("holds", [0, 40, EVERY])
def test_human_text_above_a_ceiling_is_told_in_linear_steps(policy: Policy | None, holds: int) -> None:
    def told(turns: int) -> int:
        return sum(1 for _ in play(talk(turns), policy, holds=holds))

    assert told(60) > 100
    assert growth(lambda turns: lambda: told(turns), 50) < 7


class Counting:
    """The default policy, and how often it was asked."""

    name = DEFAULT
    conduct = policy_named(DEFAULT).conduct  # type: ignore[union-attr]

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        self.times += 1
        yield from policy_named(DEFAULT)(situation)  # type: ignore[misc]


@pytest.mark.parametrize("clip", [None, Clip(above=200)], ids=["whole", "clipped"])
def test_a_policy_is_asked_seldom_while_one_text_of_a_person_is_above_the_ceiling(clip: Clip | None) -> None:
    """Each time costs a look at the whole view; without the rule it is asked at every decision, 600 times."""

    def times(calls: int) -> tuple[int, int]:
        policy, texts = Counting(), dict[int, Entry]()
        setup = Setup(budget=Budget(ceiling=400), rules=RULES, policy=policy, clip=clip)
        kept = Session(setup, weigh=weigh_words, count=by_words, read=texts.__getitem__)
        unmet = 0
        for draft in [human(" ".join(["demand"] * 3_000)), *(draft for n in range(calls) for draft in used(n))]:
            texts |= {entry.n: entry for entry in kept.append(draft).entries}
            decision = kept.decide()
            unmet += isinstance(decision, Unmet)
            if isinstance(decision, Unmet) and decision.proposal is not None:
                kept.commit(decision.proposal.commit)
        assert unmet == 1 + 2 * calls
        return policy.times, kept.rewrites

    def used(n: int) -> tuple[Draft, Draft]:
        return reply(call("read", f"c{n}", path=f"{n}.py")), result("\n".join(f"line {n} {i}" for i in range(100)), f"c{n}")

    asked, rewrites = times(300)
    assert asked < PATIENCE + 2 * rewrites < 600 * 2 / 3


@pytest.mark.parametrize("rules", [RULES, SEALED], ids=["plain", "sealed"])
@pytest.mark.parametrize("policy", [Cwl(), Cwl.paper(), None], ids=["cwl", "paper", "no-policy"])
@pytest.mark.parametrize("drafts", [talk, mixed])
@pytest.mark.parametrize("holds", [7, EVERY])
def test_what_is_summed_up_once_is_what_a_look_at_the_whole_view_finds(
    drafts: object, policy: Policy | None, rules: Rules, holds: int
) -> None:
    seen = 0
    for kept, decision in play(drafts(40), policy, holds=holds, rules=rules):  # type: ignore[operator]
        assert kept._decisions._holders.weigh() == Holders(kept).weigh()
        assert sum(decision.held_by.values()) == decision.tokens
        seen += 1
    assert seen > 50


@pytest.mark.parametrize("drafts", [talk, mixed])
def test_releasing_what_was_summed_up_as_held_is_seen(drafts: object) -> None:
    for kept, _ in play(drafts(20), Cwl(), holds=EVERY):  # type: ignore[operator]
        held = kept.holds[len(kept.holds) // 2]
        kept.release(held.object, held.kind)
        holders = kept._decisions._holders
        assert holders.weigh() == Holders(kept).weigh()
        kept.hold(held)
        assert holders.weigh() == Holders(kept).weigh()


def test_a_ceiling_is_met_as_soon_as_what_left_the_tail_is_enough_to_meet_it() -> None:
    """A large result that its newest exchanges protect leaves when they do no longer, however little came since."""
    large = " ".join(["line"] * 300)
    words = " ".join(["line"] * 250)
    kept = session(
        Setup(budget=Budget(ceiling=2_000), rules=RULES, policy=Cwl()),
        *[human(words)] * 7,
        reply(call("read", "c", path="a.py")),
        result(large, "c"),
    )
    assert isinstance(kept.decide(), Unmet)
    met = None
    for n in range(6):
        kept.append(reply(call("bash", f"b{n}", command="true")))
        kept.append(result("ok", f"b{n}"))
        decision = kept.decide()
        if isinstance(decision, Propose):
            kept.commit(decision.commit)
            met = n
            break
    assert met is not None
    assert kept.view.tokens <= 2_000
