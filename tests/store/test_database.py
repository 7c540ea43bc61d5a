"""What a store says when the world is not as it should be, and that nothing stored is lost by it."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from tenure.errors import Conflict, InputError, StoreError
from tenure.record.chain import Chain
from tenure.record.entry import NEUTRAL, Draft, Entry, Origin, Role, Text
from tenure.store.records import Conversation
from tenure.store.store import Store


def said(*words: str) -> list[Entry]:
    chain = Chain()
    return [chain.place(Draft(role=Role.USER, blocks=(Text(text=word, origin=Origin.HUMAN),)), (9,)) for word in words]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store that holds a conversation of two entries."""
    with Store(f"sqlite:///{tmp_path}/tenure.db") as store:
        store.create(Conversation(id="c"))
        store.append("c", said("a", "b"))
    return tmp_path / "tenure.db"


@pytest.fixture
def full_disk(file: Path) -> Iterator[None]:
    """A disk that holds `file` and has a few pages left."""

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    event.listen(Engine, "connect", limit)
    yield
    event.remove(Engine, "connect", limit)


def holds_all(file: Path) -> bool:
    with Store(f"sqlite:///{file}") as store:
        return list(store.entries("c")) == said("a", "b") and store.verify("c") is None


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_loses_nothing_that_was_stored(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        with pytest.raises(StoreError, match="full"):
            store.append("c", said("a", "b", "c" * 100_000)[2:])
        assert list(store.entries("c")) == said("a", "b")
    assert holds_all(file)


def test_a_read_only_store_can_be_read_and_says_that_it_cannot_be_written(file: Path) -> None:
    with Store(f"sqlite:///file:{file}?mode=ro&uri=true") as store:
        assert list(store.entries("c")) == said("a", "b")
        with pytest.raises(StoreError, match="readonly"):
            store.append("c", said("a", "b", "c")[2:])
    assert holds_all(file)


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt: file is not a database"):
        Store(f"sqlite:///{file}")
    assert file.read_text() == "no database\n" * 100


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/tenure\.db: unable to open"):
        Store(f"sqlite:///{tmp_path}/missing/tenure.db")


@pytest.mark.parametrize("url", ["", "tenure.db", "mysql://host/name"])
def test_a_url_that_cannot_be_used_says_what_can(url: str) -> None:
    with pytest.raises(InputError, match="sqlite"):
        Store(url)


def test_a_store_that_another_process_keeps_locked_says_so(file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Store(f"sqlite:///{file}", busy_timeout_s=0.05) as store, pytest.raises(StoreError, match="locked"):
        store.append("c", said("a", "b", "c")[2:])
    other.close()
    assert holds_all(file)


def test_text_that_cannot_be_stored_is_bad_input(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store, pytest.raises(InputError, match="Unicode"):
        store.create(Conversation(id="d", title="\ud800"))
    assert holds_all(file)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE entry SET payload = x'7b7d' WHERE n = 1", "entry 1"),
        ("UPDATE entry SET id = 'f' || substr(id, 2) WHERE n = 0", "entry 0 gives the id"),
        ("UPDATE entry SET role = 'nobody' WHERE n = 1", "entry 1 cannot be read back"),
        ("UPDATE entry SET role = 'assistant' WHERE n = 1", "entry 1 gives the id"),
        ("DELETE FROM entry WHERE n = 0", "entry 0 is missing"),
        ("DELETE FROM entry WHERE n = 1", "entry 1 is missing"),
    ],
)
def test_verify_finds_damage(file: Path, damage: str, words: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(damage)
    connection.close()
    with Store(f"sqlite:///{file}") as store:
        assert words in (store.verify("c") or "all well")


def test_the_content_of_a_neutral_entry_is_stored_once(file: Path) -> None:
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT dialect, blocks FROM entry").fetchall() == [(NEUTRAL, None)] * 2
    connection.close()


def test_blocks_that_differ_from_a_neutral_payload_are_kept(file: Path) -> None:
    draft = Draft(role=Role.USER, blocks=(Text(text="x", origin=Origin.HUMAN),), payload=b"something else")
    entry = Chain().place(draft, (1,))
    with Store(f"sqlite:///{file}") as store:
        store.create(Conversation(id="d"))
        store.append("d", [entry])
        assert list(store.entries("d")) == [entry]


def test_the_file_is_in_wal_mode_with_foreign_keys(file: Path) -> None:
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    with Store(f"sqlite:///{file}") as store, store._database.reading() as cursor:
        cursor.execute("PRAGMA synchronous")
        assert cursor.fetchall() == [(1,)]
        with pytest.raises(sqlite3.IntegrityError):
            cursor.execute("INSERT INTO commit_log VALUES ('nowhere', 0, x'00', '')")


def test_a_violated_key_is_a_conflict(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store, pytest.raises(Conflict), store._database.writing() as cursor:
        cursor.execute("INSERT INTO commit_log VALUES ('nowhere', 0, x'00', '')")


def test_the_contract_needs_no_database_library() -> None:
    code = "import sys, tenure.testing.store, tenure.store.contract; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
