"""The workspace's files as they were before each change, so that changes can be undone (an edge: it runs git).

A git directory of its own beside the store holds them, by folder; the folder's own `.git` is neither read nor written, and the folder need not be a
repository. What a repository or a user has set up for git (hooks, filters, attributes, a monitor) is not in force there. Git's index tells what
has changed since the last time, so that only that is read.

Kept are all files but those that `.gitignore` names, those that programs fetch or make (`LEFT_OUT`), other repositories within, and what is larger than
`LARGEST`. A file that `edit` or `write` names is kept even if it is ignored.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.admission.git_program import Ran, run_bounded
from tenure.agent.admission.wording import one_line
from tenure.errors import InputError
from tenure.store.spills import SUFFIX as SPILLS

SUFFIX: Final = ".snapshots"
LARGEST: Final = 2**24  # bytes of a file
MOST_BYTES: Final = 2**30  # of all that is new in one snapshot
MOST_FILES: Final = 50_000  # that are new in one
TIMEOUT_S: Final = 30.0  # for one step of git
LISTED_BYTES: Final = 2**23  # of names
CAUSE_CHARS: Final = 160
LEFT_OUT: Final = (
    "node_modules/", ".venv/", "venv/", "__pycache__/", ".tox/", ".nox/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", ".gradle/", ".cache/",
    ".DS_Store",
)  # fmt: skip

_SETTINGS: Final = (
    "core.bare=false", "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.autocrlf=false", "core.fileMode=true", "core.looseCompression=1",
    "core.excludesFile=/dev/null", "core.attributesFile=/dev/null", "core.logAllRefUpdates=false", "gc.auto=0", "protocol.allow=never",
    "submodule.recurse=false",
)  # fmt: skip
_WHO: Final = {f"GIT_{who}_{what}": "tenure" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_ENVIRONMENT: Final = {
    **_WHO, "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
# Bytes stay as they are, whatever a `.gitattributes` says.
_ATTRIBUTES: Final = "* -text -eol -filter -ident -working-tree-encoding\n"
_PART: Final = "\x1f"


class Snapshot(Struct, frozen=True, kw_only=True):
    """The files before one change."""

    number: int  # from 1 on, oldest first
    commit: str
    time: str
    cause: str  # the call that came next
    message: str = ""  # what the person had said before
    entries: int = 0  # of the record then; 0: not known


class Rewound(Struct, frozen=True, kw_only=True):
    """What became of files when they were put back: paths below the folder."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    left: tuple[str, ...]  # those of which no copy is kept as they are now, so that they were not touched


class _Failed(Exception):
    """Git did not do what it should."""


class Snapshots:
    """Those of one session in one folder. Mutable: it knows whether it works."""

    def __init__(
        self, kept: Path, folder: Path, conversation: str, *, environment: Mapping[str, str], now: Callable[[], str]
    ) -> None:
        """`kept` is the folder of all of them."""
        self.folder = folder
        self._place = kept / f"{sha256(os.fsencode(folder)).hexdigest()[:16]}.git"
        self._ref, self._now = f"refs/tenure/{conversation}", now
        path = environment.get("PATH")
        self._environment = {"PATH": path or "", "HOME": str(kept), **_ENVIRONMENT}
        self._git = shutil.which("git", path=path)
        self._given_up = "" if self._git else "git is not installed"

    @staticmethod
    def beside(spills: Path | None, otherwise: Path) -> Path:
        """Where those of a store are, by the folder of its spills; for a store in memory, elsewhere."""
        return spills.with_name(spills.name.removesuffix(SPILLS) + SUFFIX) if spills is not None else otherwise / "snapshots"

    def take(self, cause: str, *, message: str = "", entries: int = 0, also: Iterable[Path] = ()) -> str:
        """Keep the files as they are now; why that could not be done, or nothing. Never raises.

        `entries` has the record now, `also` are files to keep although they are ignored.

        What could not be done in time or is too much is not tried again.
        """
        if self._given_up:
            return self._given_up
        try:
            with self._alone():
                self._taken(cause, message, entries, also)
        except _Failed as failed:
            self._given_up = str(failed)
        except OSError as error:
            return f"no copy of the files could be kept ({error.strerror or error})"
        return self._given_up

    def keeps(self, path: Path) -> bool:
        """Whether `take` would keep what is in a file now. Never raises."""
        if self._given_up or not path.is_relative_to(self.folder):
            return False
        above = [folder for folder in path.parents if folder != self.folder and folder.is_relative_to(self.folder)]
        try:
            if path.lstat().st_size > LARGEST or any((folder / ".git").exists() for folder in above):
                return False
            with self._alone():
                self._begin()
                ignored = self._run("check-ignore", "--quiet", "--no-index", "--", str(path.relative_to(self.folder)))
        except (OSError, _Failed):
            return False
        return ignored.code == 1

    def listed(self) -> tuple[Snapshot, ...]:
        """All of this session, oldest first. Raises InputError when git cannot tell."""
        if self._git is None or not self._place.is_dir():
            return ()
        try:
            ran = self._ran("log", "--first-parent", "--reverse", "--format=%H%x1f%B%x00", self._ref, "--")
        except _Failed:  # there is none yet
            return ()
        lines = [line.strip("\n") for line in ran.out.decode("utf-8", "replace").split("\0")]
        found: list[Snapshot] = []
        for number, line in enumerate(filter(None, lines), 1):
            commit, time, cause, message, entries, *_ = [*line.split(_PART), "", "", "", ""]
            length = int(entries) if entries.isdecimal() else 0
            found.append(Snapshot(number=number, commit=commit, time=time, cause=cause, message=message.strip(), entries=length))
        return tuple(found)

    def since(self, entries: int) -> int:
        """The number of the first change that came when the record had more entries than that; 0 when none did. Raises InputError."""
        return next((each.number for each in self.listed() if each.entries > entries), 0)

    def share(self, conversation: str, entries: int) -> None:
        """Give a fork that begins with so many entries the changes up to there, so that it can undo them too. Raises InputError."""
        before = [each for each in self.listed() if 0 < each.entries <= entries]
        if before:
            try:
                self._ran("update-ref", f"refs/tenure/{conversation}", before[-1].commit)
            except _Failed as failed:
                raise InputError("fork", str(failed), "git to keep the changes of files for it") from failed

    def rewind(self, number: int, *, entries: int = 0) -> Rewound:
        """Put the files back as they were before a change; what they are now is kept first, so that this can be undone too. Raises InputError."""
        every = self.listed()
        if not 1 <= number <= len(every):
            raise InputError(
                "rewind", f"{number}", f"a number from 1 to {len(every)}" if every else "a session that changed files"
            )
        if problem := self.take(f"rewind {number}", entries=entries):
            raise InputError("rewind", problem, "a copy of the files as they are now, before they are put back")
        try:
            with self._alone():
                return self._rewound(every[number - 1].commit)
        except _Failed as failed:
            raise InputError("rewind", str(failed), "git to put the files back") from failed
        except OSError as error:
            raise InputError("rewind", f"{error.filename}: {error.strerror or error}", "files that can be written") from error

    def _begin(self) -> None:
        """Make the git directory, if there is none."""
        if not (self._place / "HEAD").exists():
            self._ran("init", "--quiet", "--bare", "--template=", str(self._place))
            (self._place / "info").mkdir(exist_ok=True)
            (self._place / "info/attributes").write_text(_ATTRIBUTES)
            (self._place / "info/exclude").write_text("\n".join((*LEFT_OUT, "")))

    def _taken(self, cause: str, message: str, entries: int, also: Iterable[Path]) -> None:
        self._begin()
        changed = self._names("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard")
        forced = [os.path.relpath(path, self.folder) for path in also if path.is_relative_to(self.folder)]
        kept, dropped = self._fitting({*changed, *forced})
        if kept:
            self._ran("update-index", "--add", "--remove", "--replace", "-z", "--stdin", given=kept)
        if dropped:
            self._ran("update-index", "--force-remove", "-z", "--stdin", given=dropped)
        tree = self._ran("write-tree").out.decode().strip()
        words = _PART.join((self._now(), one_line(cause, CAUSE_CHARS), one_line(message, CAUSE_CHARS), str(entries)))
        before = self._run("rev-parse", "--verify", "--quiet", self._ref)
        parent = ("-p", before.out.decode().strip()) if before.code == 0 else ()
        commit = self._ran("commit-tree", tree, *parent, "-m", words).out.decode().strip()
        self._ran("update-ref", self._ref, commit)

    def _fitting(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """The files to be kept, and those that are too large. Raises _Failed when they are too many together."""
        kept: list[str] = []
        dropped: list[str] = []
        size = 0
        for name in sorted(names):
            if name.endswith("/"):  # another repository
                continue
            try:
                facts = os.lstat(self.folder / name)
            except OSError:
                kept.append(name)  # gone
                continue
            large = facts.st_size > LARGEST
            (dropped if large else kept).append(name)
            size += 0 if large else facts.st_size
        if len(kept) > MOST_FILES or size > MOST_BYTES:
            raise _Failed(f"the folder has more than {MOST_FILES:,} files or {MOST_BYTES // 2**20:,} MB to keep copies of")
        return kept, dropped

    def _rewound(self, commit: str) -> Rewound:
        now, then = (set(self._names("ls-tree", "-r", "-z", "--name-only", each)) for each in (self._ref, commit))
        differ = self._names("diff-tree", "-r", "-z", "--no-renames", "--name-only", self._ref, commit)
        removed = [name for name in differ if name not in then]
        self._ran("read-tree", "-m", commit)  # what stays the same keeps what the index knows of it
        for name in removed:
            self._remove(self.folder / name)
        left = [name for name in differ if name in then and self._in_the_way(name, now)]
        if written := [name for name in differ if name in then and name not in left]:
            self._ran("checkout-index", "-f", "-u", "-z", "--stdin", given=written)
        return Rewound(written=tuple(written), removed=tuple(removed), left=tuple(left))

    def _in_the_way(self, name: str, now: set[str]) -> bool:
        """Whether something stands in a file's place of which no copy is kept: it would be lost."""
        place = self.folder / name
        if place.is_dir() and not place.is_symlink():
            return True
        above = [Path(name), *Path(name).parents][:-1]
        paths = [(self.folder / each, str(each)) for each in above]
        return any((path.is_symlink() or path.is_file()) and each not in now for path, each in paths)

    def _remove(self, path: Path) -> None:
        """Remove a file, and the folders that are empty without it. Not through a link: it would lead elsewhere."""
        if path.parent.resolve() != path.parent:
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
        with suppress(OSError):
            for folder in path.parents:
                if folder == self.folder:
                    break
                folder.rmdir()

    def _names(self, *arguments: str) -> list[str]:
        ran = self._ran(*arguments)
        return [os.fsdecode(name) for name in dict.fromkeys(ran.out.split(b"\0")) if name]

    def _ran(self, *arguments: str, given: Sequence[str] = ()) -> Ran:
        """What git says to this. Raises _Failed."""
        ran = self._run(*arguments, given=given)
        if ran.late:
            raise _Failed(f"git took more than {TIMEOUT_S:g} s to keep a copy of the files")
        if ran.cut:
            raise _Failed(f"the folder has more than {MOST_FILES:,} files to keep copies of")
        if ran.code:
            raise _Failed(f"git could keep no copy of the files ({ran.said or ran.code})")
        return ran

    def _run(self, *arguments: str, given: Sequence[str] = ()) -> Ran:
        assert self._git is not None
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        places = [] if arguments[0] == "init" else [f"--git-dir={self._place}", f"--work-tree={self.folder}"]
        command = [self._git, *settings, *places, *arguments]
        where = self.folder if arguments[0] != "init" else self._place.parent
        with tempfile.TemporaryFile() as names:
            names.write(b"".join(os.fsencode(name) + b"\0" for name in given))
            names.seek(0)
            return run_bounded(
                command, self._environment, timeout_s=TIMEOUT_S, most=LISTED_BYTES, folder=where, stdin=names.fileno()
            )

    @contextmanager
    def _alone(self) -> Generator[None]:
        """No other session keeps files of this folder meanwhile. A lock that a killed git left is nobody's then."""
        self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._place.parent / f"{self._place.name}.lock").open("w") as lock:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            (self._place / "index.lock").unlink(missing_ok=True)
            yield
