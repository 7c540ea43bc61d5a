"""What a session is told from its start, and at its tail."""

import asyncio
import json
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, of, open_agent, played, recorded, says

from tenure.agent.events import CallDone, Noticed, Requested
from tenure.agent.tools.sandbox import Means
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError

SKILL = "---\nname: release\ndescription: how to release\n---\n" + "Tag it, then push it, and tell everybody about it.\n" * 1_500


def bodies(outside: Outside) -> list[bytes]:
    """Every request from now on."""
    held: list[bytes] = []
    speak = outside.speaker.speak

    def noted(body: bytes):
        held.append(body)
        return speak(body)

    outside.speaker.speak = noted
    return held


def tools(body: bytes) -> list[str]:
    return [tool["function"]["name"] for tool in json.loads(body)["tools"]]


def test_a_skill_is_offered_where_there_is_one_and_is_never_shortened(tmp_path: Path) -> None:
    where = folder(tmp_path)
    (where / ".tenure" / "skills" / "release").mkdir(parents=True)
    (where / ".tenure" / "skills" / "release" / "SKILL.md").write_text(SKILL, encoding="utf-8")
    outside = Outside(where, says("", call("read_skill", name="release")), says("Done."))
    held = bodies(outside)
    events = played(outside, "Release it.", clip=500)
    assert "read_skill" in tools(held[0])
    (done,) = of(events, CallDone)
    assert done.shown == done.tokens > 4_000
    assert "how to release" in recorded(outside)[0].blocks[0].text


def test_without_skills_nothing_of_them_is_offered(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Done."))
    held = bodies(outside)
    played(outside, "Go.")
    assert tools(held[0]) == ["read", "glob", "grep", "ls", "edit", "write", "bash", "task", "recall"]


def test_without_episodes_neither_prompt_nor_tools_speak_of_them(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Done."))
    held = bodies(outside)
    played(outside, "Go.", episodes=False)
    assert "delimiter" not in tools(held[0])
    assert "# Episodes" not in recorded(outside)[0].blocks[0].text


def test_an_episode_that_is_open_too_long_and_a_full_window_are_said_at_the_tail(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join(f"line {n} of a file that is read" for n in range(2_000)))
    reads = [says("", call("read", path="a.py", offset=1 + 50 * n, limit=50)) for n in range(12)]
    opens = says("", call("delimiter", action="start", name="find", type="expl"))
    outside = Outside(where, opens, *reads, says("Done."))
    events = played(outside, "Go.", budget=Budget(ceiling=9_000, window=12_000), policy="cwl")
    notes = [each.notes for each in of(events, Requested)]
    assert notes[0] == ""
    assert any('[episode "find" has been open for long' in note for note in notes)
    assert any("[context: more than 70 % full" in note for note in notes)


@pytest.mark.parametrize("policy", ["graph", "none"])
def test_no_episode_is_spoken_of_under_a_policy_that_reads_no_marks(policy: str, tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="\n".join(f"line {n} of a file that is read" for n in range(2_000)))
    reads = [says("", call("read", path="a.py", offset=1 + 50 * n, limit=50)) for n in range(12)]
    opens = says("", call("delimiter", action="start", name="find", type="expl"))
    outside = Outside(where, opens, *reads, says("Done."))
    events = played(outside, "Go.", budget=Budget(window=7_000), policy=policy)
    notes = " ".join(each.notes for each in of(events, Requested))
    assert "episode" not in notes
    assert ("[context: full" in notes) is (policy == "none")


def test_what_could_not_be_read_is_noticed_and_stops_nothing(tmp_path: Path) -> None:
    where = folder(tmp_path)
    (where / "AGENTS.md").symlink_to("nowhere")
    servers = tmp_path / "servers.json"
    servers.write_text('{"mcpServers": {"both": {"command": "x", "url": "y"}}}', encoding="utf-8")
    events = played(Outside(where, says("Done.")), "Go.", servers=servers)
    said = " ".join(each.text for each in of(events, Noticed))
    assert "AGENTS.md" in said
    assert "both command and url" in said
    assert end(events).reason == "done"


def test_a_session_without_its_sandbox_does_not_begin(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="touch x")), says("Done."))
    with pytest.raises(InputError, match="neither bubblewrap"):
        played(outside, "Go.", sandbox=True, world={"walls": Means.NONE})
    assert not (outside.where / "x").exists()


def test_a_users_own_words_stand_in_the_prompt(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Done."))
    played(outside, "Go.", work="You are a poet.")
    assert recorded(outside)[0].blocks[0].text.startswith("You are a poet.")


def test_further_settings_go_with_every_request_and_may_not_take_the_sessions_own(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("Done."))
    held = bodies(outside)
    played(outside, "Go.", fields={"reasoning_effort": "low"})
    assert json.loads(held[0])["reasoning_effort"] == "low"
    with pytest.raises(InputError, match="'messages'"):
        outside.settings(fields={"messages": []})


def test_a_handoff_is_written_by_the_sessions_own_model(tmp_path: Path) -> None:
    from tenure.engine.planners.handoff.sections import SECTIONS

    brief = "\n\n".join(f"## {section.title}\nPart one; its {section.key}." for section in SECTIONS) + "\n[end of brief]"
    where = folder(tmp_path, a_py="\n".join(f"line {n} of a file that is read" for n in range(2_000)))
    reads = [says("", call("read", path="a.py", offset=1 + 50 * n, limit=50)) for n in range(8)]
    outside = Outside(where, *reads, says("Done."), says(brief), says("On."))

    async def play() -> tuple[int, int]:
        agent = await open_agent(outside)
        async for _ in agent.run("Go."):
            pass
        before = agent.context.session.view.tokens
        answered = await agent.handoff()
        assert answered is not None
        async for _ in agent.run("Go on."):
            pass
        after = agent.context.session.view.tokens
        await agent.close()
        return before, after

    before, after = asyncio.run(play())
    assert after < before
