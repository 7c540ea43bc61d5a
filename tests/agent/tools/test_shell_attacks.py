import os
from pathlib import Path

import pytest
from calling import called, here, workspace
from shell_attacks import ATTACKS, SECRET, hostile
from shell_attacks_away import AWAY, away
from shell_commands import FREE

from tenure.agent.tools.bash import Bash
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace

LINES = (*ATTACKS, *FREE)
SAMPLE = FREE[::5]


@pytest.fixture
def trap(tmp_path: Path) -> Workspace:
    where = workspace(tmp_path)
    hostile(where.root, where.home)
    return where


def everything(where: Workspace) -> dict[str, bytes]:
    """All files of the workspace and of home, with what is in them."""
    paths = [path for folder in (where.root, where.home) for path in folder.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b"" for path in paths}


def held(line: str, where: Workspace) -> None:
    """Run a line if it is free, without a wall, and hold what came of it against what may."""
    if judge(line, where) is not None:
        return
    before = everything(where)
    environment = {"PATH": os.environ["PATH"], "HOME": str(where.home), "CANARY": SECRET, "LESSOPEN": f"|{where.root}/run %s"}
    outcome = called(Bash(), here(where, environment=environment), command=line, timeout_s=10)
    assert SECRET not in outcome.text, line
    assert everything(where) == before, line


def test_no_line_that_writes_runs_code_or_shows_keys_is_free(trap: Workspace) -> None:
    assert len(ATTACKS) > 200
    assert [line for line in ATTACKS if judge(line, trap) is None] == []


def test_no_line_that_writes_runs_code_or_reaches_keys_elsewhere_is_free(tmp_path: Path) -> None:
    where = workspace(tmp_path)
    away(where.root, where.home)
    assert len(AWAY) > 700
    assert [line for line in AWAY if judge(line, where) is None] == []


@pytest.mark.parametrize(
    ("ignores", "free"), [("x\n", True), ("!*.md\n", True), ("!.env\n", False), ("!/.e*\n", False), ("!.[a-f]nv\n", False)]
)
def test_a_hidden_key_that_an_ignore_file_lets_in_again_is_not_searched_unasked(
    tmp_path: Path, ignores: str, *, free: bool
) -> None:
    where = workspace(tmp_path)
    (where.root / ".env").write_text(SECRET)
    (where.root / ".ignore").write_text(ignores)
    assert (judge("rg canary", where) is None) == free


@pytest.mark.parametrize("line", SAMPLE)
def test_a_sample_of_what_is_free_changes_nothing_and_shows_no_key(line: str, trap: Workspace) -> None:
    held(line, trap)


@pytest.mark.long
@pytest.mark.parametrize("line", LINES)
def test_nothing_that_is_free_changes_anything_or_shows_a_key(line: str, trap: Workspace) -> None:
    held(line, trap)
