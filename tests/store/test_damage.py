"""A damaged store is a sentence with a way out, in every command and through the library."""

import io
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from damages import DAMAGES, Damage, damaged, filled

from tenure import Context
from tenure.cli.main import main
from tenure.errors import TenureError
from tenure.meter.tokens import o200k
from tenure.tui.history import of_address

SAMPLE = 12
MANY = 400


class World:
    """A home with a store in it, damaged or not."""

    def __init__(self, folder: Path, whole: Path, conversation: str) -> None:
        self.folder, self.whole, self.conversation = folder, whole, conversation
        self.store = folder / "state" / "tenure" / "sessions.db"
        self.script = folder / "script.json"
        self.work = folder / "work"

    def restored(self) -> Path:
        """The store, whole again."""
        if self.store.is_dir():
            self.store.rmdir()
        for end in ("", "-wal", "-shm"):
            self.store.with_name(self.store.name + end).unlink(missing_ok=True)
        shutil.copyfile(self.whole, self.store)
        return self.store

    def commands(self) -> list[list[str]]:
        """Every command that reads a store."""
        store, new = str(self.store), str(self.folder / "new.db")
        session = f"{store}#{self.conversation}"
        run = ["run", "Go on.", "--model", f"scripted:{self.script}", "--cwd", str(self.work), "--quiet"]
        return [
            ["sessions"],
            ["sessions", "--json"],
            ["show", store],
            ["show", session],
            ["show", f"{store}#fork"],
            ["recall", session, "read:2"],
            ["recall", session, "--words", "what is wrong"],
            ["replay", session, "--no-harm"],
            ["why", session, "read:1"],
            ["audit", session, "--keep", "no"],
            ["verify", store],
            ["verify", store, "--repair", new],
            ["verify"],
            [*run, "--continue"],
            [*run, "--resume", self.conversation],
            [*run, "--store", store],
        ]


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
    return made


def test_every_command_works_on_a_store_that_is_whole(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for command in world.commands():
        (world.folder / "new.db").unlink(missing_ok=True)
        world.restored()
        code = main(command)
        assert code == 0, f"{command}: {capsys.readouterr().err}"


def every_way_to_use(world: World, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], str]) -> None:
    """Damage the store anew for each command, and hold it to a sentence."""
    for command in world.commands():
        (world.folder / "new.db").unlink(missing_ok=True)
        how = damage(world.restored())
        capsys.readouterr()
        code = main(command)  # an exception is a traceback
        said = capsys.readouterr()
        where = f"{how}; {command[:3]}: {code}\n{said.out[-300:]}\n{said.err[-600:]}"
        assert code in (0, 1, 2, 3), where
        assert "Traceback" not in said.out + said.err, where
        if code in (1, 2) and command[0] != "verify":
            assert re.search(r"^(tenure: |  /).{20,}", said.err, re.MULTILINE), where
    damage(world.restored())
    for use in (library, viewer):
        with suppress(TenureError):  # any other error is a defect
            use(world)


def library(world: World) -> None:
    with Context(store=f"sqlite:///{world.store}", conversation=world.conversation) as context:
        context.extend([{"role": "user", "content": "Go on."}])
        context.request(max_tokens=9)


def viewer(world: World) -> None:
    of_address(f"{world.store}#{world.conversation}", o200k())


@pytest.mark.parametrize("damage", dict.fromkeys(DAMAGES), ids=lambda damage: damage.__name__)
def test_damage_of_every_kind_is_a_sentence_in_every_command(
    world: World, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    every_way_to_use(world, capsys, lambda path: damage(path, random.Random(damage.__name__)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(MANY))
def test_random_damage_is_a_sentence_in_every_command(world: World, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    every_way_to_use(world, capsys, lambda path: damaged(path, random.Random(seed)))
