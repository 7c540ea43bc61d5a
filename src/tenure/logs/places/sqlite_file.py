"""Other programs' SQLite files, read while those programs may be using them (an edge).

A database in WAL mode that is opened for reading alone still gets two new files beside it, which stay. So a database at rest is read as
one that cannot change, a database in use is joined through the files its writer has made, and a database with a left-behind log is
copied first.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tenure.errors import InputError, way_out
from tenure.logs.places.files import is_of_the_kernel

MAGIC: Final = b"SQLite format 3\0"

_HEADER: Final = 20  # bytes, of which the one at 18 says how the file is written
_WAL: Final = 2
_BUSY_S: Final = 5.0


class DatabaseRows:
    """A database open for reading: one state of it, whatever its writer does meanwhile."""

    def __init__(self, connection: sqlite3.Connection, where: str) -> None:
        self._connection, self._where = connection, where

    def select(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """The rows of a query; texts are bytes, since not every writer keeps to UTF-8. Raises InputError."""
        return list(self.each(sql, *values))

    def each(self, sql: str, *values: str) -> Iterator[tuple[Any, ...]]:
        """The same, one at a time."""
        with _with_reasons(self._where):
            yield from self._connection.execute(sql, values)

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none when there is no such table."""
        return frozenset(str(row[0], "utf-8", "replace") for row in self.select("SELECT name FROM pragma_table_info(?)", table))


@contextmanager
def reading(path: Path) -> Generator[DatabaseRows]:
    """Open a database without leaving a trace. Raises InputError, also for what is no database."""
    with ExitStack() as stack:
        with _with_reasons(str(path)):
            connection = stack.enter_context(closing(opened(*undisturbed(path, stack), stack)))
            connection.text_factory = bytes
            connection.execute("BEGIN")
        yield DatabaseRows(connection, str(path))


def opened(path: Path, mode: str, stack: ExitStack, **settings: Any) -> sqlite3.Connection:
    """A connection that can read; of a copy where that takes a file beside it that a full disk has no room for. Raises sqlite3.Error."""
    settings = {"timeout": _BUSY_S, "isolation_level": None, **settings}
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, **settings)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # is where a file that is no database says so
    except sqlite3.Error as error:
        connection.close()
        if "disk I/O" not in str(error) or mode == _COPY:
            raise
        try:
            path = _copy(path, stack)
        except OSError:
            raise error from None
        return opened(path, _COPY, stack, **settings)
    return connection


def undisturbed(path: Path, stack: ExitStack) -> tuple[Path, str]:
    """Which file to open, and how, so that nothing is made beside the one that was asked for. A copy lasts as long as the `stack`."""
    refuse_no_file(path)
    with path.open("rb") as file:
        header = file.read(_HEADER)
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if len(header) < _HEADER or header[18] != _WAL:
        return path, "mode=ro"
    if log.exists() and index.exists():
        return path, "mode=ro"
    if not log.exists() or not log.stat().st_size:
        return path, "mode=ro&immutable=1"
    return _copy(path, stack), _COPY


_COPY: Final = "mode=ro&cache=private"  # how a copy is opened, and nothing else


def _copy(path: Path, stack: ExitStack) -> Path:
    """A copy with its log, which lasts as long as the `stack`."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-")))
    for each in (path, path.with_name(path.name + "-wal")):
        if each.exists():
            shutil.copyfile(each, folder / each.name)
    return folder / path.name


def refuse_no_file(path: Path) -> None:
    """Raises InputError for a device, a pipe, a socket or a file of the kernel: to open one may never come back. What is not there is no matter of this."""
    with suppress(OSError, ValueError):
        if path.exists() and ((not path.is_file() and not path.is_dir()) or is_of_the_kernel(path)):
            raise InputError(str(path), "found no file", "a SQLite file")


@contextmanager
def _with_reasons(where: str) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if "malformed" in str(error):
            raise InputError(
                where, f"cannot be read back: {error} (it is damaged, or another program's; {way_out(where)})"
            ) from error
        raise InputError(where, f"cannot be read as a database ({error})", "a SQLite file that may be read") from error
    except (OSError, ValueError) as error:
        raise InputError(where, f"cannot be read ({error})", "a SQLite file that may be read") from error
