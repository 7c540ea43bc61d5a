"""Outputs that are too large for the record, in files beside the store (an edge).

While a command runs, what it says goes to `<conversation>.<entry>.<call>.part`; that file is removed once the result is recorded. An output of which
the record cannot hold all stays under the hash of its bytes, until no conversation refers to it any more (`Records.forget`); whoever deletes the store
deletes the folder with it.
"""

from collections.abc import Iterable, Iterator
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Final

from tenure.engine.record.entry import Spill
from tenure.engine.record.excerpt import Open, nowhere
from tenure.errors import InputError

CHUNK: Final = 2**20
SUFFIX: Final = ".spills"


class Spills:
    """A folder of such files; it is made when there is something to keep. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    @classmethod
    def beside(cls, path: str | None) -> "Spills":
        """Those of the store in a database file; of one in memory, none."""
        return cls(Path(path + SUFFIX).absolute() if path and path != ":memory:" else None)

    @staticmethod
    def among(every: Iterable["Spills"]) -> Open:
        """What opens a spill in whichever of several folders it is."""
        held = [spills for spills in every if spills.folder is not None]

        def opened(spill: Spill) -> Iterator[bytes]:
            return next((each.open(spill) for each in held if each.has(spill)), None) or (held[0].open if held else nowhere)(
                spill
            )

        return opened

    def kept(self) -> int:
        """How many outputs there are."""
        return sum(path.is_file() for path in self.folder.iterdir()) if self.folder is not None and self.folder.is_dir() else 0

    def part(self, conversation: str, entry: int, call: str) -> Path | None:
        """Where the output of a running call goes: the same place for whoever looks for it after a crash."""
        if self.folder is None:
            return None
        return self.folder / f"{conversation}.{entry}.{sha256(call.encode('utf-8', 'replace')).hexdigest()[:16]}.part"

    def forget(self, conversations: Iterable[str], hashes: Iterable[str]) -> None:
        """Remove the files of these hashes, and what calls of these conversations left unfinished."""
        if self.folder is None or not self.folder.is_dir():
            return
        left = [path for each in conversations for path in self.folder.glob(f"{escape(each)}.*.part")]
        for path in [*left, *(self.folder / each for each in hashes)]:
            path.unlink(missing_ok=True)

    def has(self, spill: Spill) -> bool:
        """Whether the file is there."""
        return self.folder is not None and (self.folder / spill.sha256).is_file()

    def open(self, spill: Spill) -> Iterator[bytes]:
        """Its bytes, in pieces. Raises InputError when the file is not there, or is not what it was."""
        if self.folder is None:
            return nowhere(spill)
        path = self.folder / spill.sha256
        size = path.stat().st_size if path.is_file() else -1
        if size != spill.size:
            found = f"the file has {size:,} bytes" if size >= 0 else "there is no such file"
            raise InputError(
                spill.handle, f"{path}: {found}", f"{spill.size:,} bytes that were kept when the output was recorded"
            )
        return _chunks(path)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
