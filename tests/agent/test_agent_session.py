"""A session: what is recorded, in which order, and what a turn tells."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, heard, of, open_agent, played, recorded, results, says

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import (
    ApprovalAsked,
    CallDone,
    CallOutput,
    CallStarted,
    EpisodeEnded,
    EpisodeStarted,
    Recalled,
    Replied,
    Requested,
    SessionOpened,
    TextDelta,
    ThinkingDelta,
    TurnDone,
    TurnStarted,
    as_json,
)
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Origin, Role
from tenure.errors import InputError

DIALECTS = ["openai-chat", "openai-responses", "anthropic"]
EXPL = call("delimiter", action="start", name="find", type="expl")
FOUND = call("delimiter", action="end", description="verify is in a.py")
ACT = call("delimiter", action="start", name="change", type="act", dependencies=["find"])
DONE = call("delimiter", action="end")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_task_is_searched_changed_and_checked(dialect: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="def verify(): pass\n")
    outside = Outside(
        where,
        says("I look.", EXPL, call("grep", pattern="verify"), call("read", path="a.py"), thinking="where?"),
        says("Now.", FOUND, ACT, call("edit", path="a.py", old="pass", new="return 1"), call("bash", command="cat a.py")),
        says("", DONE),
        says("verify returns 1 now."),
        dialect=dialect,
    )
    events = played(outside, "Make verify return 1.")
    assert (where / "a.py").read_text() == "def verify(): return 1\n"
    assert end(events).text == "verify returns 1 now."
    assert (end(events).reason, end(events).steps) == ("done", 4)
    assert "".join(each.text for each in of(events, TextDelta)) == "I look.Now.verify returns 1 now."
    assert "".join(each.text for each in of(events, ThinkingDelta)) == "where?"
    assert [(each.tool, each.outcome) for each in of(events, CallDone)] == [
        ("delimiter", "done"), ("grep", "done"), ("read", "done"), ("delimiter", "done"), ("delimiter", "done"), ("edit", "done"),
        ("bash", "done"), ("delimiter", "done"),
    ]  # fmt: skip
    assert [each.name for each in of(events, EpisodeStarted)] == ["find", "change"]
    assert [(each.name, each.description) for each in of(events, EpisodeEnded)] == [("find", "verify is in a.py"), ("change", "")]
    assert "return 1" in "".join(each.text for each in of(events, CallOutput))


def test_the_record_has_the_prompt_the_task_and_every_step_in_order(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py="x\n"), says("Look.", call("read", path="a.py")), says("Done."))
    played(outside, "Go.")
    assert [entry.role for entry in recorded(outside)] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert recorded(outside)[0].blocks[0].text.startswith("You are Tenure")
    assert recorded(outside)[1].blocks[0].text == "Go."


def test_a_reply_is_recorded_before_its_calls_run_and_a_result_before_the_next_call(tmp_path: Path) -> None:
    outside = Outside(
        folder(tmp_path),
        says("", call("bash", command="echo one > one"), call("bash", command="cat one > two")),
        says("Done."),
    )
    lengths: list[int] = []

    async def play() -> None:
        agent = await open_agent(outside)
        await heard(agent, "Go.", on=lambda event: isinstance(event, CallStarted) and lengths.append(len(recorded(outside))))
        await agent.close()

    asyncio.run(play())
    assert lengths == [3, 4]
    assert (outside.where / "two").read_text() == "one\n"


def test_calls_that_change_nothing_run_together_and_are_recorded_in_the_order_they_were_made(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="a\n", b_py="b\n")
    reads = [call("read", path=name) for name in ("a.py", "b.py", "missing.py")]
    outside = Outside(where, says("", *reads, call("write", path="c.py", content="c"), call("read", path="c.py")), says("Done."))
    events = played(outside, "Go.")
    kinds = [type(event) for event in events if isinstance(event, CallStarted | CallDone)]
    assert kinds[:6] == [CallStarted] * 3 + [CallDone] * 3
    assert kinds[6:] == [CallStarted, CallDone] * 2
    assert [each.tool for each in of(events, CallDone)] == ["read", "read", "read", "write", "read"]
    assert [each.outcome for each in of(events, CallDone)][:3] == ["done", "done", "error"]


def test_a_session_is_told_of_once_and_every_event_is_one_line_of_json(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("One."), says("Two."))
    events = played(outside, "Go.", "On.")
    assert len(of(events, SessionOpened)) == 1
    assert isinstance(events[0], SessionOpened)
    assert [each.text for each in of(events, TurnStarted)] == ["Go.", "On."]
    assert len(of(events, TurnDone)) == 2
    assert all(b"\n" not in as_json(event) and b'"event":' in as_json(event) for event in events)


def test_what_left_the_window_comes_back_by_recall(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join(f"line {n} of a file" for n in range(400)))
    steps = [says("", call("read", path="a.py", offset=1 + 40 * n, limit=40)) for n in range(12)]
    outside = Outside(where, *steps, says("", call("recall", handle="read:1")), says("Done."))
    events = played(outside, "Go.", policy="cwl", budget=Budget(ceiling=6_500, window=8_000))
    assert of(events, Recalled)[0].objects == ("read:1",)
    assert "line 3 of a file" in of(events, CallDone)[-1].text


@pytest.mark.parametrize(
    ("answer", "written", "word"), [(ApprovalAnswer.ONCE, True, "Wrote"), (ApprovalAnswer.NO, False, "the user declined")]
)
def test_a_change_waits_for_a_person_and_goes_by_their_word(
    answer: ApprovalAnswer, written: bool, word: str, tmp_path: Path
) -> None:
    outside = Outside(folder(tmp_path), says("", call("write", path="a.py", content="x")), says("Done."))
    events = played(outside, "Go.", answer=answer, mode=Mode.ASK)
    assert len(of(events, ApprovalAsked)) == 1
    assert (outside.where / "a.py").exists() is written
    assert word in results(outside)[0] or "Created" in results(outside)[0]


def test_what_was_granted_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    writes = [says("", call("bash", command="touch x")) for _ in range(3)]
    outside = Outside(folder(tmp_path), *writes, says("Done."))
    events = played(outside, "Go.", answer=ApprovalAnswer.EXACT, mode=Mode.ASK)
    assert len(of(events, ApprovalAsked)) == 1


def test_read_only_mode_refuses_and_goes_on(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("write", path="a.py", content="x")), says("Then not."))
    events = played(outside, "Go.", mode=Mode.READ_ONLY)
    assert not (outside.where / "a.py").exists()
    assert "read-only" in results(outside)[0]
    assert end(events).reason == "done"


def test_where_nobody_is_there_a_call_that_needs_approval_ends_the_turn(tmp_path: Path) -> None:
    writes = (call("write", path="a.py", content="x"), call("write", path="b.py", content="x"))
    outside = Outside(folder(tmp_path), says("", *writes, call("ls")), says("not reached"))
    events = played(outside, "Go.", mode=Mode.ASK, alone=True)
    assert end(events).reason == "needs approval"
    assert "write a.py" in end(events).why
    assert "nobody is there" in results(outside)[0]
    assert results(outside)[1].startswith("[not run")
    assert len(recorded(outside)) == 6


@pytest.mark.parametrize("alone", [False, True])
def test_writing_while_exploring_asks_rather_than_blocks_and_runs_where_nobody_is_there(alone: bool, tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", EXPL, call("write", path="a.py", content="x")), says("Done."))
    events = played(outside, "Go.", answer=ApprovalAnswer.ONCE, mode=Mode.EDITS, alone=alone)
    asked = of(events, ApprovalAsked)
    assert [each.approval.reason for each in asked] == (
        [] if alone else ["it changes a file, and the open episode 'find' only explores"]
    )
    assert (outside.where / "a.py").exists()


def test_a_turn_cannot_begin_within_another_nor_without_anything_to_do(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("One."))

    async def play() -> None:
        agent = await open_agent(outside)
        with pytest.raises(InputError, match="nothing to do"):
            await heard(agent)
        turn = agent.run("Go.")
        await anext(turn)
        await anext(turn)
        with pytest.raises(InputError, match="a turn is running"):
            await heard(agent, "Again.")
        await turn.aclose()
        await agent.close()
        await agent.close()
        with pytest.raises(InputError, match="closed"):
            await heard(agent, "Again.")

    asyncio.run(play())


def test_the_session_shows_model_window_money_and_episodes(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", EXPL), says("Done."), model="claude-opus-4-5", dialect="anthropic")

    async def play() -> None:
        agent = await open_agent(outside)
        await heard(agent, "Go.")
        assert (agent.folder, agent.mode, agent.is_running) == (outside.where.resolve(), Mode.ALL, False)
        assert agent.episode is not None
        assert [each.name for each in agent.episodes] == ["find"] == [agent.episode.name]
        assert agent.gauge.tokens > 1_000
        assert not agent.gauge.estimated
        assert agent.ledger.total.calls == 2
        assert agent.spent.usage.prompt == agent.ledger.total.usage.prompt
        await agent.close()

    asyncio.run(play())


def test_another_model_goes_on_with_the_same_record(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path, a_py="x\n"), says("Look.", call("read", path="a.py")), says("One."), dialect="anthropic")
    other = Outside(outside.where, says("Two."), dialect="openai-responses")
    speakers = [outside.speaker, other.speaker]

    async def play() -> None:
        agent = await open_agent(outside, {"speaker": lambda _: speakers.pop(0)})
        await heard(agent, "Go.")
        before = agent.id
        await agent.use("scripted:other")
        events = await heard(agent, "On.")
        assert end(events).text == "Two."
        assert agent.id == before
        await agent.close()

    asyncio.run(play())
    assert [entry.dialect for entry in recorded(outside) if entry.role is Role.ASSISTANT] == ["anthropic"] * 2 + [
        "openai-responses"
    ]


def test_notes_stand_in_the_request_and_never_in_the_record(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="x\n")
    _repository(where)
    outside = Outside(where, says("", call("write", path="b.py", content="x")), says("Done."))
    events = played(outside, "Go.")
    notes = [each.notes for each in of(events, Requested)]
    assert "a.py" in notes[0]
    assert "b.py" not in notes[0]
    assert "b.py" in notes[1]
    assert "git status now" not in "".join(block.text for entry in recorded(outside)[1:] for block in entry.blocks)


def test_notes_become_a_part_of_the_past_where_reasoning_is_bound_to_it_and_are_written_once(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="x\n")
    _repository(where)
    steps = [says("", call("read", path="a.py"), thinking="hm") for _ in range(3)]
    outside = Outside(where, *steps, says("Done."), dialect="anthropic", model="claude-fable-5-1")
    events = played(outside, "Go.")
    assert {each.notes for each in of(events, Requested)} == {""}
    told = [block for entry in recorded(outside) for block in entry.blocks if "git status now" in block.text and entry.n]
    assert [block.origin for block in told] == [Origin.HARNESS]


def _repository(where: Path) -> None:
    subprocess.run(
        ["git", "init", "-q", str(where)], check=True, env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(where)}
    )


def test_replies_say_what_they_cost(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("One."), model="claude-opus-4-5", dialect="anthropic")
    events = played(outside, "Go.")
    (replied,) = of(events, Replied)
    assert replied.usd == pytest.approx(end(events).usd)
    assert replied.usd
    assert replied.usage == end(events).usage


def test_a_skill_is_shown_whole_however_long_it_is_and_the_tool_is_there_only_where_there_are_skills(tmp_path: Path) -> None:
    where = folder(tmp_path)
    outside = Outside(where, says("", call("read_skill", name="release")), says("I know."))
    first = played(outside, "Go.", clip=500)
    assert of(first, CallDone)[0].text.startswith("There is no tool 'read_skill'")
    skill = where / ".tenure" / "skills" / "release" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: release\ndescription: How to release.\n---\n" + "Do this to the letter.\n" * 1_000)
    outside = Outside(where, says("", call("read_skill", name="release")), says("I know."))
    (done,) = of(played(outside, "Go.", clip=500), CallDone)
    assert done.tokens > 5_000
    assert done.shown == done.tokens
