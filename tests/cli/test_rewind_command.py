import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tenure.agent.approval import Mode
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.cli.main import main
from tenure.models.scripted import ScriptedSpeaker, parse_script
from tenure.store.records import Conversation
from tenure.store.store import Store

SCRIPT = '{"replies": [{"text": "", "calls": [{"name": "bash", "arguments": {"command": "rm a; touch b"}}]}, {"text": "Done."}]}'


def session(tmp_path: Path) -> str:
    """A session that changes files, in a store of its own; its id."""
    where = tmp_path / "ws"
    where.mkdir()
    (where / "a").write_text("one")

    async def play() -> str:
        world = World(home=tmp_path, speaker=lambda _: ScriptedSpeaker(parse_script(SCRIPT)), tokens=len, today=None)
        agent = await Agent.open(
            Settings(folder=where, model="scripted:-", mode=Mode.ALL, store=str(tmp_path / "store.db")), world
        )
        try:
            async for _ in agent.run("Clean up."):
                pass
            return agent.id
        finally:
            await agent.close()

    return asyncio.run(play())


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_what_a_session_did_to_files_is_listed_and_undone_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(tmp_path)
    assert sorted(path.name for path in (tmp_path / "ws").iterdir()) == ["b"]
    store = ["--store", str(tmp_path / "store.db")]
    assert main(["rewind", id_[:8], *store]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("   1  ")
    assert listed.endswith("before bash rm a; touch b  (Clean up.)\n")
    assert main(["rewind", id_, "1", *store]) == 0
    assert capsys.readouterr().out == "written  a\nremoved  b\n"
    assert {path.name: path.read_text() for path in (tmp_path / "ws").iterdir()} == {"a": "one"}
    assert main(["rewind", id_, "9", *store]) == 2
    assert "from 1 to 2" in capsys.readouterr().err
    assert (tmp_path / "store.db.snapshots").stat().st_mode & 0o77 == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_session_is_rewound_to_a_turn_forked_and_built_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(tmp_path)
    path = tmp_path / "store.db"
    assert main(["rewind", id_, "user:1", "--store", str(path)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("written  a\nremoved  b\ntenure --resume ")
    assert {each.name for each in (tmp_path / "ws").iterdir()} == {"a"}
    assert main(["context", f"{path}#{id_}", "--fork", "user:1"]) == 0
    assert main(["context", f"{path}#{id_}", "--build", "user:0, user:1"]) == 0
    with Store(f"sqlite:///{path}") as store:
        sheets = {sheet.title: sheet for sheet in store.conversations(None)}
        whole = store.conversation(id_)
        forks = sorted(sheet.length for sheet in store.conversations(None) if sheet.forked_at)
        assert store.verify(id_) is None
    assert forks[-1] == whole.length
    assert forks[0] == whole.length - 4  # the words, the call, its result, the answer
    assert any(title.startswith("built from") for title in sheets)
    capsys.readouterr()
    for wrong in ("user:9", "brief:1", "nonsense"):
        assert main(["context", f"{path}#{id_}", "--build", wrong]) == 2
        assert main(["context", f"{path}#{id_}", "--fork", wrong]) == 2
        assert main(["rewind", id_, wrong, "--store", str(path)]) == 2


def test_a_session_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rewind", "nonsense", "--store", str(tmp_path / "new.db")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert not (tmp_path / "new.db").exists()
    session(tmp_path)
    assert main(["rewind", "nonsense", "--store", str(tmp_path / "store.db")]) == 2
    assert "begins the ids of 0 sessions" in capsys.readouterr().err


def test_a_session_of_which_no_change_is_kept_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.create(Conversation(id="quiet"))
    assert main(["rewind", "quiet", "--store", str(tmp_path / "store.db")]) == 0
    assert capsys.readouterr().out == "No change of a file is kept of this session.\n"


def test_a_damaged_cover_sheet_is_told_and_not_taken_for_no_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "store.db"
    with Store(f"sqlite:///{path}") as store:
        store.create(Conversation(id="hurt"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("update conversation set length = 'x'")
    assert main(["rewind", "hurt", "--store", str(path)]) == 2
    assert "what is sound can be saved: tenure verify" in caplog.text
