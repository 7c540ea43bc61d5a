"""A fork of any session, at any place, opens with a valid view."""

import pytest
from driving import NAMED, Case, Run, cases, proposal_of, quick
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.lifecycle.undo import restored, undone
from tenure.engine.policies.policy import Policy
from tenure.engine.record.index import Index
from tenure.engine.view.inherit import Shared, inherited
from tenure.engine.view.laws import structural
from tenure.engine.view.project import View, project
from tenure.errors import InputError


def driven(run: Run, data: st.DataObject) -> None:
    """Play a case, with an undo or a restore now and then."""
    session = run.session
    for decision in run.decisions():
        if (proposal := proposal_of(decision)) is not None:
            session.commit(proposal.commit)
        if len(session.commits) and data.draw(st.sampled_from([True, False, False])):
            session.commit(undone(session, data.draw(st.integers(0, len(session.commits) - 1))))
        if session.index.spans and data.draw(st.sampled_from([True, False, False])):
            try:
                commit = restored(session, data.draw(st.sampled_from(session.index.spans)).object)
            except InputError:  # an object whose name a tool has taken
                continue
            if commit is not None:
                session.commit(commit)


@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
@given(case=cases(longest=16), data=st.data())
@quick
def test_a_fork_of_any_session_at_any_place_opens_with_a_valid_view(policy: Policy, case: Case, data: st.DataObject) -> None:
    run = Run(case, policy)
    driven(run, data)
    commits = tuple(run.session.commits)
    index = Index()
    for at in range(run.session.length + 1):
        shared = Shared(index=index, rules=case.rules, limit=case.budget.limit)
        taken = inherited(commits, at, lambda shared=shared: shared)
        view: View = project(index, at, taken)
        assert [each.n for each in taken] == list(range(len(taken)))
        assert list(structural(view, index, case.rules)) == []
        assert inherited(taken, at, lambda shared=shared: shared) == taken
        if at < run.session.length:
            index.grow(run.entries[at])
