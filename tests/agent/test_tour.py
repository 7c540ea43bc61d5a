"""The tour that the demo plays: real files, real tools, a small window, and a model that follows a script."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tenure.agent.approval import Mode
from tenure.agent.events import (
    CallDone,
    Committed,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    LimitUnmet,
    Recalled,
    Replied,
    TurnDone,
    TurnFailed,
)
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tour import FILE, read_tour
from tenure.models.scripted import read_script
from tenure.testing.store import MemoryStore

TOUR = read_tour()


def toured(folder: Path, *tasks: str) -> list[Event]:
    async def play() -> list[Event]:
        async def wait(seconds: float) -> None:
            if seconds > 1:
                await asyncio.Event().wait()

        world = World(home=folder, store=MemoryStore(), wait=wait, today=None)
        settings = Settings(
            folder=folder, model=f"scripted:{FILE}", budget=TOUR.budget, policy=TOUR.policy, mode=Mode.ALL, alone=True
        )
        agent = await Agent.open(settings, world)
        events = [event for task in tasks for event in [each async for each in agent.run(task)]]
        left = {each.name for each in agent.episodes if not _shown(agent, each.name)}
        assert "locate-settings" in left, "an episode leaves wholly"
        await agent.close()
        return events

    return asyncio.run(play())


def _shown(agent: Agent, name: str) -> int:
    session = agent.context.session
    (episode,) = [each for each in session.index.episodes if each.name == name]
    entries = session.index.entries_of(episode)
    blocks = [(n, at, block) for n in entries for at, block in enumerate(session.index.entries[n].blocks)]
    return sum(session.view.weight(n, at) for n, at, block in blocks if block.episode == episode.ordinal)


def test_the_tour_shows_episodes_that_open_close_and_leave_a_recall_that_brings_bytes_back_and_what_it_changed_works(
    tmp_path: Path,
) -> None:
    TOUR.lay_out(tmp_path)
    events = toured(tmp_path, *TOUR.tasks, TOUR.more)
    assert [event.reason for event in events if isinstance(event, TurnDone)] == ["done"] * (len(TOUR.tasks) + 1)
    assert sum(isinstance(event, Replied) for event in events) == len(read_script(FILE).replies)
    started = [event.name for event in events if isinstance(event, EpisodeStarted)]
    assert started[:2] == ["locate-settings", "refuse-unknown-keys"]
    assert [event.name for event in events if isinstance(event, EpisodeEnded)] == started
    assert not [event for event in events if isinstance(event, TurnFailed | LimitUnmet)]
    commits = [event for event in events if isinstance(event, Committed)]
    left = {each.object for event in commits for each in event.left}
    assert len(commits) >= 2
    assert {"episode:locate-settings", "episode:refuse-unknown-keys", "episode:locate-report"} <= left
    assert all(event.tokens_after < 0.7 * event.tokens_before for event in commits), "it can be seen how the window falls"
    assert [event.objects for event in events if isinstance(event, Recalled)] == [(), ("read:2",)]
    done = [event for event in events if isinstance(event, CallDone)]
    assert {event.outcome for event in done} == {"done"}
    (first,) = [event.text for event in done if event.handle.startswith("read:2@")]
    assert first in [event for event in done if event.tool == "recall"][-1].text
    assert "class DuplicateSectionError" in first
    ran = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=tmp_path, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    assert b"Ran 4 tests" in ran.stderr
