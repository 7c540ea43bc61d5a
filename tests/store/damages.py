"""A store with something in every table, and ways to damage it."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from tenure import Budget, Context
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Usage
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS
from tenure.store.records import Conversation
from tenure.store.store import Store

TABLES: Final = ("conversation", "entry", "commit_log", "usage", "aside", "hold")
WRONG: Final[tuple[Any, ...]] = (None, "", "x", "\x1b[2J", -1, 0, 10**15, 1.5, b"", b"\xff\x00", b"[]", b"{}", '{"target": -1}')


def filled(path: Path, folder: Path) -> str:
    """A store with a conversation that commits were made in, a fork of it, and another one; the first one's id."""
    with Store(f"sqlite:///{path}") as store:
        context = Context(
            store=store, dialect="anthropic", model="claude-opus-4-5", tenant=str(folder), budget=Budget(ceiling=9_000), clip=900
        )
        context.extend([{"role": "user", "content": "Look at all the files, then say what is wrong."}])
        for n in range(12):
            body = "\n".join(f"file {n} line {line} of what the tool read" for line in range(130))
            call = {"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"path": f"src/{n}.py"}}
            context.request(max_tokens=100)
            usage = {"input_tokens": 40, "output_tokens": 9, "cache_read_input_tokens": 100 * n}
            reply = {"role": "assistant", "model": "claude-opus-4-5", "content": [call], "usage": usage, "type": "message"}
            context.append(reply)
            result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": body}
            context.extend([{"role": "user", "content": [result]}])
        context.pin("read:2")
        context.pin("user:1")
        store.note(context.conversation, Spent(role="planner", model="gpt-5-mini", usage=Usage(uncached=9), usd=0.1))
        assert len(context.session.commits) > 2, "there is something to damage"
        store.fork(context.conversation, context.session.length - 2, "fork", "a fork")
        store.create(Conversation(id="other", tenant=str(folder), dialect="anthropic", model="claude-opus-4-5", title="another"))
        other = Context(store=store, conversation="other")
        other.extend([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}])
        return context.conversation


BACK: Final = {  # what takes a store back to a version
    4: ("DROP TABLE store_key",),
    3: ("DROP TABLE client_link",),
    2: ("ALTER TABLE commit_log DROP COLUMN id", "ALTER TABLE conversation DROP COLUMN terms"),
    1: ("ALTER TABLE usage DROP COLUMN usd", "DROP TABLE aside"),
}


def at_version(database: Database, version: int) -> None:
    """A store as an older Tenure wrote it."""
    with database.connect(exclusive=True) as connection:
        for each in range(len(MIGRATIONS) - 1, version - 1, -1):
            for statement in BACK[each]:
                connection.execute(text(statement))
        connection.execute(text(f"UPDATE tenure_version SET version = {version}"))
        connection.commit()


def damaged(path: Path, chance: random.Random) -> str:
    """Damage a store in one way, and say in which."""
    return chance.choice(DAMAGES)(path, chance)


def _changed(path: Path, sql: str, *values: Any) -> str:
    """Run a statement without any check; what a constraint refuses is no damage."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(sql, values)
    except sqlite3.Error as error:
        return f"{sql} {values!r:.60} (refused: {error})"
    finally:
        connection.close()
    return f"{sql} {values!r:.60}"


def _row(path: Path, table: str, chance: random.Random) -> int:
    connection = sqlite3.connect(path)
    rows = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
    connection.close()
    return chance.choice(rows)


def _columns(path: Path, table: str) -> list[str]:
    connection = sqlite3.connect(path)
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    return names


def missing_row(path: Path, chance: random.Random) -> str:
    table = chance.choice(TABLES)
    return _changed(path, f"DELETE FROM {table} WHERE rowid = ?", _row(path, table, chance))


def wrong_cell(path: Path, chance: random.Random) -> str:
    table = chance.choice(TABLES)
    column = chance.choice(_columns(path, table))
    values = (chance.choice(WRONG), _row(path, table, chance))
    return _changed(path, f"UPDATE OR REPLACE {table} SET {column} = ? WHERE rowid = ?", *values)


def altered_cell(path: Path, chance: random.Random) -> str:
    """Some bytes of a text or a payload, as JSON that can still be read or as none."""
    table, column = chance.choice((("entry", "payload"), ("entry", "blocks"), ("commit_log", "body"), ("conversation", "budget")))
    row = _row(path, table, chance)
    connection = sqlite3.connect(path)
    (held,) = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone() or (b"",)
    connection.close()
    raw = bytearray(held.encode() if isinstance(held, str) else held or b"{}")
    at = chance.randrange(len(raw))
    raw[at : at + chance.choice((1, 1, 4))] = chance.choice((b"x", b"7", b"\xff", b'"', b""))
    return _changed(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", bytes(raw), row)


def forged_commit(path: Path, chance: random.Random) -> str:
    row = _row(path, "commit_log", chance)
    swaps = (('entry":', 'entry":9'), ("Clipped", "Forged"), ('"op":"replace"', '"op":"restore"'), ('"n":', '"n":1'))
    old, new = chance.choice(swaps)
    sql = "UPDATE commit_log SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE rowid = ?"
    return _changed(path, sql, old, new, row)


def cyclic_parents(path: Path, chance: random.Random) -> str:
    return _changed(
        path,
        "UPDATE conversation SET parent = ?, forked_at = ?",
        chance.choice(("fork", "other", "nowhere")),
        chance.choice((2, 99)),
    )


def missing_column(path: Path, chance: random.Random) -> str:
    table = chance.choice((*TABLES, "tenure_version"))
    return _changed(path, f"ALTER TABLE {table} DROP COLUMN {chance.choice(_columns(path, table))}")


def missing_table(path: Path, chance: random.Random) -> str:
    return _changed(path, f"DROP TABLE {chance.choice((*TABLES, 'tenure_version'))}")


def wrong_version(path: Path, chance: random.Random) -> str:
    return _changed(path, "UPDATE tenure_version SET version = ?", chance.choice((0, -3, 1, 2, 999, "x", b"\xff")))


def no_version(path: Path, _: random.Random) -> str:
    return _changed(path, "DELETE FROM tenure_version")


def truncated(path: Path, chance: random.Random) -> str:
    size = chance.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"truncated to {size} bytes"


def noise(path: Path, chance: random.Random) -> str:
    at, length = chance.randrange(path.stat().st_size), chance.choice((1, 16, 512, 8_192))
    with path.open("r+b") as file:
        file.seek(at)
        file.write(chance.randbytes(length))
    return f"{length} bytes of noise at {at}"


def another_file(path: Path, chance: random.Random) -> str:
    content = chance.choice((b"", b"no database\n" * 90, b"SQLite format 3\0", chance.randbytes(4_096)))
    path.write_bytes(content)
    return f"another file: {content[:16]!r}"


def foreign_schema(path: Path, chance: random.Random) -> str:
    path.unlink()
    tables = chance.choice(
        (
            "CREATE TABLE moz_places (id INTEGER)",
            "CREATE TABLE conversation (id TEXT, words TEXT); CREATE TABLE tenure_version (version INTEGER); INSERT INTO tenure_version VALUES (3)",
            "CREATE TABLE tenure_version (colour TEXT); INSERT INTO tenure_version VALUES ('blue')",
            "CREATE VIEW tenure_version AS SELECT 3 AS version",
        )
    )
    connection = sqlite3.connect(path)
    connection.executescript(tables)
    connection.close()
    return tables


def directory(path: Path, _: random.Random) -> str:
    path.unlink()
    path.mkdir()
    return "a directory"


Damage = Callable[[Path, random.Random], str]
DAMAGES: Final[tuple[Damage, ...]] = (
    *(missing_row, wrong_cell, altered_cell) * 3,
    *(truncated, noise) * 2,
    *(
        forged_commit,
        cyclic_parents,
        missing_column,
        missing_table,
        wrong_version,
        no_version,
        another_file,
        foreign_schema,
        directory,
    ),
)
