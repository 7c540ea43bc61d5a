"""The tour that the demo plays: real files, real tools, a small window, and a model that follows a script."""

import asyncio
import subprocess
from pathlib import Path

from tenure.agent.approval import Mode
from tenure.agent.events import CallDone, Committed, EpisodeEnded, EpisodeStarted, Event, Failed, LimitUnmet, Recalled, TurnDone
from tenure.agent.samples.tour import BUDGET, POLICY, SCRIPT, TASKS, lay_out
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.testing.store import MemoryStore


def toured(folder: Path) -> list[Event]:
    async def play() -> list[Event]:
        async def wait(seconds: float) -> None:
            if seconds > 1:
                await asyncio.Event().wait()

        world = World(home=folder, store=MemoryStore(), wait=wait, today=None)
        settings = Settings(folder=folder, model=f"scripted:{SCRIPT}", budget=BUDGET, policy=POLICY, mode=Mode.ALL, alone=True)
        agent = await Agent.open(settings, world)
        events = [event for task in TASKS for event in [each async for each in agent.run(task)]]
        await agent.close()
        return events

    return asyncio.run(play())


def test_the_tour_shows_episodes_that_open_close_and_leave_and_a_recall_that_brings_bytes_back(tmp_path: Path) -> None:
    lay_out(tmp_path)
    events = toured(tmp_path)
    assert [event.reason for event in events if isinstance(event, TurnDone)] == ["done"] * len(TASKS)
    started = [event.name for event in events if isinstance(event, EpisodeStarted)]
    assert started == ["locate-settings", "refuse-unknown-keys", "locate-report", "choose-delimiter"]
    assert [event.name for event in events if isinstance(event, EpisodeEnded)] == started
    assert not [event for event in events if isinstance(event, Failed | LimitUnmet)]
    commits = [event for event in events if isinstance(event, Committed)]
    left = {each.object for event in commits for each in event.left}
    assert {"episode:locate-settings", "episode:refuse-unknown-keys"} <= left
    assert all(event.tokens_after < event.tokens_before for event in commits)
    recalls = [event for event in events if isinstance(event, Recalled)]
    assert len(recalls) == 2
    done = [event for event in events if isinstance(event, CallDone)]
    assert {event.outcome for event in done} == {"done"}
    assert "DuplicateSectionError" in done[-1].text


def test_what_the_tour_changed_works(tmp_path: Path) -> None:
    lay_out(tmp_path)
    toured(tmp_path)
    ran = subprocess.run(
        ["python3", "-m", "unittest", "discover", "-q", "-s", "tests", "-t", "."], cwd=tmp_path, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert b"Ran 3 tests" in ran.stderr
