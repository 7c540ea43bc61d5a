"""The tool `glob`: files by name."""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import translate
from heapq import nsmallest
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.ls import looks, one_line
from tenure.agent.tools.ripgrep import cut_short, searched
from tenure.agent.tools.tool import Here, Limits, Outcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.tools import ToolKind
from tenure.errors import InputError

ALTERNATIVES: Final = 64
LONGEST: Final = 1_000  # characters

_INNERMOST: Final = re.compile(r"\{([^{}]*)\}")
_MAGIC: Final = re.compile(r"[*?\[\]{}!\\]")
_SIMPLE: Final = re.compile(r"[\w.*?{},+@ -]+")  # a name's pattern that ripgrep reads in the same way
_Part = Callable[[str], object] | None  # None: `**`


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
    folder, _, rest = _parted(text) if not negative else ("", "", text)
    inside = rest if folder else text.removeprefix("/")
    anchored = bool(folder) or "/" in text.rstrip("/")
    parts = tuple(_parts(each, anchored=anchored) for each in _alternatives(inside))
    names = _last(inside)
    return Globs(folder=folder, names=names if not negative and _SIMPLE.fullmatch(names) else "", parts=parts, negative=negative)


def _parted(text: str) -> tuple[str, str, str]:
    """The folders before the first sign, and the rest."""
    sign = _MAGIC.search(text)
    end = text.rfind("/", 0, sign.start() if sign else len(text))
    return (text[:end] or "/" if end >= 0 else "", "/", text[end + 1 :])


def _last(text: str) -> str:
    """The pattern of the last name; empty where alternatives span folders."""
    last = text.rpartition("/")[2]
    return last if last.count("{") == last.count("}") and last != "**" else ""


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
    names = [name for name in text.split("/") if name not in ("", ".")]
    parts: list[_Part] = [] if anchored else [None]
    for name in names:
        if name != "**":
            parts.append(re.compile(translate(_translatable(name))).match)
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return tuple(parts)


def _translatable(name: str) -> str:
    """A name's pattern as fnmatch has it: sets are negated by `!`, a sign is taken as it is in a set of its own."""
    name = re.sub(r"\\(.)", r"[\1]", name).replace("[^", "[!")
    return re.sub(r"\*{2,}", "*", name)


def _holds(parts: tuple[_Part, ...], path: str) -> bool:
    last = parts[-1] if parts else None
    if last is not None:  # which most paths fail at
        if last(path[path.rfind("/") + 1 :]) is None:
            return False
        if len(parts) == 2 and parts[0] is None:
            return True
    states = _through({0}, parts)
    for name in path.split("/"):
        states = _through({next_ for at in states for next_ in _step(parts, at, name)}, parts)
        if not states:
            return False
    return len(parts) in states


def _step(parts: tuple[_Part, ...], at: int, name: str) -> tuple[int, ...]:
    if at == len(parts):
        return ()
    part = parts[at]
    if part is None:
        return (at,)
    return (at + 1,) if part(name) is not None else ()


def _through(states: set[int], parts: tuple[_Part, ...]) -> set[int]:
    """The states with those that `**` reaches without a folder."""
    return states | {at + 1 for at in states if at < len(parts) and parts[at] is None}


MOST: Final = 500_000  # files that are looked at
_STEP: Final = 2_000  # files whose times are looked up before others have their turn


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `glob`."""

    pattern: Annotated[str, Meta(description="such as *.py (in any folder), src/**/*.{ts,tsx} or docs/*.md")]
    path: Annotated[str, Meta(description="the folder to look in; the workspace when left out")] = "."
    hidden: Annotated[bool, Meta(description="also hidden files")] = False
    limit: Annotated[int, Meta(description="how many", ge=1)] | None = None


class Glob(ArgumentTool[Asked]):
    """Finds files by their names."""

    name = "glob"
    takes = Asked
    kind = ToolKind.BULK

    def __init__(self, *, limits: Limits | None = None) -> None:
        """`limits` only words the description."""
        limits = limits or Limits()
        self.description = (
            f"Find files by name, the newest first, at most {limits.found} unless limit says otherwise. Files that .gitignore leaves out are not"
            " found, and no folders. This is the cheapest look at an unknown project: begin with it rather than with broad reads."
        )

    def _needs(self, asked: Asked, workspace: Workspace) -> Approval | None:
        """Nothing, unless it looks where keys are kept."""
        return looks_below(self.name, asked.path, asked.pattern, workspace)

    async def _run(self, asked: Asked, here: Here) -> Outcome:
        """The paths."""
        return await _found(asked, here)


async def _found(asked: Asked, here: Here) -> Outcome:
    pattern = globs(asked.pattern)
    folder = folder_of(asked.path, pattern.folder, here.workspace)
    paths = Paths(pattern, hidden=asked.hidden)
    if not folder.is_dir():
        return Outcome(text=f"no file matches {asked.pattern}: there is no folder {here.workspace.shown(folder)}")
    search = await searched(["--files", "--null", *depth_of(pattern)], folder, here, paths.take, hidden=asked.hidden)
    limit = asked.limit or here.limits.found
    lines = [one_line(here.workspace.shown(folder / path)) for path in await newest(folder, paths.found, limit)]
    count = len(paths.found)
    notes = [f"{count - limit:,} more of {count:,}: narrow the pattern, or set limit"] if count > limit else []
    notes += [why] if (why := cut_short(search, here)) else []
    notes += [f"only the first {MOST:,} files were looked at"] if search.enough else []
    if not lines and not notes:
        where = "" if folder == here.workspace.root else f" in {here.workspace.shown(folder)}"
        apart = "ignored" if asked.hidden else "hidden and ignored"
        return Outcome(text=f"no file matches {asked.pattern}{where} ({apart} files are left out)")
    return Outcome(text="\n".join([*lines, *(f"[{note}]" for note in notes)]), error=not lines)


def looks_below(tool: str, path: str, pattern: str | None, workspace: Workspace) -> Approval | None:
    """What a search needs: nothing, unless keys are kept in the folder that the path and the pattern lead to."""
    try:
        folder = globs(pattern).folder if pattern else ""
        return looks(tool, path, workspace) or looks(tool, str(workspace.path(folder or ".", workspace.path(path))), workspace)
    except InputError:
        return None


def folder_of(path: str, folder: str, workspace: Workspace) -> Path:
    """Where to search. Raises InputError for git's own folder."""
    found = workspace.path(folder or ".", workspace.path(path))
    if workspace.is_git(found):
        raise InputError("path", f"{workspace.shown(found)} is git's own", "another folder; ask git itself about its data")
    return found


def depth_of(pattern: Globs | None) -> list[str]:
    """How ripgrep is told not to go deeper than a pattern can."""
    return [f"--max-depth={pattern.depth}"] if pattern and pattern.depth else []


class Paths:
    """Takes paths that end in NULs, and keeps those that a pattern holds for. Mutable."""

    def __init__(self, pattern: Globs | None, *, hidden: bool) -> None:
        self.found: list[str] = []
        self._pattern, self._hidden = pattern, hidden
        self._rest = b""
        self._seen = 0

    def take(self, chunk: bytes) -> bool:
        """Take more; whether that is enough."""
        *whole, self._rest = (self._rest + chunk).split(b"\0")
        self._seen += len(whole)
        self.found += self._wanted(whole)
        return self._seen >= MOST

    def _wanted(self, whole: list[bytes]) -> Iterator[str]:
        for raw in whole:
            path = raw.decode("utf-8", "surrogateescape").removeprefix("./")
            if wanted(path, self._pattern, hidden=self._hidden):
                yield path


def wanted(path: str, pattern: Globs | None, *, hidden: bool) -> bool:
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
