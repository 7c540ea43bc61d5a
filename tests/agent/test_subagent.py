"""A part of the work, done by another agent in a window of its own."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, heard, of, open_agent, played, recorded, results, says

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import ApprovalAsked, CallDone, Delegated, Event, Requested, TurnDone, TurnStarted
from tenure.agent.settings import Allowance
from tenure.agent.subagent import TOO_DEEP
from tenure.engine.record.index import Index
from tenure.errors import InputError
from tenure.store.records import Conversation

SCOPE = "---\nname: engine\ndescription: the engine\n---\nNever touch the pistons.\n"


def workspace(tmp_path: Path) -> Path:
    where = folder(tmp_path, a_py="x\n")
    (where / "engine").mkdir(exist_ok=True)
    (where / "engine" / "SCOPE.md").write_text(SCOPE, encoding="utf-8")
    return where


def parts(outside: Outside) -> tuple[Conversation, ...]:
    """The conversations of sub-agents."""
    store = outside.store
    return tuple(each for each in store._conversations.values() if each.title.startswith("part: "))


def told(outside: Outside, sheet: Conversation) -> str:
    return "\n".join(block.text for entry in outside.store.entries(sheet.id) for block in entry.blocks)


def test_a_part_is_done_in_its_folder_and_comes_back_as_a_summary_and_the_files_it_changed(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    outside = Outside(
        where,
        says("I delegate.", call("task", task="Write the manual.", folder="engine")),
        says("I write.", call("write", path="manual.md", content="# Manual")),
        says("The manual is written."),
        says("All done."),
    )
    events = played(outside, "Go.")
    assert (where / "engine" / "manual.md").read_text() == "# Manual"
    assert results(outside)[0].startswith("The manual is written.\n\n[2 calls of the model, ")
    assert results(outside)[0].endswith("changed: engine/manual.md]")
    inner = [event.of for event in of(events, Delegated)]
    assert of(inner, TurnDone)[0].text == "The manual is written."
    (sheet,) = parts(outside)
    assert "Never touch the pistons." in told(outside, sheet)
    assert "Another agent gave you one part" in told(outside, sheet)
    assert "Write the manual." in told(outside, sheet)
    assert len(recorded(outside)) == 5  # what the part read is not in its parent's record
    assert end(events).steps == 2
    assert end(events).usage.prompt > sum(each.usage.prompt for each in of(inner, TurnDone))


def test_what_commands_changed_is_seen_by_git(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    home = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(where)}
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(where), *command], check=True, env=home)
    asked = says("", call("task", task="Go.", folder="engine"))
    outside = Outside(where, asked, says("", call("bash", command="touch new.txt")), says("Made."), says("Done."))
    played(outside, "Go.")
    assert "new.txt" in results(outside)[0]


def test_a_brief_has_what_ended_explorations_found(tmp_path: Path) -> None:
    outside = Outside(
        workspace(tmp_path),
        says("", call("delimiter", action="start", name="find", type="expl")),
        says("", call("delimiter", action="end", description="verify is in a.py, line 1")),
        says("", call("task", task="Use it.", seed="brief"), call("task", task="Alone.", seed="fresh")),
        says("Used."),
        says("Alone as well."),
        says("Done."),
    )
    played(outside, "Go.")
    briefed, fresh = sorted((told(outside, sheet) for sheet in parts(outside)), key=lambda text: "Alone." in text)
    assert "find: verify is in a.py, line 1" in briefed
    assert "line 1" not in fresh


def test_a_branch_knows_all_that_its_parent_knew_and_its_request_begins_with_its_parents(tmp_path: Path) -> None:
    outside = Outside(
        workspace(tmp_path),
        says("I read.", call("read", path="a.py")),
        says("", call("task", task="Go on there.", folder="engine", seed="branch")),
        says("Gone on."),
        says("Done."),
    )
    bodies: list[bytes] = []
    speak = outside.speaker.speak

    def noted(body: bytes):
        bodies.append(body)
        return speak(body)

    outside.speaker.speak = noted
    events = played(outside, "Go.")
    (sheet,) = parts(outside)
    assert sheet.forked_at == 4
    assert "Never touch the pistons." in told(outside, sheet)
    assert b"1\\tx" in bodies[2]
    assert end(events).text == "Done."


@pytest.mark.parametrize(
    ("given", "words"),
    [("missing", "is no folder"), ("..", "outside the workspace"), ("../home", "outside"), ("a.py", "no folder")],
)
def test_a_part_stays_in_the_workspace(given: str, words: str, tmp_path: Path) -> None:
    outside = Outside(workspace(tmp_path), says("", call("task", task="Go.", folder=given)), says("Done."))
    events = played(outside, "Go.")
    assert words in results(outside)[0]
    assert of(events, CallDone)[0].outcome == "error"


def test_parts_that_look_run_at_the_same_time_and_are_episodes_of_their_parent(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    looks = says("", *(call("task", task=f"Find {n}.", type="expl", name=f"find-{n}") for n in (1, 2)))
    act = says(
        "",
        call("delimiter", action="start", name="mend", type="act", dependencies=["find-1"]),
        call("task", task="Write it.", type="act", name="write", dependencies=["find-1", "find-2"]),
        call("task", task="Look again.", type="expl", name="look"),
    )
    read, write = says("", call("read", path="a.py")), says("", call("write", path="b.py", content="y\n"))
    found = says("It is in a.py.\n\nAll of it.")
    outside = Outside(where, looks, read, read, found, found, act, write, says("Written."), says("Seen."), says("Done."))
    index: list[Index] = []

    async def play() -> list[Event]:
        agent = await open_agent(outside)
        events = await heard(agent, "Go.")
        index.append(agent.context.session.index)
        await agent.close()
        return events

    inner = [(event.call, type(event.of)) for event in of(asyncio.run(play()), Delegated)]
    starts, ends = ([at for at, (_, kind) in enumerate(inner) if kind is each][:2] for each in (TurnStarted, TurnDone))
    assert max(starts) < min(ends)
    first, second, mend, written, look = (episode for episode in index[0].episodes if episode.declared)
    assert [first.name, second.name, first.description] == ["find-1", "find-2", "It is in a.py."]
    assert mend.dependencies == (first.ordinal, look.ordinal)
    assert written.dependencies == (first.ordinal, second.ordinal)
    assert [each.closed for each in (first, written, mend)] == [True, True, False]
    assert (where / "b.py").exists()


def test_a_part_that_looks_changes_nothing_whatever_its_parent_may(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    asked = says("", call("task", task="Look.", type="expl"))
    outside = Outside(where, asked, says("", call("write", path="b.py", content="y\n")), says("I could not."), says("Done."))
    events = played(outside, "Go.")
    (inner,) = [event.of for event in of(events, Delegated) if isinstance(event.of, CallDone)]
    assert (inner.outcome, (where / "b.py").exists()) == ("declined", False)
    assert "read-only" in inner.text


def test_a_part_that_builds_on_nothing_known_is_refused_before_anything_runs(tmp_path: Path) -> None:
    asked = says("", call("task", task="Go.", type="act", name="a", dependencies=["nowhere"]))
    outside = Outside(workspace(tmp_path), asked, says("Done."))
    played(outside, "Go.")
    assert "there is no episode 'nowhere' to depend on" in results(outside)[0]
    assert not parts(outside)


def test_parts_at_the_same_time_share_what_may_be_used(tmp_path: Path) -> None:
    asked = says("", *(call("task", task="Go.", type="expl", name=f"n{n}") for n in (1, 2, 3)))
    steps = [says("", call("bash", command=f"echo {n}")) for n in range(30)]
    outside = Outside(workspace(tmp_path), asked, *steps)
    events = played(outside, "Go.", allowance=Allowance(tokens=40_000))
    assert all("not finished: token limit" in text for text in results(outside))
    assert end(events).reason == "token limit"
    assert end(events).usage.prompt + end(events).usage.output < 40_000 + 3 * 6_000  # a call of each beyond it


def test_agents_go_only_so_deep(tmp_path: Path) -> None:
    nested = says("", call("task", task="Deeper."))
    outside = Outside(workspace(tmp_path), nested, nested, says("Not deeper."), says("Done."))
    played(outside, "Go.")
    assert "There is no tool 'task'" in "".join(told(outside, sheet) for sheet in parts(outside))
    none = Outside(workspace(tmp_path), nested, says("Done."))
    played(none, "Go.", depth=0)
    assert "There is no tool 'task'" in results(none)[0]


def test_a_part_uses_no_more_than_its_parent_may(tmp_path: Path) -> None:
    steps = [says("", call("bash", command=f"echo {n}")) for n in range(9)]
    outside = Outside(workspace(tmp_path), says("", call("task", task="Go.")), *steps)
    events = played(outside, "Go.", allowance=Allowance(tokens=6_000))
    assert "not finished: token limit" in results(outside)[0]
    assert end(events).reason == "token limit"


def test_what_a_part_wants_to_change_is_asked_of_the_same_person(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    asked = says("", call("task", task="Go.", folder="engine"))
    outside = Outside(where, asked, says("", call("write", path="a.md", content="x")), says("Written."), says("Done."))

    async def play() -> list[Event]:
        agent = await open_agent(outside, mode=Mode.ASK)

        def answer(event: Event) -> None:
            if isinstance(event, Delegated) and isinstance(event.of, ApprovalAsked):
                assert agent.approve(event.of.call, ApprovalAnswer.ONCE)

        events = await heard(agent, "Go.", on=answer)
        await agent.close()
        return events

    events = asyncio.run(play())
    assert (where / "engine" / "a.md").exists()
    assert end(events).reason == "done"


def test_cancelling_stops_the_part_too_and_leaves_both_records_valid(tmp_path: Path) -> None:
    asked = says("", call("task", task="Go."))
    outside = Outside(workspace(tmp_path), asked, says("", call("bash", command="echo a; sleep 60")), says("never"))

    async def play() -> list[Event]:
        agent = await open_agent(outside)

        def stop(event: Event) -> None:
            if isinstance(event, Delegated) and event.of.__struct_config__.tag == "call_output":
                agent.cancel()

        events = await heard(agent, "Go.", on=stop)
        await agent.close()
        return events

    events = asyncio.run(play())
    assert end(events).reason == "cancelled"
    assert of([each.of for each in of(events, Delegated)], TurnDone)[0].reason == "cancelled"
    for sheet in (*parts(outside), outside.store.conversation(_newest(outside).id)):
        assert outside.store.verify(sheet.id) is None


def test_the_newest_session_of_a_folder_is_never_a_part(tmp_path: Path) -> None:
    outside = Outside(workspace(tmp_path), says("", call("task", task="Go.", seed="branch")), says("Part."), says("Done."))
    played(outside, "Go.")

    async def again() -> str:
        agent = await open_agent(outside, newest=True)
        await agent.close()
        return agent.id

    assert asyncio.run(again()) not in {sheet.id for sheet in parts(outside)}
    with pytest.raises(InputError, match="none to go on with"):
        played(Outside(workspace(tmp_path)), "Go.", newest=True)


def test_the_turn_of_a_part_begins_and_ends_within_its_parents(tmp_path: Path) -> None:
    outside = Outside(workspace(tmp_path), says("", call("task", task="Go.")), says("Part."), says("Done."))
    inner = [event.of for event in of(played(outside, "Go."), Delegated)]
    assert len(of(inner, TurnStarted)) == len(of(inner, TurnDone)) == len(of(inner, Requested)) == 1


def _newest(outside: Outside) -> Conversation:
    return outside.store.conversations(str(outside.where.resolve()))[-1]


def test_a_branch_is_offered_what_its_parent_is_and_may_not_hand_its_part_on(tmp_path: Path) -> None:
    outside = Outside(
        workspace(tmp_path),
        says("", call("task", task="Do it.", seed="branch")),
        says("", call("task", task="Do it for me.")),
        says("Then I do it."),
        says("Done."),
    )
    events = played(outside, "Go.")
    (inner,) = [event.of for event in of(events, Delegated) if isinstance(event.of, CallDone)]
    assert (inner.outcome, inner.text) == ("error", TOO_DEEP)
    assert end(events).text == "Done."
