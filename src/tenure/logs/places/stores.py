"""Databases and folders that hold many sessions, or one in many files (an edge).

Each tool's store is listed by its own module, and given out as the export that the tool itself would write, which its reader reads.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.errors import InputError
from tenure.logs.places import goose_store, opencode_store, openhands_store, tenure_store
from tenure.logs.places.sqlite_file import MAGIC, reading
from tenure.logs.places.stored import StoredSession

OWN: Final = "tenure"  # a store of our own, which is read as records and not as an export


class StoreKind(Struct, frozen=True):
    """How the store of one tool is read."""

    sessions: Callable[[Path], Iterable[StoredSession]]
    export: Callable[[Path, str], Iterator[bytes]]


# By the name of the tool's reader.
STORES: Final[Mapping[str, StoreKind]] = {
    "opencode": StoreKind(opencode_store.sessions, opencode_store.export),
    "goose": StoreKind(goose_store.sessions, goose_store.export),
    "openhands": StoreKind(openhands_store.sessions, lambda folder, _: openhands_store.export(folder)),
    OWN: StoreKind(tenure_store.sessions, lambda _, __: iter(())),
}

# A table that only this tool's database has.
TABLES: Final = (("tenure_version", OWN), ("session", "opencode"), ("session_v2", "opencode"), ("sessions", "goose"))


def store_of(path: Path) -> str:
    """Whose store a path is; empty for a file or folder that is none. Raises InputError for a database that nobody here wrote."""
    if path.is_dir():
        if openhands_store.count(path):
            return "openhands"
        return "opencode" if opencode_store.is_storage(path) else ""
    if not _is_database(path):
        return ""
    with reading(path) as rows:
        tool = next((tool for table, tool in TABLES if rows.columns(table)), "")
    if not tool:
        raise InputError(
            str(path), "found another program's database", "a store of " + ", ".join(dict.fromkeys(dict(TABLES).values()))
        )
    return tool


def chunks(tool: str, path: Path, id_: str) -> Iterator[bytes]:
    """The export of a session in a store; without an id that of the newest. Raises InputError when it is not there."""
    kind = STORES[tool]
    if id_:
        return kind.export(path, id_)
    held = list(kind.sessions(path))
    if not held:
        raise InputError(str(path), "the store holds no session", "at least one")
    mains = [each for each in held if not each.parent] or held
    return kind.export(path, max(mains, key=lambda each: (each.updated, each.id)).id)


def _is_database(path: Path) -> bool:
    try:
        # A file of the kernel has no size, and may keep a reader waiting.
        if not path.is_file() or path.stat().st_size < len(MAGIC):
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False
