"""What `verify` finds, and what a repair saves."""

import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest
from damages import at_version, filled

from tenure import Context
from tenure.cli.main import main
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Role, Spill, ToolResult
from tenure.errors import Damaged
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, migrate
from tenure.store.records import Conversation
from tenure.store.store import Store


@pytest.fixture(scope="module")
def whole_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    filled(folder / "agent.db", folder)
    return folder / "agent.db"


@pytest.fixture
def file(whole_store: Path, tmp_path: Path) -> Path:
    """A store of the test's own."""
    return Path(shutil.copyfile(whole_store, tmp_path / "agent.db"))


def changed(file: Path, *statements: str) -> None:
    with sqlite3.connect(file) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def first(file: Path) -> str:
    """The conversation that commits were made in."""
    with Store(f"sqlite:///{file}") as store:
        return next(each.id for each in store.conversations(None) if each.commits and not each.parent)


def wrongs(file: Path) -> list[str]:
    with Store(f"sqlite:///{file}") as store:
        return [wrong for sheet in store.mended_sheets() for wrong in store.wrongs(sheet.id)]


OF_FIRST = "conversation NOT IN ('fork', 'other')"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE commit_log SET body = CAST(replace(CAST(body AS TEXT), 'of 1', 'of 2') AS BLOB)", "does not match its hash"),
        ("DELETE FROM commit_log WHERE n = 1", "commit 1 is missing"),
        (f"DELETE FROM commit_log WHERE n = (SELECT max(n) FROM commit_log WHERE {OF_FIRST})", "is missing"),
        ("UPDATE commit_log SET id = '' WHERE n = 0", "commit 0 cannot be read back (it does not match its hash ''"),
        ("UPDATE conversation SET commits = 1 WHERE id NOT IN ('fork', 'other')", "commits, expected 1"),
        ("UPDATE usage SET output = -5", "the usage of entry 1 cannot be read back (a negative number of tokens)"),
        ("UPDATE usage SET output = 'many'", "the usage of entry 1 cannot be read back"),
        ("UPDATE aside SET role = 'jester'", "a call of a helper model cannot be read back"),
        ("UPDATE hold SET object = 'read:99' WHERE object = 'read:2'", "a pin of 'read:99', which the record does not have"),
        ("UPDATE hold SET kind = 'grudge' WHERE object = 'read:2'", "the hold of 'read:2' cannot be read back"),
        ("UPDATE entry SET payload = x'5b5d' WHERE n = 3", "entry 3 cannot be read back (its payload does not match its hash"),
        ("UPDATE conversation SET budget = '{' WHERE id = 'other'", "budget: the stored one cannot be read"),
        ("UPDATE conversation SET terms = '[]' WHERE id = 'other'", "terms: the stored ones cannot be read"),
        ("UPDATE conversation SET length = 'long' WHERE id = 'other'", "conversation 'other' cannot be read back"),
        ("UPDATE conversation SET head = 'x' WHERE id = 'other'", "expected x"),
        ("DELETE FROM conversation WHERE id = 'other'", "its cover sheet is missing"),
    ],
)
def test_verify_finds(file: Path, damage: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert wrongs(file) == []
    changed(file, damage)
    assert main(["verify", str(file)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert words in out
    assert "--repair NEW.db" in out


def test_a_commit_that_was_altered_is_not_carried_out(file: Path) -> None:
    changed(file, "UPDATE commit_log SET body = CAST(replace(CAST(body AS TEXT), 'read:1', 'read:7') AS BLOB)")
    with pytest.raises(
        Damaged, match=r"agent\.db: conversation '\w+': commit 0 cannot be read back .* tenure verify \S+agent\.db --repair NEW"
    ):
        Context(store=f"sqlite:///{file}", conversation=first(file))


def test_a_store_of_version_2_gets_the_hashes_of_its_commits(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        before = connection.execute("SELECT conversation, n, id FROM commit_log ORDER BY conversation, n").fetchall()
    connection.close()
    database = Database(f"sqlite:///{file}")
    at_version(database, 2)
    migrate(database, MIGRATIONS[:3])
    database.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT conversation, n, id FROM commit_log ORDER BY conversation, n").fetchall() == before
    connection.close()
    assert wrongs(file) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE usage SET output = 'many' WHERE n = 1",
        "UPDATE aside SET role = 'jester'",
        "UPDATE hold SET kind = 'grudge' WHERE object = 'read:2'",
        "UPDATE hold SET object = 'read:99' WHERE object = 'read:2'",
        "UPDATE conversation SET length = 'long' WHERE id = 'other'",
    ],
)
def test_a_row_that_nothing_depends_on_costs_that_row_and_is_told(
    file: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = first(file)
    changed(file, damage)
    with Context(store=f"sqlite:///{file}", conversation=name) as context:
        context.extend([{"role": "user", "content": "Go on."}])
        context.request(max_tokens=9)
        assert context.store.conversations(None)
    assert "cannot be read back" in caplog.text or "which the record does not have" in caplog.text


def repaired(file: Path) -> Path:
    new = file.with_name("new.db")
    assert main(["verify", str(file), "--repair", str(new)]) in (0, 1)
    assert wrongs(new) == []
    return new


def everything(file: Path) -> list[object]:
    with Store(f"sqlite:///{file}") as store:
        sheets = sorted(store.conversations(None), key=lambda sheet: sheet.id)
        return [
            [
                sheet,
                [*store.entries(sheet.id)],
                *(read(sheet.id) for read in (store.commits, store.usages, store.asides, store.holds)),
            ]
            for sheet in sheets
        ]


def test_a_repair_of_a_sound_store_is_a_copy(file: Path) -> None:
    assert everything(repaired(file)) == everything(file)


def test_a_lost_message_keeps_its_place_and_all_others_their_numbers(file: Path) -> None:
    name = first(file)
    with Store(f"sqlite:///{file}") as store:
        before = list(store.entries(name))
    changed(file, f"DELETE FROM entry WHERE n = 5 AND {OF_FIRST}")
    with Store(f"sqlite:///{repaired(file)}") as store:
        after = list(store.entries(name))
        assert store.conversation("fork").parent == name
        assert [entry.n for entry in after] == [entry.n for entry in before]
        assert [n for n, entry in enumerate(after) if entry.payload != before[n].payload] == [5]
        assert "entry 5 is missing" in after[5].blocks[0].text
        assert [entry.id for entry in after[:5]] == [entry.id for entry in before[:5]]


@pytest.mark.parametrize(
    "damage",
    [
        f"DELETE FROM entry WHERE n = 5 AND {OF_FIRST}",
        "UPDATE entry SET payload = x'00' WHERE n = 4",
        "UPDATE entry SET blocks = x'5b5d' WHERE n = 6",
        "DELETE FROM commit_log WHERE n = 1",
        "UPDATE commit_log SET body = x'00' WHERE n = 0",
        "UPDATE conversation SET parent = 'fork'",
        "UPDATE conversation SET parent = 'nowhere' WHERE id = 'fork'",
        "UPDATE conversation SET length = 1000000000000",
        "UPDATE conversation SET length = 3",
        "UPDATE conversation SET commits = -1, forked_at = -4",
        "UPDATE entry SET n = 1000000000 WHERE n = 9",
        "DELETE FROM conversation",
        "DROP INDEX entry_id",
    ],
)
def test_what_a_repair_saved_is_sound_and_can_be_gone_on_with(file: Path, damage: str) -> None:
    name = first(file)
    changed(file, damage)
    new = repaired(file)
    with Context(store=f"sqlite:///{new}", conversation=name) as context:
        context.extend([{"role": "user", "content": "Go on."}])
        context.request(max_tokens=9)
        assert context.session.length >= 4


def test_what_is_lost_is_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(file, "DELETE FROM entry WHERE n = 5", "UPDATE usage SET output = 'many' WHERE n = 1")
    repaired(file)
    out = capsys.readouterr().out
    assert "  entry 5 is missing" in out
    assert "  the usage of entry 1 cannot be read back" in out
    assert "3 conversations, 2 damaged; saved to" in out


def test_a_repair_writes_over_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(file), "--repair", str(file)]) == 2
    assert "a new file" in capsys.readouterr().err
    assert main(["verify", str(file.with_name("nowhere.db"))]) == 2
    assert not file.with_name("nowhere.db").exists()


def test_outputs_in_files_are_checked_and_saved(file: Path) -> None:
    spill = Spill(sha256=sha256(b"long").hexdigest(), size=4, lines=1, of_size=4, of_lines=1, left=(1, 1))
    with Store(f"sqlite:///{file}") as store:
        block = ToolResult(call_id="c", text="l…", spill=spill)
        store.create(Conversation(id="spilled"), [Chain().place(Draft(role=Role.TOOL, blocks=(block,)), (9,))])
        assert store.verify("spilled") == f"the output of entry 0 that is kept in a file, {spill.handle}, is not there"
        folder = store.spills.folder
    assert folder is not None
    folder.mkdir(exist_ok=True)
    (folder / spill.sha256).write_bytes(b"long")
    with Store(f"sqlite:///{repaired(file)}") as store:
        assert b"".join(store.spills.open(spill)) == b"long"
