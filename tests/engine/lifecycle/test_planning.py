"""What becomes of what a model answers, whatever it answers."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Stay
from tenure.engine.lifecycle.planning import Ask, answer_handoff, answer_selfgc, ask_handoff, ask_selfgc
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import o200k
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.view.edit import Insert
from tenure.engine.view.guard import Hold
from tenure.engine.view.laws import never_larger, protection, structural
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, human, reply, result, system

COUNT = o200k()
RULES = Rules(provider="t", dialect="openai-chat")
LONG = "\n".join(f"line {n} of what was printed" for n in range(200))
TABLE = "\n".join(["| name | size |", "|---|---|", *(f"| part {n} | {n} |" for n in range(200))])
BRIEF = (
    "\n\n".join(
        f"## {section.title}\nThe parser of part one keeps comments now; {section.key} of it is told here."
        for section in SECTIONS
    )
    + "\n[end of brief]"
)


class Live(Session):
    """A session that keeps its texts."""

    def __init__(self) -> None:
        self.kept: dict[int, Entry] = {}
        setup = Setup(budget=Budget(ceiling=100_000), rules=RULES)
        super().__init__(
            setup,
            weigh=lambda blocks: tuple(COUNT(block.text) + 4 for block in blocks),
            count=COUNT,
            read=self.kept.__getitem__,
        )

    def say(self, *drafts: Draft) -> "Live":
        for draft in drafts:
            self.kept |= {entry.n: entry for entry in self.append(draft).entries}
        return self


def opened(*drafts: Draft) -> Live:
    session = Live().say(*drafts)
    session.setup = replace(session.setup, calls_seen=(400,) * 200)  # sessions here are long
    return session


def worked(output: str = LONG) -> Live:
    drafts: list[Draft] = [system("Be brief."), human("Mend the parser of part one.")]
    for n in range(12):
        drafts += [reply(f"Step {n}.", call("bash", f"c{n}", command=f"make part-{n}")), result(output, f"c{n}")]
    return opened(
        *drafts, reply("Mended."), human("And part two?"), reply(call("read", "z", path="two.py")), result("short", "z")
    )


def plan(**lists: list[dict[str, str]]) -> str:
    return json.dumps(
        {"above_conversation_summary": "Part one was mended.", "gc_plan": {"fold": [], "mask": [], "prune": []} | lists}
    )


def asked(session: Session) -> Ask:
    found = ask_selfgc(session)
    assert found is not None
    return found


def carried_out(session: Session, proposal: object) -> None:
    """Commits a proposal, and holds it to the laws."""
    assert isinstance(proposal, Propose)
    before, guard = session.freeze(), session.guard()
    session.commit(proposal.commit)
    after = session.freeze()
    assert not [*protection(before, after, session.index, guard, RULES), *never_larger(before, after, proposal.commit)]
    assert not list(structural(after, session.index, RULES))


def test_a_plan_is_carried_out_with_pointers_in_place_of_their_objects_and_never_in_the_humans_words() -> None:
    session = worked()
    answered = answer_selfgc(
        session,
        asked(session),
        plan(
            fold=[{"target": "function:bash:2", "pointer": "how part 2 was made"}],
            prune=[{"target": "bash:3"}],
            mask=[{"target": "bash:4"}],
        ),
    )
    carried_out(session, answered.decision)
    assert {(act.kind, act.object) for act in session.commits[0].actions} == {
        ("fold", "bash:2"),
        ("prune", "bash:3"),
        ("mask", "bash:4"),
    }
    (pointer,) = session.view.inserts
    assert pointer.before_entry == session.index.spans[1].call[0]
    assert session.index.handle("bash:2", session.index.spans[1].call[0]) in pointer.text
    assert "how part 2 was made" in pointer.text
    assert session.view.shows(1, 0)
    assert answered.summary == "Part one was mended."


def test_unknown_pinned_newest_and_doubled_targets_are_refused_with_reasons() -> None:
    session = worked()
    session.hold(Hold(object="bash:5"))
    named = [{"target": name} for name in ("bash:99", "bash:5", "read:1", "assistant:3", "user:2", "bash:6", "bash:6")]
    answered = answer_selfgc(session, asked(session), plan(prune=named))
    assert {each.object for each in answered.refused} >= {"bash:99", "bash:5", "read:1", "user:2"}
    assert all(each.why for each in answered.refused)
    assert isinstance(answered.decision, Propose)
    assert {act.object for act in answered.decision.commit.actions} == {"bash:6"}


def test_the_middle_of_a_table_is_not_masked() -> None:
    session = worked(TABLE)
    answered = answer_selfgc(session, asked(session), plan(mask=[{"target": "bash:2"}]))
    assert isinstance(answered.decision, Stay)
    assert "not repetitive" in answered.refused[0].why


@pytest.mark.parametrize("reply_text", ["", "I cannot do that.", "{", "[" * 10_000, '{"gc_plan": 3}', plan()])
def test_rubbish_changes_nothing(reply_text: str) -> None:
    session = worked()
    assert isinstance(answer_selfgc(session, asked(session), reply_text).decision, Stay)
    assert not session.view.inserts


@given(st.text(max_size=300) | st.sampled_from([plan(fold=[{"target": f"bash:{n}"}]) for n in range(14)]))
@settings(max_examples=60, deadline=None)
def test_any_answer_keeps_the_laws(text: str) -> None:
    session = worked()
    answered = answer_selfgc(session, asked(session), text)
    if isinstance(answered.decision, Propose):
        carried_out(session, answered.decision)


def test_an_answer_that_comes_after_another_commit_is_stale() -> None:
    session = worked()
    early = asked(session)
    carried_out(session, answer_selfgc(session, early, plan(prune=[{"target": f"bash:{n}"} for n in (1, 2, 3)])).decision)
    late = answer_selfgc(session, early, plan(prune=[{"target": "bash:4"}])).decision
    assert isinstance(late, Stay)
    assert "changed since" in late.reason


def test_a_plan_whose_planning_cost_more_than_it_saves_is_not_carried_out() -> None:
    session = worked()
    decision = answer_selfgc(session, asked(session), plan(prune=[{"target": "bash:3"}]), planning_usd=50.0).decision
    assert isinstance(decision, Stay)
    assert decision.price is not None


def test_one_brief_stands_in_the_users_role_and_human_words_stay() -> None:
    session = worked()
    question = ask_handoff(session)
    assert question is not None
    carried_out(session, answer_handoff(session, question, BRIEF).decision)
    (insert,) = session.view.inserts
    assert insert.text.startswith(OPENING)
    assert insert.role == "user"
    assert session.view.shows(0, 0)
    assert session.view.shows(1, 0)
    rows = [line.entry for line in session.freeze().lines if not isinstance(line, Insert)]
    assert rows[:2] == [0, 1]
    assert len(rows) <= 12


def test_a_second_handoff_replaces_the_first_and_carries_its_facts_on() -> None:
    session = worked()
    first = ask_handoff(session)
    assert first is not None
    carried_out(session, answer_handoff(session, first, BRIEF).decision)
    for n in range(20, 28):
        session.say(reply(call("bash", f"c{n}", command=f"make part-{n}")), result(LONG, f"c{n}"))
    second = ask_handoff(session)
    assert second is not None
    assert "part one keeps comments" in second.text
    newer = BRIEF.replace("keeps comments now", "and part twenty are done")
    carried_out(session, answer_handoff(session, second, newer).decision)
    assert len(session.view.inserts) == 1


@pytest.mark.parametrize("text", ["", "   ", "Sure! What would you like to do next?", BRIEF[:200], "## Goal\nx"])
def test_a_failed_or_blank_brief_leaves_everything_as_it_was(text: str) -> None:
    session = worked()
    before = session.freeze()
    question = ask_handoff(session)
    assert question is not None
    decision = answer_handoff(session, question, text).decision
    assert isinstance(decision, Stay)
    assert "no brief" in decision.reason
    assert session.freeze() == before


def test_there_is_nothing_to_hand_off_at_the_start() -> None:
    assert ask_handoff(opened(human("Go."))) is None


def test_middle_out_leaves_the_first_exchange_and_four_replies_and_a_second_one_too() -> None:
    session = worked()
    question = ask_handoff(session, middle_out=True)
    assert question is not None
    first = session.index.steps[1].entry
    assert question.start == first
    carried_out(session, answer_handoff(session, question, BRIEF).decision)
    rows = [line.entry for line in session.freeze().lines if not isinstance(line, Insert)]
    assert rows[:first] == list(range(first))
    assert {step.entry for step in session.index.steps[-4:]} <= set(rows)
    assert session.view.inserts[0].before_entry == question.cut
    for n in range(20, 28):
        session.say(reply(call("bash", f"c{n}", command=f"make part-{n}")), result(LONG, f"c{n}"))
    second = ask_handoff(session, middle_out=True)
    assert second is not None
    carried_out(
        session, answer_handoff(session, second, BRIEF.replace("keeps comments now", "and part twenty are done")).decision
    )
    assert len(session.view.inserts) == 1
    assert [line.entry for line in session.freeze().lines if not isinstance(line, Insert)][:first] == list(range(first))
