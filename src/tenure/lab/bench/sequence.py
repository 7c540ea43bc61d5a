"""Sequences of tasks that depend on each other (CWL paper, section 6.5), each a folder of `examples/sequences`; and playing one (an edge).

`sequence.yaml` has the tasks and what a model that solves them would say, `project/` the files they start from, `checks/TASK.py` the program that is run in
the folder after a task and ends with 0 when it is solved.
"""

import asyncio
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import Struct, convert
from msgspec.structs import replace

from tenure.agent.catalogue import ModelChoice
from tenure.agent.events import Event
from tenure.agent.settings import World
from tenure.apis.reply import Delta, WholeReply
from tenure.engine.record.tools import DELIMITER
from tenure.errors import InputError
from tenure.examples import example
from tenure.lab.bench.outcome import FILE, STORE, NeedTally, TaskOutcome, write_outcome
from tenure.lab.bench.play import BenchTask, PlaySetup, play
from tenure.lab.planner import briefed
from tenure.models.scripted import Script, ScriptedSpeaker, read_yaml, script_of
from tenure.store.store import Store

FOLDER: Final = "sequences"
CHECK_S: Final = 120.0
SAMPLE: Final = "sample"  # the model that plays a sequence's own script


class SequenceStep(Struct, frozen=True, kw_only=True):
    """A task of a sequence."""

    name: str
    words: str


class TaskSequence(Struct, frozen=True, kw_only=True):
    """A little project, tasks on it, and the script of a model that solves them."""

    stands_for: str  # what the paper ran
    ceiling: int  # provider tokens; small, as the project is
    model: str  # as whom the script is billed
    dialect: str
    steps: tuple[SequenceStep, ...]
    replies: tuple[dict[str, Any], ...]
    folder: Path

    @property
    def name(self) -> str:
        """By which the command line knows it."""
        return self.folder.name

    def checked(self, step: SequenceStep, folder: Path) -> "CheckResult":
        """Whether a task is solved, by a program that is run in the folder."""
        return run_check(self.folder / "checks" / f"{step.name}.py", folder)

    def lay_out(self, folder: Path) -> None:
        """Copy the project into an empty folder."""
        shutil.copytree(self.folder / "project", folder, dirs_exist_ok=True)

    def speaker(self, *, episodes: bool) -> ScriptedSpeaker:
        """The model that says what the sequence has for it."""
        return ScriptedSpeaker(self.script(episodes=episodes))

    def script(self, *, episodes: bool) -> Script:
        """What a model says. Without `episodes` it is not offered `delimiter`: those calls are left out, and replies that had nothing else."""
        replies = self.replies if episodes else [reply for each in self.replies if (reply := _without_marks(each))]
        return script_of({"model": self.model, "dialect": self.dialect, "replies": list(replies)}, self.name)


def sequence_names() -> tuple[str, ...]:
    """The sequences there are."""
    return tuple(sorted(path.parent.name for path in example(FOLDER).glob("*/sequence.yaml")))


def sequence_named(name: str) -> TaskSequence:
    """The sequence of that name. Raises InputError, naming those there are."""
    if name not in sequence_names():
        raise InputError("sequence", repr(name), "one of " + ", ".join(sequence_names()))
    folder = example(FOLDER) / name
    return convert(
        {**read_yaml(folder / "sequence.yaml"), "folder": str(folder)}, TaskSequence, dec_hook=lambda kind, text: kind(text)
    )


def _without_marks(reply: dict[str, Any]) -> dict[str, Any]:
    calls = [call for call in reply.get("calls", ()) if call["name"] != DELIMITER]
    return {**reply, "calls": calls} if calls or reply.get("text") else {}


class CheckResult(Struct, frozen=True, kw_only=True):
    """What a check said."""

    solved: bool
    said: str = ""  # the end of what it printed, when it is not


class NeedSpeaker(ScriptedSpeaker):
    """A scripted model that counts what it needed. Mutable."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.tallies: dict[str, NeedTally] = {}  # by task


class Playable(Protocol):
    """A sequence of tasks that can be played and checked."""

    @property
    def name(self) -> str:
        """By which the command line knows it."""
        ...

    @property
    def ceiling(self) -> int:
        """Provider tokens."""
        ...

    @property
    def steps(self) -> tuple[SequenceStep, ...]:
        """Its tasks."""
        ...

    def lay_out(self, folder: Path) -> None:
        """Put the files it starts from into an empty folder."""
        ...

    def checked(self, step: SequenceStep, folder: Path) -> CheckResult:
        """Whether a task is solved. Runs what the agent made."""
        ...

    def speaker(self, *, episodes: bool) -> ScriptedSpeaker:
        """The model that plays it where no other is named. `episodes`: it marks them."""
        ...


class _SequencePlayer:
    """Lets a scripted model play; a question without tools is a summary's, and a stand-in answers it. Mutable. Lives for a whole sequence."""

    def __init__(self, agent: ScriptedSpeaker) -> None:
        self.name, self.dialect = agent.name, agent.dialect
        self._agent = agent

    def needs(self, task: str) -> NeedTally | None:
        """What a task needed, where the model keeps count."""
        return self._agent.tallies.get(task) if isinstance(self._agent, NeedSpeaker) else None

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
    sequence: Playable,
    setup: PlaySetup,
    folder: Path,
    world: World | None = None,
    *,
    on_event: Callable[[Event], object] = lambda _: None,
    on_task: Callable[[SequenceStep, TaskOutcome, CheckResult], object] | None = None,
) -> tuple[TaskOutcome, ...]:
    """Play all tasks of a sequence; `folder` takes the session and the outcomes, and should be new.

    The project is laid out in a temporary folder, away from anybody's instruction files. `on_task` gets each task that is done.
    """
    outcomes: list[TaskOutcome] = []
    session = f"{sequence.name}-{setup.condition.name}"
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as scratch:
        place, home = Path(scratch) / sequence.name, Path(scratch) / "home"
        place.mkdir()
        home.mkdir()
        sequence.lay_out(place)
        player = _SequencePlayer(sequence.speaker(episodes=setup.condition.episodes)) if setup.model == SAMPLE else None
        outside = _world(player, world or World(), home)
        setup = replace(setup, model="scripted:-", moves=False) if setup.model == SAMPLE else replace(setup, moves=False)
        for number, step in enumerate(sequence.steps, 1):
            task = BenchTask(name=step.name, words=step.words, folder=place)
            within = folder / f"{number}-{step.name}"
            within.mkdir(parents=True, exist_ok=True)
            here = (
                outside if outside.store is not None else dataclasses.replace(outside, store=Store(f"sqlite:///{folder / STORE}"))
            )
            outcome = await play(task, setup, session, here, on_event=on_event)
            checked = await asyncio.to_thread(sequence.checked, step, place)
            needs = player.needs(step.name) if player is not None else None
            outcome = replace(outcome, solved=checked.solved, store=f"../{STORE}", needs=needs)
            write_outcome(outcome, within / FILE)
            outcomes.append(outcome)
            if on_task is not None:
                on_task(step, outcome, checked)
    return tuple(outcomes)


def run_check(check: Path, folder: Path) -> CheckResult:
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
        return CheckResult(solved=False, said=f"the check took longer than {CHECK_S:.0f} s")
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return CheckResult(solved=done.returncode == 0, said="" if done.returncode == 0 else (said[-1] if said else "it failed"))


def _world(player: _SequencePlayer | None, world: World, home: Path) -> World:
    """The world of a run: nobody's home, so that no skills or instructions of whoever runs it come in; keys are still found."""
    environment = {**world.environment, "HOME": str(home)}
    environment.setdefault("XDG_CONFIG_HOME", str(world.home / ".config"))
    outside = dataclasses.replace(world, environment=environment, home=home)
    if player is None:
        return outside

    def speaks(_: ModelChoice) -> _SequencePlayer:
        return player

    return dataclasses.replace(outside, speaker=speaks)
