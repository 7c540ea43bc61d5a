"""Published rules without our protection: whatever they take, requests stay valid and everything comes back."""

from functools import partial

import pytest
from driving import Case, Run, cases, proposal_of, quick, stored
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from provider_order import disorder

from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.lifecycle.undo import undone
from tenure.engine.policies import PEERS
from tenure.engine.policies.peers import Peer, clear_tool_uses, observation_masking, opencode_prune
from tenure.engine.policies.policy import Policy
from tenure.engine.record.chain import verify
from tenure.engine.view.laws import never_larger, reasoning_is_valid, structural
from tenure.engine.view.project import project
from tenure.testing.builders import by_words, weigh_words

# Settings at which rules with large thresholds act on transcripts as small as these.
EAGER: dict[str, Policy] = {
    "opencode-eager": Peer("opencode-eager", partial(opencode_prune, protect=5, minimum=1, turns=1)),
    "clearing-eager": Peer("clearing-eager", partial(clear_tool_uses, trigger=1, keep=1)),
    "masking-eager": Peer("masking-eager", partial(observation_masking, window=1)),
    "discard-eager": PEERS["discard-all"],
}
every_rule = pytest.mark.parametrize("policy", [*PEERS.values(), *EAGER.values()], ids=[*PEERS, *EAGER])


class FaithfulRun(Run):
    """A session in which nothing is protected from the rule."""

    def __init__(self, case: Case, policy: Policy) -> None:
        super().__init__(case, policy)
        setup: Setup = replace(case.setup(policy), faithful=True)
        self.session = Session(setup, weigh=weigh_words, count=by_words, read=self.entries.__getitem__)
        self.session.ratio = case.ratio


@every_rule
@given(case=cases())
@quick
def test_a_view_without_protection_is_well_formed(policy: Policy, case: Case) -> None:
    run = FaithfulRun(case, policy)
    for decision in run.decisions():
        index = run.session.index
        assert not list(structural(run.session.freeze(), index, case.rules))
        assert not list(disorder(run.pieces()))
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)
            assert not list(structural(run.session.freeze(), index, case.rules))
            assert not list(disorder(run.pieces()))
            assert run.session.freeze().lines
            if case.rules.thinking == "prefix_bound":
                assert not list(reasoning_is_valid(run.session.freeze(), index, run.session.commits))


@every_rule
@given(case=cases(), data=st.data())
@quick
def test_what_left_without_protection_is_in_the_record_and_can_be_undone(policy: Policy, case: Case, data: st.DataObject) -> None:
    run = FaithfulRun(case, policy)
    for made in run.commits():
        after = run.session.freeze()
        assert not list(never_larger(made.before, after, made.commit))
        again = [stored(commit) for commit in run.session.commits]
        assert project(run.session.index, run.session.length, again) == after
    assert verify(run.entries) is None
    if len(run.session.commits):
        run.session.commit(undone(run.session, data.draw(st.integers(0, len(run.session.commits) - 1))))
        assert not list(structural(run.session.freeze(), run.session.index, case.rules))
        assert not list(disorder(run.pieces()))
