import pytest

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies import chain, policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.peers import PEERS
from tenure.engine.policies.tiered import Tiered
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.rules import Rules
from tenure.errors import InputError
from tenure.testing.builders import by_words, call, human, reply, result, weigh_words

RULES = Rules(provider="t", dialect="openai-chat")
EAGER = Tiered(head=5, tail=5, turns=1, protect=0, minimum=0, steps=1, middle_above=99.0)


def opened() -> Session:
    entries: dict[int, Entry] = {}
    setup = Setup(budget=Budget(ceiling=400), rules=RULES)
    session = Session(setup, weigh=weigh_words, count=by_words, read=entries.__getitem__)
    drafts: list[Draft] = [human("Go.")]
    for n in range(12):
        drafts += [reply(call("bash", f"c{n}", command=f"{n}")), result(" ".join(["word"] * 60), f"c{n}")]
    for draft in [*drafts, human("On.")]:
        entries |= {entry.n: entry for entry in session.append(draft).entries}
    return session


def test_the_second_policy_acts_only_when_the_first_was_not_enough() -> None:
    both = chain(EAGER, Cwl())
    assert both.name == "tiered+cwl"
    little, much = (opened().rehearse(both, target=target) for target in (600, 60))
    assert {act.kind for act in little.actions} == {"trim"}
    assert {act.kind for act in much.actions} >= {"trim", "strip"}
    assert much.tokens_after < little.tokens_after


def test_a_tier_that_is_not_wanted_does_not_keep_the_next_policy_from_acting() -> None:
    barred = chain(Tiered(placeholders_above=99.0, middle_above=99.0, minimum_share=99.0), Cwl())
    assert {act.kind for act in opened().rehearse(barred, target=100).actions} == {"strip"}


def test_policies_are_joined_by_name() -> None:
    found = policy_named("tool-mask-prune+cwl")
    assert found is not None
    assert found.name == "tool-mask-prune+cwl"
    assert found.conduct.naming == "lines"
    assert policy_named("tool-mask-prune") == PEERS["tool-mask-prune"]
    with pytest.raises(InputError, match="'nonsense'"):
        policy_named("cwl+nonsense")
