"""`tenure demo`: the tour, played for a person who has just installed this."""

import io
import json
import os
import re
import shlex
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest

from tenure.agent import tour
from tenure.agent.screens.history import of_address
from tenure.cli.main import main
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.tokens import o200k
from tenure.models.scripted import read_yaml
from tenure.store.store import Store


class Played:
    """A demo, and what is left of it."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "here" / "demo"
        self.home.mkdir()
        told = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(told):
            at_home(patch, self.home)
            self.code = main(["demo", "--folder", str(self.folder)])
        self.told = told.getvalue()

    @property
    def commands(self) -> list[list[str]]:
        """What it says to try next, as a shell would read it."""
        *_, after = self.told.partition("━━ next ")
        lines = after.replace("\\\n", " ").splitlines()[1:]
        return [shlex.split(line) for line in lines if line and not line.startswith("#")]


def at_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Let commands run as somebody who has nothing yet."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "TENURE_")) or name.endswith("_API_KEY")]:
        patch.delenv(name)
    patch.setenv("HOME", str(home))
    patch.setenv("COLUMNS", "80")


def masked(line: str) -> str:
    """A line without what another release of Python, or another machine, may say otherwise: figures, bars and the gaps before them."""
    return re.sub(r" +", " ", re.sub(r"[█░]+", "▒", re.sub(r"\d[\d,.]*|[0-9a-f]{12}(?=…)", "0", line)))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return Played(tmp_path_factory.mktemp("demo"))


def test_the_demo_plays_every_task_and_ends_well(played: Played) -> None:
    assert played.code == 0, played.told
    assert re.findall(r"━━ task (\d) of (\d)", played.told) == [
        (str(n), str(len(tour.read_tour().tasks))) for n in range(1, len(tour.read_tour().tasks) + 1)
    ]
    assert "✗" not in played.told
    assert "Ran 4 tests" in played.told


def test_a_newcomer_sees_the_window_fill_and_fall_and_what_left_at_which_price(played: Played) -> None:
    filled = [int(each.replace(",", "")) for each in re.findall(r"window █+░* +([\d,]+) of 13,000 tokens", played.told)]
    assert max(filled) > 13_000
    assert sum(now < 0.8 * before for before, now in pairwise(filled)) >= 2
    assert played.told.count("✂ That is more than 13,000") >= 2
    assert re.search(r"locate-settings +[\d,]+ tokens, \d+ stay: what it found", played.told)
    assert re.search(r"locate-settings +[\d,]+ tokens, nothing stays", played.told)
    assert played.told.count("  price  $0.0") >= 2


def test_what_is_recalled_is_held_against_the_file(played: Played) -> None:
    (told,) = re.findall(r"↩ read:2 is back, byte for byte: lines (\d+) to (\d+) of\s+(\S+),\s+([\d,]+)\s+bytes", played.told)
    lines = (played.folder / "project" / told[2]).read_bytes().split(b"\n")[int(told[0]) - 1 : int(told[1])]
    assert len(b"\n".join(lines)) == int(told[3].replace(",", ""))


def test_no_line_is_wider_than_the_terminal_but_commands_and_paths(played: Played) -> None:
    wide = [line for line in played.told.splitlines() if len(line) > 80]
    assert all(str(played.folder) in line for line in wide), wide


def test_the_audit_of_that_very_session_comes_last(played: Played) -> None:
    *_, audit = played.told.partition("━━ the audit of this very session")
    assert "30 calls, 6 turns" in audit
    assert re.search(r"^cwl +1[0-3]k +2 ", audit, re.MULTILINE), "two commits within the ceiling, as they were"


def test_the_commands_that_are_printed_work(
    played: Played, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_home(monkeypatch, played.home)
    context, audit, run = played.commands
    assert [command[1] for command in (context, audit, run)] == ["context", "audit", "run"]
    assert len(of_address(context[2], o200k()).index.turns) == len(tour.read_tour().tasks)
    assert main([*audit[1:], "--keep", "no"]) == 0
    assert (played.folder / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    capsys.readouterr()
    assert main(run[1:]) == 0
    assert capsys.readouterr().out == "Yes: all four tests pass.\n"
    with Store(f"sqlite:///{context[2]}") as store:
        (sheet,) = store.conversations(None)
    assert (Terms.stored(sheet.terms).policy, Budget.stored(sheet.budget)) == (
        tour.read_tour().policy,
        tour.read_tour().budget,
    ), "it went on as it was held"


def test_the_readme_shows_what_the_demo_shows(played: Played) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    _, _, after = readme.partition("<!-- held against the demo in tests/cli/test_demo_command.py -->\n")
    shown = [line[4:] for line in after.partition("\n\n")[0].splitlines()]
    told = list(map(masked, played.told.splitlines()))
    assert len(shown) > 10
    assert [line for line in shown if line != "…" and masked(line) not in told] == []


def test_nothing_of_the_users_own_is_touched(played: Played) -> None:
    assert not list(played.home.iterdir())
    assert sorted(path.name for path in played.folder.iterdir() if path.name != "audit.html") == [
        "demo.db",
        "demo.db.snapshots",
        "demo.db.spills",
        "project",
        "script.yaml",
    ]
    assert [path.name for path in played.folder.parent.iterdir()] == ["demo"]


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert main(["demo", "--folder", str(tmp_path)]) == 2
    assert "an empty or a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_demo_in_which_something_goes_wrong_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it would where a tool fails, or the script says less than it should."""
    script = read_yaml(tour.FILE)
    script["tasks"] = script["tasks"][:2]
    script["replies"] = [{"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "nowhere.py"}}]}, {"text": "Done."}]
    changed = tmp_path / "tour.yaml"
    changed.write_text(json.dumps(script), encoding="utf-8")
    monkeypatch.setattr(tour, "FILE", changed)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo", "--folder", str(tmp_path / "demo")]) == 1
    told = capsys.readouterr().out
    assert "✗ read nowhere.py" in told
    assert "The demo failed: read failed: read: nowhere.py: there is no such file" in told
    assert "The demo failed: 0 commits, expected at least 2" in told
    assert "The demo failed: nothing that left came back" in told
    assert "the script has no more than 2 replies" in told
    assert "━━ next" not in told


def test_the_replay_of_a_session_takes_none_of_the_tours_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--replay", "--fast"]) == 2
    assert "--fast" in capsys.readouterr().err
