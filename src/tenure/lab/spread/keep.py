"""Results on disk, so that interrupted work goes on where it stopped (an edge)."""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from msgspec import Struct

from tenure.errors import StoreError

MOST: Final = 10_000  # results in a folder
_DIGEST: Final = 64  # characters of a sha256


class Keep(Struct, frozen=True):
    """A folder of results, each in a file of its own that is named for its key and opens with the hash of what follows."""

    folder: Path
    reads: bool = True  # False: results are kept for later, but what lies there is not used

    def get(self, key: str) -> bytes | None:
        """The result of that key; None when there is none, or when what lies there is not what was written."""
        if not self.reads:
            return None
        path = self._path(key)
        try:
            digest, body = _parted(path.read_bytes())
        except OSError:
            return None
        with suppress(OSError):
            os.utime(path)  # asked for just now
        return body if digest == _sealed(key, body) else None

    def put(self, key: str, body: bytes) -> None:
        """Keep a result: whole or not at all, also when the power fails between. Raises StoreError when the disk will not have it."""
        path = self._path(key)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # names of files are nobody else's business
            path.parent.mkdir(exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                try:
                    file.write(_sealed(key, body) + body)
                    file.flush()
                    os.fsync(file.fileno())
                    Path(file.name).replace(path)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            raise StoreError(f"{self.folder}: cannot keep a result there ({error.strerror or error})") from error

    def prune(self, most: int = MOST) -> None:
        """Let go of what was longest not asked for: code changes, and what older code made serves no more."""
        found: list[tuple[float, Path]] = []
        for path in self.folder.glob("??/*"):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
        for _, path in sorted(found)[: max(0, len(found) - most)]:
            with suppress(OSError):
                path.unlink()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]


def _sealed(key: str, body: bytes) -> bytes:
    return sha256(key.encode() + body).hexdigest().encode()


def _parted(whole: bytes) -> tuple[bytes, bytes]:
    return whole[:_DIGEST], whole[_DIGEST:]
