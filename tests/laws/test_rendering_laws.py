"""What is kept between two requests is what would be made anew: byte for byte, under every policy, in every dialect."""

from functools import partial

import pytest
from driving import NAMED, Case, Run, cases, proposal_of, quick
from hypothesis import given
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.rendering import Rendering, light
from tenure.apis.rules import rules_for
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft
from tenure.engine.view.request import Messages


def spoken(case: Case, dialect: str) -> tuple[Draft, ...]:
    """The record as a provider of this API would have it; every fourth message stays one of no provider's."""
    whole = Run(Case(case.drafts, case.budget, case.rules, case.extra, case.ratio), NAMED["cwl"])
    for _ in whole.replies():
        pass
    parsed = APIS[dialect].parse(APIS[dialect].render(whole.pieces()))
    return tuple(replace(draft, payload=b"", dialect="tenure") if n % 4 == 3 else draft for n, draft in enumerate(parsed))


@pytest.mark.parametrize("policy", [NAMED["cwl"], NAMED["tiered-eager"], NAMED["graph"]], ids=["cwl", "tiered-eager", "graph"])
@pytest.mark.parametrize("dialect", sorted(APIS))
@given(case=cases(longest=16))
@quick
def test_messages_that_are_kept_are_those_that_the_dialect_would_render(dialect: str, policy: Policy, case: Case) -> None:
    rules = rules_for(APIS[dialect].server().provider, "", dialect)
    run = Run(Case(spoken(case, dialect), case.budget, rules, case.extra, case.ratio), policy)
    rendering, messages = Rendering(APIS[dialect]), Messages(run.session.index, lambda n: run.entries[n])
    for _ in run.replies():
        if proposal := proposal_of(run.session.decide(extra=case.extra)):
            run.session.commit(proposal.commit)
        for _ in range(2):  # the second time nothing is new
            shown = messages.of(run.session.freeze())
            assert rendering.of(shown) == APIS[dialect].render(shown)


@pytest.mark.parametrize("dialect", sorted(APIS))
@given(case=cases(longest=16))
@quick
def test_messages_that_hold_only_what_is_shown_go_out_as_those_that_hold_all(dialect: str, case: Case) -> None:
    rules = rules_for(APIS[dialect].server().provider, "", dialect)
    run = Run(Case(spoken(case, dialect), case.budget, rules, case.extra, case.ratio), NAMED["tiered-eager"])
    whole = Messages(run.session.index, lambda n: run.entries[n])
    lighter = Messages(run.session.index, lambda n: run.entries[n], partial(light, api=APIS[dialect], large=0))
    for _ in run.replies():
        if proposal := proposal_of(run.session.decide(extra=case.extra)):
            run.session.commit(proposal.commit)
        view = run.session.freeze()
        assert APIS[dialect].render(lighter.of(view)) == APIS[dialect].render(whole.of(view))
