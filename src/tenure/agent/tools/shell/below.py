"""What lies below a folder that a command would read as a whole (an edge: it reads the disk). What is too much to be looked through counts."""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.secrets import is_secret
from tenure.agent.workspace import Workspace

MOST: Final = 50_000  # entries
_NOT_ENTERED: Final = frozenset({".git"})
_ODD: Final = re.compile(r"^-|[\s'\"\\]")  # names that a shell or xargs takes for several words, or for an option


class Below(Struct, frozen=True, kw_only=True):
    """What was found below a folder."""

    secret: Path | None = None  # a place where keys are kept
    odd: Path | None = None  # a name that may become several words or an option, or of which a part is the path of a key
    leaves: Path | None = None  # a link to a folder elsewhere
    whole: bool = True  # all of it was looked at


_IGNORES: Final = frozenset({".gitignore", ".ignore", ".rgignore"})  # of rg
_BYTES: Final = 2**18  # of such a file
_ENDS: Final = re.compile(r"(?<=\w)(?!\w)")
_SYSTEM: Final = re.compile(r"/(?:etc|proc|dev|run|var)/")


def _may_be_elsewhere(path: str) -> bool:
    """Whether the end of a path is that of a place of the system where keys are kept, or begins with one."""
    return any(
        is_secret(path[: end.start()][found.start() :]) for found in _SYSTEM.finditer(path) for end in _ENDS.finditer(path)
    )


def below(folder: Path, workspace: Workspace, *, hidden: bool = True, only: Sequence[str] = ()) -> Below:
    """Look through a folder; `hidden` files too, and of those with keys only names that fit one of `only`."""
    secret = odd = leaves = None
    passed_over: list[Path] = []
    again: set[str] = set()  # patterns by which hidden files are searched nevertheless
    left = MOST
    stack = [str(folder)]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except OSError:
            continue
        left -= len(entries)
        if left < 0:
            return Below(secret=secret, odd=odd, leaves=leaves, whole=False)
        for entry in entries:
            path = Path(entry.path)
            if not hidden and entry.name in _IGNORES:
                again.update(_again(path))
            if entry.name.startswith(".") and not hidden:
                passed_over.append(path)
                continue
            if odd is None and (_ODD.search(entry.name) or _may_be_elsewhere(entry.path[len(str(folder)) :])):
                odd = path
            fits = not only or any(fnmatchcase(entry.name, pattern) for pattern in only)
            if secret is None and fits and workspace.is_secret(path, linked=entry.is_symlink()):
                secret = path
            if leaves is None and entry.is_symlink() and path.is_dir() and not workspace.holds(path):
                leaves = path
            if entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
    if secret is None and again:
        secret = next(
            (
                path
                for path in passed_over
                if any(fnmatchcase(path.name, widened(pattern)) for pattern in again) and _has_secret(path, workspace)
            ),
            None,
        )
    return Below(secret=secret, odd=odd, leaves=leaves)


def _again(ignores: Path) -> Iterator[str]:
    """The names that an ignore file takes back."""
    try:
        text = ignores.read_text("utf-8", "replace") if ignores.stat().st_size <= _BYTES else "!*"
    except OSError:
        return
    for line in text.splitlines():
        if line.startswith("!"):
            yield from line[1:].strip().strip("/").replace("\\", "").split("/")


_CLASS: Final = re.compile(r"\[[!^]?\]?(?:\[([:.=])[^\]]{0,64}\1\]|[^\]])*\]")


def widened(pattern: str) -> str:
    """A pattern in which a class of characters is any character: shells have classes (`[^a]`, `[[:alpha:]]`) that Python's patterns have not."""
    closed, bracket, rest = pattern.rpartition("]")  # so that each class has an end, and is read once
    return _CLASS.sub("?", closed + bracket) + rest.replace("[", "?")


def _has_secret(path: Path, workspace: Workspace) -> bool:
    return workspace.is_secret(path) or (path.is_dir() and below(path, workspace).secret is not None)
