"""Whatever the policy, the agent's notes are readable in every view."""

from collections.abc import Iterator
from typing import Any

import pytest
from driving import EAGER, NAMED, RULES, budgets, quick
from hypothesis import given
from hypothesis import strategies as st
from provider_order import disorder

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Unmet
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.lifecycle.undo import undone
from tenure.engine.planners.handoff.request import cut
from tenure.engine.policies import PEERS
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, Entry, Role, ToolCall
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Insert
from tenure.engine.view.laws import never_larger, protection, structural
from tenure.engine.view.project import View, project
from tenure.engine.view.request import pieces
from tenure.engine.view.rules import Rules
from tenure.testing.builders import by_words, call, reply, results, returned, weigh_words
from tenure.testing.transcripts import transcripts
from view_laws import notes_readable

CALLS = st.sampled_from(
    [{"add": "one more fact"}, {"add": "x"}, {"replace": "all of it anew"}, {"replace": ""}, {}, {"bad": "x"}]
)
NOTED = st.lists(CALLS, min_size=0, max_size=2)


@st.composite
def noting(draw: st.DrawFn) -> tuple[tuple[Draft, tuple[dict[str, str], ...], bool], ...]:
    """A conversation with, after each message, the notes that are taken there, and whether they are answered."""
    return tuple((draft, tuple(draw(NOTED)), draw(st.integers(0, 5)) > 0) for draft in draw(transcripts(longest=16)))


class Noting:
    """A session whose agent takes notes."""

    def __init__(self, policy: Policy, budget: Budget, rules: Rules, *, faithful: bool = False) -> None:
        self.entries: list[Entry] = []
        setup = Setup(budget=budget, rules=rules, policy=policy, faithful=faithful)
        self.session = Session(setup, weigh=weigh_words, count=by_words, read=lambda n: self.entries[n])

    def take(self, draft: Draft) -> None:
        self.entries += self.session.append(draft).entries

    def follow(self, script: tuple[tuple[Draft, tuple[dict[str, str], ...], bool], ...]) -> Iterator[View]:
        """Stops after each commit, with the view before it."""
        for number, (draft, asked, is_answered) in enumerate(script):
            self.take(draft)
            if asked and draft.role is not Role.ASSISTANT:
                yield from self.decide()
                made = [call("notes", f"note {number} {place}", **arguments) for place, arguments in enumerate(asked)]
                self.take(reply(*made))
                if is_answered:
                    self.take(self.answers(made))
            yield from self.decide()

    def answers(self, made: list[ToolCall]) -> Draft:
        index = self.session.index
        told = [index.notes.answer(index.block((len(index) - 1, place)).span) for place in range(len(made))]
        return results(*(returned(each.text, call.call_id, error=each.error) for each, call in zip(told, made, strict=True)))

    def decide(self) -> Iterator[View]:
        decision = self.session.decide()
        proposal = decision.proposal if isinstance(decision, Unmet) else decision
        if isinstance(proposal, Propose):
            before, guard = self.session.freeze(), self.session.guard()
            self.session.commit(proposal.commit)
            self.check(before, guard)
            yield before

    def check(self, before: View, guard: Any) -> None:
        session, after = self.session, self.session.freeze()
        assert not list(notes_readable(after, session.index))
        assert not list(structural(after, session.index, session.setup.rules))
        assert not list(protection(before, after, session.index, guard, session.setup.rules))
        assert not list(never_larger(before, after, session.commits[-1]))
        assert not list(disorder(pieces(after, session.index, self.entries.__getitem__)))


@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
@given(script=noting(), budget=budgets(), rules=st.sampled_from(RULES))
@quick
def test_notes_are_readable_after_every_commit_of_every_policy(policy: Policy, script: Any, budget: Budget, rules: Rules) -> None:
    run = Noting(policy, budget, rules)
    for _ in run.follow(script):
        pass
    assert not list(notes_readable(run.session.freeze(), run.session.index))


@pytest.mark.parametrize("policy", PEERS.values(), ids=PEERS)
@given(script=noting(), budget=budgets(), rules=st.sampled_from(RULES))
@quick
def test_notes_are_readable_though_a_published_rule_waives_all_other_protection(
    policy: Policy, script: Any, budget: Budget, rules: Rules
) -> None:
    run = Noting(policy, budget, rules, faithful=True)
    for _ in run.follow(script):
        pass


@given(script=noting(), rules=st.sampled_from(RULES), data=st.data())
@quick
def test_notes_are_readable_after_a_plan_that_takes_everything_and_after_undoing(
    script: Any, rules: Rules, data: st.DataObject
) -> None:
    """As a brief does at its cut, and a planner's worst."""
    run = Noting(EAGER["chained"], Budget(ceiling=100), rules)
    session = run.session
    for _ in run.follow(script):
        place = cut(session.index, keep=0)
        if place is None or not data.draw(st.booleans()):
            continue
        before, guard = session.freeze(), session.guard()
        places = tuple((row.entry, block) for row in session.view.rows() if row.entry < place for block in row.blocks)
        taking = Take(how="brief", object="entry:1", places=places, pointer="brief", before_entry=place, inserted=True)
        decision = session.plan("handoff", (taking,), reason="all of it", forced=True)
        if isinstance(decision, Propose):
            session.commit(decision.commit)
            run.check(before, guard)
        session.commit(undone(session, data.draw(st.integers(0, len(session.commits) - 1))))
        assert not list(notes_readable(session.freeze(), session.index))
    keys = [edit.key for commit in session.commits for edit in commit.edits if isinstance(edit, Insert)]
    assert len(keys) == len(set(keys))
    assert project(session.index, session.length, session.commits) == session.freeze()


@given(script=noting())
@quick
def test_a_session_opened_again_has_the_same_notes(script: Any) -> None:
    run = Noting(NAMED["cwl"], Budget(ceiling=100), RULES[0])
    for _ in run.follow(script):
        pass
    twin = Noting(NAMED["cwl"], Budget(ceiling=100), RULES[0]).session
    for entry in run.entries:
        twin.follow(entry)
    ours, theirs = run.session.index.notes, twin.index.notes
    assert (ours.text, ours.span, ours.spans) == (theirs.text, theirs.span, theirs.spans)
