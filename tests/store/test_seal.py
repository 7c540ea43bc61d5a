"""A store whose records are sealed: what a thief of it sees, and what keys do."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from tenure import Budget, Context
from tenure.cli.main import main
from tenure.engine.record.chain import genesis
from tenure.engine.view.guard import Hold
from tenure.errors import InputError, StoreError
from tenure.store.records import ClientLink
from tenure.store.seal import KEY, KEY_FILE, keys_of, reseal
from tenure.store.store import Store

POSTGRES = os.environ.get("TENURE_TEST_POSTGRES", "")
ONE, OTHER = b"\x01" * 32, b"\x02" * 32
SECRET = "the password of the vault is swordfish-7919"


def filled(place: Path | str, *keys: bytes) -> str:
    """A store, in a file or by its URL, with a conversation from which something left; its id."""
    with Store(f"sqlite:///{place}" if isinstance(place, Path) else place, keys=keys) as store:
        context = Context(store=store, dialect="anthropic", budget=Budget(ceiling=3_000), clip=0)
        context.extend([{"role": "user", "content": SECRET}])
        for n in range(8):
            tool = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"vault/{n}.py"}}
            context.append({"role": "assistant", "content": [tool], "model": "claude-opus-5", "usage": {"input_tokens": 9}})
            lines = "\n".join(f"{SECRET} {n} {line}" for line in range(60))
            context.extend([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": lines}]}])
            context.wire(model="claude-opus-5", max_tokens=9)
        store.entitle(context.conversation, SECRET)
        store.hold(context.conversation, Hold(kind="pin", object="read:1", reason=SECRET))
        store.link([ClientLink(id=sha256(SECRET.encode()).hexdigest(), conversation=context.conversation, n=1)])
        assert store.conversation(context.conversation).commits
        return context.conversation


def on_disk(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.iterdir())


def test_nothing_that_was_said_is_on_the_disk_and_all_of_it_comes_back(tmp_path: Path) -> None:
    (tmp_path / "clear").mkdir()
    (tmp_path / "sealed").mkdir()
    clear, sealed = tmp_path / "clear" / "a.db", tmp_path / "sealed" / "a.db"
    first, second = filled(clear), filled(sealed, ONE)
    assert b"swordfish" in on_disk(clear)
    assert b"vault/" in on_disk(clear)
    for word in (b"swordfish", b"vault", b"password", b"left at", ONE, b64encode(ONE), ONE.hex().encode()):
        assert word not in on_disk(sealed), word
    with Store(f"sqlite:///{clear}") as one, Store(f"sqlite:///{sealed}", keys=[ONE]) as other:
        assert [each.payload for each in other.entries(second)] == [each.payload for each in one.entries(first)]
        assert other.commits(second) == one.commits(first)
        assert other.conversation(second).title == SECRET
        assert other.holds(second)[0].reason == SECRET
        assert other.links([sha256(SECRET.encode()).hexdigest()])[0].n == 1
        assert other.verify(second) is None
        assert (
            Context(store=other, conversation=second).session.freeze() == Context(store=one, conversation=first).session.freeze()
        )


def test_no_guess_of_what_was_said_can_be_checked_against_a_hash(tmp_path: Path) -> None:
    conversation = filled(tmp_path / "a.db", ONE)
    with Store(f"sqlite:///{tmp_path}/a.db", keys=[ONE]) as store:
        entries = list(store.entries(conversation))
        hashes = {genesis(), *(hash_ for each in entries for hash_ in (each.id, each.parent, each.sha256))}
        hashes.add(sha256(SECRET.encode()).hexdigest())
    held = on_disk(tmp_path / "a.db")
    assert not [each for each in hashes if each.encode() in held or bytes.fromhex(each) in held]


def test_the_same_words_look_different_in_every_row(tmp_path: Path) -> None:
    filled(tmp_path / "a.db", ONE)
    filled(tmp_path / "a.db", ONE)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        for column in ("id", "parent", "sha256", "payload"):
            cells = connection.execute(f"SELECT {column} FROM entry").fetchall()
            assert len({cell for (cell,) in cells}) == len(cells) == 34
    connection.close()


def test_a_key_that_is_missing_wrong_or_too_late_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "sealed.db", ONE)
    filled(tmp_path / "clear.db")
    for path, keys, why in [
        ("sealed", [], "its records are sealed; give its key, by TENURE_STORE_KEY_FILE or TENURE_STORE_KEY"),
        ("sealed", [OTHER], "its records are sealed with another key than the 1 given"),
        ("clear", [ONE], "it holds conversations in clear; seal them first: tenure seal "),
    ]:
        with pytest.raises(StoreError, match=why) as error:
            Store(f"sqlite:///{tmp_path}/{path}.db", keys=keys)
        assert "\n" not in str(error.value)
    Store(f"sqlite:///{tmp_path}/clear.db", keys=[ONE], read_only=True).close()
    monkeypatch.setenv(KEY, ONE.hex())
    Store(f"sqlite:///{tmp_path}/sealed.db", read_only=True).close()


def test_a_key_is_replaced_by_another(tmp_path: Path) -> None:
    conversation = filled(tmp_path / "a.db", ONE)
    Store(f"sqlite:///{tmp_path}/a.db", keys=[OTHER, ONE], read_only=True).close()
    Store(f"sqlite:///{tmp_path}/a.db", keys=[ONE]).close()
    Store(f"sqlite:///{tmp_path}/a.db", keys=[OTHER, ONE]).close()
    with Store(f"sqlite:///{tmp_path}/a.db", keys=[OTHER]) as store:
        assert store.verify(conversation) is None
    with pytest.raises(StoreError, match="another key"):
        Store(f"sqlite:///{tmp_path}/a.db", keys=[ONE])


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET payload = (SELECT payload FROM entry WHERE n = 4) WHERE n = 2",
        "UPDATE entry SET id = (SELECT id FROM entry WHERE n = 4) WHERE n = 2",
        "UPDATE entry SET payload = x'00' WHERE n = 2",
        "UPDATE commit_log SET body = (SELECT body FROM commit_log WHERE n = 1) WHERE n = 0",
        "UPDATE conversation SET head = 'x'",
    ],
)
def test_a_cell_that_was_changed_or_moved_does_not_open(tmp_path: Path, change: str) -> None:
    conversation = filled(tmp_path / "a.db", ONE)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(change)
    connection.close()
    with Store(f"sqlite:///{tmp_path}/a.db", keys=[ONE]) as store:
        assert "does not open" in (store.verify(conversation) or "")


@pytest.mark.parametrize("text", ["short", "z!" * 32, b64encode(b"x" * 31).decode(), f"{ONE.hex()}\nnonsense"])
def test_a_key_that_is_none_is_refused_and_not_shown(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(text)
    for environment in ({KEY: text}, {KEY_FILE: str(tmp_path / "key")}):
        with pytest.raises(InputError, match="no key of 32 bytes") as error:
            keys_of(environment)
        assert text.splitlines()[-1] not in str(error.value)


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"# in force\n{b64encode(OTHER).decode()}\n\n{ONE.hex()}\n")
    assert keys_of({KEY_FILE: str(tmp_path / "key")}) == (OTHER, ONE)
    assert keys_of({KEY: ONE.hex()}) == (ONE,)
    assert keys_of({}) == ()
    with pytest.raises(InputError, match=KEY_FILE):
        keys_of({KEY_FILE: str(tmp_path / "none")})
    (tmp_path / "key").write_text("\n")
    with pytest.raises(InputError, match="no key"):
        keys_of({KEY_FILE: str(tmp_path / "key")})


# --- Sealing what is there


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store of its own."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/a.db"
        return
    engine = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    name = f"seal_{os.getpid()}"
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        connection.execute(text(f"CREATE DATABASE {name}"))
        yield make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


def whole(place: str, conversation: str, *keys: bytes) -> list[object]:
    """All that is kept of a conversation, which is as it was written."""
    with Store(place, keys=keys) as store:
        assert store.verify(conversation) is None
        link = store.links([sha256(SECRET.encode()).hexdigest()])
        return [
            store.conversation(conversation),
            *store.entries(conversation),
            *store.commits(conversation),
            *store.holds(conversation),
            *link,
        ]


def test_a_store_in_clear_is_sealed_and_nothing_of_it_is_lost(place: str, tmp_path: Path) -> None:
    conversation = filled(place)
    before = whole(place, conversation)
    assert reseal(place, [ONE]) > 20
    assert whole(place, conversation, ONE) == before
    for word in (b"swordfish", b"vault", b"password", b"left at", sha256(SECRET.encode()).hexdigest().encode()):
        assert word not in on_disk(tmp_path / "a.db"), word
    with pytest.raises(StoreError, match="its records are sealed"):
        Store(place, keys=[])


def test_a_sealed_store_is_sealed_anew_with_another_key(place: str, tmp_path: Path) -> None:
    conversation = filled(place, ONE)
    before, held = whole(place, conversation, ONE), on_disk(tmp_path / "a.db") if "sqlite" in place else b""
    with pytest.raises(StoreError, match="another key"):
        reseal(place, [OTHER])
    reseal(place, [OTHER, ONE])
    assert whole(place, conversation, OTHER) == before
    with pytest.raises(StoreError, match="another key"):
        Store(place, keys=[ONE])
    if held:  # whoever has the old key and the old file cannot open what is written from now on
        (tmp_path / "old.db").write_bytes((tmp_path / "a.db").read_bytes())
        with sqlite3.connect(tmp_path / "a.db") as connection:
            assert not [cell for (cell,) in connection.execute("SELECT payload FROM entry") if cell in held]
        connection.close()


KILLED = """
import os, sys
from tenure.store.seal import reseal
reseal(sys.argv[1], [bytes.fromhex(each) for each in sys.argv[3:]], sealed=lambda n: n < int(sys.argv[2]) or os.kill(os.getpid(), 9))
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("keys", [(), (ONE,)], ids=["in clear", "sealed"])
def test_a_process_that_is_killed_while_it_seals_leaves_the_store_as_it_was(keys: tuple[bytes, ...], place: str) -> None:
    conversation = filled(place, *keys)
    before = whole(place, conversation, *keys)
    for row in (1, 2, 11, 19):
        command = [sys.executable, "-c", KILLED, place, str(row), *(each.hex() for each in (OTHER, *keys))]
        assert subprocess.run(command).returncode == -signal.SIGKILL
        assert whole(place, conversation, *keys) == before
    reseal(place, [OTHER, *keys])
    assert whole(place, conversation, OTHER) == before


def test_a_store_that_others_have_open_is_not_sealed_since_they_would_go_on_in_clear(place: str) -> None:
    conversation = filled(place)
    with Store(place, keys=[]) as store:
        store.conversation(conversation)
        with pytest.raises(StoreError, match=r"(has it open|others are connected)") as error:
            reseal(place, [ONE])
    assert "\n" not in str(error.value)
    whole(place, conversation)


def test_outputs_in_files_beside_a_store_are_named_since_a_sealed_one_keeps_none(tmp_path: Path) -> None:
    conversation = filled(tmp_path / "a.db")
    folder = tmp_path / "a.db.spills"
    folder.mkdir()
    (folder / ("0" * 64)).write_bytes(b"x")
    with pytest.raises(StoreError, match=r"1 outputs lie in files in .*a\.db\.spills"):
        reseal(f"sqlite:///{tmp_path}/a.db", [ONE])
    whole(f"sqlite:///{tmp_path}/a.db", conversation)


def test_the_command_seals_with_the_key_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = filled(tmp_path / "a.db")
    assert main(["seal", str(tmp_path / "a.db")]) == 2
    assert "no key there nor in TENURE_STORE_KEY" in capsys.readouterr().err
    monkeypatch.setenv(KEY, ONE.hex())
    assert main(["seal", str(tmp_path / "none.db")]) == 2
    assert main(["seal", str(tmp_path / "a.db")]) == 0
    assert re.search(r"Sealed \d+ rows", capsys.readouterr().out)
    whole(f"sqlite:///{tmp_path}/a.db", conversation, ONE)
