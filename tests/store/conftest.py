import io
import json
import sqlite3
from pathlib import Path

import pytest
from damages import filled
from homes import World

from tenure.lab.bench.outcome import FILE, TaskOutcome, write_outcome


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A home and a store that is whole."""
    home = tmp_path_factory.mktemp("home")
    (home / "work").mkdir()
    (home / "state" / "tenure").mkdir(parents=True)
    conversation = filled(home / "whole.db", home / "work")
    with sqlite3.connect(home / "whole.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return home, home / "whole.db", conversation


@pytest.fixture
def world(whole: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> World:
    home, store, conversation = whole
    for name, value in (("HOME", home), ("XDG_STATE_HOME", home / "state"), ("XDG_CONFIG_HOME", home / "config")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(home / "work")
    made = World(home, store, conversation)
    script = {"model": "claude-opus-4-5", "dialect": "anthropic", "replies": [{"text": "Done."}] * 40}
    made.script.write_text(json.dumps(script), encoding="utf-8")
    made.restored()
    outcome = TaskOutcome(
        task="t", condition="cwl", model="claude-opus-4-5", session=conversation, store=str(made.store), last=25
    )
    write_outcome(outcome, made.run / "t" / FILE)
    return made
