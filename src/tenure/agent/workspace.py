"""The folder an agent works in, and what it has seen there (an edge: it reads the disk). Promise: nobody's change is overwritten unseen.

A path is judged by where it leads, symlinks followed: a link in the workspace that points out of it is outside.
"""

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.secrets import is_secret
from tenure.errors import InputError

HASHED_BYTES: Final = 16 * 2**20  # of a file that is compared by its content; larger ones by size and time

_GIT: Final = re.compile(r"(?:^|/)\.git(?:/|$)", re.IGNORECASE)
_LONGEST: Final = 4_096  # bytes of a path


class Sight(Struct, frozen=True, kw_only=True, gc=False):
    """A file as it was when it was seen."""

    size: int
    mtime_ns: int
    sha256: bytes = b""  # empty when the file was too large


class Workspace:
    """A folder, with what was seen of its files so far. Mutable in that alone; one for each agent."""

    def __init__(self, root: Path, *, home: Path | None = None, scratch: Path | None = None, also: tuple[Path, ...] = ()) -> None:
        """`scratch` is a folder of this session's own for temporary files, `also` are further folders that count as inside."""
        self.root = root.resolve()
        self.home = (home or Path.home()).resolve()
        self.scratch = scratch.resolve() if scratch else None
        self._inside = (self.root, *([self.scratch] if self.scratch else []), *(path.resolve() for path in also))
        self._seen: dict[Path, Sight] = {}

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

    def is_secret(self, path: Path) -> bool:
        """Whether it is a place where keys are kept."""
        return is_secret(str(path)) or (os.path.lexists(path) and is_secret(str(self.landing(path))))

    def is_git(self, path: Path) -> bool:
        """Whether it belongs to git itself: a change there may run programs later."""
        return bool(_GIT.search(str(path)) or _GIT.search(str(self.landing(path))))

    def shown(self, path: Path) -> str:
        """The path as a model and a person read it: relative where it is inside, printable, valid Unicode."""
        text = str(path)
        if path.is_relative_to(self.root):
            text = str(path.relative_to(self.root))
        return os.fsencode(text).decode("utf-8", "replace")

    def see(self, path: Path, sight: Sight) -> None:
        """Note how a file was when it was read or written."""
        self._seen[self.landing(path)] = sight

    def sight(self, path: Path) -> Sight | None:
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


def sighted(path: Path) -> Sight | None:
    """How a file is now; None when it is no regular file that can be read."""
    try:
        if not path.is_file():
            return None
        with open(path, "rb", opener=_unhindered) as file:
            facts = os.fstat(file.fileno())
            whole = facts.st_size <= HASHED_BYTES
            digest = sha256(file.read(facts.st_size)).digest() if whole else b""
    except OSError:
        return None
    return Sight(size=facts.st_size, mtime_ns=facts.st_mtime_ns, sha256=digest)


def _unhindered(path: str, flags: int) -> int:
    """Open a file without waiting for anybody: it may have become a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
