"""The numbered shapes of the store.

A store is brought up to date when it is opened, one version at a time, each in its own transaction together with its number: a process
killed meanwhile leaves the version before or the version after. A migration that has been released never changes.
"""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import (
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    func,
    inspect,
    select,
    text,
    update,
)

from tenure.errors import StoreError
from tenure.store.database import Database
from tenure.store.rows import commit_id

Migration = Callable[[Connection], None]


def _texts(*names: str, default: str | None = None) -> list[Column[str]]:
    return [Column(name, Text, nullable=False, server_default=default) for name in names]


def _integers(*names: str) -> list[Column[int]]:
    return [Column(name, Integer, nullable=False) for name in names]


def _of_conversation(*more: Column[Any]) -> list[Column[Any]]:
    """The columns of a table whose rows a conversation has; by number, unless others tell them apart."""
    numbered = Column("n", Integer, primary_key=True, autoincrement=False)
    return [Column("conversation", Text, ForeignKey("conversation.id"), primary_key=True), *(more or (numbered,))]


_USAGE: Final = ("uncached", "cache_write", "cache_read", "output")

V1: Final = MetaData()

Table(
    "conversation",
    V1,
    Column("id", Text, primary_key=True),
    *_texts("tenant", "title"),
    Column("parent", Text, ForeignKey("conversation.id")),
    *_integers("forked_at"),
    *_texts("model", "dialect", "budget", "head"),
    *_integers("length", "commits"),
    *_texts("created"),
    Index("conversation_tenant", "tenant", "created"),
)

Table(
    "entry",
    V1,
    *_of_conversation(),
    *_texts("id", "parent", "sha256", "role", "dialect", "at", "model"),
    *_integers("source", "line"),
    Column("tokens", LargeBinary, nullable=False),  # JSON
    Column("blocks", LargeBinary),  # JSON; NULL where the payload is just that
    Column("payload", LargeBinary, nullable=False),
    Index("entry_id", "id"),
)

Table("commit_log", V1, *_of_conversation(), Column("body", LargeBinary, nullable=False))  # JSON

Table("usage", V1, *_of_conversation(), *_integers(*_USAGE), *_texts("model", "at"))

Table("hold", V1, *_of_conversation(*(Column(name, Text, primary_key=True) for name in ("kind", "object"))), *_texts("reason"))


def v1(connection: Connection) -> None:
    """Create the first tables."""
    V1.create_all(connection)


V2: Final = MetaData()

V1.tables["conversation"].to_metadata(V2)

V1.tables["usage"].to_metadata(V2).append_column(Column("usd", Float))

Table(  # calls of helper models, which belong to no entry
    "aside",
    V2,
    Column("id", Integer, primary_key=True),  # counts up by itself, over all conversations
    Column("conversation", Text, ForeignKey("conversation.id"), nullable=False),
    *_texts("role", "model"),
    *_integers(*_USAGE),
    Column("usd", Float),
    *_texts("at"),
    Index("aside_conversation", "conversation", "id"),
)


def v2(connection: Connection) -> None:
    """Keep what every call cost, and the calls of helper models."""
    connection.execute(text("ALTER TABLE usage ADD COLUMN usd FLOAT"))
    V2.tables["aside"].create(connection)


V3: Final = MetaData()

V1.tables["conversation"].to_metadata(V3).append_column(*_texts("terms", default=""))

V1.tables["commit_log"].to_metadata(V3).append_column(*_texts("id", default=""))


def v3(connection: Connection) -> None:
    """Keep what conversations are held to; chain commits by their hashes."""
    connection.execute(text("ALTER TABLE conversation ADD COLUMN terms TEXT NOT NULL DEFAULT ''"))
    connection.execute(text("ALTER TABLE commit_log ADD COLUMN id TEXT NOT NULL DEFAULT ''"))
    log, conversation = V3.tables["commit_log"], V3.tables["conversation"]
    placed = (log.c.conversation == bindparam("of"), log.c.n == bindparam("at"))
    for (of,) in connection.execute(select(conversation.c.id)).all():
        head = ""
        for n, body in connection.execute(select(log.c.n, log.c.body).where(log.c.conversation == of).order_by(log.c.n)).all():
            head = commit_id(head, body if isinstance(body, bytes) else str(body).encode())  # a damaged one is no bytes
            connection.execute(update(log).where(*placed).values(id=head), {"of": of, "at": n})


V4: Final = MetaData()

V1.tables["conversation"].to_metadata(V4)

Table(  # places in clients' histories, and what stands behind them
    "client_link",
    V4,
    Column("id", Text, primary_key=True),
    Column("conversation", Text, ForeignKey("conversation.id"), nullable=False),
    *_integers("n"),
    Index("client_link_conversation", "conversation"),
)


def v4(connection: Connection) -> None:
    """Find the conversation of a client that sends its whole history."""
    V4.tables["client_link"].create(connection)


V5: Final = MetaData()

Table("store_key", V5, *_integers("n"), Column("wrapped", LargeBinary, nullable=False))


def v5(connection: Connection) -> None:
    """Keep the key that records are sealed with, itself sealed; no row where they are in clear."""
    V5.tables["store_key"].create(connection)


class NotAStore(StoreError):
    """A database that is not ours, or whose version cannot be read."""


MIGRATIONS: Final[tuple[Migration, ...]] = (v1, v2, v3, v4, v5)

_version: Final = Table("tenure_version", MetaData(), Column("version", Integer, nullable=False))


def migrate(database: Database, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring a store to the newest version; StoreError when a newer Tenure wrote it. An up-to-date store is only read."""
    found = _version_in(database, len(migrations))
    while found < len(migrations):
        found = _step(database, migrations)


def migrate_copy(database: Database) -> None:
    """The same for a store that is only read: a copy is brought up to date, and the store stays as it is."""
    if _version_in(database, len(MIGRATIONS)) < len(MIGRATIONS):
        database.detach()
        migrate(database)


def _version_in(database: Database, newest: int) -> int:
    """The version a store has. Raises StoreError for a newer one than `newest`, and for what is none."""
    try:
        with database.connect() as connection:
            found = version_of(connection)
    except NotAStore as error:
        raise StoreError(f"{database.where}: {error}") from error
    if found > newest:
        raise StoreError(
            f"{database.where}: the store has version {found}, this Tenure knows versions up to {newest}; upgrade Tenure to open it"
        )
    return found


def version_of(connection: Connection) -> int:
    """The version a store has; 0 when it is new. Raises NotAStore when it is none: a stranger's database is not written to."""
    held = set(inspect(connection).get_table_names())
    if _version.name not in held:
        # A file is one program's; a server's database may be shared, as long as our names are free.
        strange = held if connection.dialect.name == "sqlite" else held & {*V1.tables, *V3.tables, *V4.tables, *V5.tables}
        if strange:
            raise NotAStore(f"it is another program's database, with the table {min(strange)!r}; give a new file, or a store")
        return 0
    version = connection.execute(select(func.max(_version.c.version))).scalar()
    if type(version) is not int or version < 1:
        raise NotAStore(f"its version is {version!r}, expected 1 to {len(MIGRATIONS)}: it is damaged, or another program's")
    return version


def _step(database: Database, migrations: tuple[Migration, ...]) -> int:
    """Take one version's step, unless another process did meanwhile; the version the store has then."""
    with database.connect(exclusive=True) as connection:
        found = version_of(connection)
        if found >= len(migrations):
            return found
        _version.metadata.create_all(connection)
        migrations[found](connection)
        connection.execute(_version.delete())
        connection.execute(_version.insert(), {"version": found + 1})
        connection.commit()
        return found + 1
