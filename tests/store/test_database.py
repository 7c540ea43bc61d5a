"""What a store says when the world is not as it should be, and that nothing stored is lost by it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text

from tenure.cli.main import main
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import NEUTRAL, Draft, Entry, Origin, Role, Text
from tenure.errors import Conflict, Damaged, InputError, StoreError
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


WRITER = """
import resource, sys
from tenure.errors import StoreError
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.store.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
with Store(sys.argv[1]) as store:
    chain = Chain()
    for entry in store.entries("c"):
        chain.follow(entry)
    try:
        while True:
            words = Text(text="x" * 9_000, origin=Origin.HUMAN)
            store.append("c", [chain.place(Draft(role=Role.USER, blocks=(words,)), (9,))])
            print(chain.length, flush=True)
    except StoreError as error:
        print(error, file=sys.stderr)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
@pytest.mark.parametrize("size", range(120_000, 200_000, 18_000))
def test_a_disk_that_takes_no_more_loses_nothing_that_was_acknowledged_and_is_not_called_damage(file: Path, size: int) -> None:
    """The limit of a file's size fails writes anywhere, also in the log and in its index, as a quota does; root is held to it too."""
    command = [sys.executable, "-c", WRITER, f"sqlite:///{file}", str(size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    acknowledged = int(done.stdout.split()[-1])
    assert "free some space and try again" in done.stderr
    with Store(f"sqlite:///{file}") as store:
        assert store.conversation("c").length == acknowledged
        assert store.verify("c") is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own of which 64 kB are left once the store is on it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    size = (tmp_path / "tenure.db").stat().st_size + 2**16
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs a disk of its own")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_store_on_a_full_disk_can_still_be_read(file: Path, small_disk: Path) -> None:
    """SQLite wants a file of 32 kB beside one that may have a log, even to read it."""
    kept = small_disk / "tenure.db"
    shutil.copyfile(file, kept)
    with suppress(OSError), (small_disk / "rest").open("wb", buffering=0) as rest:
        while rest.write(bytes(4_096)):
            pass
    for _ in range(2):
        with Store(f"sqlite:///{kept}", read_only=True) as store:
            assert list(store.entries("c")) == said("a", "b")
        with pytest.raises(StoreError, match="free some space and try again"), Store(f"sqlite:///{kept}") as store:
            store.append("c", said("a", "b", "c")[2:])
    (small_disk / "rest").unlink()
    assert holds_all(kept)


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


def test_a_driver_that_is_missing_is_told_like_any_other_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert main(["verify", "postgresql://127.0.0.1:1/nothing"]) == 2
    assert "psycopg is not installed: pip install 'tenure[postgres]'" in capsys.readouterr().err


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
    code = "import sys, tenure.testing.store, tenure.store.soundness; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_of_another_program_is_not_written_to(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "places.db") as connection:
        connection.execute("CREATE TABLE moz_places (id INTEGER)")
    connection.close()
    before = (tmp_path / "places.db").read_bytes()
    with pytest.raises(StoreError, match=r"places\.db: it is another program's database, with the table 'moz_places'"):
        Store(f"sqlite:///{tmp_path}/places.db")
    assert (tmp_path / "places.db").read_bytes()[:18] == before[:18]
    with sqlite3.connect(tmp_path / "places.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("moz_places",)]
    connection.close()


@pytest.mark.parametrize(
    ("problem", "way"),
    [
        ("a directory", r"unable to open database file \(its folder must exist, and the path must be a file"),
        (
            "a missing column",
            r"no such column: \S+ \(it is damaged, or another program's; .*tenure verify \S+ --repair NEW\.db\)",
        ),
        ("a version that is none", r"its version is 'x', expected 1 to \d+"),
        ("no version", r"its version is None"),
    ],
)
def test_what_cannot_be_opened_is_told_with_the_way_out(file: Path, problem: str, way: str) -> None:
    changes = {
        "a missing column": "ALTER TABLE conversation DROP COLUMN title",
        "a version that is none": "UPDATE tenure_version SET version = 'x'",
        "no version": "DELETE FROM tenure_version",
    }
    if problem == "a directory":
        file = file.with_name("folder.db")
        file.mkdir()
    else:
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute(changes[problem])
        connection.close()
    with pytest.raises(StoreError, match=way), Store(f"sqlite:///{file}") as store:
        store.conversation("c")


def test_a_writer_that_was_not_first_is_told_to_open_the_conversation_again(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        store.append("c", said("a", "b", "c")[2:])
        with pytest.raises(Conflict, match=r"another writer was first, and it has 3 entries.* open the conversation again"):
            store.append("c", said("a", "b", "d")[2:])


def test_a_conversation_that_is_its_own_ancestor_is_told_and_read_no_further(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        store.fork("c", 2, "d")
        with store._database.writing() as cursor:
            cursor.execute("UPDATE conversation SET parent = 'd', forked_at = 2 WHERE id = 'c'")
        for read in (store.entries, store.usages):
            with pytest.raises(Damaged, match=r"its parent '[cd]' is its own fork"):
                list(read("d"))
        assert "is its own fork" in (store.verify("d") or "")


POSTGRES = os.environ.get("TENURE_TEST_POSTGRES", "")


@pytest.mark.skipif(not POSTGRES, reason="no server")
def test_a_full_disk_of_a_server_loses_nothing_that_was_stored() -> None:
    """The server says what it says when its disk is full; a trigger makes it."""
    name = os.urandom(8).hex()
    full = "could not extend file: No space left on device"
    with Store(POSTGRES) as store:
        store.create(Conversation(id=name))
        store.append(name, said("a", "b"))
        with store._database.writing() as cursor:
            cursor.execute(
                f"CREATE FUNCTION full_{name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = '{full}'; END $$"
            )
            cursor.execute(
                f"CREATE TRIGGER full_{name} BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.conversation = '{name}') "
                f"EXECUTE FUNCTION full_{name}()"
            )
        try:
            with pytest.raises(StoreError, match=r"No space left .*all that was stored is there; free some space"):
                store.append(name, said("a", "b", "c")[2:])
            assert list(store.entries(name)) == said("a", "b")
            assert store.verify(name) is None
        finally:
            with store._database.writing() as cursor:
                cursor.execute(f"DROP FUNCTION full_{name} CASCADE")
        store.append(name, said("a", "b", "c")[2:])


def cut_off(store: Store, other: Store) -> None:
    """End a connection from another one while it writes."""
    with store._database.writing() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((process,),) = cursor.fetchall()
        other._select(text(f"SELECT pg_terminate_backend({process})"))
        cursor.execute("SELECT 1")


@pytest.mark.skipif(not POSTGRES, reason="no server")
def test_a_lost_connection_is_one_sentence_and_the_next_use_connects_again() -> None:
    name = os.urandom(8).hex()
    with Store(POSTGRES) as store, Store(POSTGRES) as other:
        store.create(Conversation(id=name))
        with pytest.raises(StoreError, match=r"(terminat|connection).*what was acknowledged is stored") as caught:
            cut_off(store, other)
        assert "\n" not in str(caught.value)
        store.append(name, said("a"))
        assert store.verify(name) is None


@pytest.mark.skipif(not POSTGRES, reason="no server")
def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Store("postgresql://nobody:secret@127.0.0.1:1/nothing")
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
