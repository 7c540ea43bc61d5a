import io
from pathlib import Path

import pytest

from tenure import Context
from tenure.cli.main import main


@pytest.fixture
def address(tmp_path: Path) -> str:
    with Context(store=f"sqlite:///{tmp_path}/agent.db") as context:
        context.extend([{"role": "user", "content": "A secret."}])
        return f"{tmp_path}/agent.db#{context.conversation}"


def test_a_conversation_is_deleted_when_it_is_said_so(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", address, "--yes"]) == 0
    assert "Deleted 1 conversation" in capsys.readouterr().out
    assert main(["forget", address, "--yes"]) == 2
    assert "tenure: " in capsys.readouterr().err


def test_nothing_is_deleted_when_nobody_says_yes(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["forget", address]) != 0
    assert main(["show", address]) == 0


@pytest.mark.parametrize("named", ["{folder}/agent.db", "{folder}/notes.txt#x", "{folder}/agent.db#nobody", "nowhere#x"])
def test_what_is_no_conversation_of_ours_is_bad_input(address: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(address.partition("#")[0]).parent
    (folder / "notes.txt").write_text("mine")
    assert main(["forget", named.format(folder=folder), "--yes"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert (folder / "notes.txt").read_text() == "mine"
