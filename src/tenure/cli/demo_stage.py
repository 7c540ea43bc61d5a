"""Where the demo plays: a folder with the little project, the script and a store of its own (an edge)."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.agent import tour
from tenure.agent.approval import Mode
from tenure.agent.events import Requested, Retrying
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools import ripgrep
from tenure.apis.reply import Delta, WholeReply
from tenure.errors import InputError
from tenure.models.scripted import ScriptedSpeaker, read_script
from tenure.models.speaker import Speaker

PREFIX: Final = "tenure-demo-"
_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")  # of the environment


class Stage(Struct, frozen=True, kw_only=True):
    """The folder, and what lies in it."""

    folder: Path

    @property
    def project(self) -> Path:
        """What the agent works on."""
        return self.folder / "project"

    @property
    def store(self) -> Path:
        """The session, once it was played."""
        return self.folder / "demo.db"

    @property
    def script(self) -> Path:
        """What the model says."""
        return self.folder / "script.yaml"


def set_up(folder: Path | None) -> Stage:
    """The stage, in a new folder among the temporary ones unless one is named. Raises InputError for one that holds anything, and without ripgrep."""
    ripgrep.program()
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "--folder", f"{str(folder)!r} is there and holds something", "an empty or a new folder: the demo writes into it"
        )
    made = Path(tempfile.mkdtemp(prefix=PREFIX)) if folder is None else folder
    stage = Stage(folder=made.resolve())
    stage.project.mkdir(parents=True)
    tour.read_tour().lay_out(stage.project)
    shutil.copyfile(tour.FILE, stage.script)
    return stage


class InStep:
    """A model that begins to answer only when all that came before has been shown. Mutable. Belongs to one event loop."""

    def __init__(self, inner: Speaker) -> None:
        """`inner` says what is to be said."""
        self.name, self.dialect = inner.name, inner.dialect
        self._inner, self._shown = inner, asyncio.Event()

    def go_on(self) -> None:
        """All is shown: let it answer."""
        self._shown.set()

    async def speak(self, body: bytes, /) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply, once it may come."""
        await self._shown.wait()
        self._shown.clear()
        async for piece in self._inner.speak(body):
            yield piece

    async def warm(self) -> None:
        """What the inner one needs."""
        await self._inner.warm()

    async def close(self) -> None:
        """Close the inner one."""
        await self._inner.close()


async def cast(stage: Stage) -> tuple[Agent, InStep]:
    """The agent of the demo, and its model. The script's own pace does not hold: whoever shows it, paces it."""
    script, show = read_script(stage.script), tour.read_tour()
    model = InStep(ScriptedSpeaker(replace(script, playing=replace(script.playing, pace_s=0.0))))
    settings = Settings(
        folder=stage.project,
        model=f"scripted:{stage.script}",
        store=f"sqlite:///{stage.store}",
        budget=show.budget,
        policy=show.policy,
        mode=Mode.ALL,
        alone=True,
    )
    world = World(environment=_environment(stage), home=stage.folder, today=None, speaker=lambda _: model)
    return await Agent.open(settings, world), model


async def play_unseen(stage: Stage) -> None:
    """Play all tasks without a screen."""
    agent, model = await cast(stage)
    try:
        for task in tour.read_tour().tasks:
            async for event in agent.run(task):
                if isinstance(event, Requested | Retrying):
                    model.go_on()
    finally:
        await agent.close()


def _environment(stage: Stage) -> dict[str, str]:
    """What the agent's commands see: little, and the Python that runs this, wherever it is."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    path = os.pathsep.join(filter(None, (str(Path(sys.executable).parent), environment.get("PATH", os.defpath))))
    return environment | {"PATH": path, "HOME": str(stage.folder), "PYTHONDONTWRITEBYTECODE": "1"}
