"""A session's folder for temporary files (an edge).

Whoever holds the lock in a folder lives; the system lets go of it when a process ends, however it ends.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "tenure-"
LOCK: Final = ".lock"
OLDEST_S: Final = 3_600.0  # a folder that is younger may be in the making
_LOOKED_AT: Final = 2_000  # entries of the folder for temporary files


class Scratch:
    """A folder of this process's own. Mutable: it is there until it is removed."""

    def __init__(self, parent: Path | None = None) -> None:
        """Make it, below `parent` or where the system wants temporary files. Raises OSError."""
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _locked(self._lock)

    def remove(self, now: Callable[[], float] = time.time) -> None:
        """Remove it, and with it what processes of this user left that are gone. Never raises."""
        if self._lock < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = -1
        with suppress(OSError):
            _sweep(self.path.parent, now())


def _sweep(parent: Path, now: float) -> None:
    own = os.geteuid() if hasattr(os, "geteuid") else -1
    with os.scandir(parent) as entries:
        for _, entry in zip(range(_LOOKED_AT), entries, strict=False):
            with suppress(OSError):
                facts = entry.stat(follow_symlinks=False)
                is_ours = entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False) and facts.st_uid == own
                if is_ours and now - facts.st_mtime > OLDEST_S:
                    _clear(Path(entry.path))


def _clear(folder: Path) -> None:
    """Remove a folder whose lock nobody holds; one without is none of ours."""
    lock = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if _locked(lock):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(descriptor: int) -> bool:
    """Take a lock; False when another holds it, or where there are none."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
