"""Records sealed at rest: what a store writes into a database is encrypted and authenticated, cell by cell (an edge: it reads a key file).

AES-SIV (RFC 5297, 512 bits) with the table, the column and the row as associated data: a cell that was changed, or moved to another row, does not open.
Hashes are sealed like texts, since whoever can guess what was said could check a guess against them. A random data key seals the cells; it lies in the
store, sealed itself with the key that is given and never stored. docs/security.md says what stays in clear.
"""

import os
import re
import shlex
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select, update

from tenure.errors import Damaged, InputError, StoreError
from tenure.extras import NotInstalled
from tenure.logs.places.files import read_file
from tenure.store import tables
from tenure.store.database import Database
from tenure.store.migrations import migrate
from tenure.store.rows import Row, Values
from tenure.store.spills import Spills
from tenure.store.vectors import Vectors

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

KEY: Final = "TENURE_STORE_KEY"
KEY_FILE: Final = "TENURE_STORE_KEY_FILE"
KEY_BYTES: Final = 32
_MOST: Final = 65_536  # bytes of a key file
_DATA_KEY: Final = 64  # bytes, of AES-256-SIV
_OTHERS_S: Final = 1.0  # that others may take to end what they write


class SealedTable(NamedTuple):
    """A table's columns as rows are read, those that tell its rows apart, and those that are sealed."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    sealed: tuple[str, ...]


_TABLES: Final = {
    "conversation": SealedTable(tuple(tables.conversation.c.keys()), ("id",), ("title", "head")),
    "entry": SealedTable(tuple(tables.entry.c.keys()), ("conversation", "n"), ("id", "parent", "sha256", "blocks", "payload")),
    "commit_log": SealedTable(tuple(tables.commit_log.c.keys()), ("conversation", "n"), ("body", "id")),
    "hold": SealedTable(tuple(tables.hold.c.keys()), ("conversation", "kind", "object"), ("reason",)),
    "client_link": SealedTable(tuple(tables.client_link.c.keys()), (), ("id",)),
}


class Seal:
    """Seals and opens cells with a data key; without one everything stays as it is. Usable by several threads."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = key

    @property
    def is_set(self) -> bool:
        """Whether anything is sealed."""
        return bool(self._key)

    def close_row(self, table: str, values: Values) -> Values:
        """A row as it is written."""
        held = _TABLES.get(table)
        if held is None or not self._key:
            return values
        where = [str(values[name]) for name in held.key]
        return values | {name: self.close(table, name, where, values[name]) for name in held.sealed if values.get(name)}

    def open_row(self, table: str, of: str, row: Row) -> Row:
        """A row as it was before it was written; `of` is its conversation where the row does not name it. Raises Damaged."""
        if not self._key:
            return row
        held = _TABLES[table]
        names = held.columns if len(row) == len(held.columns) else held.columns[1:]
        values: dict[str, Any] = {"conversation": of, **dict(zip(names, row, strict=True))}
        where = [str(values[name]) for name in held.key]
        return tuple(
            self._open(table, name, where, values[name]) if name in held.sealed and values[name] else values[name]
            for name in names
        )

    def close(self, table: str, column: str, where: Sequence[str], value: Any) -> Any:
        """A cell as it is written: the same for the same value, so that it can be looked for."""
        if not self._key or not value:
            return value
        plain = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        if not isinstance(plain, bytes):
            raise Damaged(f"{table} {' '.join(where[-2:])}: its {column} is a {type(value).__name__}, expected a text or bytes")
        closed = self._cipher.encrypt(plain, _beside(table, column, where))
        return b64encode(closed).decode() if isinstance(value, str) else closed

    def _open(self, table: str, column: str, where: Sequence[str], value: Any) -> Any:
        from cryptography.exceptions import InvalidTag

        try:
            closed = b64decode(value, validate=True) if isinstance(value, str) else value
            plain = self._cipher.decrypt(closed, _beside(table, column, where))
            return plain.decode("utf-8", "surrogatepass") if isinstance(value, str) else plain
        except (InvalidTag, ValueError, TypeError) as error:
            raise Damaged(
                f"{table} {' '.join(where[-2:])}: its {column} does not open: it was changed, or put elsewhere"
            ) from error

    @cached_property
    def _cipher(self) -> "AESSIV":
        return _siv(self._key)


def keys_of(environment: Mapping[str, str]) -> tuple[bytes, ...]:
    """The keys that an environment names, the one in force first: a line for each, 32 bytes or more in base64 or hex. Raises InputError, which shows none."""
    path, text = environment.get(KEY_FILE, ""), environment.get(KEY, "")
    if path:
        try:
            text = read_file(Path(path), _MOST).decode("ascii", "replace")
        except InputError as error:
            raise InputError(f"{KEY_FILE}: {path}", error.found, "a file with a key") from error
    lines = [line.strip() for line in text.splitlines()]
    keys = tuple(_key(line, path or KEY, n) for n, line in enumerate(lines, 1) if line and not line.startswith("#"))
    if path and not keys:
        raise InputError(KEY_FILE, f"{path}: no key", "a key, such as that of: openssl rand -base64 32")
    return keys


def unlock(database: Database, keys: Sequence[bytes], *, read_only: bool) -> Seal:
    """The seal of a store. A new store is sealed when a key is given. Raises StoreError for a key that is missing, wrong or too late."""
    table = tables.store_key
    with database.connect() as connection:
        wrapped = connection.execute(select(table.c.wrapped)).scalar()
        is_new = not connection.execute(select(func.count()).select_from(tables.conversation)).scalar()
    if wrapped is None and (not keys or read_only):
        return Seal()
    if not keys:
        raise StoreError(f"{database.where}: its records are sealed; give its key, by {KEY_FILE} or {KEY}")
    if wrapped is None:
        if not is_new:
            raise StoreError(
                f"{database.where}: it holds conversations in clear; seal them first: tenure seal {shlex.quote(database.where)}"
            )
        with database.connect(exclusive=True) as connection:
            wrapped = connection.execute(select(table.c.wrapped)).scalar()  # another process may have been first
            if wrapped is None:
                wrapped = _keep(connection, keys[0], os.urandom(_DATA_KEY))
                connection.commit()
    number, data_key = _unwrapped(database, keys, wrapped)
    if number and not read_only:  # the key in force is another now
        with database.connect(exclusive=True) as connection:
            _keep(connection, keys[0], data_key)
            connection.commit()
    return Seal(data_key)


def reseal(url: str, keys: Sequence[bytes], *, sealed: Callable[[int], object] = bool) -> int:
    """Seal all records with a new data key, which the first of `keys` opens; how many rows. `sealed` is told of each before they count.

    A store in clear is sealed; of a sealed one the other keys open what is there. All happens in one transaction, so whoever is killed meanwhile leaves the store as
    it was. Nobody else may have the store open, since a process that knows no key would go on in clear. Raises StoreError where somebody has, for a wrong
    key, and where outputs lie in files beside the store, which a sealed one does not keep.
    """
    database = Database(url, busy_timeout_s=_OTHERS_S, alone=True)
    try:
        migrate(database)
        spills = Spills.beside(database.file)
        if kept := spills.kept():
            raise StoreError(
                f"{database.where}: {kept:,} outputs lie in files in {spills.folder}, which a sealed store does not keep; delete their conversations first (tenure forget)"
            )
        with database.connect(exclusive=True) as connection:
            count = _reseal(database, connection, keys, sealed)
            connection.commit()
        Vectors.beside(spills.folder).forget()
        database.rewrite(list(_TABLES))
        return count
    except StoreError as error:
        if "locked" not in str(error):
            raise
        raise StoreError(f"{database.where}: another process has it open; end that first") from error
    finally:
        database.close()


def _reseal(database: Database, connection: Connection, keys: Sequence[bytes], sealed: Callable[[int], object]) -> int:
    if database.file is None:
        connection.exec_driver_sql(f"LOCK TABLE {tables.store_key.name}, {', '.join(_TABLES)} IN ACCESS EXCLUSIVE MODE")
        if others := database.others(connection):
            raise StoreError(f"{database.where}: {others} others are connected to the database; end them first")
    wrapped = connection.execute(select(tables.store_key.c.wrapped)).scalar()
    old, data_key, count = Seal(_unwrapped(database, keys, wrapped)[1] if wrapped else b""), os.urandom(_DATA_KEY), 0
    new = Seal(data_key)
    for name, held in _TABLES.items():
        table: Table = getattr(tables, name)
        primary = list(table.primary_key)
        one = and_(*(column == bindparam(f"at_{column.name}") for column in primary))
        change = update(table).where(one).values({column: bindparam(f"new_{column}") for column in held.sealed})
        for key in connection.execute(select(*primary)).all():
            at = {f"at_{column.name}": value for column, value in zip(primary, key, strict=True)}
            row = old.open_row(name, "", tuple(connection.execute(select(table).where(one), at).one()))
            values = new.close_row(name, dict(zip(held.columns, row, strict=True)))
            connection.execute(change, at | {f"new_{column}": values[column] for column in held.sealed})
            count += 1
            sealed(count)
    _keep(connection, keys[0], data_key)
    return count


def _keep(connection: Connection, key: bytes, data_key: bytes) -> bytes:
    """Store a data key, sealed with a key."""
    wrapped = _siv(_stretched(key)).encrypt(data_key, [b"data key"])
    connection.execute(delete(tables.store_key))
    connection.execute(insert(tables.store_key), {"n": 0, "wrapped": wrapped})
    return wrapped


def _unwrapped(database: Database, keys: Sequence[bytes], wrapped: bytes) -> tuple[int, bytes]:
    """Which of the keys opens a store, and its data key."""
    from cryptography.exceptions import InvalidTag

    for number, key in enumerate(keys):
        try:
            return number, _siv(_stretched(key)).decrypt(wrapped, [b"data key"])
        except (InvalidTag, ValueError, TypeError):
            continue
    raise StoreError(f"{database.where}: its records are sealed with another key than the {len(keys)} given")


def _siv(key: bytes) -> "AESSIV":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
    except ModuleNotFoundError as error:
        raise NotInstalled("cryptography") from error
    return AESSIV(key)


def _stretched(key: bytes) -> bytes:
    """A key of the length that the cipher takes (RFC 5869)."""
    from cryptography.hazmat.primitives.hashes import SHA512
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA512(), _DATA_KEY, salt=None, info=b"tenure store").derive(key)


def _beside(table: str, column: str, where: Sequence[str]) -> list[bytes | bytearray | memoryview]:
    """What a cell is bound to."""
    return [each.encode("utf-8", "surrogatepass") or b"\0" for each in (table, column, *where)]


def _key(line: str, where: str, n: int) -> bytes:
    try:
        key = bytes.fromhex(line) if re.fullmatch("[0-9a-fA-F]+", line) else b64decode(line, validate=True)
    except (Error, ValueError):
        key = b""
    if len(key) < KEY_BYTES:
        raise InputError(
            where, f"line {n}: no key of {KEY_BYTES} bytes", "base64 or hex, such as that of: openssl rand -base64 32"
        )
    return key
