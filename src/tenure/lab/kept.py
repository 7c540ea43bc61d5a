"""Files that are there whole or not at all, and folders of them that stay bounded (an edge)."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final

PART: Final = ".part"  # the end of the name of one that is being written


@contextmanager
def appearing(path: Path) -> Generator[IO[bytes]]:
    """A file that is not there before it is whole and on the disk, for its owner alone. However the writing ends, nothing half written stays."""
    with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=PART, delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def prune(folder: Path, pattern: str, most: int, before: float = 0.0) -> None:
    """Remove the files of a pattern that were longest not asked for, all but `most`, and those of them not touched since the time `before`."""
    found: list[tuple[float, Path]] = []
    for path in folder.glob(pattern):
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    late = sorted(found)[: max(0, len(found) - most)]
    for _, path in {*late, *(each for each in found if each[0] < before)}:
        with suppress(OSError):
            path.unlink()
