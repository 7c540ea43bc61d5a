"""A sequence, played once under one condition: one session over all its tasks, each checked when it is done (an edge)."""

import asyncio
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.catalogue import ModelChoice
from tenure.agent.events import Event
from tenure.agent.settings import World
from tenure.apis.reply import Delta, WholeReply
from tenure.lab.bench.outcome import FILE, STORE, Outcome, write_outcome
from tenure.lab.bench.play import Setup, Task, play
from tenure.lab.bench.sequence import Sequence, Step
from tenure.lab.stand_ins import briefed
from tenure.models.scripted import Script, ScriptedSpeaker, script_of
from tenure.models.speaker import Speaker
from tenure.store.store import Store

CHECK_S: Final = 120.0
SAMPLE: Final = "sample"  # the model that plays a sequence's own script


class Checked(Struct, frozen=True, kw_only=True):
    """What a check said."""

    solved: bool
    said: str = ""  # the end of what it printed, when it is not


class Player:
    """Plays a script to an agent; a question without tools is a summary's, and a stand-in answers it. Mutable. Lives for a whole sequence."""

    def __init__(self, script: Script) -> None:
        self.name, self.dialect = script.playing.model, script.playing.dialect
        self._agent = ScriptedSpeaker(script)

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply, or a brief."""
        request = cast(dict[str, Any], msgspec.json.decode(body))
        speaker = self._agent if request.get("tools") else self._summary(request)
        async for piece in speaker.speak(body):
            yield piece

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close: the next task goes on with it."""

    def _summary(self, request: dict[str, Any]) -> ScriptedSpeaker:
        text = briefed(str(request["messages"][-1]["content"]))
        return ScriptedSpeaker(script_of({"model": self.name, "dialect": self.dialect, "replies": [{"text": text}]}, "summary"))


async def run(
    sequence: Sequence,
    setup: Setup,
    folder: Path,
    world: World | None = None,
    *,
    heard: Callable[[Event], object] = lambda _: None,
    told: Callable[[Step, Outcome, Checked], object] | None = None,
) -> tuple[Outcome, ...]:
    """Play all tasks of a sequence; `folder` takes the session and the outcomes, and should be new.

    The project is laid out in a temporary folder, away from anybody's instruction files. `told` hears of each task that is done.
    """
    outcomes: list[Outcome] = []
    session = f"{sequence.name}-{setup.condition.name}"
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as scratch:
        place, home = Path(scratch) / sequence.name, Path(scratch) / "home"
        place.mkdir()
        home.mkdir()
        sequence.lay_out(place)
        outside = _world(sequence, setup, world or World(), home)
        setup = replace(setup, model="scripted:-", moves=False) if setup.model == SAMPLE else replace(setup, moves=False)
        for number, step in enumerate(sequence.steps, 1):
            task = Task(name=step.name, words=step.words, folder=place)
            within = folder / f"{number}-{step.name}"
            within.mkdir(parents=True, exist_ok=True)
            here = outside if outside.store is not None else dataclasses.replace(outside, store=_store(folder))
            outcome = await play(task, setup, session, here, heard=heard)
            checked = await asyncio.to_thread(checked_by, sequence.check(step), place)
            outcome = replace(outcome, solved=checked.solved, store=f"../{STORE}")
            write_outcome(outcome, within / FILE)
            outcomes.append(outcome)
            if told is not None:
                told(step, outcome, checked)
    return tuple(outcomes)


def checked_by(check: Path, folder: Path) -> Checked:
    """Run a check in a folder. What takes longer than two minutes is not solved."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own check, on what the agent made
            [sys.executable, "-P", str(check)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CHECK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Checked(solved=False, said=f"the check took longer than {CHECK_S:.0f} s")
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return Checked(solved=done.returncode == 0, said="" if done.returncode == 0 else (said[-1] if said else "it failed"))


def _store(folder: Path) -> Store:
    return Store(f"sqlite:///{folder / STORE}")


def _world(sequence: Sequence, setup: Setup, world: World, home: Path) -> World:
    """The world of a run: nobody's home, so that no skills or instructions of whoever runs it come in; keys are still found."""
    environment = {**world.environment, "HOME": str(home)}
    environment.setdefault("XDG_CONFIG_HOME", str(world.home / ".config"))
    outside = dataclasses.replace(world, environment=environment, home=home)
    if setup.model != SAMPLE:
        return outside
    player = Player(sequence.script(episodes=setup.condition.episodes))

    def speaks(_: ModelChoice) -> Speaker:
        return player

    return dataclasses.replace(outside, speaker=speaks)
