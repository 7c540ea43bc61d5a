import multiprocessing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Origin, Role, Text, Usage
from tenure.errors import StoreError
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, migrate, version_of
from tenure.store.records import Conversation, Observed
from tenure.store.store import Store

NOW = len(MIGRATIONS)


def newer(connection: Connection) -> None:
    """A migration that does not exist yet."""
    connection.execute(text("ALTER TABLE entry ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'"))


def newer_that_fails(connection: Connection) -> None:
    newer(connection)
    connection.execute(text("UPDATE entry SET colour = NULL"))


def url(directory: Path) -> str:
    return f"sqlite:///{directory}/tenure.db"


def filled(directory: Path) -> Database:
    """A store of the newest version with one entry, open as a database."""
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
    migrate(database, (*MIGRATIONS, newer))
    assert version(database) == NOW + 1
    with database.connect() as connection:
        assert connection.execute(text("SELECT n, colour FROM entry")).all() == [(0, "blue")]
    migrate(database, (*MIGRATIONS, newer))
    database.close()


def test_a_store_of_a_newer_version_says_so(tmp_path: Path) -> None:
    database = filled(tmp_path)
    migrate(database, (*MIGRATIONS, newer))
    database.close()
    with pytest.raises(StoreError, match=rf"tenure\.db: the store has version {NOW + 1}, this Tenure knows versions up to {NOW}"):
        Store(url(tmp_path))


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    database = filled(tmp_path)
    with pytest.raises(StoreError):
        migrate(database, (*MIGRATIONS, newer_that_fails))
    assert version(database) == NOW
    database.close()
    with Store(url(tmp_path)) as store:
        assert store.verify("c") is None


def test_a_store_of_version_1_keeps_its_reports_and_takes_money_and_helper_models(tmp_path: Path) -> None:
    database = Database(url(tmp_path))
    migrate(database, MIGRATIONS[:1])
    assert version(database) == 1
    with database.connect(exclusive=True) as connection:
        connection.execute(
            text(
                "INSERT INTO conversation (id, tenant, title, forked_at, model, dialect, budget, head, length, commits, created) "
                "VALUES ('c', '', '', 0, 'gpt-5', '', '', '', 0, 0, '2026-01-01T00:00:00Z')"
            )
        )
        connection.execute(text("INSERT INTO usage VALUES ('c', 3, 10, 20, 30, 40, 'gpt-5', '2026-01-01T00:00:09Z')"))
        connection.commit()
    database.close()
    old = Observed(
        n=3, usage=Usage(uncached=10, cache_write=20, cache_read=30, output=40), model="gpt-5", at="2026-01-01T00:00:09Z"
    )
    spent = Spent(role="planner", model="gpt-5-mini", usage=Usage(cache_read=9), usd=0.1)
    with Store(url(tmp_path)) as store:
        assert store.usages("c") == (old,)
        store.observe("c", 5, Usage(output=1), "gpt-5", usd=0.25)
        store.note("c", spent)
    with Store(url(tmp_path)) as store:
        assert store.usages("c") == (old, Observed(n=5, usage=Usage(output=1), model="gpt-5", usd=0.25))
        assert store.asides("c") == (spent,)
    again = Database(url(tmp_path))
    assert version(again) == NOW
    again.close()


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
