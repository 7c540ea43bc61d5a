"""What only reads a store leaves it, and the folder it is in, as they are."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import damages
import msgspec
import pytest
from homes import World

from tenure.cli.main import main
from tenure.engine.record.entry import Role
from tenure.engine.view.edit import Commit, Insert, edits_v2_to_v1
from tenure.errors import StoreError
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, version_of
from tenure.store.records import Conversation
from tenure.store.rows import commit_id, commit_of, commit_values
from tenure.store.store import Store

KILLED = """
import os, signal, sys
from tenure.store.store import Store
store = Store(sys.argv[1])
store.entitle(sys.argv[2], "named last", instead="another")
os.kill(os.getpid(), signal.SIGKILL)
"""


def at_version(path: Path, version: int) -> None:
    """A store as an older Tenure wrote it."""
    database = Database(f"sqlite:///{path}")
    damages.at_version(database, version)
    database.close()


def everything(folder: Path) -> dict[str, bytes]:
    """The files of a folder. What the index of a log holds is each reader's own."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.name.endswith("-shm")}


def left_by_a_kill(path: Path, conversation: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, f"sqlite:///{path}", conversation], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name(path.name + "-wal").stat().st_size


@pytest.mark.parametrize("version", [*range(1, len(MIGRATIONS) + 1)])
def test_commands_that_read_leave_a_store_of_any_version_as_it_is(
    world: World, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    at_version(world.restored(), version)
    before = everything(world.store.parent)
    commands = world.reading()
    for command in commands if version in (1, len(MIGRATIONS)) else commands[version % 3 :: 3]:
        (world.folder / "new.db").unlink(missing_ok=True)
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"
        assert everything(world.store.parent) == before, command


def test_commands_that_read_leave_the_log_of_a_killed_process_and_show_what_is_in_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    left_by_a_kill(world.restored(), "other")
    before = everything(world.store.parent)
    for command in world.reading():
        (world.folder / "new.db").unlink(missing_ok=True)
        assert main(command) == 0, f"{command}: {capsys.readouterr().err}"
        assert everything(world.store.parent) == before, command
    with Store(f"sqlite:///{world.store}", read_only=True) as store:
        assert store.conversation("other").title == "named last"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_store_that_is_only_read_is_read_as_one_of_the_newest_version(world: World, version: int) -> None:
    path = world.restored()
    with Store(f"sqlite:///{path}") as store:
        title = store.conversation("fork").title
    at_version(path, version)
    with Store(f"sqlite:///{path}", read_only=True) as store:
        sheets = store.conversations(None)
        assert {sheet.id for sheet in sheets} == {world.conversation, "fork", "other"}
        assert store.conversation("fork").title == title
        assert [store.verify(sheet.id) for sheet in sheets] == [None] * 3
        assert store.commits(world.conversation)
    database = Database(f"sqlite:///{path}", read_only=True)
    with database.connect() as connection:
        assert version_of(connection) == version
    database.close()


def test_a_store_that_is_only_read_refuses_to_be_written(world: World) -> None:
    before = everything(world.store.parent)
    with Store(f"sqlite:///{world.store}", read_only=True) as store, pytest.raises(StoreError, match="readonly"):
        store.create(Conversation(id="new"))
    assert everything(world.store.parent) == before


def test_a_store_can_be_read_while_another_process_writes_to_it(world: World) -> None:
    with Store(f"sqlite:///{world.store}", read_only=True) as reader, Store(f"sqlite:///{world.store}") as writer:
        writer.entitle("other", "changed", instead="another")
        assert reader.conversation("other").title == "changed"
    with Store(f"sqlite:///{world.store}") as writer, Store(f"sqlite:///{world.store}", read_only=True) as reader:
        writer.entitle("other", "again", instead="changed")
        assert reader.conversation("other").title == "again"


def test_a_store_in_a_folder_that_nobody_may_write_to_can_be_read(world: World) -> None:
    """As root every folder may be written to: then the file is opened as one on a read-only disk is."""
    place = world.folder / "archive"
    place.mkdir()
    shutil.copyfile(world.restored(), place / "old.db")
    (place / "old.db").chmod(0o444)
    place.chmod(0o555)
    try:
        before = {path.name for path in place.iterdir()}
        with Store(f"sqlite:///{place}/old.db", read_only=True) as store:
            assert store.verify(world.conversation) is None
        assert {path.name for path in place.iterdir()} == before
    finally:
        place.chmod(0o755)
        shutil.rmtree(place)


POSTGRES = os.environ.get("TENURE_TEST_POSTGRES", "")


@pytest.mark.skipif(not POSTGRES, reason="no server")
def test_a_database_on_a_server_is_read_in_transactions_that_may_only_read() -> None:
    name = os.urandom(8).hex()
    with Store(POSTGRES) as store:
        store.create(Conversation(id=name))
    with Store(POSTGRES, read_only=True) as store:
        assert store.verify(name) is None
        with pytest.raises(StoreError, match=r"read-only transaction.*it can be read"):
            store.create(Conversation(id=name + "x"))


def test_a_commit_of_version_1_says_what_its_inserts_stand_for() -> None:
    """There the first letter of a key said it, and a brief was a pointer that names nothing."""
    keys = {"r0.0": "episodes", "p0.0": "object", "p1.0": "history", "p1.0~3": "history", "t2.1": "turn", "s2.0.0": "stretch"}
    inserts = tuple(
        Insert(
            before_entry=1,
            order=0,
            key=key,
            role=Role.USER,
            text="x",
            tokens=1,
            routes=() if kind == "history" else ("read:1@3fa9",),
        )
        for key, kind in keys.items()
    )
    body = msgspec.json.encode(Commit(n=0, entries=1, policy="cwl", moment="manual", reason="", edits=inserts))
    assert b"stands_for" not in body
    commit = commit_of((0, body, commit_id("", body)), "")
    assert [edit.stands_for for edit in commit.edits if isinstance(edit, Insert)] == list(keys.values())
    (row,) = commit_values("c", [commit], "")
    assert commit_of((0, row["body"], row["id"]), "") == commit
    assert edits_v2_to_v1(commit.edits) == inserts
