"""The tool `bash`: a command in a shell, from which nothing stays behind. Promise: nothing is broken by how long, how much or what it prints."""

import asyncio
import shutil
import signal
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import parsed, readable, schema_of
from tenure.agent.tools.child import Child, Left
from tenure.agent.tools.environment import for_command
from tenure.agent.tools.racing import End, ended
from tenure.agent.tools.sandbox import Sandbox
from tenure.agent.tools.shell.judge import judged
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.workspace import Workspace
from tenure.errors import InputError
from tenure.record.tools import ToolKind

TICK_S: Final = 0.05  # between two pieces of news


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `bash`."""

    command: Annotated[str, Meta(description="a bash command line or script")]
    timeout_s: Annotated[float, Meta(description="seconds, when the usual is not right", gt=0)] | None = None


class Bash:
    """Runs a command in the workspace."""

    name = "bash"
    kind = ToolKind.INTERMEDIATE

    def __init__(
        self, *, sandbox: Sandbox | None = None, keys: frozenset[str] = frozenset(), limits: Limits | None = None
    ) -> None:
        """`keys` are further variables that hold keys to models; `limits` only words the description."""
        limits = limits or Limits()
        self._sandbox, self._keys = sandbox, keys
        self.schema: Mapping[str, Any] = schema_of(Asked)
        self.description = (
            "Run a bash command in the workspace folder: builds, tests, git, and whatever has no tool of its own. To look at files use"
            " glob, grep and read, to change them edit and write. Each call starts afresh in the workspace folder, without a terminal or"
            f" input. It is ended after {limits.command_s:.0f} s, or timeout_s (at most {limits.command_most_s:.0f}), with all that it"
            " started; a server that is to stay needs `setsid` and its output in a file. All of its output is kept; of long output you see a part, and recall gives the rest."
            " $TMPDIR is for temporary files."
        )

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:
        """What the command may change, as far as it can be told from its words."""
        asked = readable(Asked, arguments)
        return judged(asked.command, workspace) if asked else None

    async def run(self, arguments: str, here: Here) -> Outcome:
        """The command's output, how it ended and how long it took."""
        asked = parsed(Asked, arguments, self.name)
        if isinstance(asked, Outcome):
            return asked
        try:
            return await _Run(asked, here, self._sandbox, self._keys).outcome()
        except InputError as error:
            return Outcome(text=f"bash: {error}", error=True)


class _Run:
    """One command, from its start to its end."""

    def __init__(self, asked: Asked, here: Here, sandbox: Sandbox | None, keys: frozenset[str]) -> None:
        if "\0" in asked.command or not asked.command.strip():
            raise InputError("command", "a NUL" if "\0" in asked.command else "nothing", "a bash command")
        self._here, limits, workspace = here, here.limits, here.workspace
        self._limit_s = min(asked.timeout_s or limits.command_s, limits.command_most_s)
        scratch = workspace.scratch
        self._output = here.output()
        self._due: asyncio.TimerHandle | None = None
        inner = [shutil.which("bash") or "/bin/sh", "-c", asked.command]
        self._command = sandbox.command(inner, workspace) if sandbox else inner
        self._environment = for_command(here.environment, keys, str(scratch) if scratch else "")

    async def outcome(self) -> Outcome:
        """Run it."""
        began = self._here.now()
        child = Child(self._command, folder=self._here.workspace.root, environment=self._environment, heard=self._heard)
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
        code = child.exit.result() if child.exit.done() else -signal.SIGKILL  # asleep in the kernel, it ends when it wakes
        status = self._status(end, code, self._here.now() - began)
        body = text if text.endswith("\n") or not text else text + "\n"
        failed = end is not End.DONE or code != 0
        return Outcome(text=f"{body}[{status}{left.value}]", error=failed, spill=self._output.spill)

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
