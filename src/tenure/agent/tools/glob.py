"""The tool `glob`: files by name."""

import asyncio
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import translate
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.child import Child, scrub
from tenure.agent.tools.ls import looks, one_line
from tenure.agent.tools.tool import End, Here, ToolLimits, ToolOutcome, wait_for
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError
from tenure.extras import NotInstalled

ALTERNATIVES: Final = 64
LONGEST: Final = 1_000  # characters of a pattern
MOST: Final = 500_000  # files that are looked at
_STEP: Final = 2_000  # files whose times are looked up before others have their turn

_INNERMOST: Final = re.compile(r"\{([^{}]*)\}")
_MAGIC: Final = re.compile(r"[*?\[\]{}!\\]")
_SIMPLE: Final = re.compile(r"[\w.*?{},+@ -]+")  # a name's pattern that ripgrep reads in the same way
_Part = Callable[[str], object] | None  # of a path's pattern: what matches a name; None: `**`


class GlobArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `glob`."""

    pattern: Annotated[str, Meta(description="such as *.py (in any folder), src/**/*.{ts,tsx} or docs/*.md")]
    path: Annotated[str, Meta(description="the folder to look in; the workspace when left out")] = "."
    hidden: Annotated[bool, Meta(description="also hidden files")] = False
    limit: Annotated[int, Meta(description="how many", ge=1)] | None = None


class Glob(ArgumentTool[GlobArguments]):
    """Finds files by their names."""

    name = "glob"
    takes = GlobArguments
    kind = ToolKind.BULK
    description = (
        f"Find files by name, the newest first, at most {ToolLimits().found} unless limit says otherwise. Files that .gitignore leaves out are not"
        " found, and no folders. This is the cheapest look at an unknown project: begin with it rather than with broad reads."
    )

    def _needs(self, given: GlobArguments, workspace: Workspace) -> Approval | None:
        return looks_below(self.name, given.path, given.pattern, workspace)

    async def _run(self, given: GlobArguments, here: Here) -> ToolOutcome:
        pattern, shown = globs(given.pattern), here.workspace.shown
        folder = folder_of(given.path, pattern.folder, here.workspace)
        if not folder.is_dir():
            return ToolOutcome(text=f"no file matches {given.pattern}: there is no folder {shown(folder)}")
        paths = _Paths(pattern, hidden=given.hidden)
        search = await run_ripgrep(["--files", "--null", *depth_of(pattern)], folder, here, paths.take, hidden=given.hidden)
        limit, count = given.limit or here.limits.found, len(paths.wanted)
        lines = [one_line(shown(folder / path)) for path in await newest(folder, paths.wanted, limit)]
        notes = [f"{count - limit:,} more of {count:,}: narrow the pattern, or set limit"] if count > limit else []
        notes += [search.cut_short] if search.cut_short else []
        notes += [f"only the first {MOST:,} files were looked at"] if search.enough else []
        if not lines and not notes:
            where = "" if folder == here.workspace.root else f" in {shown(folder)}"
            apart = "ignored" if given.hidden else "hidden and ignored"
            return ToolOutcome(text=f"no file matches {given.pattern}{where} ({apart} files are left out)")
        return ToolOutcome(text="\n".join([*lines, *(f"[{note}]" for note in notes)]), error=not lines)


async def listed_files(here: Here) -> tuple[str, ...]:
    """The files below the workspace that are not ignored, sorted; no more than are ever looked at. None where ripgrep cannot run."""
    paths = _Paths(globs("*"), hidden=False)
    try:
        await run_ripgrep(["--files", "--null"], here.workspace.root, here, paths.take, hidden=False)
    except (InputError, NotInstalled, OSError):
        return ()
    return tuple(sorted(paths.wanted))


class _Paths:
    """Takes paths that end in NULs, and keeps those that a pattern holds for. Mutable."""

    def __init__(self, pattern: "Globs", *, hidden: bool) -> None:
        self.wanted: list[str] = []
        self._pattern, self._hidden = pattern, hidden
        self._rest = b""
        self._seen = 0

    def take(self, chunk: bytes) -> bool:
        """Take more; whether that is enough."""
        *whole, self._rest = (self._rest + chunk).split(b"\0")
        self._seen += len(whole)
        paths = (raw.decode("utf-8", "surrogateescape").removeprefix("./") for raw in whole)
        self.wanted += [path for path in paths if is_wanted(path, self._pattern, hidden=self._hidden)]
        return self._seen >= MOST


def looks_below(tool: str, path: str, pattern: str | None, workspace: Workspace) -> Approval | None:
    """What a search needs: nothing, unless keys are kept in the folder that the path and the pattern lead to."""
    try:
        folder = globs(pattern).folder if pattern else ""
        return looks(tool, path, workspace) or looks(tool, str(workspace.path(folder or ".", workspace.path(path))), workspace)
    except InputError:
        return None


def folder_of(path: str, folder: str, workspace: Workspace) -> Path:
    """Where to search. Raises InputError for git's own folder."""
    place = workspace.path(folder or ".", workspace.path(path))
    if workspace.is_git(place):
        raise InputError("path", f"{workspace.shown(place)} is git's own", "another folder; ask git itself about its data")
    return place


def depth_of(pattern: "Globs | None") -> list[str]:
    """How ripgrep is told not to go deeper than a pattern can."""
    return [f"--max-depth={pattern.depth}"] if pattern and pattern.depth else []


def is_wanted(path: str, pattern: "Globs | None", *, hidden: bool) -> bool:
    """Whether a path is one that is looked for."""
    if not hidden and (path.startswith(".") or "/." in path):
        return False
    return pattern is None or pattern.match(path)


async def newest(folder: Path, paths: list[str], most: int) -> list[str]:
    """The paths that were changed last, the newest first; those that are gone come last."""
    times: list[tuple[int, str]] = []
    for n, path in enumerate(paths):
        changed = 0
        with suppress(OSError):
            changed = os.lstat(f"{folder}/{path}").st_mtime_ns
        times.append((-changed, path))
        if n % _STEP == _STEP - 1:
            await asyncio.sleep(0)
    return [path for _, path in nsmallest(most, times)]


class Globs(Struct, frozen=True, kw_only=True):
    """A pattern, ready to be held against paths."""

    folder: str  # that all matches lie in, as the pattern begins: no signs, perhaps empty
    names: str  # the pattern of the last name, empty when it cannot be told apart
    parts: tuple[tuple[_Part, ...], ...]
    negative: bool = False

    @property
    def depth(self) -> int:
        """How many folders deep a match can lie, its own name counted; 0 for any."""
        if self.negative or any(part is None for parts in self.parts for part in parts):
            return 0
        return max(map(len, self.parts), default=0)

    def match(self, path: str) -> bool:
        """Whether it holds for a path with `/` in it, relative to `folder`'s own."""
        if not self.parts:
            return True
        return any(_holds(parts, path) for parts in self.parts) is not self.negative


def globs(pattern: str) -> Globs:
    """The pattern as it was written. Raises InputError for one that is none."""
    text = pattern.strip().removeprefix("./")
    negative = text.startswith("!")
    text = text.removeprefix("!")
    if not text or len(text) > LONGEST or "\0" in text:
        raise InputError("glob", repr(pattern[:80]), "a pattern such as *.py, src/**/*.ts or {a,b}.json")
    text = text + "**" if text.endswith("/") else text
    sign = _MAGIC.search(text)
    end = -1 if negative else text.rfind("/", 0, sign.start() if sign else len(text))
    folder = text[:end] or "/" if end >= 0 else ""
    inside = text[end + 1 :] if folder else text.removeprefix("/")
    anchored = bool(folder) or "/" in text.rstrip("/")
    parts = tuple(_parts(each, anchored=anchored) for each in _alternatives(inside))
    last = inside.rpartition("/")[2]
    whole = last.count("{") == last.count("}") and last != "**"  # or its alternatives span folders
    names = last if whole and not negative and _SIMPLE.fullmatch(last) else ""
    return Globs(folder=folder, names=names, parts=parts, negative=negative)


def _alternatives(text: str) -> list[str]:
    """What the braces stand for, each alone. Raises InputError when that is too much."""
    waiting, done = [text], list[str]()
    while waiting:
        each = waiting.pop()
        found = _INNERMOST.search(each)
        if found is None:
            done.append(each)
        else:
            waiting += [each[: found.start()] + choice + each[found.end() :] for choice in found[1].split(",")]
        if len(waiting) + len(done) > ALTERNATIVES:
            raise InputError("glob", "too many alternatives in braces", f"at most {ALTERNATIVES}")
    return done


def _parts(text: str, *, anchored: bool) -> tuple[_Part, ...]:
    parts: list[_Part] = [] if anchored else [None]
    for name in text.split("/"):
        if name == "**":
            parts += [] if parts and parts[-1] is None else [None]
        elif name not in ("", "."):
            # As fnmatch has it: sets are negated by `!`, a sign is taken as it is in a set of its own.
            plain = re.sub(r"\\(.)", r"[\1]", name).replace("[^", "[!")
            parts.append(re.compile(translate(re.sub(r"\*{2,}", "*", plain))).match)
    return tuple(parts)


def _holds(parts: tuple[_Part, ...], path: str) -> bool:
    last = parts[-1] if parts else None
    if last is not None:  # which most paths fail at
        if last(path[path.rfind("/") + 1 :]) is None:
            return False
        if len(parts) == 2 and parts[0] is None:
            return True
    states = _through({0}, parts)
    for name in path.split("/"):
        here = [(at, parts[at]) for at in states if at < len(parts)]
        states = _through({at if part is None else at + 1 for at, part in here if part is None or part(name) is not None}, parts)
        if not states:
            return False
    return len(parts) in states


def _through(states: set[int], parts: tuple[_Part, ...]) -> set[int]:
    """The states with those that `**` reaches without a folder."""
    return states | {at + 1 for at in states if at < len(parts) and parts[at] is None}


ALWAYS: Final = ("--no-config", "--no-messages", "--color=never", "--no-require-git", "--glob=!.git")
_ERROR_BYTES: Final = 2_000


class SearchEnd(Struct, frozen=True, kw_only=True):
    """How a search ended."""

    errors: str = ""  # what ripgrep said was wrong
    enough: bool = False  # it was stopped, since more would not have been shown
    cut_short: str = ""  # why it did not come to its end, if it did not


def program() -> str:
    """Where ripgrep is: in this environment, or on the path. Raises NotInstalled."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    program = str(own) if own.is_file() else shutil.which("rg")
    if program is None:
        raise NotInstalled("ripgrep")
    return program


async def run_ripgrep(
    arguments: Sequence[str], folder: Path, here: Here, is_enough: Callable[[bytes], bool], *, hidden: bool
) -> SearchEnd:
    """Run ripgrep in a folder; `is_enough` takes what it prints, and says whether that is enough. Raises InputError when it cannot run."""
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    errors = bytearray()

    def take(chunk: bytes) -> None:
        if not done.done() and is_enough(chunk):
            done.set_result(True)

    def complain(chunk: bytes) -> None:
        errors.extend(chunk[: _ERROR_BYTES - len(errors)])

    command = [program(), *ALWAYS, *(("--hidden",) if hidden else ()), *arguments]
    child = Child(command, folder=folder, environment=scrub(here.environment), on_output=take, on_error=complain)
    child.exit.add_done_callback(lambda _: done.done() or done.set_result(False))
    try:
        end = await wait_for(done, here, here.limits.search_s)
        if end is End.DONE and not done.result():
            await child.rest()
    finally:
        child.kill(strays=False)
    late = f"stopped after {here.limits.search_s:g} s: narrow it by path or glob" if end is End.LATE else ""
    return SearchEnd(
        errors=errors.decode("utf-8", "replace").strip(),
        enough=done.done() and done.result(),
        cut_short="stopped by the user" if end is End.CANCELLED else late,
    )
