"""Finished audits, kept so that a corpus can be interrupted and gone on with.

A folder of packed files: for each session and what was asked of it one with the report, and one with all lines where they were wanted. They
are the user's alone, since they hold what sessions say. Each appears whole or not at all, and one that is damaged is as good as none.
"""

import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import IO, Final, cast

import msgspec

from tenure.engine.record.visible import json_of
from tenure.lab.audit.report import Audit

MOST: Final = 2_000  # files of a folder; of more, those that were longest not asked for go
REPORT: Final = ".report.gz"
LINES: Final = ".lines.gz"
PART: Final = ".part"
PART_S: Final = 86_400.0  # seconds after which nobody is writing one any more

_LEVEL: Final = 3
_PRIVATE: Final = 0o700
_decode: Final = msgspec.json.Decoder(Audit).decode


class AuditCache:
    """The folder. Raises OSError when it cannot be made; a file in it that cannot be read is told in `damaged`, and is made again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        self._folder = folder
        self.damaged: list[Path] = []

    def report(self, key: str) -> Audit | None:
        """The report of that key."""
        path = self._folder / (key + REPORT)
        try:
            with gzip.open(path, "rb") as file:
                found = _decode(file.read())
            os.utime(path)  # asked for just now
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error, msgspec.MsgspecError, UnicodeError):
            self.damaged.append(path)
            return None
        return found

    def has_lines(self, key: str) -> bool:
        """Whether the lines of that key are there, whole."""
        path = self._folder / (key + LINES)
        try:
            size = 0
            with gzip.open(path, "rb") as file:
                while chunk := file.read(2**20):
                    size += len(chunk)
            os.utime(path)
        except FileNotFoundError:
            return False
        except (OSError, EOFError, zlib.error):
            size = 0
        if not size:  # an empty file is an archive too
            self.damaged.append(path)
        return size > 0

    def copy_lines(self, key: str, out: IO[bytes]) -> None:
        """Write the lines of that key."""
        with gzip.open(self._folder / (key + LINES), "rb") as file:
            shutil.copyfileobj(file, out, 2**20)

    @contextmanager
    def lines(self, key: str) -> Generator[IO[bytes]]:
        """A file for the lines of that key, which is there once all are written."""
        with self._appearing(key + LINES) as file:
            yield file

    def keep(self, key: str, report: Audit) -> None:
        """Keep a report."""
        with self._appearing(key + REPORT) as file:
            file.write(json_of(report))

    def prune(self, most: int = MOST) -> None:
        """Let go of what was longest not asked for, and of what audits that were killed left half written."""
        whole, parts = self._by_age("*.gz"), self._by_age(f".*{PART}")
        late = time() - PART_S
        for _, path in (*whole[: max(0, len(whole) - most)], *(each for each in parts if each[0] < late)):
            with suppress(OSError):
                path.unlink()

    def _by_age(self, pattern: str) -> list[tuple[float, Path]]:
        """The files of that name, the oldest first."""
        found: list[tuple[float, Path]] = []
        for path in self._folder.glob(pattern):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
        return sorted(found)

    @contextmanager
    def _appearing(self, name: str) -> Generator[IO[bytes]]:
        """A packed file that is not there before it is whole; left behind by nobody, however the writing ends."""
        handle, path = tempfile.mkstemp(prefix=".", suffix=PART, dir=self._folder)  # readable by nobody else
        try:
            with os.fdopen(handle, "wb") as raw:
                with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
                    yield cast(IO[bytes], packed)
                raw.flush()
                os.fsync(raw.fileno())
            Path(path).replace(self._folder / name)
        except BaseException:
            with suppress(OSError):
                Path(path).unlink()
            raise
