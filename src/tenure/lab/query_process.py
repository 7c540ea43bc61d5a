"""Queries of users, bounded in time, memory, rows and cells: each runs in a process of its own."""

import pickle
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec import Struct

from tenure.engine.record.visible import json_of
from tenure.errors import InputError

SECONDS: Final = 60.0  # that the query of a user may take
MEMORY: Final = 2 * 2**30  # bytes that DuckDB may hold for it
NO_MEMORY: Final = f"needs more than {MEMORY >> 30} GB of memory"
ROWS: Final = 1_000_000  # of its answer
CELL_CHARS: Final = 1_000_000  # of a text in it; of a longer one the beginning is kept
_PROCESS_MEMORY: Final = (
    MEMORY + 2**30
)  # where the system can bound it: of what DuckDB allocates within one function its own limit knows nothing


class QueryAnswer(Struct, frozen=True):
    """What a query gives: the names of its columns, and rows of plain values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def dicts(self) -> list[dict[str, Any]]:
        """Each row by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def answer(events: Path | Iterable[object], sql: str, *, seconds: float = SECONDS) -> QueryAnswer:
    """The answer to the query of a user, bounded in time, memory, rows and cells. Raises InputError where it is wrong or goes beyond them.

    `events` are a file of events, or events. DuckDB cannot be interrupted within a function, such as a `repeat` of gigabytes, so it runs in a
    process of its own, which is ended.
    """
    if find_spec("duckdb") is None:
        raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")
    with TemporaryDirectory(prefix="tenure-") as folder:
        file = events if isinstance(events, Path) else Path(folder, "events.jsonl")
        if not isinstance(events, Path):
            write(file, events)
        command = [sys.executable, "-P", "-m", "tenure.lab.query_process"]
        try:
            process = subprocess.run(  # noqa: S603 - ourselves
                command, input=pickle.dumps((str(file), sql)), capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise InputError("query", f"no answer within {seconds:,.0f} seconds", "a query that looks at less") from error
    if process.returncode:
        raise InputError("query", NO_MEMORY, "a query that holds less")
    columns, rows, problem = pickle.loads(process.stdout)  # noqa: S301 - our own process
    if problem is not None:
        raise InputError(*problem)
    if len(rows) > ROWS:
        raise InputError("query", f"more than {ROWS:,} rows", "a query with a limit")
    return QueryAnswer(columns, rows)


def _serve() -> None:
    """Answer the query on standard input, in a process that `answer` began."""
    with suppress(ImportError, OSError, ValueError):  # a system that has no such limits, or lower ones
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_PROCESS_MEMORY, _PROCESS_MEMORY))
    from tenure.lab.query import Events  # loads DuckDB, which the process that asks does without

    file, sql = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own process
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    problem = None
    try:
        with Events([Path(file)]) as events:
            events.seal()
            found = events.first(ROWS + 1, sql)
        columns, rows = found.columns, tuple(tuple(_cut(value) for value in row) for row in found.rows)
    except InputError as error:
        problem = (error.where, error.found, error.allowed)
    pickle.dump((columns, rows, problem), sys.stdout.buffer)


def _cut(value: object) -> object:
    if isinstance(value, bytes):
        return value[:CELL_CHARS]
    return f"{value[:CELL_CHARS]}… ({len(value):,} characters)" if isinstance(value, str) and len(value) > CELL_CHARS else value


def write(file: Path, events: Iterable[object]) -> None:
    """Put events into a file, a JSON line each."""
    with file.open("wb") as out:
        for event in events:
            out.write(json_of(event) + b"\n")


if __name__ == "__main__":
    _serve()
