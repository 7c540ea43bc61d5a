"""Walls around commands: bubblewrap, or Landlock where that is not to be had (an edge).

Three walls, each for one kind of command:

- `LOOK`, of commands that nobody was asked about: nothing can be changed but in the session's folder for temporary files; no network, no sockets, no
  other processes; places of keys are hidden.
- `WORKSPACE`, of commands that a person allowed: files can be changed in the workspace, in folders for temporary files and in caches.
- `SANDBOX`, of a session that asked for it: as `WORKSPACE`, but without caches, and without the network unless it is allowed.

https://github.com/containers/bubblewrap, and `tenure.agent.tools.landlock`.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.admission.git_program import run_bounded
from tenure.agent.secrets import below, in_home
from tenure.agent.tools import landlock
from tenure.agent.workspace import Workspace
from tenure.errors import InputError
from tenure.logs.places.files import read_file

NO_WALL: Final = "This machine has no wall for commands that only read (no bubblewrap that works, and no Landlock): they are judged by their words alone."
PROBE_S: Final = 10.0

# What programs keep of earlier work, below home: a command that was allowed may write there.
CACHES: Final = (
    ".cache", ".npm", ".pnpm-store", ".yarn", ".bun/install/cache", ".cargo/registry", ".cargo/git", "go/pkg", ".gradle", ".m2/repository",
    ".ivy2", ".sbt", ".nuget/packages", ".pub-cache", ".hex", ".mix", ".stack", ".cabal/packages", ".conda/pkgs", ".node-gyp", ".ccache",
    ".local/share/pnpm/store", ".local/share/virtualenvs", ".local/share/uv", "Library/Caches",
)  # fmt: skip
_FOLDERS: Final = "TMPDIR XDG_CACHE_HOME GOCACHE GOMODCACHE PIP_CACHE_DIR UV_CACHE_DIR CCACHE_DIR npm_config_cache".split()
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - everybody's
_DEVICES: Final = ("/dev/shm", "/dev/dri", "/dev/kvm", "/dev/fuse", "/dev/net")  # noqa: S108 - as above
_MOST_WORDS: Final = 4_096  # bytes of a file that names a folder
_STATUS: Final = 4_096  # bytes


class Means(StrEnum):
    """What makes the walls of this machine."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "Landlock"
    NONE = ""


class CommandReach(StrEnum):
    """How far a command may act, by who was asked."""

    LOOK = "look"  # nobody was: it is judged to change nothing
    WORKSPACE = "workspace"
    ANYWHERE = "anywhere"


class Sandbox(Struct, frozen=True, kw_only=True):
    """How the allowed commands of a session are shut in that asked for it."""

    network: bool = False


class Wall(Struct, frozen=True, kw_only=True):
    """A wall around one command."""

    means: Means
    folder: Path  # where it starts
    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    looking: bool = False  # it is only to read
    network: bool = False
    apart: bool = True  # its processes and devices are its own, and end with it
    temporary: bool = False  # /tmp is its own


class Walls(Struct, frozen=True, kw_only=True):
    """The walls of a session."""

    means: Means
    sandbox: Sandbox | None = None  # for commands that were allowed, however they were
    hidden: tuple[Path, ...] = ()  # from every command: what holds the agent's own keys

    def around(self, reach: CommandReach, workspace: Workspace, environment: Mapping[str, str]) -> Wall | None:
        """The wall for a command; None for none. Raises InputError where one was asked for and cannot be had: nothing may run then."""
        scratch = (workspace.scratch,) if workspace.scratch else ()
        own, sandbox = (workspace.root, *scratch), self.sandbox

        def wall(writable: Iterable[Path], hidden: Iterable[Path] = (), **how: bool) -> Wall:
            unseen = (*self.hidden, *hidden)
            return Wall(means=self.means, folder=workspace.root, writable=_real(writable), hidden=_real(unseen), **how)

        if self.means is Means.NONE and sandbox is not None:
            lacking = "neither bubblewrap (`bwrap`) nor Landlock works here"
            raise InputError("sandbox", lacking, "one of them, or no --sandbox; nothing was run")
        if self.means is Means.NONE:
            return None
        if reach is CommandReach.LOOK:
            return wall(scratch, (*in_home(workspace.home), *_untracked(workspace.root)), looking=True)
        if sandbox is not None:
            return wall(own, network=sandbox.network, temporary=True)
        if reach is CommandReach.ANYWHERE:
            return None
        return wall((*own, *_git_folders(workspace.root), *_kept(workspace.home, environment)), network=True, apart=False)


class Start(Struct, frozen=True, kw_only=True):
    """A command line that builds a wall and runs a command in it; `close` its descriptors in the end."""

    command: tuple[str, ...]
    descriptors: tuple[int, ...] = ()  # that the program inherits
    status: int = -1  # where it says that the wall stands; without a wall nowhere

    def stands(self) -> bool:
        """Whether the command was begun behind its wall; to be asked once it has ended."""
        with suppress(OSError):
            os.set_blocking(self.status, False)
            status = os.read(self.status, _STATUS)
            return landlock.MADE in status or b'"exit-code"' in status
        return False

    def close(self) -> None:
        """Let go of all descriptors."""
        for descriptor in (*self.descriptors, self.status):
            with suppress(OSError):
                os.close(descriptor)


def find_means(environment: Mapping[str, str] | None = None) -> Means:
    """What makes walls on this machine, tried out."""
    if platform.machine() not in landlock.MACHINES or sys.platform != "linux":
        return Means.NONE
    path = (os.environ if environment is None else environment).get("PATH")
    if (bwrap := shutil.which("bwrap", path=path)) is not None and _works(bwrap):
        return Means.BUBBLEWRAP
    return Means.LANDLOCK if landlock.version() and _works("") else Means.NONE


def start(inner: Sequence[str], wall: Wall, environment: Mapping[str, str]) -> Start:
    """How to run `inner` behind a wall. Raises InputError when its program is gone."""
    status, written = os.pipe()
    with ExitStack() as undone:
        undone.callback(os.close, status)
        undone.callback(os.close, written)
        if wall.means is Means.LANDLOCK:
            command, more = _by_landlock(inner, wall, written), ()
        else:
            bwrap = shutil.which("bwrap", path=environment.get("PATH")) or shutil.which("bwrap")
            if bwrap is None:
                raise InputError("bash", "bubblewrap (`bwrap`) is gone", "it, since this session began with it; nothing was run")
            more = (_rules(),) if wall.looking else ()
            command = _by_bubblewrap(bwrap, inner, wall, written, more)
        undone.pop_all()
    return Start(command=tuple(command), descriptors=(written, *more), status=status)


def _rules() -> int:
    """A file in memory with the system calls that a look may not make."""
    opened = os.memfd_create("seccomp")
    os.write(opened, landlock.seccomp("none"))
    os.lseek(opened, 0, os.SEEK_SET)
    return opened


def _by_bubblewrap(bwrap: str, inner: Sequence[str], wall: Wall, status: int, rules: Sequence[int]) -> Iterator[str]:
    yield from (bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--die-with-parent", "--json-status-fd", str(status))
    if wall.apart:
        yield from ("--proc", "/proc", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    else:
        yield from (word for device in _DEVICES for word in ("--dev-bind-try", device, device))
    if wall.temporary:
        yield from ("--tmpfs", "/tmp")  # noqa: S108 - one of its own
    for folder in wall.writable:
        yield from ("--bind", str(folder), str(folder)) if folder.is_dir() else ()
    for path in wall.hidden:
        yield from ("--tmpfs", str(path)) if path.is_dir() else ("--ro-bind", "/dev/null", str(path)) if path.exists() else ()
    yield from () if wall.network else ("--unshare-net",)
    yield from (word for descriptor in rules for word in ("--seccomp", str(descriptor)))
    yield from ("--chdir", str(wall.folder), "--", *inner)


def _by_landlock(inner: Sequence[str], wall: Wall, status: int) -> Iterator[str]:
    bounds = {
        "looking": wall.looking,
        "network": wall.network,
        "writable": [*map(str, wall.writable), *(_TEMPORARY if wall.temporary else ())],
        "hidden": list(map(str, wall.hidden)),
    }
    yield from (sys.executable, "-I", "-S", "-B", landlock.__file__, json.dumps(bounds), str(status), "--", *inner)


def _works(bwrap: str) -> bool:
    means = Means.BUBBLEWRAP if bwrap else Means.LANDLOCK
    wall = Wall(means=means, folder=Path("/"), writable=(), hidden=(), looking=True)
    with closing(start(["/bin/sh", "-c", ":"], wall, {"PATH": str(Path(bwrap).parent)} if bwrap else {})) as begun:
        try:
            program = subprocess.run(  # noqa: S603 - a program of our own choice
                begun.command,
                pass_fds=begun.descriptors,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return program.returncode == 0 and begun.stands()


def _real(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Where paths lie, each once; what is not there is left out, and so is what lies below another of them."""
    there: set[Path] = set()
    for path in paths:
        with suppress(OSError, RuntimeError):
            there.add(path.resolve(strict=True))
    return tuple(sorted(path for path in there if not there.intersection(path.parents)))


def _untracked(folder: Path) -> Iterator[Path]:
    """Places of keys in a folder, but for files that its repository has: they are no secret in it, and git would report them as changed."""
    places = list(below(folder))
    within = any((above / ".git").exists() for above in (folder, *folder.parents))
    git = shutil.which("git") if places and within else None
    if git is None:
        yield from places
        return
    words = [str(place.relative_to(folder)) for place in places]
    # Nothing that a repository's configuration names is run: a list of the index needs no filter, and the monitor is switched off.
    settings = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs", "-C", str(folder))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ran = run_bounded([git, *settings, "ls-files", "-z", "--", *words], environment, timeout_s=PROBE_S, most=2**20)
    tracked = set(os.fsdecode(ran.out).split("\0")) if ran.code == 0 else set[str]()
    yield from (place for place, word in zip(places, words, strict=True) if place.is_dir() or word not in tracked)


def _kept(home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    yield from map(Path, _TEMPORARY)
    yield from (home / place for place in CACHES)
    for name in _FOLDERS:
        if (value := environment.get(name, "")).strip("/.") and value.startswith("/"):
            yield Path(value)


def _git_folders(folder: Path) -> Iterator[Path]:
    """Where the repository around a folder keeps its data, if not in the folder itself: `git commit` writes there.

    A work tree that was added (`git worktree add`) names a folder elsewhere; it is believed when that folder names the work tree in turn.
    """
    top = next((above for above in (folder, *folder.parents) if os.path.lexists(above / ".git")), None)
    if top is None:
        return
    own = top / ".git"
    if own.is_symlink():  # it could lead anywhere
        return
    if own.is_dir():
        yield own
        return
    with suppress(OSError, ValueError, InputError):
        kept = (top / _words(own).removeprefix("gitdir:").strip()).resolve()
        if _words(kept / "gitdir").strip() == str(own):
            yield kept
            yield (kept / _words(kept / "commondir").strip()).resolve()


def _words(path: Path) -> str:
    return read_file(path, _MOST_WORDS).decode() if path.is_file() else ""
