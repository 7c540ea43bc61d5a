"""Folders for temporary files: each process has its own, and those of the dead are cleared away."""

import subprocess
import sys
import time
from pathlib import Path

from tenure.agent.scratch import LOCK, OLDEST_S, PREFIX, Scratch

KILLED = """
import os, sys
from pathlib import Path
from tenure.agent.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "output.txt").write_text("x")
print(scratch.path, flush=True)
os.kill(os.getpid(), 9)
"""


def later() -> float:
    return time.time() + OLDEST_S + 60


def test_what_a_killed_process_left_is_cleared_by_the_next_that_ends(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False)
    left = Path(done.stdout.strip())
    assert (left / "output.txt").exists()
    Scratch(tmp_path).remove()
    assert left.exists()  # it may be in the making
    Scratch(tmp_path).remove(later)
    assert not left.exists()


def test_what_a_living_process_uses_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    living = Scratch(tmp_path)
    foreign = tmp_path / f"{PREFIX}notes"
    foreign.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").touch()
    ended = Scratch(tmp_path)
    ended.remove(later)
    ended.remove(later)
    assert not ended.path.exists()
    expected = {"elsewhere", f"{PREFIX}file", f"{PREFIX}link", f"{PREFIX}notes", living.path.name}
    assert {path.name for path in tmp_path.iterdir()} == expected
    living.remove()
