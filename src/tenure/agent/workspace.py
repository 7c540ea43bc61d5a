"""The folder an agent works in, and what it has seen there (an edge: it reads the disk).

A path is judged by where it leads, symlinks followed: a link in the workspace that points out of it is outside. Which files other programs run stands here as tables of names.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent import secrets
from tenure.errors import InputError

HASHED_BYTES: Final = 16 * 2**20  # of a file that is compared by its content; larger ones by size and time

_GIT: Final = re.compile(r"(?:^|/)\.git(?:/|$)", re.IGNORECASE)
_PARTS: Final = frozenset({"HEAD", "objects", "refs"})  # of a repository
_PROC: Final = re.compile(r"/proc/[^/]+/(?:task/[^/]+/)?root(/.*)?$")
_STREAM: Final = re.compile(r"/dev/(?:fd/\d+|stdin|stdout|stderr|tty|null)$")  # a program's own
_LONGEST: Final = 4_096  # bytes of a path
_INDEX_BYTES: Final = 2**26


class FileSight(Struct, frozen=True, kw_only=True, gc=False):
    """A file as it was when it was seen."""

    size: int
    mtime_ns: int
    sha256: bytes = b""  # empty when the file was too large


class Workspace:
    """A folder, with what was seen and written of its files so far. Mutable in that alone; one for each agent."""

    def __init__(
        self,
        root: Path,
        *,
        home: Path | None = None,
        scratch: Path | None = None,
        also: tuple[Path, ...] = (),
        keeps: Callable[[Path], bool] | None = None,
    ) -> None:
        """`scratch` is for this session's temporary files, `also` counts as inside; `keeps` says whether a file is copied before it is changed."""
        self._keeps = keeps
        self.root = root.resolve()
        self.home = (home or Path.home()).resolve()
        self.scratch = scratch.resolve() if scratch else None
        self._inside = (self.root, *([self.scratch] if self.scratch else []), *(path.resolve() for path in also))
        self._seen: dict[Path, FileSight] = {}
        self._written: set[Path] = set()

    def path(self, text: str, base: Path | None = None) -> Path:
        """The absolute path that a model wrote, without `..`; relative ones start at the root. Raises InputError for what can be no path."""
        if not text.strip() or "\0" in text or len(os.fsencode(text)) > _LONGEST:
            raise InputError("path", f"{text[:80]!r}", "the path of a file or folder")
        if text == "~" or text.startswith("~/"):
            return Path(os.path.normpath(self.home / text[2:]))
        return Path(os.path.normpath((base or self.root) / text))

    def landing(self, path: Path) -> Path:
        """Where a path leads once links are followed, whether or not it is there. A loop of links leads to itself."""
        try:
            return path.resolve()
        except (OSError, RuntimeError):
            return path

    def holds(self, path: Path) -> bool:
        """Whether a change there stays inside."""
        landing = self.landing(path)
        return any(landing.is_relative_to(folder) for folder in self._inside)

    def is_secret(self, path: Path, *, linked: bool = True) -> bool:
        """Whether it is a place where keys are kept, as it is written or where it leads, unless it is known to be no link."""
        if _STREAM.match(str(path)):
            return False
        forms = self._forms(path) if linked else (str(path),)
        return any(secrets.is_secret(form, self._near(form)) for form in forms)

    def is_git(self, path: Path) -> bool:
        """Whether it belongs to git itself, or would make a folder look like a repository: a change there may run programs later."""
        return bool(_GIT.search(str(path)) or _GIT.search(str(self.landing(path))) or self._is_repository(path))

    def is_run(self, path: Path) -> bool:
        """Whether other programs run it, or are told by it what to run."""
        return any(is_run(self._near(form)) for form in self._forms(path))

    def is_kept(self, path: Path) -> bool:
        """Whether what is there now could be brought back if it were overwritten: there is nothing, git has the file, or a copy is made."""
        landing = self.landing(path)
        try:
            if landing.is_dir() or landing.lstat().st_size == 0:
                return True
        except OSError:
            return True
        is_scratch = self.scratch is not None and landing.is_relative_to(self.scratch)
        return is_scratch or is_tracked(landing) or (self._keeps is not None and self._keeps(landing))

    def wrote(self, path: Path) -> None:
        """Note that the agent has written a file."""
        self._written.add(self.landing(path))

    def is_written(self, path: Path) -> bool:
        """Whether the agent has written the file."""
        return self.landing(path) in self._written

    def _forms(self, path: Path) -> Iterator[str]:
        """A path as it is written and where it leads."""
        for form in dict.fromkeys((str(path), str(self.landing(path)))):
            yield form
            if found := _PROC.match(form):
                yield found[1] or "/"

    def _near(self, path: str) -> str:
        """A path from the workspace on: what lies above it does not matter."""
        return path.removeprefix(f"{self.root}/")

    def _is_repository(self, path: Path) -> bool:
        """Whether a folder above a path inside has, with the path itself, what git takes for a repository."""
        for folder in path.parents:
            if not folder.is_relative_to(self.root):
                return False
            mine = {path.relative_to(folder).parts[0]}
            if mine <= _PARTS and len(mine | {name for name in _PARTS if (folder / name).exists()}) > 1:
                return True
        return False

    def shown(self, path: Path) -> str:
        """The path as a model and a person read it: relative where it is inside, printable, valid Unicode."""
        text = str(path)
        if path.is_relative_to(self.root):
            text = str(path.relative_to(self.root))
        return os.fsencode(text).decode("utf-8", "replace")

    def see(self, path: Path, sight: FileSight) -> None:
        """Note how a file was when it was read or written."""
        self._seen[self.landing(path)] = sight

    def sight(self, path: Path) -> FileSight | None:
        """How a file was when it was seen last; None when it never was."""
        return self._seen.get(self.landing(path))

    def unseen(self, path: Path) -> str:
        """Why a file must be read before it is overwritten: "was not read" or "changed"; empty when it need not be."""
        was = self.sight(path)
        if was is None:
            return "was not read"
        now = sighted(path)
        if now is None or (was.sha256 and now.sha256):
            return "" if now is not None and now.sha256 == was.sha256 else "changed"
        return "" if (now.size, now.mtime_ns) == (was.size, was.mtime_ns) else "changed"


def is_tracked(path: Path) -> bool:
    """Whether the repository around a file has it in its index."""
    for folder in path.parents:
        index = folder / ".git" / "index"
        with suppress(OSError):
            if (folder / ".git").exists():
                name = os.fsencode(path.relative_to(folder))
                length = len(name) & 0xFF if len(name) < 0xFFF else 0xFF  # the low byte of the entry's flags comes before
                entry = bytes([length]) + name + b"\0"
                return index.is_file() and index.stat().st_size <= _INDEX_BYTES and entry in index.read_bytes()
    return False


def sighted(path: Path) -> FileSight | None:
    """How a file is now; None when it is no regular file that can be read."""
    try:
        if not path.is_file():
            return None
        with open(path, "rb", opener=unhindered) as file:
            facts = os.fstat(file.fileno())
            whole = facts.st_size <= HASHED_BYTES
            digest = sha256(file.read(facts.st_size)).digest() if whole else b""
    except OSError:
        return None
    return FileSight(size=facts.st_size, mtime_ns=facts.st_mtime_ns, sha256=digest)


def unhindered(path: str, flags: int) -> int:
    """Open a file without waiting for anybody, and without becoming a terminal's: it may have become a pipe or a device."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_AT: Final = r"(?:^|/)"
# What other programs run, or are told to run by: a change of it is one that is carried out later. AGENTS.md and CLAUDE.md are read, not run.
_RUN: Final = _any(
    # editors and agents
    rf"{_AT}\.(?:vscode|idea|zed|fleet|cursor|windsurf|claude|codex|gemini|qwen|opencode|continue|cline|devcontainer|helix|roo|kilocode|kiro|amazonq|trae|factory|junie"
    rf"|augment|openhands|goose|idx)(?:/|$)|\.code-workspace$",
    rf"{_AT}(?:\.?mcp\.json|\.devcontainer\.json|opencode\.jsonc?|crush\.json|\.gitpod\.ya?ml|\.replit|\.aider\.conf\.yml|\.vimrc|\.nvimrc|\.exrc|\.nvim\.lua|\.dir-locals\.el|\.editorconfig-run)$",
    # git and its hooks
    rf"{_AT}(?:\.husky|\.githooks|git-?hooks|\.lefthook)(?:/|$)|{_AT}(?:\.pre-commit-config\.ya?ml|\.?lefthook\.ya?ml|\.lintstagedrc[^/]*)$",
    rf"{_AT}\.(?:gitmodules|gitconfig|lfsconfig)$",
    rf"{_AT}(?:pre-(?:commit|push|rebase|receive|auto-gc|applypatch|merge-commit)|post-(?:commit|checkout|merge|rewrite|receive|update|applypatch|index-change)"
    rf"|commit-msg|prepare-commit-msg|applypatch-msg|push-to-checkout|reference-transaction|fsmonitor-watchman)$",
    # shells and interpreters
    rf"{_AT}\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|inputrc|kshrc|tmux\.conf|screenrc)$",
    rf"{_AT}(?:\.direnv(?:/.*)?|\.?mise(?:\.[\w-]+)?\.toml|\.tool-versions|\.gdbinit|\.lldbinit|\.ghci|\.iex\.exs|rust-toolchain(?:\.toml)?|\.Rprofile|\.irbrc|\.pryrc|\.psqlrc|\.sqliterc|\.pdbrc)$",
    rf"{_AT}(?:site|user)customize\.py$|\.pth$|{_AT}\.config/(?:fish|systemd|autostart|git)/",
    # programs and builds
    rf"{_AT}(?:\.venv|venv|node_modules/\.bin|\.yarn/(?:releases|plugins))(?:/|$)|{_AT}(?:\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|\.bazelrc)$",
    rf"{_AT}\.cargo/config(?:\.toml)?$|{_AT}gradle/wrapper/",
    # what runs after a push
    rf"{_AT}\.github/(?:workflows|actions)(?:/|$)|{_AT}\.(?:circleci|buildkite|woodpecker|forgejo|gitea)(?:/|$)",
    rf"{_AT}(?:\.gitlab-ci\.ya?ml|\.travis\.yml|\.drone\.ya?ml|\.cirrus\.yml|Jenkinsfile|azure-pipelines\.ya?ml|bitbucket-pipelines\.ya?ml|\.?appveyor\.yml|cloudbuild\.ya?ml|buildspec\.ya?ml)$"
    rf"|{_AT}\.(?:gitlab|semaphore|teamcity|harness)(?:/|$)",
)  # fmt: skip

# Files that a program runs when it is called, and that a person may have allowed to be called again.
_RUN_BY: Final = (
    (_any(rf"{_AT}(?:GNU)?Makefile(?:\.[^/]*)?$|\.mk$"), ("make", "gmake")),
    (_any(rf"{_AT}justfile$|\.just$"), ("just",)),
    (_any(rf"{_AT}Taskfile\.ya?ml$"), ("task",)),
    (_any(rf"{_AT}package\.json$"), ("npm", "pnpm", "yarn", "bun", "npx", "turbo", "nx")),
    (_any(rf"{_AT}(?:conftest|noxfile)\.py$|{_AT}(?:pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml)$"), ("pytest", "python", "tox", "nox", "uv", "poetry", "hatch")),
    (_any(rf"{_AT}(?:setup\.py|setup\.cfg|pyproject\.toml)$"), ("pip", "pip3", "uv", "python", "python3", "poetry", "hatch")),
    (_any(rf"{_AT}(?:build\.rs|Cargo\.toml)$"), ("cargo",)),
    (_any(rf"{_AT}(?:Rakefile|Gemfile)$|\.gemspec$"), ("rake", "bundle")),
    (_any(rf"\.gradle(?:\.kts)?$|{_AT}gradlew$|{_AT}pom\.xml$|{_AT}mvnw$"), ("gradle", "./gradlew", "mvn", "./mvnw")),
    (_any(rf"{_AT}(?:Dockerfile[^/]*|(?:docker-)?compose[^/]*\.ya?ml)$"), ("docker", "podman")),
    (_any(rf"{_AT}CMakeLists\.txt$|\.cmake$"), ("cmake", "ctest", "make", "ninja")),
    (_any(rf"{_AT}(?:\.pylintrc|pylintrc|\.coveragerc|\.flake8|mypy\.ini|\.mypy\.ini)$"), ("pylint", "coverage", "flake8", "mypy", "pytest")),
    (_any(rf"{_AT}(?:WORKSPACE|BUILD|MODULE)(?:\.bazel)?$|\.bzl$"), ("bazel", "bazelisk")),
    (_any(rf"{_AT}(?:flake|shell|default|devenv)\.nix$"), ("nix", "nix-shell", "nix-build", "devenv")),
    (_any(rf"{_AT}(?:mix\.exs|build\.sbt|build\.zig|Package\.swift|meson\.build|ansible\.cfg)$"), ("mix", "sbt", "zig", "swift", "meson", "ninja", "ansible", "ansible-playbook")),
    (_any(rf"{_AT}[\w.-]+\.config\.[cm]?[jt]s$|{_AT}\.\w+rc\.[cm]?js$|{_AT}(?:Gulp|Grunt)file\.[cm]?[jt]s$"), ("npm", "pnpm", "yarn", "bun", "npx", "jest", "vitest", "vite", "eslint", "prettier", "gulp", "grunt", "playwright", "cypress")),
)  # fmt: skip


def is_run(path: str) -> bool:
    """Whether other programs run it, or are told by it what to run."""
    return _RUN.search(path) is not None


def run_by(path: str) -> Iterable[str]:
    """The programs that run what stands there when they are called."""
    return tuple(dict.fromkeys(program for names, programs in _RUN_BY if names.search(path) for program in programs))
