from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.planners.selfgc.objects import ContextObject, WhyBarred, objects_in
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Draft, Entry, Origin
from tenure.engine.record.objects import parse_handle
from tenure.engine.record.recall import blocks_of
from tenure.engine.view.edit import Commit, Drop, Replace
from tenure.engine.view.guard import Hold
from tenure.engine.view.rules import Rules
from tenure.testing.builders import (
    call,
    end_expl,
    human,
    placed,
    reminder,
    reply,
    result,
    results,
    returned,
    session,
    start_expl,
    system,
    thinking,
)
from tenure.testing.transcripts import transcripts

SETUP = Setup(budget=Budget(window=10**9), rules=Rules(provider="t", dialect="openai-chat"), policy=Cwl.paper())  # no tail
LONG = " ".join(["line"] * 150)


def used(tool: str, *, error: bool = False, text: str = LONG, **arguments: object) -> tuple[Draft, Draft]:
    return reply(call(tool, **arguments)), result(text, error=error)


def at_rest(*parts: Draft | tuple[Draft, ...]) -> Session:
    """A session in which all of this is done, and the person has said one thing more."""
    drafts = [draft for part in parts for draft in (part if isinstance(part, tuple) else (part,))]
    return session(SETUP, human("do it"), *drafts, reply("done"), human("go on"))


def by_id(opened: Session, **options: object) -> dict[str, ContextObject]:
    return {each.id: each for each in objects_in(opened.situation(), **options)}  # type: ignore[arg-type]


def whys(opened: Session, **options: object) -> dict[str, str | None]:
    return {name: each.why for name, each in by_id(opened, **options).items()}


def reader(*drafts: Draft) -> Callable[[int], Entry]:
    return placed(*drafts).__getitem__


def test_turns_and_calls_are_objects_in_record_order_and_replies_are_none() -> None:
    opened = at_rest(used("read", path="a.py"), used("grep", pattern="x"), reply("so"), human("and?"), used("read", path="b.py"))
    assert list(by_id(opened)) == ["user:1", "read:1", "grep:1", "user:2", "read:2"]


def test_an_object_knows_what_it_weighs_what_it_was_about_and_how_old_it_is() -> None:
    found = by_id(at_rest(used("read", path="a.py"), used("read", path="b.py")))
    first = found["read:1"]
    assert (first.cue, first.age, first.turn, first.kind) == ("a.py", 2, 1, "call")
    assert first.tokens == 5 + 1 + 4 + 151  # words of call and result, each with its framing
    assert found["user:1"].tokens == 2 * first.tokens + 1 + 5
    assert (found["user:1"].calls, found["user:1"].age) == (2, 0)


def test_a_turn_has_the_persons_words_for_a_cue_when_the_record_can_be_read() -> None:
    drafts = (human("do\n it \x1b[1m" + "x" * 200), *used("read", path="a.py"), reply("done"), human("go on"))
    opened = session(SETUP, *drafts)
    assert by_id(opened)["user:1"].cue == ""
    assert by_id(opened, read=reader(*drafts))["user:1"].cue.startswith("do it \ufffd[1mxxx")


def test_the_newest_human_turn_and_its_calls_are_out_of_reach() -> None:
    opened = session(SETUP, human("a"), *used("read", path="a"), reply("ok"), human("b"), *used("read", path="b"), reply("done"))
    assert whys(opened) == {"user:1": None, "read:1": None, "user:2": WhyBarred.CUT, "read:2": WhyBarred.CUT}
    assert whys(opened, within_cut=True) == {"user:1": None, "read:1": None, "user:2": WhyBarred.CUT, "read:2": None}


def test_the_tail_is_out_of_reach_and_so_is_a_turn_that_reaches_into_it() -> None:
    setup = Setup(budget=Budget(window=10**9), rules=SETUP.rules)
    steps = [draft for number in range(6) for draft in used("read", path=f"{number}")]
    found = whys(session(setup, human("a"), *steps, reply("ok"), human("b")))
    assert found["user:1"] == found["read:6"] == WhyBarred.TAIL
    assert found["read:1"] is None


def test_pins_and_holds_are_out_of_reach_and_their_turn_spares_them() -> None:
    opened = at_rest(used("read", path="a"), used("read", path="b"), used("bash", command="serve"))
    opened.hold(Hold(object="read:1"))
    opened.hold(Hold(object="bash:1", kind="handle"))
    found = by_id(opened)
    assert (found["read:1"].why, found["bash:1"].why, found["user:1"].why) == (WhyBarred.PIN, WhyBarred.HOLD, None)
    assert found["user:1"].spared == ("read:1", "bash:1")
    assert not set(found["read:1"].places) & set(found["user:1"].places)
    opened.hold(Hold(object="user:1"))
    assert {each.why for each in by_id(opened).values()} == {WhyBarred.PIN, WhyBarred.HOLD}


def test_an_open_episode_is_out_of_reach_and_so_are_the_marks_of_episodes() -> None:
    opened = at_rest((reply(start_expl("look")), result("started")), used("read", path="a"))
    assert whys(opened) == {"user:1": WhyBarred.OPEN, "delimiter:1": WhyBarred.OPEN, "read:1": WhyBarred.OPEN}
    ended = at_rest(
        (reply(start_expl("look")), result("started")), used("read", path="a"), (reply(end_expl("found")), result("ended"))
    )
    assert whys(ended) == {"user:1": None, "delimiter:1": WhyBarred.MARK, "read:1": None, "delimiter:2": WhyBarred.MARK}


def test_a_call_without_a_result_is_open_until_a_person_goes_on_without_it() -> None:
    assert whys(session(SETUP, human("a"), reply(call("read", path="a"))), within_cut=True)["read:1"] is not None
    went_on = session(SETUP, human("a"), reply(call("read", path="a")), human("b"), reply("ok"), human("c"))
    assert whys(went_on)["read:1"] is None


def test_the_agents_own_work_is_out_of_reach_unless_it_failed() -> None:
    found = whys(at_rest(used("edit", path="a"), used("write", path="b", error=True), used("mcp__x__write_file", path="c")))
    assert found == {"user:1": None, "edit:1": WhyBarred.BODY, "write:1": None, "mcp__x__write_file:1": WhyBarred.BODY}


def test_of_plans_and_task_lists_only_the_newest_is_in_force() -> None:
    found = whys(at_rest(used("TodoWrite"), used("TodoWrite"), used("update_plan")))
    assert found == {"user:1": None, "todowrite:1": None, "todowrite:2": WhyBarred.STATE, "update_plan:1": WhyBarred.STATE}


@pytest.mark.parametrize(
    ("tool", "arguments", "is_contract"),
    [
        ("read", {"path": "AGENTS.md"}, True),
        ("read", {"path": "docs/order_schema.json"}, True),
        ("read", {"path": "db/schema.sql"}, True),
        ("bash", {"command": "cat ./docs/naming-conventions.md | head"}, True),
        ("bash", {"command": ["bash", "-lc", "cat CLAUDE.md"]}, True),
        ("read", {"path": "src/schema.py"}, False),
        ("read", {"path": "docs/overrules.md"}, False),
        ("bash", {"command": "git add CLAUDE.md"}, False),
    ],
)
def test_files_that_say_how_to_work_stay_in_force(tool: str, arguments: dict[str, Any], is_contract: bool) -> None:
    found = whys(at_rest(used(tool, **arguments)))
    assert found[f"{tool}:1"] == (WhyBarred.CONTRACT if is_contract else None)


def test_of_several_reads_of_a_contract_the_newest_is_in_force() -> None:
    found = by_id(at_rest(used("read", path="AGENTS.md"), used("read", path="AGENTS.md")))
    assert (found["read:1"].why, found["read:1"].later, found["read:2"].why) == (None, "read:2", WhyBarred.CONTRACT)


def test_a_contract_behind_a_long_path_is_known_whether_or_not_its_call_can_be_read() -> None:
    path = "/srv/" + "deep/" * 20 + "AGENTS.md"
    drafts = (human("do it"), *used("read", path=path), *used("read", path=path[:-9] + "other.py"), reply("done"), human("go on"))
    opened = session(SETUP, *drafts)
    assert (whys(opened)["read:1"], whys(opened)["read:2"]) == (WhyBarred.CONTRACT, None)
    found = by_id(opened, read=reader(*drafts))
    assert (found["read:1"].why, found["read:2"].why) == (WhyBarred.CONTRACT, None)
    assert found["read:1"].cue.endswith("deep/AGENTS.md")
    assert len(found["read:1"].cue) == 72


def test_a_later_call_about_the_same_is_named_and_a_namesake_of_a_shortened_one_is_not() -> None:
    found = by_id(at_rest(used("read", path="a"), used("grep", pattern="a"), used("read", path="a"), used("read", path="b")))
    assert {name: each.later for name, each in found.items() if each.later} == {"read:1": "read:2"}
    long = [used("read", path="/srv/" + "deep/" * 20 + name) for name in ("a.py", "b.py")]
    assert not any(each.later for each in by_id(at_rest(*long)).values())


@pytest.mark.parametrize(
    ("tool", "arguments", "span"),
    [
        ("Skill", {"skill": "release"}, "function:skill"),
        ("mcp__hub__read_skill", {"name": "release"}, "mcp__hub__read_skill"),
        ("read", {"path": "/home/ada/skills/release/SKILL.md"}, "read"),
        ("bash", {"command": "cat skills/release/SKILL.md"}, "bash"),
    ],
)
def test_a_loaded_skill_is_one_object_and_only_its_newest_load_is_live(tool: str, arguments: dict[str, Any], span: str) -> None:
    once = by_id(at_rest(used(tool, **arguments)))
    assert (list(once), once["skill:release"].why) == (["user:1", "skill:release"], WhyBarred.SKILL)
    twice = by_id(at_rest(used(tool, **arguments), used("ls", path="a"), used(tool, **arguments)))
    skill = twice["skill:release"]
    assert (skill.why, skill.later, skill.spared) == (None, f"{span}:2", (f"{span}:2",))
    assert skill.tokens > 150 > once["skill:release"].tokens
    assert twice["user:1"].spared == (f"{span}:2",)
    assert set(skill.places) < set(twice["user:1"].places)


def test_a_load_that_failed_and_an_edit_of_a_skill_are_no_skill() -> None:
    found = whys(at_rest(used("Skill", skill="x", error=True), used("edit", path="skills/x/SKILL.md")))
    assert found == {"user:1": None, "function:skill:1": None, "edit:1": WhyBarred.BODY}


def test_what_was_recalled_is_left_alone_for_a_while() -> None:
    assert whys(at_rest(used("recall", handle="read:1")))["recall:1"] == WhyBarred.RECALLED
    later = [used("read", path=f"{number}") for number in range(3)]
    assert whys(at_rest(used("recall", handle="read:1"), *later))["recall:1"] is None


def test_what_is_shown_no_more_is_no_object_and_what_is_shortened_weighs_what_it_shows() -> None:
    opened = at_rest(used("read", path="a"), used("read", path="b"))
    edits = (Drop(entry=1, block=0), Drop(entry=2, block=0), Replace(entry=4, block=0, text="short", tokens=1))
    opened.commit(Commit(n=0, entries=opened.length, policy="t", moment="manual", reason="t", edits=edits))
    found = by_id(opened)
    assert list(found) == ["user:1", "read:2"]
    assert (found["read:2"].shortened, found["read:2"].tokens) == (True, 6 + 1)


def test_what_the_host_says_beside_a_persons_words_stays_with_them() -> None:
    opened = session(SETUP, system("be kind"), human("a", reminder("mind")), reply("b"), human("c"))
    assert by_id(opened)["user:1"].places == ((2, 0),)


def test_a_pointer_stands_after_all_words_of_its_turn_and_never_between_a_call_and_its_result() -> None:
    opened = session(SETUP, human("a"), human("b"), *used("read", path="a"), reply("ok"), human("c"))
    assert by_id(opened)["read:1"].attach == 2
    mixed = session(
        SETUP,
        human("a"),
        reply(call("read", "x", path="a"), call("read", "y", path="b")),
        human(returned(LONG, "x"), "and"),
        results(returned(LONG, "y")),
        reply(thinking("hm"), "ok"),
        human("c"),
    )
    assert by_id(mixed)["user:2"].attach == 4


@given(drafts=transcripts(longest=16))
@settings(max_examples=80)
def test_whatever_is_offered_is_shown_unprotected_and_in_one_piece(drafts: tuple[Draft, ...]) -> None:
    opened = session(Setup(budget=Budget(window=10**9), rules=SETUP.rules), *drafts)
    situation = opened.situation()
    shown = {(row.entry, block) for row in situation.view.rows() for block in row.blocks}
    for within_cut in (False, True):
        objects = objects_in(situation, read=reader(*drafts), within_cut=within_cut)
        assert len({each.id.casefold() for each in objects}) == len(objects)
        assert list(objects) == sorted(objects, key=lambda each: each.start)
        for each in objects:
            assert each.why is not None or each.places
            assert set(each.places) <= shown
            assert list(each.places) == sorted(set(each.places))
            assert blocks_of(opened.index, parse_handle(each.handle))
            assert each.age >= 0
            assert len(each.cue) <= 72
            for at in each.places if each.why is None else ():
                facts = opened.index.block(at)
                assert facts.origin is not Origin.HUMAN
                assert situation.guard.why(at) is None
                if facts.span >= 0:
                    pair = opened.index.spans[facts.span]
                    assert {pair.call, pair.result or pair.call} & shown <= set(each.places)
            assert opened.index.entries[each.attach].at_rest if each.attach < opened.length else True
