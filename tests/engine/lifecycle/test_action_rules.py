"""DESIGN.md's action table and the Self-GC paper's planner contract, rule by rule, from a planner's reply to the view."""

import pytest
from driven import RULES, Driven, folded
from msgspec.structs import replace

from tenure.engine.lifecycle.decision import Propose
from tenure.engine.lifecycle.undo import restored
from tenure.engine.view.action import Take
from tenure.engine.view.edit import Insert
from tenure.engine.view.guard import Hold
from tenure.engine.view.rules import Rules
from tenure.testing.builders import call, harness, human, reply, result, results, returned, thinking

LONG = "\n".join(f"line {n} of what was printed" for n in range(200))
PYTHON = "Traceback (most recent call last):\n" + '  File "a.py", line 3, in f\n    g()\n' * 120 + "ValueError: x"
JVM = "java.lang.IllegalStateException: x\n" + "\tat org.example.Deep.call(Deep.java:12)\n" * 150
NODE = "Error: x\n" + "    at Object.<anonymous> (/srv/app/index.js:10:15)\n" * 150
GO = "panic: x\n\ngoroutine 1 [running]:\n" + "main.deep(0x1)\n\t/srv/main.go:12 +0x1d\n" * 150
RUST = "thread 'main' panicked at src/main.rs:4:5:\nx\n" + "  12: deep::call\n" * 250
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,300 +1,300 @@\n" + "".join(
    f"-old {n}\n+new {n}\n" for n in range(150)
)
TABLE = "\n".join(["| name | size |", "|---|---|", *(f"| part {n} | {n} |" for n in range(200))])


def done(*outputs: str, rules: Rules | None = None) -> Driven:
    """A turn of these outputs, done, and another one that fills the tail."""
    session = Driven(rules=rules) if rules else Driven()
    session.say(human("Look into it."))
    for number, output in enumerate(outputs):
        session.say(reply(f"Now {number}.", call("bash", f"o{number}", command=f"see {number}")), result(output, f"o{number}"))
    return session.say(reply("Seen.")).turn(calls=5, lines=3)


def why(session: Driven, **actions: list[str]) -> dict[str, str]:
    session.planned(**actions)
    return {each.object: each.why for each in session.refused}


@pytest.mark.parametrize(
    "output", [PYTHON, JVM, NODE, GO, RUST, DIFF, TABLE], ids=["py", "jvm", "node", "go", "rust", "diff", "table"]
)
def test_traces_diffs_and_tables_are_never_masked(output: str) -> None:
    session = done(output, LONG)
    assert "not repetitive" in why(session, mask=["bash:1"])["bash:1"]
    assert session.view.shows(*session.index.spans[0].result or (0, 0))


def test_a_mask_keeps_both_ends_and_names_the_handle_that_brings_the_middle() -> None:
    session = done(LONG)
    assert session.planned(mask=["bash:1"]) is not None
    span = session.index.spans[0]
    row = session.view.row((span.result or (0, 0))[0])
    assert row is not None
    ((_, shown),) = row.replaced
    assert shown.text.startswith("line 0 of what was printed")
    assert shown.text.endswith("line 199 of what was printed")
    assert session.index.handle("bash:1", span.call[0]) in shown.text
    assert session.raw("bash:1") == LONG
    assert session.view.shows(*span.call)


def test_what_is_masked_can_still_be_folded_and_comes_back_whole() -> None:
    session = done(LONG)
    session.planned(mask=["bash:1"])
    assert why(session, mask=["bash:1"])["bash:1"] == "is shortened already"
    folded(session, "bash:1")
    assert session.raw("bash:1") == LONG
    back = restored(session, "bash:1")
    assert back is not None
    session.commit(back)
    assert not session.view.inserts
    assert session.view.tokens == session.index.tokens


def test_a_prune_leaves_nothing_and_is_recalled_all_the_same() -> None:
    session = done(LONG, "short one")
    assert session.planned(prune=["bash:1", "bash:2"]) is not None
    assert not session.view.inserts
    assert not session.view.shows(*session.index.spans[0].call)
    assert session.raw("bash:1") == LONG
    assert "short one" in session.asked(words="short one")


def test_a_fold_keeps_the_persons_words_and_stands_behind_them_as_a_block_of_the_harness() -> None:
    session = done(LONG, LONG)
    folded(session, "user:1")
    assert session.view.shows(0, 0)
    (pointer,) = session.view.inserts
    assert (pointer.role, pointer.before_entry, pointer.kind) == ("user", 1, "text")
    assert not any(row.replaced for row in session.view.rows())


def test_of_parallel_calls_one_is_folded_and_the_others_stay_paired() -> None:
    session = Driven().say(human("Look."))
    session.say(
        reply("Both.", call("bash", "a", command="one"), call("bash", "b", command="two")),
        results(returned(LONG, "a"), returned(LONG, "b")),
        reply("Seen."),
    ).turn(calls=5, lines=3)
    folded(session, "bash:1")
    first, second = session.index.spans[:2]
    assert not session.view.shows(*first.call)
    assert session.view.shows(*second.call)
    assert second.result is not None
    assert session.view.shows(*second.result)


def test_a_folded_turn_spares_its_contract_its_bodies_and_the_words_of_a_skill_in_force() -> None:
    session = Driven().say(
        human("Release it."),
        reply(call("Skill", "s", skill="release")),
        result("Launching skill: release", "s"),
        harness("Base directory for this skill: /home/ada/skills/release\n\n" + LONG),
        reply(call("read", "r", path="AGENTS.md")),
        result(LONG, "r"),
        reply(call("edit", "e", path="a.py", text="x")),
        result("ok", "e"),
        reply(call("bash", "b", command="make")),
        result(LONG, "b"),
        reply("Released."),
    )
    session.turn(calls=5, lines=3)
    folded(session, "user:1")
    shown = {row.entry for row in session.view.rows()}
    assert {0, 1, 2, 3, 4, 5, 6, 7} <= shown
    assert not {8, 9} & shown


def test_an_older_load_of_a_skill_leaves_with_the_words_that_came_behind_it() -> None:
    session = Driven().say(human("Release it."))
    for number in range(2):
        session.say(
            reply(call("Skill", f"s{number}", skill="release")),
            result("Launching skill: release", f"s{number}"),
            harness(f"Base directory for this skill: /home/ada/skills/release\n\nload {number}\n{LONG}"),
        )
    session.say(reply("Released.")).turn(calls=5, lines=3)
    folded(session, "skill:release")
    assert not any(session.view.shows(entry, 0) for entry in (1, 2, 3))
    assert all(session.view.shows(entry, 0) for entry in (4, 5, 6))
    assert "load 1" in session.raw("skill:release")
    assert "load 0" in session.raw(f"skill:release@{session.index.hash_of(1)}")
    session.hold(Hold(object="skill:release"))
    assert {session.guard().why((entry, 0)) for entry in (4, 5, 6)} == {"pin"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("user:2", "newest human turn"),
        ("bash:99", "no such object"),
        ("assistant:1", "nothing that a plan may name"),
        ("entry:3", "nothing that a plan may name"),
        ("bash:1", "live handle"),
        ("bash:2", "is pinned"),
        ("bash:7", "newest exchanges"),
        ("bash:3@ffff", "another record"),
        ("edit:1", "may be edited again"),
        ("read:1", "contract still in force"),
        ("todowrite:1", "task list in force"),
    ],
)
@pytest.mark.parametrize("action", ["fold", "mask", "prune"])
def test_every_exclusion_holds_for_every_action_and_says_why(name: str, reason: str, action: str) -> None:
    session = Driven().say(human("Do it."))
    for tool, arguments in [
        ("bash", {"command": "serve"}),
        ("bash", {"command": "two"}),
        ("bash", {"command": "three"}),
        ("edit", {"path": "a.py"}),
        ("read", {"path": "docs/AGENTS.md"}),
        ("todowrite", {"todos": "x"}),
    ]:
        session.say(reply(call(tool, tool + str(arguments), **arguments)), result(LONG, tool + str(arguments)))
    session.say(reply("Done.")).turn(calls=5, lines=3)
    session.hold(Hold(object="bash:1", kind="handle"))
    session.hold(Hold(object="bash:2"))
    before = session.freeze()
    refused = why(session, **{action: [name]})
    assert reason in next(iter(refused.values()))
    assert session.freeze() == before


def test_only_one_action_is_done_to_an_object_and_a_plan_in_any_order_is_the_same() -> None:
    first, second = done(LONG, LONG), done(LONG, LONG)
    first.planned(prune=["bash:1", "bash:2"], fold=["bash:1 | kept for its lines"])
    second.planned(fold=["bash:1 | kept for its lines"], prune=["bash:2", "bash:1"])
    assert first.freeze() == second.freeze()
    assert len([edit for edit in first.commits[0].edits if isinstance(edit, Insert)]) == 1


@pytest.mark.parametrize("keeps", ["none", "last_message", "open_loop", "prefix_bound"])
def test_folds_masks_and_prunes_leave_reasoning_as_the_provider_will_have_it(keeps: str) -> None:
    session = Driven(rules=Rules(provider="t", dialect="anthropic", thinking=keeps))  # type: ignore[arg-type]
    session.say(human("Look."))
    for number in range(4):
        session.say(
            reply(thinking(f"Let me see {number}.", signed=True), call("bash", f"o{number}", command=f"see {number}")),
            result(LONG, f"o{number}"),
        )
    session.say(reply("Seen.")).turn(calls=5, lines=3)
    assert session.planned(fold=["bash:1 | one"], mask=["bash:2"], prune=["bash:3"]) is not None  # held to the laws inside


@pytest.mark.parametrize("steps", [[((1, 0), (3, 0))], [((1, 0),), ((3, 0),)]], ids=["at-once", "later"])
def test_reasoning_is_shown_when_the_reply_that_closed_its_loop_has_left(steps: list[tuple[tuple[int, int], ...]]) -> None:
    session = Driven(rules=replace(RULES, thinking="open_loop"))
    session.say(human("Look."), reply(thinking("It must be there.", signed=True), call("bash", "a")), result(LONG, "a"))
    session.say(reply(LONG), human("And now?"))
    for number in range(8):
        session.say(reply(call("bash", f"o{number}")), result("short", f"o{number}"))
    for places in steps:
        decision = session.plan("test", (Take(how="prune", object="entry:1", places=places),), reason="test")
        assert isinstance(decision, Propose)
        session.carry_out(decision)  # held to the laws inside
        closed = session.view.row(3) is not None
        assert (
            session.view.shows(1, 0) is not closed
        )  # without it the results and the next words are one message, in one open loop
