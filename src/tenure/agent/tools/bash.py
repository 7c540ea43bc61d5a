"""The tool `bash`: a command in a shell, from which nothing stays behind."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import closing
from typing import Annotated, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.child import Child, Remainder, for_command
from tenure.agent.tools.sandbox import Means, Start, Wall, Walls, start
from tenure.agent.tools.shell.judge import judge
from tenure.agent.tools.tool import End, Here, ToolLimits, ToolOutcome, wait_for
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


class BashArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `bash`."""

    command: Annotated[str, Meta(description="a bash command line or script")]
    timeout_s: Annotated[float, Meta(description="seconds, when the usual is not right", gt=0)] | None = None


class Bash(ArgumentTool[BashArguments]):
    """Runs a command in the workspace."""

    name = "bash"
    takes = BashArguments
    kind = ToolKind.INTERMEDIATE
    description = (
        "Run a bash command in the workspace folder: builds, tests, git, and whatever has no tool of its own. To look at files use"
        " glob, grep and read, to change them edit and write. Each call starts afresh in the workspace folder, without a terminal or"
        f" input. It is ended after {ToolLimits().command_s:.0f} s, or timeout_s (at most {ToolLimits().command_most_s:.0f}), with all that it"
        " started; a server that is to stay needs `setsid` and its output in a file. All of its output is kept; of long output you see a part, and recall gives the rest."
        " $TMPDIR is for temporary files."
    )

    def __init__(self, *, walls: Walls | None = None, keys: frozenset[str] = frozenset()) -> None:
        """`keys` are further variables that hold keys to models."""
        self._walls, self._keys = walls or Walls(means=Means.NONE), keys

    @property
    def walled(self) -> bool:
        """Whether a command that was allowed is kept in the workspace, unless the person says otherwise."""
        return self._walls.means is not Means.NONE and self._walls.sandbox is None

    def _needs(self, given: BashArguments, workspace: Workspace) -> Approval | None:
        return judge(given.command, workspace, path=os.environ.get("PATH", ""))

    async def _run(self, given: BashArguments, here: Here) -> ToolOutcome:
        workspace, command = here.workspace, given.command
        wall = self._walls.around(here.reach, workspace, here.environment)
        if "\0" in command or not command.strip():
            raise InputError("command", "a NUL" if "\0" in command else "nothing", "a bash command")
        shell = (shutil.which("bash") or "/bin/sh", "-c", command)
        looks = judge(command, workspace, path=here.environment.get("PATH", "")) is None
        environment = for_command(here.environment, self._keys, str(workspace.scratch or ""), looks=looks)
        with closing(start(shell, wall, here.environment) if wall else Start(command=shell)) as begun:
            limit_s = min(given.timeout_s or here.limits.command_s, here.limits.command_most_s)
            return await _ran(begun, wall, environment, here, limit_s)


async def _ran(begun: Start, wall: Wall | None, environment: Mapping[str, str], here: Here, limit_s: float) -> ToolOutcome:
    began, output = here.now(), here.output()
    due: asyncio.TimerHandle | None = None

    def tell() -> None:
        nonlocal due
        due = None
        if news := output.news.text():
            here.say(news)

    def take(chunk: bytes) -> None:
        nonlocal due
        output.feed(chunk)
        due = due or asyncio.get_running_loop().call_later(TICK_S, tell)

    folder = here.workspace.root
    child = Child(begun.command, folder=folder, environment=environment, on_output=take, descriptors=begun.descriptors)
    left, strays = Remainder.NOTHING, True
    try:
        end = await wait_for(child.exit, here, limit_s)
        if end is End.DONE:
            left = await child.rest()
            strays = False
        else:
            await child.end()
    finally:
        child.kill(strays=strays)
        if due is not None:
            due.cancel()
        text = output.text()
    tell()
    if end is End.DONE and wall is not None and not begun.stands():
        why = f"no wall could be built by {wall.means} ({' '.join(text.split())[:_SAID]})"
        raise InputError("bash", why, "one; nothing was run")
    code = child.exit.result() if child.exit.done() else -signal.SIGKILL  # asleep in the kernel, it ends when it wakes
    took_s = here.now() - began
    match end:
        case End.DONE:
            how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
            status = f"{how}, {took_s:.1f} s"
        case End.LATE:
            most = here.limits.command_most_s
            status = f"stopped after {limit_s:g} s, with all that it had started; timeout_s can be up to {most:g}"
        case End.CANCELLED:
            status = f"stopped by the user after {took_s:.1f} s"
    failed = end is not End.DONE or code != 0
    body = text if text.endswith("\n") or not text else text + "\n"
    bounds = _bounds(wall, text) if failed else ""
    return ToolOutcome(text=f"{body}[{status}{left.value}{bounds}]", error=failed, spill=output.spill)


def _bounds(wall: Wall | None, text: str) -> str:
    """What the wall kept a command from, where that may be why it failed."""
    if wall is None or not any(sign in text[-_LOOKED_AT:] for sign in _KEPT_OUT):
        return ""
    return _LOOKING if wall.looking else _BOUNDED if wall.network else _BOUNDED + _NO_NETWORK
