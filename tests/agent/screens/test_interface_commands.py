import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli.main import COMMANDS, main, wanted


def test_without_a_terminal_the_commands_are_listed_and_nothing_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "context" in capsys.readouterr().out


def test_the_viewer_without_a_terminal_says_what_to_do_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["context", str(tmp_path / "session.jsonl")]) == 2
    assert "tenure show" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [(["run", "x", "--json"], ["run"]), (["--help"], [*COMMANDS]), (["nonsense"], [*COMMANDS]), ([], [*COMMANDS])],
)
def test_only_commands_that_may_be_meant_are_loaded(arguments: list[str], commands: list[str]) -> None:
    assert [*wanted(arguments)] == commands


def test_the_prompt_is_painted_before_anything_is_loaded_that_only_a_session_needs() -> None:
    later = (
        "typer",
        "sqlalchemy",
        "pydantic",
        "openai",
        "anthropic",
        "tenure.agent.session",
        "tenure.context",
        "tenure.agent.screens.viewer",
    )
    code = f"import sys, tenure.cli.main, tenure.agent.screens.app; print([name for name in {later} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
