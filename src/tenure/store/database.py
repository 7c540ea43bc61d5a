"""A database as the store uses it: transactions, prepared statements, and its errors in our words.

Everything is SQLAlchemy Core; only what is hot goes to the driver's cursor directly, with SQL that Core compiled once. What differs
between databases is in `_DIALECTS` and nowhere else.
"""

import os
import re
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

from sqlalchemy import URL, Connection, Engine, Executable, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql import ClauseElement

from tenure.errors import Conflict, InputError, StoreError, way_out
from tenure.extras import NotInstalled
from tenure.logs.places.sqlite_file import opened, refuse_no_file, undisturbed

Synchronous = Literal["OFF", "NORMAL", "FULL", "EXTRA"]


class Prepared(NamedTuple):
    """A statement compiled for one database, its own constants, and the order of its parameters where they have no names."""

    sql: str
    constants: dict[str, Any]
    order: tuple[str, ...] | None

    def run(self, cursor: DBAPICursor, values: Mapping[str, Any]) -> int:
        """Execute; the number of rows touched."""
        cursor.execute(self.sql, self._bind(values))
        return cursor.rowcount

    def run_all(self, cursor: DBAPICursor, rows: list[dict[str, Any]]) -> None:
        """Execute for every row."""
        if len(rows) == 1:
            cursor.execute(self.sql, self._bind(rows[0]))
        elif rows:
            cursor.executemany(self.sql, [self._bind(row) for row in rows])

    def _bind(self, values: Mapping[str, Any]) -> Any:
        if self.constants:
            values = {**self.constants, **values}
        return values if self.order is None else [values[name] for name in self.order]


class _Dialect(NamedTuple):
    """What one kind of database needs said: to begin a write, to keep every other writer out of a migration, to count others that are connected, and to write tables anew."""

    begin: str
    exclude: str
    others: str
    rewrite: str


_DIALECTS: Final = {
    "sqlite": _Dialect(begin="BEGIN IMMEDIATE", exclude="BEGIN IMMEDIATE", others="SELECT 0", rewrite="VACUUM"),
    "postgresql": _Dialect(
        begin="",
        exclude="SELECT pg_advisory_xact_lock(7406125)",  # any constant; the driver begins by itself
        others="SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
        rewrite="VACUUM FULL {}",
    ),
}


_MEMORY: Final = (None, "", ":memory:")
_SQLITE: Final[dict[str, Any]] = {"isolation_level": None, "check_same_thread": False}


class Database:
    """An engine with its pool. Usable from several threads; not across a fork of the process."""

    def __init__(
        self,
        url: str,
        *,
        synchronous: Synchronous = "NORMAL",
        busy_timeout_s: float = 30.0,
        read_only: bool = False,
        alone: bool = False,
    ) -> None:
        """`read_only` leaves the database as it is, and makes no file beside it that stays. `alone`: nobody else may open a file meanwhile; a server is asked by `others`."""
        parsed = _parse(url)
        self.where = parsed.database or "the store in memory" if parsed.drivername.startswith("sqlite") else str(parsed)
        self.file = parsed.database if parsed.drivername.startswith("sqlite") else None
        self._dialect = _DIALECTS[parsed.get_backend_name()]
        if self.file not in _MEMORY and not str(self.file).startswith("file:"):
            refuse_no_file(Path(str(self.file)))
        self._held = ExitStack()
        if read_only:
            try:
                self._engine = _reader(parsed, busy_timeout_s, self._held, self.where)
            except StoreError:
                self._held.close()
                raise
        else:
            self._engine = _engine(parsed, synchronous, busy_timeout_s, alone=alone)
        driver = self._engine.dialect.loaded_dbapi
        self._errors: tuple[type[Exception], ...] = (driver.Error, SQLAlchemyError)
        self._integrity: type[Exception] = driver.IntegrityError
        self._prepared: dict[int, Prepared] = {}

    @property
    def is_in_memory(self) -> bool:
        """Whether nothing of it is on a disk."""
        return self._dialect is _DIALECTS["sqlite"] and self.file in _MEMORY

    def detach(self) -> None:
        """Go on with a copy in a temporary file, which may be written to. Raises StoreError where there is a server."""
        if self.file is None:
            raise StoreError(
                f"{self.where}: an older version wrote it, and here it is only read; whatever writes to it brings it up to date first"
            )
        copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        with self._translated():
            own = self._engine.raw_connection()
            try:
                cast(sqlite3.Connection, own.driver_connection).backup(copy)
            finally:
                own.close()
        self._engine.dispose()
        self._engine = create_engine("sqlite://", poolclass=QueuePool, creator=lambda: copy, pool_size=1, max_overflow=0)

    def prepare(self, statement: Executable) -> Prepared:
        """The statement in this database's SQL, compiled on its first use."""
        found = self._prepared.get(id(statement))  # statements are module constants, so their ids stay theirs
        if found is None:
            assert isinstance(statement, ClauseElement)
            compiled = statement.compile(dialect=self._engine.dialect)
            order = getattr(compiled, "positiontup", None)
            constants = {name: value for name, value in (compiled.params or {}).items() if value is not None}
            found = Prepared(str(compiled), constants, None if order is None else tuple(order))
            self._prepared[id(statement)] = found
        return found

    @contextmanager
    def connect(self, *, exclusive: bool = False) -> Generator[Connection]:
        """A Core connection; with `exclusive`, in a transaction that no other writer can enter. Committing is the caller's."""
        with self._translated(), self._engine.connect() as connection:
            if exclusive:
                connection.exec_driver_sql(self._dialect.exclude)
            yield connection

    def others(self, connection: Connection) -> int:
        """How many connections others have to a server; to a file, none that could be known."""
        return int(connection.exec_driver_sql(self._dialect.others).scalar_one())

    def rewrite(self, tables: Sequence[str]) -> None:
        """Write tables anew, without what was in their rows before."""
        with self._translated(), self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(self._dialect.rewrite.format(", ".join(tables)))
            if self.file is not None:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def reading(self) -> Generator[DBAPICursor]:
        """A driver's cursor for one statement."""
        with self._translated():
            connection = self._engine.raw_connection()
            try:
                yield connection.cursor()
            finally:
                connection.close()

    @contextmanager
    def writing(self, *, erase: bool = False) -> Generator[DBAPICursor]:
        """A driver's cursor in one write transaction: committed at the end, rolled back by any exception.

        With `erase`, what is deleted is overwritten in SQLite's files; a server's files are its own affair.
        """
        erase = erase and self.file is not None
        with self._translated():
            connection = self._engine.raw_connection()
            try:
                cursor = connection.cursor()
                if erase:
                    cursor.execute("PRAGMA secure_delete = ON")
                if self._dialect.begin:
                    cursor.execute(self._dialect.begin)
                yield cursor
                connection.commit()
                if erase:  # the log still has the pages as they were; a reader that is at work keeps it until the next time
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except BaseException:
                connection.rollback()
                raise
            finally:
                connection.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        self._held.close()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except self._integrity as error:
            raise Conflict(f"{self.where}: another writer was first; open the conversation again ({error})") from error
        except self._errors as error:
            raise StoreError(f"{self.where}: {_reason(error, self.where)}") from error
        except UnicodeEncodeError as error:
            raise InputError(self.where, f"text that is no valid Unicode ({error.object[error.start : error.end]!r})") from error


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise InputError("store", f"the URL {url!r}", "one like sqlite:///tenure.db or postgresql://host/name") from error
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in _DIALECTS:
        raise InputError("store", f"a {parsed.get_backend_name()} URL", " or ".join(_DIALECTS))
    return parsed


def _engine(url: URL, synchronous: Synchronous, busy_timeout_s: float, *, alone: bool = False) -> Engine:
    only = {"pool_size": 1, "max_overflow": 0} if alone or url.database in _MEMORY else {}
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True, **only)
        except ImportError as error:
            raise NotInstalled("psycopg") from error
    # The driver must not begin transactions by itself. A store in memory is one connection, for which threads wait.
    engine = create_engine(url, poolclass=QueuePool, connect_args=_SQLITE | {"timeout": busy_timeout_s}, **only)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            connection.execute("PRAGMA journal_mode = WAL")

    return engine


def _reader(url: URL, busy_timeout_s: float, held: ExitStack, where: str) -> Engine:
    """An engine that writes nothing. What it needs meanwhile is `held`."""
    if url.get_backend_name() != "sqlite":
        engine = _engine(url, "NORMAL", busy_timeout_s)

        @event.listens_for(engine, "connect")
        def restrict(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
            connection.read_only = True

        return engine
    database = url.database or ""
    if database in _MEMORY or database.startswith("file:"):
        return _engine(url, "NORMAL", busy_timeout_s)
    try:
        file, mode = undisturbed(Path(database).absolute(), held)
    except OSError as error:
        raise StoreError(f"{where}: cannot be read ({error.strerror or error})") from error
    if "immutable" in mode and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        mode = "mode=rw"  # together with writers that come meanwhile; nothing is written, and nothing stays beside it

    def connected() -> sqlite3.Connection:
        connection = opened(file, mode, held, timeout=busy_timeout_s, **_SQLITE)
        connection.execute("PRAGMA query_only = ON")
        return connection

    return create_engine("sqlite://", poolclass=QueuePool, creator=connected)


# What to do about what a driver says, by the first of these that it says.
_WAYS: Final = (
    ("readonly|read-only", "it can be read; to write, copy it to where that is allowed"),
    # A quota, or a limit of a file's size, is no full disk to SQLite: its name for the error tells that it was a write that failed.
    (
        "disk is full|No space left|IOERR_(?:WRITE|TRUNCATE|FSYNC|DIR_FSYNC|SHMSIZE)",
        "all that was stored is there; free some space and try again",
    ),
    ("locked|could not obtain lock", "another process is writing; try again when it is done"),
    ("unable to open", "its folder must exist, and the path must be a file that may be read and written"),
    ("not a database", "give the path of a store"),
    (
        "malformed|no such (?:table|column)|disk I/O|Could not decode|does not exist|UndefinedColumn|UndefinedTable|duplicate column",
        "it is damaged, or another program's; {way_out}",
    ),
    (
        "connection|terminat|server closed",
        "the database cannot be reached; what was acknowledged is stored, so open the conversation again when it is back",
    ),
)


def _reason(error: Exception, where: str) -> str:
    """What went wrong, and what to do about it."""
    words = words_of(error)
    named = f"{words} {getattr(getattr(error, 'orig', None) or error, 'sqlite_errorname', '')}"
    way = next((way for sign, way in _WAYS if re.search(sign, named, re.IGNORECASE)), "")
    return words + (f" ({way.format(way_out=way_out(where))})" if way else "")


def words_of(error: BaseException) -> str:
    """A driver's first words, which name the cause."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0] or type(error).__name__
