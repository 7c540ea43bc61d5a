"""The program git, asked what state a folder is in (an edge: it runs a process).

A repository's own configuration can name programs: a file system monitor, hooks, filters, transports for objects that are missing. None of them
is run: what can be switched off is, and where a filter cannot be, git is not asked. Submodules are not entered. What git prints is bounded, and
so is the time it has; a repository that is too large for it is asked for less, and then no more. Needs POSIX: process groups, and pipes that wait.
"""

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Final

from msgspec import Struct, structs

from tenure.agent.admission.git_note import GitStatus, parse_status
from tenure.agent.admission.wording import one_line

TIMEOUT_S: Final = 2.0
MOST_BYTES: Final = 2**20  # of git's output: some ten thousand files
SAID_BYTES: Final = 4_096  # of its complaints
CHUNK: Final = 65_536
SAID_CHARS: Final = 120  # of what git says went wrong
_ALWAYS: Final = ("--no-pager", "--no-optional-locks", "--literal-pathspecs")
_STATUS: Final = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--ignore-submodules=dirty")


class Ran(Struct, frozen=True, kw_only=True):
    """What came of a program."""

    code: int
    out: bytes
    said: str = ""  # on its standard error, one line
    cut: bool = False  # it printed more than was wanted, and was stopped
    late: bool = False  # it took too long, and was stopped


Run = Callable[..., Ran]  # `run_bounded`, or what stands in for it


class GitRepository:
    """The repository around a folder, if there is one. Mutable: it knows how much git managed in time before."""

    def __init__(
        self, folder: Path, *, environment: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S, run: Run | None = None
    ) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._environment = {**looking(os.environ if environment is None else environment), "LC_ALL": "C"}  # its words are read
        found = shutil.which("git", path=self._environment.get("PATH")) or ""
        self._git = found if Path(found).is_absolute() else ""  # not one that lies in the folder itself
        self._program: Run = run or run_bounded
        self._untracked = True  # looked for; not once that took too long
        self._given_up = False
        self._prefix: str | None = None

    def status(self) -> GitStatus | None:
        """The state now; None without a repository or without git. Never raises."""
        if not self._git or self._given_up:
            return None
        if self._prefix is None:
            ran = self._run(("rev-parse", "--show-prefix"))
            if ran.late:
                return self._late()
            if ran.code:
                return _trouble(ran)
            self._prefix = ran.out.decode("utf-8", "backslashreplace").removesuffix("\n")
        off = self._filters()
        if isinstance(off, GitStatus):
            return off
        untracked = f"--untracked-files={'normal' if self._untracked else 'no'}"
        ran = self._run((*_STATUS, untracked), off)
        if ran.late:
            return self._late()
        if ran.code and not ran.cut:
            return _trouble(ran)
        return parse_status(ran.out, prefix=self._prefix, more=ran.cut, unseen=not self._untracked)

    def _late(self) -> GitStatus:
        """It took too long: next time less is asked for, and then nothing."""
        self._given_up, self._untracked = not self._untracked, False
        then = "it is not asked again" if self._given_up else "next time without untracked files"
        return GitStatus(trouble=f"no answer within {self._timeout_s:g} s; {then}")

    def _filters(self) -> tuple[str, ...] | GitStatus:
        """Settings that switch off all filters, which git runs to tell whether a file has changed.

        The user's own as well: a repository can tell some what to run (`lfs.extension`). So a file that a filter changes may be told as changed
        when only its time is new.
        """
        ran = self._run(("config", "--list", "--name-only", "-z"))
        if ran.late:
            return self._late()
        if ran.code or ran.cut:
            return GitStatus(trouble="left out: this repository's configuration cannot be read")
        keys = ran.out.decode("utf-8", "surrogateescape").split("\0")
        names = {key.removeprefix("filter.").rpartition(".")[0] for key in keys if key.startswith("filter.")}
        if any("=" in name for name in names):  # which the command line could not name
            return GitStatus(trouble="left out: there is a filter that cannot be switched off")
        return tuple(
            f"filter.{name}.{key}" for name in sorted(names) for key in ("clean=", "smudge=", "process=", "required=false")
        )

    def _run(self, arguments: tuple[str, ...], settings: tuple[str, ...] = ()) -> Ran:
        given = [word for setting in (*LOOKING, *settings) for word in ("-c", setting)]
        command = [self._git, *_ALWAYS, *given, "-C", str(self._folder), *arguments]
        return self._program(command, self._environment, timeout_s=self._timeout_s, most=MOST_BYTES)


def run_bounded(
    command: list[str],
    environment: Mapping[str, str],
    /,
    *,
    timeout_s: float,
    most: int,
    folder: Path | None = None,
    stdin: int = subprocess.DEVNULL,
) -> Ran:
    """Run a program of which at most `most` bytes are read; it and all it started are gone when this returns."""
    try:
        program = subprocess.Popen(  # noqa: S603 - a fixed command; only settings and a folder vary
            command,
            cwd=folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Ran(code=-1, out=b"", said=one_line(str(error), SAID_CHARS))
    with program:
        deadline = monotonic() + timeout_s
        heard = _listen(program, deadline, most)
        if not heard.cut and not heard.late:
            try:
                code = program.wait(max(0.0, deadline - monotonic()))
                return structs.replace(heard, code=code)
            except subprocess.TimeoutExpired:
                heard = structs.replace(heard, late=True)
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)  # not yet waited for, so the number is still its own
        return structs.replace(heard, code=program.wait())


def _listen(program: "subprocess.Popen[bytes]", deadline: float, most: int) -> Ran:
    """What a program prints up to its end, the deadline or `most` bytes."""
    assert program.stdout is not None
    assert program.stderr is not None
    out, said = bytearray(), bytearray()
    kept = {program.stdout.fileno(): (out, most), program.stderr.fileno(): (said, SAID_BYTES)}
    while kept:
        ready, _, _ = select.select(list(kept), [], [], max(0.0, deadline - monotonic()))
        if not ready:
            return _ran(out, said, late=True)
        for pipe in ready:
            held, room = kept[pipe]
            chunk = os.read(pipe, CHUNK)
            held += chunk[: room - len(held)]
            if not chunk:
                del kept[pipe]
            elif held is out and len(out) >= most:
                return _ran(out, said, cut=True)
    return _ran(out, said)


def _ran(out: bytearray, said: bytearray, *, cut: bool = False, late: bool = False) -> Ran:
    return Ran(code=-1, out=bytes(out), said=one_line(said.decode("utf-8", "replace"), SAID_CHARS), cut=cut, late=late)


_NOTHING: Final = ("not a git repository", "must be run in a work tree", "cannot use bare repository", "cannot change to")


def _trouble(ran: Ran) -> GitStatus | None:
    """Why git has no answer; None where there is simply nothing to ask about."""
    if any(words in ran.said for words in _NOTHING):
        return None
    if "dubious ownership" in ran.said:
        return GitStatus(trouble="git does not trust this folder, which belongs to another user")
    return GitStatus(trouble=f"git failed ({ran.said or ran.code})")


# A folder that only looks like a repository is none, whoever runs git.
EVERYWHERE: Final = ("safe.bareRepository=explicit",)
# For git when it only looks.
LOOKING: Final = (
    *EVERYWHERE,
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.askPass=",
    "core.sshCommand=false",
    "credential.helper=",
    "protocol.allow=never",
    "status.showStash=false",
    "submodule.recurse=false",
    "diff.autoRefreshIndex=false",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "advice.statusHints=false",
)
_LOOKING: Final[Mapping[str, str]] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # not even what a repository allows
    "GIT_PAGER": "cat",
}
_KEPT: Final = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"}
)


def looking(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git looks at the folder that it is given, without locks, prompts, network or pager."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**kept, **_LOOKING}


def configured(environment: Mapping[str, str], settings: tuple[str, ...]) -> dict[str, str]:
    """An environment in which git has further settings, `key=value`, which overrule those of its files."""
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    pairs = [setting.partition("=") for setting in settings]
    added = {f"GIT_CONFIG_{part}_{n}": pair[at] for n, pair in enumerate(pairs, first) for part, at in (("KEY", 0), ("VALUE", 2))}
    return {**environment, **added, "GIT_CONFIG_COUNT": str(first + len(pairs))}
