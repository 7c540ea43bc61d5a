"""Commands in a sandbox of bubblewrap (an edge). Promise: nothing is broken outside the workspace, and never silently without it.

https://github.com/containers/bubblewrap: the whole file system is there to read, the workspace to write; processes, and unless allowed the
network, are the command's own.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tenure.agent.workspace import Workspace
from tenure.errors import InputError


class Sandbox(Struct, frozen=True, kw_only=True):
    """How a command is shut in."""

    network: bool = False
    writable: tuple[Path, ...] = ()  # beside the workspace
    hidden: tuple[Path, ...] = ()  # not even to be read: files that hold the agent's own keys

    def command(self, inner: Sequence[str], workspace: Workspace, program: str | None = None) -> list[str]:
        """The command line that runs `inner` shut in. Raises InputError when bubblewrap is missing: nothing may run then."""
        bwrap = program or shutil.which("bwrap")
        if bwrap is None:
            raise InputError(
                "sandbox", "bubblewrap (`bwrap`) is not installed", "it, or a session without a sandbox; nothing was run"
            )
        inside = [workspace.root, *([workspace.scratch] if workspace.scratch else []), *self.writable]
        return [
            bwrap,
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108 - one of its own
            *(word for folder in inside if folder.is_dir() for word in ("--bind", str(folder), str(folder))),
            *(word for path in self.hidden for word in self._hiding(path)),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
            *(() if self.network else ("--unshare-net",)),
            *("--chdir", str(workspace.root), "--"),
            *inner,
        ]

    def _hiding(self, path: Path) -> Sequence[str]:
        if path.is_dir():
            return ("--tmpfs", str(path))
        return ("--ro-bind", "/dev/null", str(path)) if path.exists() else ()
