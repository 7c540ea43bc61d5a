import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.approval import (
    UNASKED,
    Approval,
    ApprovalAnswer,
    CallEffect,
    CallVerdict,
    Grants,
    Mode,
    declined,
    refused,
    verdict,
)


def approval(act: CallEffect, exact: str = "bash make", broad: tuple[str, ...] = ("make",)) -> Approval:
    return Approval(tool="bash", act=act, summary="make", reason="it may change something", exact=exact, broad=broad)


def test_what_changes_nothing_runs_in_every_mode() -> None:
    assert {verdict(None, mode, Grants()) for mode in Mode} == {CallVerdict.RUN}


@pytest.mark.parametrize(
    ("mode", "runs"),
    [
        (Mode.READ_ONLY, set()),
        (Mode.ASK, set()),
        (Mode.EDITS, {CallEffect.EDIT}),
        (Mode.ALL, {CallEffect.EDIT, CallEffect.COMMAND, CallEffect.SERVER}),
    ],
)
def test_each_mode_lets_through_what_its_row_says_and_asks_or_refuses_the_rest(mode: Mode, runs: set[CallEffect]) -> None:
    verdicts = {act: verdict(approval(act), mode, Grants()) for act in CallEffect}
    assert {act for act, said in verdicts.items() if said is CallVerdict.RUN} == runs
    assert {said for act, said in verdicts.items() if act not in runs} == {
        CallVerdict.REFUSE if mode is Mode.READ_ONLY else CallVerdict.ASK
    }


def test_what_cannot_be_undone_or_lies_outside_is_unasked_in_no_mode() -> None:
    assert not any({CallEffect.OUTSIDE, CallEffect.DESTROY} & acts for acts in UNASKED.values())


def test_an_answer_holds_for_what_it_was_given_for() -> None:
    one, other = approval(CallEffect.COMMAND), approval(CallEffect.COMMAND, exact="bash make all")
    strange = approval(CallEffect.COMMAND, exact="bash npm test", broad=("npm test",))
    once = Grants().after(one, ApprovalAnswer.ONCE)
    assert verdict(one, Mode.ASK, once) is CallVerdict.ASK
    exact = Grants().after(one, ApprovalAnswer.EXACT)
    assert [verdict(each, Mode.ASK, exact) for each in (one, other, strange)] == [
        CallVerdict.RUN,
        CallVerdict.ASK,
        CallVerdict.ASK,
    ]
    broad = Grants().after(one, ApprovalAnswer.BROAD)
    assert [verdict(each, Mode.ASK, broad) for each in (one, other, strange)] == [
        CallVerdict.RUN,
        CallVerdict.RUN,
        CallVerdict.ASK,
    ]


def test_several_commands_run_when_each_of_their_likes_was_granted() -> None:
    both = approval(CallEffect.COMMAND, exact="bash make && npm test", broad=("make", "npm test"))
    grants = Grants().after(approval(CallEffect.COMMAND), ApprovalAnswer.BROAD)
    assert verdict(both, Mode.ASK, grants) is CallVerdict.ASK
    assert verdict(both, Mode.ASK, grants.after(both, ApprovalAnswer.BROAD)) is CallVerdict.RUN


def test_what_may_not_be_remembered_asks_every_time() -> None:
    each_time = approval(CallEffect.DESTROY, exact="", broad=())
    for answer in ApprovalAnswer:
        assert verdict(each_time, Mode.ALL, Grants().after(each_time, answer)) is CallVerdict.ASK


def test_a_grant_helps_nobody_in_read_only_mode() -> None:
    grants = Grants().after(approval(CallEffect.EDIT), ApprovalAnswer.BROAD)
    assert verdict(approval(CallEffect.EDIT), Mode.READ_ONLY, grants) is CallVerdict.REFUSE


@given(
    st.lists(st.tuples(st.sampled_from(CallEffect), st.sampled_from(["", "a", "b"]), st.sampled_from(ApprovalAnswer)), max_size=8)
)
def test_no_history_of_answers_lets_through_what_was_never_agreed_to(
    history: list[tuple[CallEffect, str, ApprovalAnswer]],
) -> None:
    grants = Grants()
    for act, name, answer in history:
        grants = grants.after(approval(act, exact=name, broad=(f"broad {name}",)), answer)
    assert verdict(approval(CallEffect.COMMAND, exact="bash new", broad=("new",)), Mode.ASK, grants) is CallVerdict.ASK
    assert verdict(approval(CallEffect.DESTROY, exact="", broad=()), Mode.ALL, grants) is CallVerdict.ASK


def test_the_model_is_told_what_was_not_done_and_why() -> None:
    one = approval(CallEffect.COMMAND)
    assert refused(one).startswith("Not done: make: it may change something, and this session is read-only.")
    assert declined(one) == "Not done: make: the user declined. Do not try it another way; go on without it, or ask."
    assert declined(one, " use npm ") == "Not done: make: the user declined. They say: use npm"
