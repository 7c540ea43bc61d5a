import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.approval import UNASKED, Act, Answer, Approval, Grants, Mode, Verdict, declined, refused, verdict


def approval(act: Act, exact: str = "bash make", broad: tuple[str, ...] = ("make",)) -> Approval:
    return Approval(tool="bash", act=act, summary="make", reason="it may change something", exact=exact, broad=broad)


def test_what_changes_nothing_runs_in_every_mode() -> None:
    assert {verdict(None, mode, Grants()) for mode in Mode} == {Verdict.RUN}


@pytest.mark.parametrize(
    ("mode", "runs"),
    [
        (Mode.READ_ONLY, set()),
        (Mode.ASK, set()),
        (Mode.EDITS, {Act.EDIT}),
        (Mode.ALL, {Act.EDIT, Act.COMMAND, Act.SERVER}),
    ],
)
def test_each_mode_lets_through_what_its_row_says_and_asks_or_refuses_the_rest(mode: Mode, runs: set[Act]) -> None:
    verdicts = {act: verdict(approval(act), mode, Grants()) for act in Act}
    assert {act for act, said in verdicts.items() if said is Verdict.RUN} == runs
    assert {said for act, said in verdicts.items() if act not in runs} == {
        Verdict.REFUSE if mode is Mode.READ_ONLY else Verdict.ASK
    }


def test_what_cannot_be_undone_or_lies_outside_is_unasked_in_no_mode() -> None:
    assert not any({Act.OUTSIDE, Act.DESTROY} & acts for acts in UNASKED.values())


def test_an_answer_holds_for_what_it_was_given_for() -> None:
    one, other = approval(Act.COMMAND), approval(Act.COMMAND, exact="bash make all")
    strange = approval(Act.COMMAND, exact="bash npm test", broad=("npm test",))
    once = Grants().after(one, Answer.ONCE)
    assert verdict(one, Mode.ASK, once) is Verdict.ASK
    exact = Grants().after(one, Answer.EXACT)
    assert [verdict(each, Mode.ASK, exact) for each in (one, other, strange)] == [Verdict.RUN, Verdict.ASK, Verdict.ASK]
    broad = Grants().after(one, Answer.BROAD)
    assert [verdict(each, Mode.ASK, broad) for each in (one, other, strange)] == [Verdict.RUN, Verdict.RUN, Verdict.ASK]


def test_several_commands_run_when_each_of_their_likes_was_granted() -> None:
    both = approval(Act.COMMAND, exact="bash make && npm test", broad=("make", "npm test"))
    grants = Grants().after(approval(Act.COMMAND), Answer.BROAD)
    assert verdict(both, Mode.ASK, grants) is Verdict.ASK
    assert verdict(both, Mode.ASK, grants.after(both, Answer.BROAD)) is Verdict.RUN


def test_what_may_not_be_remembered_asks_every_time() -> None:
    each_time = approval(Act.DESTROY, exact="", broad=())
    for answer in Answer:
        assert verdict(each_time, Mode.ALL, Grants().after(each_time, answer)) is Verdict.ASK


def test_a_grant_helps_nobody_in_read_only_mode() -> None:
    grants = Grants().after(approval(Act.EDIT), Answer.BROAD)
    assert verdict(approval(Act.EDIT), Mode.READ_ONLY, grants) is Verdict.REFUSE


@given(st.lists(st.tuples(st.sampled_from(Act), st.sampled_from(["", "a", "b"]), st.sampled_from(Answer)), max_size=8))
def test_no_history_of_answers_lets_through_what_was_never_agreed_to(history: list[tuple[Act, str, Answer]]) -> None:
    grants = Grants()
    for act, name, answer in history:
        grants = grants.after(approval(act, exact=name, broad=(f"broad {name}",)), answer)
    assert verdict(approval(Act.COMMAND, exact="bash new", broad=("new",)), Mode.ASK, grants) is Verdict.ASK
    assert verdict(approval(Act.DESTROY, exact="", broad=()), Mode.ALL, grants) is Verdict.ASK


def test_the_model_is_told_what_was_not_done_and_why() -> None:
    one = approval(Act.COMMAND)
    assert refused(one).startswith("Not done: make: it may change something, and this session is read-only.")
    assert declined(one) == "Not done: make: the user declined. Do not try it another way; go on without it, or ask."
    assert declined(one, " use npm ") == "Not done: make: the user declined. They say: use npm"
