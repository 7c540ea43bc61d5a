"""Behaviour is what was recorded, to the byte: `scripts/net` says what that covers, and `scripts/net record` writes what is meant to differ."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpus_sessions import needs_corpus

ROOT = Path(__file__).parents[1]


def checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "net"), "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_a_made_up_store_is_as_recorded() -> None:
    done = checked("--made", "--only", "store")
    assert (done.returncode, done.stdout) == (0, "1 compared, 0 differ\n"), done.stderr


@pytest.mark.long
def test_every_made_up_session_is_as_recorded() -> None:
    done = checked("--made")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without a digest" not in done.stdout


@pytest.mark.long
@needs_corpus
def test_a_sample_of_recorded_sessions_is_as_recorded() -> None:
    done = checked("--sample", "20", "--only", "session ")
    assert done.returncode == 0, done.stdout + done.stderr
