"""The tool `bash`: a command in a shell, from which nothing stays behind."""

import asyncio
import os
import shutil
import signal
from typing import Annotated, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.child import Child, Left
from tenure.agent.tools.environment import for_command
from tenure.agent.tools.sandbox import Means, Start, Wall, Walls, start
from tenure.agent.tools.shell.judge import judged
from tenure.agent.tools.tool import End, Here, Limits, Outcome, ended
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError

TICK_S: Final = 0.05  # between two pieces of news
_LOOKED_AT: Final = 20_000  # characters of an output
_SAID: Final = 300
_KEPT_OUT: Final = ("Read-only file system", "Permission denied", "Operation not permitted", "EROFS", "EACCES", "EPERM", "Could not resolve", "Network is unreachable")  # fmt: skip
_LOOKING: Final = "; it ran unasked, so it could change nothing, and reach neither the network nor places of keys"
_BOUNDED: Final = (
    "; it could change files only in the workspace, in folders for temporary files and in caches, unless the user allows more"
)
_NO_NETWORK: Final = ", and reach no network"


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `bash`."""

    command: Annotated[str, Meta(description="a bash command line or script")]
    timeout_s: Annotated[float, Meta(description="seconds, when the usual is not right", gt=0)] | None = None


class Bash(ArgumentTool[Asked]):
    """Runs a command in the workspace."""

    name = "bash"
    takes = Asked
    kind = ToolKind.INTERMEDIATE

    def __init__(self, *, walls: Walls | None = None, keys: frozenset[str] = frozenset(), limits: Limits | None = None) -> None:
        """`keys` are further variables that hold keys to models; `limits` only words the description."""
        limits = limits or Limits()
        self._walls, self._keys = walls or Walls(means=Means.NONE), keys
        self.description = (
            "Run a bash command in the workspace folder: builds, tests, git, and whatever has no tool of its own. To look at files use"
            " glob, grep and read, to change them edit and write. Each call starts afresh in the workspace folder, without a terminal or"
            f" input. It is ended after {limits.command_s:.0f} s, or timeout_s (at most {limits.command_most_s:.0f}), with all that it"
            " started; a server that is to stay needs `setsid` and its output in a file. All of its output is kept; of long output you see a part, and recall gives the rest."
            " $TMPDIR is for temporary files."
        )

    @property
    def walled(self) -> bool:
        """Whether a command that was allowed is kept in the workspace, unless the person says otherwise."""
        return self._walls.means is not Means.NONE and self._walls.sandbox is None

    def _needs(self, asked: Asked, workspace: Workspace) -> Approval | None:
        """What the command may change, as far as it can be told from its words."""
        return judged(asked.command, workspace, path=os.environ.get("PATH", ""))

    async def _run(self, asked: Asked, here: Here) -> Outcome:
        """The command's output, how it ended and how long it took."""
        wall = self._walls.around(here.reach, here.workspace, here.environment)
        return await _Run(asked, here, wall, self._keys).outcome()


class _Run:
    """One command, from its start to its end."""

    def __init__(self, asked: Asked, here: Here, wall: Wall | None, keys: frozenset[str]) -> None:
        if "\0" in asked.command or not asked.command.strip():
            raise InputError("command", "a NUL" if "\0" in asked.command else "nothing", "a bash command")
        self._here, limits, workspace = here, here.limits, here.workspace
        self._limit_s = min(asked.timeout_s or limits.command_s, limits.command_most_s)
        scratch = workspace.scratch
        self._output = here.output()
        self._due: asyncio.TimerHandle | None = None
        self._command, self._wall = (shutil.which("bash") or "/bin/sh", "-c", asked.command), wall
        looks = judged(asked.command, workspace, path=here.environment.get("PATH", "")) is None
        self._environment = for_command(here.environment, keys, str(scratch) if scratch else "", looks=looks)

    async def outcome(self) -> Outcome:
        """Run it."""
        if self._wall is None:
            return await self._ran(Start(command=self._command))
        begun = start(self._command, self._wall, self._here.environment)
        try:
            return await self._ran(begun)
        finally:
            begun.close()

    async def _ran(self, begun: Start) -> Outcome:
        began = self._here.now()
        child = Child(
            begun.command,
            folder=self._here.workspace.root,
            environment=self._environment,
            heard=self._heard,
            descriptors=begun.descriptors,
        )
        left, strays = Left.NOTHING, True
        try:
            end = await ended(child.exit, self._here, self._limit_s)
            if end is End.DONE:
                left = await child.rest()
                strays = False
            else:
                await child.end()
        finally:
            child.kill(strays=strays)
            if self._due is not None:
                self._due.cancel()
            text = self._output.text()
        self._tell()
        if end is End.DONE and self._wall is not None and not begun.stands():
            raise InputError(
                "bash", f"no wall could be built by {self._wall.means} ({' '.join(text.split())[:_SAID]})", "one; nothing was run"
            )
        code = child.exit.result() if child.exit.done() else -signal.SIGKILL  # asleep in the kernel, it ends when it wakes
        status = self._status(end, code, self._here.now() - began)
        body = text if text.endswith("\n") or not text else text + "\n"
        failed = end is not End.DONE or code != 0
        return Outcome(
            text=f"{body}[{status}{left.value}{self._bounds(text) if failed else ''}]", error=failed, spill=self._output.spill
        )

    def _bounds(self, text: str) -> str:
        """What the wall kept a command from, where that may be why it failed."""
        if self._wall is None or not any(sign in text[-_LOOKED_AT:] for sign in _KEPT_OUT):
            return ""
        if self._wall.looking:
            return _LOOKING
        return _BOUNDED if self._wall.network else _BOUNDED + _NO_NETWORK

    def _status(self, end: End, code: int, took_s: float) -> str:
        match end:
            case End.DONE if code >= 0:
                return f"exit code {code}, {took_s:.1f} s"
            case End.DONE:
                return f"killed by {signal.Signals(-code).name}, {took_s:.1f} s"
            case End.LATE:
                most = self._here.limits.command_most_s
                return f"stopped after {self._limit_s:g} s, with all that it had started; timeout_s can be up to {most:g}"
            case End.CANCELLED:
                return f"stopped by the user after {took_s:.1f} s"

    def _heard(self, chunk: bytes) -> None:
        self._output.feed(chunk)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(TICK_S, self._tell)

    def _tell(self) -> None:
        self._due = None
        if news := self._output.news():
            self._here.say(news)
