"""What lies below a folder that a command would read as a whole (an edge: it reads the disk). What is too much to be looked through counts."""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.workspace import Workspace

MOST: Final = 50_000  # entries
_NOT_ENTERED: Final = frozenset({".git"})
_ODD: Final = re.compile(r"^-|[\s'\"\\]")  # names that a shell or xargs takes for several words, or for an option


class Below(Struct, frozen=True, kw_only=True):
    """What was found below a folder."""

    secret: Path | None = None  # a place where keys are kept
    odd: Path | None = None  # a name that may become several words or an option
    leaves: Path | None = None  # a link to a folder elsewhere
    whole: bool = True  # all of it was looked at


def below(folder: Path, workspace: Workspace, *, hidden: bool = True, only: Sequence[str] = ()) -> Below:
    """Look through a folder; `hidden` files too, and of those with keys only names that fit one of `only`."""
    secret = odd = leaves = None
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
            if entry.name.startswith(".") and not hidden:
                continue
            path = Path(entry.path)
            if odd is None and _ODD.search(entry.name):
                odd = path
            fits = not only or any(fnmatchcase(entry.name, pattern) for pattern in only)
            if secret is None and fits and workspace.is_secret(path, linked=entry.is_symlink()):
                secret = path
            if leaves is None and entry.is_symlink() and path.is_dir() and not workspace.holds(path):
                leaves = path
            if entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
    return Below(secret=secret, odd=odd, leaves=leaves)
