"""Every law over every policy, every rule about reasoning, and random conversations."""

import pytest
from driving import NAMED, Case, Run, cases, proposal_of, quick, stored
from hypothesis import given
from hypothesis import strategies as st
from provider_order import disorder

from tenure.engine.lifecycle.decision import Propose, Stay, Unmet
from tenure.engine.lifecycle.session import Session
from tenure.engine.lifecycle.undo import undone
from tenure.engine.policies.policy import Policy
from tenure.engine.record.chain import verify
from tenure.engine.record.entry import Origin
from tenure.engine.view.edit import Insert
from tenure.engine.view.guard import Hold
from tenure.engine.view.laws import never_larger, protection, reasoning_is_valid, structural
from tenure.engine.view.project import View, difference, project
from tenure.testing.builders import by_words, weigh_words
from view_laws import human_text

every_policy = pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)


@every_policy
@given(case=cases())
@quick
def test_a_view_is_well_formed_after_every_commit(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for _ in run.commits():
        index = run.session.index
        assert not list(structural(run.session.freeze(), index, case.rules))


@every_policy
@given(case=cases())
@quick
def test_a_view_stays_well_formed_while_messages_come(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        index = run.session.index
        assert not list(structural(run.session.freeze(), index, case.rules))
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)


@every_policy
@given(case=cases())
@quick
def test_what_is_protected_is_shown_as_before(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for made in run.commits():
        after = run.session.freeze()
        assert not list(protection(made.before, after, run.session.index, made.guard, case.rules))


@every_policy
@given(case=cases(), data=st.data())
@quick
def test_what_is_held_is_shown_as_before(policy: Policy, case: Case, data: st.DataObject) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        session = run.session
        if proposal := proposal_of(decision):
            made_before, guard = session.freeze(), session.guard()
            session.commit(proposal.commit)
            assert not list(protection(made_before, session.freeze(), session.index, guard, case.rules))
        objects = [span.object for span in session.index.spans] + [each.object for each in session.index.episodes]
        objects += [f"user:{turn.number}" for turn in session.index.turns]
        if objects and data.draw(st.booleans()):
            session.hold(Hold(object=data.draw(st.sampled_from(objects))))


@every_policy
@given(case=cases())
@quick
def test_a_commit_never_makes_a_view_larger(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for made in run.commits():
        after = run.session.freeze()
        assert not list(never_larger(made.before, after, made.commit))
        assert (made.commit.tokens_before, made.commit.tokens_after) == (made.before.tokens, after.tokens)


@every_policy
@given(case=cases())
@quick
def test_signed_reasoning_is_shown_only_behind_the_prefix_it_was_made_with(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for _ in run.commits():
        if case.rules.thinking == "prefix_bound":
            assert not list(reasoning_is_valid(run.session.freeze(), run.session.index, run.session.commits))


@every_policy
@given(case=cases())
@quick
def test_human_text_is_always_shown_whole(policy: Policy, case: Case) -> None:
    run = Run(case, policy).finish()
    said = [
        (entry.n, number) for entry in run.entries for number, block in enumerate(entry.blocks) if block.origin is Origin.HUMAN
    ]
    assert human_text(run.session.freeze(), run.session.index) == said


@every_policy
@given(case=cases())
@quick
def test_everything_that_left_is_still_in_the_record(policy: Policy, case: Case) -> None:
    assert verify(Run(case, policy).finish().entries) is None


@every_policy
@given(case=cases())
@quick
def test_the_same_record_and_commits_give_the_same_view(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for _ in run.commits():
        session = run.session
        again = [stored(commit) for commit in session.commits]
        assert project(session.index, session.length, again) == session.freeze()


@every_policy
@given(case=cases())
@quick
def test_a_session_opened_again_shows_the_same(policy: Policy, case: Case) -> None:
    run = Run(case, policy).finish()
    twin = Session(case.setup(policy), weigh=weigh_words, count=by_words)
    waiting = [stored(commit) for commit in run.session.commits]
    for entry in run.entries:
        while waiting and waiting[0].entries <= entry.n:
            twin.commit(waiting.pop(0))
        twin.follow(entry)
    for commit in waiting:
        twin.commit(commit)
    assert twin.freeze() == run.session.freeze()
    twin.ratio = run.session.ratio
    assert twin.index.answers == run.session.index.answers


@every_policy
@given(case=cases())
@quick
def test_a_request_is_within_its_limit_or_says_that_it_cannot_be(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)
        budget = case.budget
        forced = min(limit for limit in (budget.ceiling, budget.window) if limit is not None)
        match decision:
            case Unmet(limit=limit, tokens=tokens):
                assert tokens == run.tokens > limit
            case Propose() | Stay():
                assert run.tokens <= forced


@every_policy
@given(case=cases())
@quick
def test_what_holds_an_unmet_limit_adds_up(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        if isinstance(decision, Unmet):
            assert sum(decision.held_by.values()) == decision.tokens
            assert all(tokens >= 0 for tokens in decision.held_by.values())
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)


@every_policy
@given(case=cases())
@quick
def test_a_decision_is_the_same_until_it_is_carried_out(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        proposal = proposal_of(decision)
        if proposal is not None:
            again = proposal_of(run.session.decide(extra=case.extra))
            assert again is not None
            assert again.commit == proposal.commit
            run.session.commit(proposal.commit)


@every_policy
@given(case=cases())
@quick
def test_once_carried_out_a_decision_is_not_made_again(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for _ in run.commits():
        assert proposal_of(run.session.decide(extra=case.extra)) is None


@every_policy
@given(case=cases())
@quick
def test_absent_a_commit_a_request_starts_with_the_one_before(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    sent: tuple[object, ...] = ()
    commits = 0
    for decision in run.decisions():
        now = run.pieces()
        if len(run.session.commits) == commits:
            assert now[: len(sent)] == sent
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)
            now = run.pieces()
        sent, commits = now, len(run.session.commits)


@every_policy
@given(case=cases())
@quick
def test_a_request_is_in_an_order_that_providers_take(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for decision in run.decisions():
        assert not list(disorder(run.pieces()))
        if proposal := proposal_of(decision):
            run.session.commit(proposal.commit)
            assert not list(disorder(run.pieces()))


@every_policy
@given(case=cases(), data=st.data())
@quick
def test_undoing_a_commit_brings_back_what_it_took(policy: Policy, case: Case, data: st.DataObject) -> None:
    run = Run(case, policy).finish()
    session = run.session
    if not session.commits:
        return
    number = data.draw(st.integers(0, len(session.commits) - 1))
    before = session.freeze()
    session.commit(undone(session, number))
    index = session.index
    assert not list(structural(session.freeze(), index, case.rules))
    assert not list(disorder(run.pieces()))
    if case.rules.thinking == "prefix_bound":
        assert not list(reasoning_is_valid(session.freeze(), index, session.commits))
    changes = difference(before, session.freeze(), index)
    assert {(e.entry, e.block) for e in session.commits[-1].edits if hasattr(e, "entry")} >= {*changes.gone, *changes.come}


@every_policy
@given(case=cases(), data=st.data())
@quick
def test_undoing_the_newest_commit_shows_what_was_shown_before_it(policy: Policy, case: Case, data: st.DataObject) -> None:
    if case.rules.thinking == "prefix_bound":
        return  # signed reasoning that left is invalid for good
    run = Run(case, policy)
    for made in run.commits():
        session = run.session
        session.commit(undone(session, len(session.commits) - 1))
        assert shown(session.freeze()) == shown(made.before)
        session.commit(undone(session, len(session.commits) - 1))
        assert session.freeze().tokens == made.commit.tokens_after
        return


def shown(view: View) -> list[object]:
    """What a view shows, apart from the keys of inserted entries, which are new after an undo."""
    return [(line.before_entry, line.text) if isinstance(line, Insert) else line for line in view.lines]


@every_policy
@given(case=cases())
@quick
def test_differences_between_two_views_are_what_their_commit_did(policy: Policy, case: Case) -> None:
    run = Run(case, policy)
    for made in run.commits():
        after = run.session.freeze()
        there = difference(made.before, after, run.session.index)
        back = difference(after, made.before, run.session.index)
        assert (there.gone, there.come, there.changed) == (back.come, back.gone, back.changed)
        assert (there.inserted, there.removed) == (back.removed, back.inserted)
        assert difference(after, after, run.session.index) == difference(made.before, made.before, run.session.index)
