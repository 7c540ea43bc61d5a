import multiprocessing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tenure.errors import StoreError
from tenure.record.chain import Chain
from tenure.record.entry import Draft, Origin, Role, Text
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, migrate, version_of
from tenure.store.records import Conversation
from tenure.store.store import Store


def v2(connection: Connection) -> None:
    """A migration that does not exist yet."""
    connection.execute(text("ALTER TABLE entry ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'"))


def v2_that_fails(connection: Connection) -> None:
    v2(connection)
    connection.execute(text("UPDATE entry SET colour = NULL"))


def url(directory: Path) -> str:
    return f"sqlite:///{directory}/tenure.db"


def filled(directory: Path) -> Database:
    """A store of version 1 with one entry, open as a database."""
    with Store(url(directory)) as store:
        store.create(Conversation(id="c"))
        store.append("c", [Chain().place(Draft(role=Role.USER, blocks=(Text(text="hello", origin=Origin.HUMAN),)), (9,))])
    return Database(url(directory))


def version(database: Database) -> int:
    with database.connect() as connection:
        return version_of(connection)


def test_a_new_store_has_the_newest_version(tmp_path: Path) -> None:
    database = filled(tmp_path)
    assert version(database) == len(MIGRATIONS)
    database.close()


def test_a_store_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    database = filled(tmp_path)
    migrate(database, (*MIGRATIONS, v2))
    assert version(database) == 2
    with database.connect() as connection:
        assert connection.execute(text("SELECT n, colour FROM entry")).all() == [(0, "blue")]
    migrate(database, (*MIGRATIONS, v2))
    database.close()


def test_a_store_of_a_newer_version_says_so(tmp_path: Path) -> None:
    database = filled(tmp_path)
    migrate(database, (*MIGRATIONS, v2))
    database.close()
    with pytest.raises(StoreError, match=r"tenure\.db: the store has version 2, this Tenure knows versions up to 1"):
        Store(url(tmp_path))


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    database = filled(tmp_path)
    with pytest.raises(StoreError):
        migrate(database, (*MIGRATIONS, v2_that_fails))
    assert version(database) == 1
    database.close()
    with Store(url(tmp_path)) as store:
        assert store.verify("c") is None


def open_and_close(where: str) -> None:
    Store(where).close()


def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=open_and_close, args=(url(tmp_path),)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
