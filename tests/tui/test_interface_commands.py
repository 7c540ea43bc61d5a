from pathlib import Path

import pytest

from tenure.cli.main import main


def test_without_a_terminal_the_commands_are_listed_and_nothing_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "context" in capsys.readouterr().out


def test_the_viewer_without_a_terminal_says_what_to_do_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", str(tmp_path / "session.jsonl")]) == 2
    assert "tenure show" in capsys.readouterr().err
