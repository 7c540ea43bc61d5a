from collections.abc import Iterator

import pytest
from msgspec import structs

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.decision import Propose, Unmet
from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.policies import policy_named
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text, ToolCall
from tenure.engine.view.edit import Commit, Insert
from tenure.engine.view.project import View
from tenure.engine.view.rules import Rules
from tenure.testing.builders import (
    by_words,
    call,
    end_act,
    end_expl,
    human,
    reply,
    results,
    returned,
    session,
    start_act,
    start_expl,
    thinking,
    weigh_words,
)
from view_laws import human_text

RULES = Rules(provider="t", dialect="openai-chat")
WIDE = Setup(budget=Budget(window=10**9), rules=RULES, policy=Cwl.paper())
LONG = " ".join(["line"] * 50)


def expl(name: str, description: str = "found it") -> Iterator[Draft]:
    """An expl with blocks of each level."""
    yield reply(start_expl(name))
    yield results(returned("started"))
    yield reply(thinking("where"), call("grep", "g", pattern=name), call("read", "r", path=f"{name}.py"), "And?")
    yield results(returned(LONG, "g"), returned(LONG, "r"))
    yield reply(end_expl(description))
    yield results(returned("ended"))


def act(name: str, *dependencies: str) -> Iterator[Draft]:
    yield reply(start_act(name, *dependencies))
    yield results(returned("started"))
    yield reply(thinking("how"), call("edit", "e", path=f"{name}.py"), call("bash", "b", command="pytest"))
    yield results(returned(LONG, "e"), returned(LONG, "b"))
    yield reply(end_act())
    yield results(returned("ended"))


def steps(count: int) -> Iterator[Draft]:
    for number in range(count):
        yield reply(call("read", path=f"{number}.py"))
        yield results(returned(LONG))


def at_rest(*parts: Iterator[Draft], setup: Setup = WIDE) -> Session:
    """A session of these parts in which nothing is tail, for a policy that keeps no exchanges."""
    return session(setup, human("do it"), *(draft for part in parts for draft in part), reply("done"), human("go on"))


def order(rehearsal: Rehearsal) -> list[str]:
    """The episodes in the order in which they were first touched."""
    return list(dict.fromkeys(act.object for act in rehearsal.actions))


def everything(opened: Session, policy: Cwl) -> Rehearsal:
    return opened.rehearse(policy, 0)


PAPER, OURS = Cwl.paper(), Cwl(conduct=Cwl.paper().conduct)


def test_acts_leave_before_expls_and_expls_only_after_all_acts_that_depend_on_them() -> None:
    opened = at_rest(expl("a"), expl("b"), act("c", "b"), act("d", "a"))
    assert order(everything(opened, PAPER)) == ["episode:c", "episode:d", "episode:a", "episode:b", "step:13"]


def test_an_expl_of_which_an_act_is_still_open_stays() -> None:
    opened = at_rest(expl("a"), expl("b"), iter([*act("c", "a")][:-2]))
    assert order(everything(opened, PAPER)) == ["episode:b"]


def part(name: str, type_: str, *dependencies: str) -> ToolCall:
    return call("task", name, task="do it", name=name, type=type_, dependencies=list(dependencies))


def test_parts_of_sub_agents_leave_as_episodes_do_and_one_that_looked_leaves_its_first_paragraph() -> None:
    looked = [
        reply(part("p", "expl"), part("q", "expl")),
        results(returned(f"It is in a.py.\n\n{LONG}", "p"), returned(LONG, "q")),
    ]
    changed = [reply(part("r", "act", "q")), results(returned(LONG, "r"))]
    opened = at_rest(iter([*looked, *changed]))
    rehearsal = everything(opened, PAPER)
    assert order(rehearsal)[:3] == ["episode:r", "episode:p", "episode:q"]
    opened.commit(propose(opened, rehearsal))
    inserts = [insert.text for insert in opened.view.inserts]
    assert any("It is in a.py." in text for text in inserts)


def test_an_open_act_keeps_what_was_looked_up_for_it() -> None:
    looked = [reply(part("p", "expl")), results(returned(LONG, "p"))]
    opened = at_rest(expl("a"), iter([*act("c", "a")][:2]), iter(looked))
    assert order(everything(opened, PAPER)) == []
    (mine,) = [each for each in opened.index.episodes if each.name == "c"]
    assert [opened.index.episodes[each].name for each in mine.dependencies] == ["a", "p"]


def test_an_evicted_expl_may_still_be_depended_on() -> None:
    opened = at_rest(expl("a"))
    rehearsal = everything(opened, PAPER)
    opened.commit(propose(opened, rehearsal))
    for draft in [*act("c", "a"), reply("done"), human("go on")]:
        opened.append(draft)
    answers = [answer.text for answer in opened.index.answers.values()]
    assert "started act 'c', building on a" in answers
    assert "episode:c" in order(everything(opened, PAPER))


def propose(opened: Session, rehearsal: Rehearsal) -> Commit:
    return Commit(n=len(opened.commits), entries=opened.length, policy="t", moment="manual", reason="t", edits=rehearsal.edits)


def test_levels_go_from_least_to_most_destructive_and_acts_have_no_reasoning_level() -> None:
    opened = at_rest(expl("a"), act("c", "a"))
    assert [(act.object, act.level) for act in everything(opened, PAPER).actions][:6] == [
        ("episode:c", "intermediate"),
        ("episode:c", "episode"),
        ("episode:a", "reasoning"),
        ("episode:a", "bulk"),
        ("episode:a", "intermediate"),
        ("episode:a", "episode"),
    ]


def test_what_a_tool_said_without_a_call_goes_with_reads_and_commands() -> None:
    """In logs of agents that call tools by words, an expl that open work builds on held all of its output."""
    words = Draft(role=Role.USER, blocks=(Text(text=LONG, origin=Origin.TOOL),))
    looked = iter([reply(start_expl("a")), results(returned("started")), reply("I run it."), words, reply(end_expl("found"))])
    opened = at_rest(looked, iter([results(returned("ended")), *[*act("c", "a")][:2]]))
    actions = [(act.object, act.level) for act in opened.rehearse(Cwl(), 0, limit=0).actions]
    assert ("episode:a", "intermediate") in actions


def test_the_budget_is_checked_again_after_every_level() -> None:
    opened = at_rest(expl("a"))
    whole = opened.view.tokens
    assert [act.level for act in opened.rehearse(PAPER, whole - 1).actions] == ["reasoning"]
    assert [act.level for act in opened.rehearse(PAPER, whole - 20).actions] == ["reasoning", "bulk"]
    assert not opened.rehearse(PAPER, whole).actions


def test_the_open_episode_and_by_the_papers_rule_what_precedes_the_first_mark_are_untouchable() -> None:
    opened = at_rest(steps(2), iter([*expl("a")][:4]))
    assert not everything(opened, PAPER).actions
    ours = Cwl(conduct=structs.replace(PAPER.conduct, before_marks=False))
    opened = at_rest(steps(2), iter([*expl("a")][:4]), setup=structs.replace(WIDE, policy=ours))
    assert order(everything(opened, ours))[:2] == ["step:1", "step:2"]


def test_by_the_papers_rule_what_stands_before_the_first_mark_in_its_message_stays() -> None:
    started = reply(thinking("where"), "I look.", call("ls", "l"), start_expl("a", "s"), call("grep", "g"))
    opened = at_rest(
        iter([started, results(returned(LONG, "l"), returned("started", "s"), returned(LONG, "g"))]), iter([*expl("a")][2:])
    )
    opened.commit(propose(opened, everything(opened, PAPER)))
    assert [row.blocks for row in opened.view.rows() if row.entry in (1, 2)] == [(0, 1, 2), (0,)]


@pytest.mark.parametrize("name", ["cwl", "graph", "tiered+cwl"])
def test_the_first_mark_locks_nothing_under_our_policies(name: str) -> None:
    """Everything before it used to stay for good: with a late first mark no limit could be kept."""
    setup = Setup(budget=Budget(ceiling=3_000), rules=RULES, policy=policy_named(name))
    kept: list[Entry] = []
    opened = Session(setup, weigh=weigh_words, count=by_words, read=kept.__getitem__)
    for draft in [human("do it"), *steps(47), *expl("a"), *act("b", "a"), *steps(60)]:
        kept += opened.append(draft).entries
        decision = opened.decide()
        assert not isinstance(decision, Unmet), decision.held_by
        if isinstance(decision, Propose):
            opened.commit(decision.commit)


def test_the_description_is_kept_after_full_removal() -> None:
    opened = at_rest(expl("a", "auth lives in auth.py"))
    inserted = [edit for edit in everything(opened, PAPER).edits if isinstance(edit, Insert)]
    assert [edit.text for edit in inserted] == [f'[evicted: {opened.index.handle("episode:a", 1)}] "auth lives in auth.py"']


def test_unannotated_steps_leave_only_when_no_act_is_left() -> None:
    opened = at_rest(expl("a"), steps(2), act("c", "a"))
    assert order(everything(opened, PAPER)) == ["episode:c", "episode:a", "step:4", "step:5", "step:9"]


def test_an_expl_that_no_act_has_used_goes_last() -> None:
    opened = at_rest(expl("unused"), expl("used"), act("c", "used"), steps(1))
    assert order(everything(opened, PAPER))[:3] == ["episode:c", "episode:unused", "episode:used"]
    assert order(everything(opened, OURS)) == ["episode:c", "episode:used", "step:10", "step:11", "episode:unused"]


def test_a_batch_goes_down_to_the_floor() -> None:
    setup = Setup(budget=Budget(ceiling=1_000, floor=500), rules=RULES)
    opened = session(setup, human("do it"), *steps(17))
    decision = opened.decide()
    assert isinstance(decision, Propose)
    assert 300 < decision.commit.tokens_after <= 500
    paper = session(Setup(budget=setup.budget, rules=RULES, policy=PAPER), human("do it"), *steps(17))
    decision = paper.decide()
    assert isinstance(decision, Propose)
    assert 900 < decision.commit.tokens_after <= 1_000


def run_tasks(count: int, policy: Cwl, *, words: str) -> list[int]:
    """Tokens of the view apart from human text after each task."""
    opened = session(Setup(budget=Budget(ceiling=3_000, window=10**9), rules=RULES, policy=policy))
    floors: list[int] = []
    for number in range(count):
        task = [
            human(words),
            *expl(f"look-{number}", f"the cause of {number} is in file_{number}.py"),
            *act(f"fix-{number}", f"look-{number}"),
        ]
        for draft in [*task, reply("done")]:
            opened.append(draft)
            decision = opened.decide()
            proposal = decision.proposal if isinstance(decision, Unmet) else decision
            if isinstance(proposal, Propose):
                opened.commit(proposal.commit)
        view = opened.freeze()
        human_tokens = sum(opened.index.block(at).tokens for at in human_text(view, opened.index))
        floors.append(view.tokens - human_tokens)
    return floors


def test_the_floor_of_a_view_does_not_grow_over_400_tasks() -> None:
    floors = run_tasks(400, Cwl(), words="fix it")
    assert max(floors[300:]) <= max(floors[:100]) <= 3_000


@pytest.mark.parametrize("policy", [Cwl(), Cwl.paper()], ids=["ours", "paper"])
def test_old_tasks_descriptions_are_found_in_the_view_or_by_recall(policy: Cwl) -> None:
    opened = at_rest(
        expl("a", "auth lives in auth.py"), steps(5), setup=Setup(budget=Budget(window=10**9), rules=RULES, policy=policy)
    )
    opened.commit(propose(opened, opened.rehearse(policy, 0)))
    shown: View = opened.freeze()
    assert any(isinstance(line, Insert) and "auth lives in auth.py" in line.text for line in shown.lines)
