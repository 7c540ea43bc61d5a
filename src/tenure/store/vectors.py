"""Vectors of texts that were embedded before, in a file beside the store (an edge). A cache: whoever deletes it loses time only."""

import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

SUFFIX: Final = ".vectors"
MOST: Final = 200_000  # vectors that are kept; the oldest go first
_WAIT_S: Final = 5.0  # for another process
_AT_ONCE: Final = 500


class Vectors:
    """By the hash of what was embedded, and by which model. A file that cannot be used keeps nothing, and says nothing."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is kept."""
        self._path = path

    @staticmethod
    def beside(spills: Path | None) -> "Vectors":
        """Those of a store, by the folder of its spills; of one in memory, none."""
        return Vectors(spills.with_suffix(SUFFIX) if spills is not None else None)

    def known(self, model: str, texts: Sequence[str]) -> Mapping[str, Sequence[float]]:
        """The vectors that are kept, by text."""
        if self._path is None or not self._path.is_file():
            return {}
        keys = {_key(model, text): text for text in texts}
        found: dict[str, Sequence[float]] = {}
        try:
            with closing(self._opened()) as file:
                every = list(keys)
                for start in range(0, len(every), _AT_ONCE):
                    part = every[start : start + _AT_ONCE]
                    marks = ",".join("?" * len(part))
                    rows = file.execute(f"select key, vector from vectors where key in ({marks})", part)  # noqa: S608 - marks only
                    found |= {keys[key]: array("f", vector) for key, vector in rows}
        except (sqlite3.Error, ValueError):
            return found
        return found

    def keep(self, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Keep vectors by text."""
        if self._path is None or not vectors:
            return
        rows = [(_key(model, text), array("f", vector).tobytes()) for text, vector in vectors.items()]
        try:
            with closing(self._opened()) as file, file:
                file.execute("create table if not exists vectors (key blob primary key, vector blob not null)")
                file.executemany("insert or replace into vectors values (?, ?)", rows)
                file.execute("delete from vectors where rowid <= (select max(rowid) from vectors) - ?", (MOST,))
        except (sqlite3.Error, OSError):
            return

    def forget(self) -> None:
        """Delete the file: what is forgotten must not be guessed from its vectors."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _opened(self) -> sqlite3.Connection:
        assert self._path is not None
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.touch(mode=0o600)
        return sqlite3.connect(self._path, timeout=_WAIT_S)


def _key(model: str, text: str) -> bytes:
    return sha256(f"{model}\n{text}".encode("utf-8", "surrogatepass")).digest()[:16]
