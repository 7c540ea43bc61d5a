"""What stands for folded objects stays bounded, keeps its handles as long as there is room, and everything comes back byte for byte."""

import pytest
from driven import BRIEF, CEILING, Driven, foldable, folded
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.planning import answer_handoff, ask_handoff
from tenure.engine.lifecycle.residues import RESIDUE_SHARE
from tenure.engine.lifecycle.undo import restored, undone
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Insert
from tenure.engine.view.inherit import Shared, inherited
from tenure.engine.view.residue import NAMED, is_stretch, turn_line
from tenure.testing.builders import human, system

BUDGET = int(CEILING * RESIDUE_SHARE)


@pytest.mark.parametrize("kind", ["call", "turn"])
def test_over_a_long_session_that_folds_at_every_turn_pointers_stay_within_the_residue_budget(kind: str) -> None:
    session = Driven().say(system("Be brief."))
    commits, words = (
        0,
        "what that part printed, in the plan's own words and at some length; recall it before changing the part again",
    )
    for _ in range(90):
        session.turn(calls=2, lines=30)
        if session.planned(fold=[f"{name} | {words}" for name in foldable(session, kind)]) is not None:
            commits += 1
            assert session.weight <= BUDGET
    assert commits >= 60
    assert any(map(is_stretch, session.pointers))
    assert session.view.tokens < session.index.tokens / 4
    for number in range(1, session.number + 1):
        text = session.raw(f"bash:{number}")
        assert text.startswith(f"unit {number} line 0 ")
        assert text.endswith(f"unit {number} line 29 of what was printed")
    assert "bash:3@" in session.asked(words="unit 3 line 7")
    assert "bash:37@" in session.asked(path="part-37")


def test_old_pointers_are_broken_into_seldom() -> None:
    session = Driven()
    starts: list[int] = []
    for _ in range(90):
        session.turn(calls=2, lines=30)
        if proposal := session.planned(fold=[f"{name} | what it printed" for name in foldable(session, "call")]):
            starts.append(session.length - proposal.rehearsal.changed_from)
    assert sum(start > session.length / 8 for start in starts) < len(starts) / 3


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["call", "turn", "both", "none"])), min_size=10, max_size=30))
def test_however_a_session_is_folded_its_pointers_are_bounded_and_everything_comes_back(moves: list[tuple[int, str]]) -> None:
    session = Driven(ceiling=8_000)
    for calls, kinds in moves:
        session.turn(calls=calls, lines=25)
        names = [name for kind in ("call", "turn") if kinds in (kind, "both") for name in foldable(session, kind)]
        if names and session.planned(fold=[f"{name} | printed things" for name in names]) is not None:
            assert session.weight <= max(8_000 * RESIDUE_SHARE, 70 + 8 * len(session.index.turns))
    for number in range(1, session.number + 1):
        assert session.raw(f"bash:{number}").count("\n") == 24


def test_with_room_every_pointer_keeps_the_plans_words_and_its_handle() -> None:
    session = Driven().turn(calls=5).turn()
    folded(session, "bash:1", "bash:2")
    assert [insert.key[0] for insert in session.pointers] == ["p", "p"]
    assert all("recall for its lines" in insert.text for insert in session.pointers)


def test_without_room_the_pointers_of_a_turn_are_one_line_that_keeps_every_handle() -> None:
    session = Driven(ceiling=5_000).turn(calls=8).turn(calls=5)
    names = [f"bash:{number}" for number in range(1, 9)]
    folded(session, *names)
    (line,) = session.pointers
    assert line.key.startswith("t")
    for name in names:
        handle = session.index.handle(name, session.index.span("bash", int(name[5:])).call[0])  # type: ignore[union-attr]
        assert handle in line.text
        assert handle in line.routes
    assert "make part-3" in line.text
    assert not any(edit.key.startswith("p") for edit in session.commits[0].edits if isinstance(edit, Insert))


def test_a_line_of_very_many_names_the_oldest_the_newest_and_how_many_there_are() -> None:
    session = Driven().turn(calls=60, lines=2)
    every = [session.index.handle(span.object, span.call[0]) for span in session.index.spans]
    line = turn_line(session.index, reversed(every))
    assert line.routes == (every[0], *every[1 - NAMED :])
    assert f"{60 - NAMED} more" in line.text


def test_an_object_that_is_folded_restored_and_folded_again_has_one_pointer() -> None:
    session = Driven().turn(calls=5).turn()
    folded(session, "bash:1", "bash:2")
    back = restored(session, "bash:1")
    assert back is not None
    session.commit(back)
    assert next(route for insert in session.pointers for route in insert.routes).startswith("bash:2@")
    assert session.view.shows(*session.index.spans[0].call)
    folded(session, "bash:1")
    assert sorted(insert.routes[0].partition("@")[0] for insert in session.pointers) == ["bash:1", "bash:2"]
    session.commit(undone(session, 2))
    assert [insert.routes[0].partition("@")[0] for insert in session.pointers] == ["bash:2"]


def test_what_came_back_is_named_no_more_when_lines_are_merged_again() -> None:
    session = Driven(ceiling=8_000).turn(calls=8).turn(calls=5)
    folded(session, *[f"bash:{number}" for number in range(1, 9)])
    back = restored(session, "bash:4")
    assert back is not None
    session.commit(back)
    session.turn(calls=5)
    folded(session, *[f"bash:{number}" for number in range(9, 13)])
    assert not any("make part-4 " in insert.text or "make part-4;" in insert.text for insert in session.pointers)


def test_folding_a_whole_turn_after_a_call_of_it_leaves_both_on_the_way_back() -> None:
    session = Driven().turn(calls=5).turn(calls=2).turn()
    folded(session, "bash:1")
    folded(session, "user:1")
    handles = [route for insert in session.pointers for route in insert.routes]
    assert {handle.partition("@")[0] for handle in handles} == {"bash:1", "user:1"}
    told = session.asked(handle="user:1")
    assert "unit 1 line 39" in told
    assert "unit 5 line 39" in told


def test_a_brief_that_stands_for_folded_turns_leaves_one_line_that_leads_back_to_them() -> None:
    session = Driven().turn(calls=6).turn(calls=6).turn(calls=4)
    folded(session, "bash:1", "bash:2", "user:2")
    session.handed_off()
    brief, line = session.view.inserts
    assert brief.text.startswith(OPENING)
    assert is_stretch(line)
    assert [route.partition("@")[0] for route in line.routes] == ["bash:1", "user:2"]
    assert session.raw("bash:2").startswith("unit 2 line 0")
    session.turn(calls=6).turn(calls=4)
    session.handed_off()
    assert [insert.text.startswith(OPENING) for insert in session.view.inserts] == [True, False]
    assert [route.partition("@")[0] for route in session.view.inserts[1].routes] == ["bash:1", "user:2"]


def test_a_brief_leaves_the_pointer_to_something_later_where_it_stands() -> None:
    session = Driven(ceiling=60_000).say(human("Do all of it.")).work(calls=20)
    folded(session, "bash:14")
    asked = ask_handoff(session, keep=10)
    assert asked is not None
    decision = answer_handoff(session, asked, BRIEF).decision
    assert isinstance(decision, Propose)
    session.carry_out(decision)
    assert asked.cut <= session.index.spans[13].call[0]
    assert [insert.routes[0].partition("@")[0] for insert in session.pointers] == ["bash:14"]


def test_handles_in_pointers_resolve_in_a_fork_and_after_a_restart() -> None:
    session = Driven(ceiling=8_000)
    for _ in range(12):
        session.turn(calls=3)
        session.planned(fold=[f"{name} | x" for name in foldable(session, "call")])
    again = Driven(ceiling=8_000)
    for number in range(session.length):
        again.follow(session.kept[number])
    for commit in session.commits:
        again.commit(commit)
    again.kept |= session.kept
    assert again.freeze() == session.freeze()
    at = next(entry for entry in range(session.length - 9, session.length) if session.index.entries[entry].at_rest)
    fork = Driven(ceiling=8_000)
    for number in range(at):
        fork.follow(session.kept[number])
    fork.kept |= session.kept
    for commit in inherited(session.commits, at, lambda: Shared(index=fork.index, rules=fork.setup.rules, limit=8_000)):
        fork.commit(commit)
    assert again.pointers
    assert fork.pointers
    for one in (again, fork):
        for insert in one.pointers:
            for route in insert.routes:
                assert "unit" in one.raw(route)
    fork.say(human("Otherwise.")).work(calls=6)
    fork.planned(fold=[f"{name} | x" for name in foldable(fork, "call")])
    assert fork.weight <= 8_000 * RESIDUE_SHARE


def test_what_a_policy_says_of_a_stretch_is_bounded_too() -> None:
    session = Driven(ceiling=4_000)
    for _ in range(40):
        session.turn(calls=4, lines=4)
        seen = [row.entry for row in session.view.rows() if row.entry < session.length - 16]
        places = tuple((row.entry, block) for row in session.view.rows() if row.entry in seen for block in row.blocks)
        if places:
            ends = (f"entry:{places[0][0]}", f"entry:{places[-1][0]}")
            left = f"[{len(places)} steps from the middle left, {ends[0]} to {ends[1]}]"
            take = Take(how="prune", object=ends[0], places=places, pointer=left, before_entry=places[-1][0] + 1, routes=ends)
            decision = session.plan("middle", (take,), reason="too long")
            assert isinstance(decision, Propose)
            session.carry_out(decision)
            assert session.weight <= 4_000 * RESIDUE_SHARE + 30
    assert session.pointers[0].routes[0] in session.pointers[0].text
    assert session.raw("bash:2").endswith("unit 2 line 3 of what was printed")
