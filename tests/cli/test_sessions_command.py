import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from made_up import claude, everything, home_of_ada, put
from tenure.cli.main import main
from tenure.cli.sessions import address, age, listing, seen, size
from tenure.logs.places.known_places import FoundSession, below, usual_places
from tenure.store.records import PART, Conversation
from tenure.store.store import Store
from tenure.testing.builders import human, placed, reply

NOW = datetime.fromtimestamp(1_000_000 + 310 * 60, UTC)


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of Ada, as the home of this process."""
    where = home_of_ada(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(where.current)
    for name in [name for name in os.environ if name.endswith(("_DIR", "_HOME", "_ROOT", "_DB", "_FILE", "APPDATA"))]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("width", [80, 160])
def test_what_sessions_prints_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    where = home_of_ada(tmp_path)
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False, emoji=False, color_system=None)
    found = usual_places(where)
    listing(list(seen(found))[:5], "1 more with --all. ", NOW, tmp_path, console)
    assert isinstance(console.file, io.StringIO)
    golden(f"sessions-{width}.txt", "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n")


def test_the_newest_are_listed_with_addresses_that_are_never_cut(ada: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--newest", "5"]) == 0
    shown = capsys.readouterr().out
    assert "Fix the flaky login test" in shown
    assert (
        "  ~/.claude/projects/-home-ada-work-the-site-of-the-observatory-front/0b5d8c77-1c5b-4f0e-8a43-6f1e0c1d2e33.jsonl\n"
        in shown
    )
    assert "  ~/.local/share/opencode/storage#ses_1\n" in shown
    assert "  ~/'Library/Application Support/Code/User/globalStorage/" in shown
    assert "1 more with --all" in shown
    assert "rollout" not in shown
    assert main(["sessions", "--all"]) == 0
    assert "rollout-1969" in capsys.readouterr().out


def test_scripts_get_an_object_a_line(ada: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--json", "--newest", "3"]) == 0
    first, second, third = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    path = ada / ".claude/projects/-home-ada-work-api/5f0c2b1e-6f0d-4b7e-9a53-0d9f4f1f2c11.jsonl"
    assert first == {
        "tool": "claude-code",
        "address": str(path),
        "path": str(path),
        "id": None,
        "size": path.stat().st_size,
        "messages": None,
        "agents": 2,
        "modified": "1970-01-12T18:46:40Z",
        "project": str(ada / "code/api"),
        "words": "Fix the flaky login test, and say why it was flaky. The log is in logs/ci.log.",
    }
    assert second["words"].startswith("夜空")
    assert "\x1b" not in third["words"]


def test_only_one_tool_when_asked_and_an_unknown_one_is_said(ada: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "--tool", "pi", "--json"]) == 0
    assert [json.loads(line)["tool"] for line in capsys.readouterr().out.splitlines()] == ["pi"]
    assert main(["sessions", "--tool", "emacs"]) == 2
    assert "unknown tool 'emacs', expected one of claude-code" in " ".join(capsys.readouterr().err.split())


def test_below_a_folder_the_content_decides(ada: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(ada / "kept/talk.txt", claude("Hello from a text file"))
    put(ada / "kept/package.json", {"name": "no session"})
    assert main(["sessions", str(ada / "kept")]) == 0
    shown = capsys.readouterr().out
    assert "Hello from a text file" in shown
    assert "package.json" not in shown
    assert main(["sessions", str(ada / "kept"), "--tool", "codex"]) == 0
    assert "No session of codex found. Looked in" in capsys.readouterr().out
    assert main(["sessions", str(ada / "missing")]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_an_empty_home_says_where_was_looked(
    ada: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "home", lambda: ada / "nobody")
    assert main(["sessions"]) == 0
    shown = capsys.readouterr().out
    assert "claude-code: ~/.claude/projects, ~/.config/claude/projects" in shown
    assert "tenure sessions FOLDER" in shown
    assert main(["sessions", "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_listing_changes_nothing(ada: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(ada)
    assert main(["sessions", "--all"]) == 0
    assert everything(ada) == before


def test_nothing_that_a_session_holds_is_obeyed_by_the_terminal(
    ada: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    put(ada / ".codex/sessions/rollout-\x1b[2J[bold].jsonl", "{}", age=10**6)
    assert main(["sessions", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "Explain [bold]\ufffd[2Jthe cache\ufffd[/bold]" in shown


def test_a_shell_finds_the_file_by_the_address_that_is_shown(tmp_path: Path) -> None:
    path = put(tmp_path / "a b/it's $HOME; `x`.jsonl", claude("go"))
    (found,) = below([path])
    script = f"{sys.executable} -c 'import sys; print(sys.argv[1])' {address(found, tmp_path)}"
    done = subprocess.run(["bash", "-c", script], env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}\n"


def test_ages_and_sizes_are_told_in_one_unit() -> None:
    assert [age(seconds) for seconds in (-5, 0, 59, 60, 7_199, 7_200, 172_799, 172_800, 61 * 86_400, 800 * 86_400)] == [
        "0 s",
        "0 s",
        "59 s",
        "1 min",
        "119 min",
        "2 h",
        "47 h",
        "2 d",
        "2 mo",
        "2 y",
    ]
    sizes = (1, 999, 1_000, 15_300, 2_000_000, 3_400_000_000)
    files = [FoundSession(tool="", path=Path("x"), size=each, modified=NOW) for each in sizes]
    assert [size(file) for file in files] == ["1 B", "999 B", "1.0 kB", "15 kB", "2.0 MB", "3.4 GB"]


def test_sessions_of_our_own_agent_are_listed_by_title_and_its_sub_agents_are_not(
    ada: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = ada / ".local/state/tenure/sessions.db"
    path.parent.mkdir(parents=True)
    with Store(f"sqlite:///{path}") as store:
        for id_, title in (("aa11", "Mend the parser"), ("bb22", f"{PART}read the log")):
            tenant = str(ada / "code/api")
            store.create(
                Conversation(id=id_, tenant=tenant, title=title), placed(human("mend it"), reply("Mended."), tenant=tenant)
            )
    assert main(["sessions", "--tool", "tenure"]) == 0
    shown = capsys.readouterr().out
    assert "Mend the parser" in shown
    assert "~/.local/state/tenure/sessions.db#aa11" in shown
    assert "bb22" not in shown
    assert main(["show", str(path)]) == 0  # the newest that is no sub-agent's
    assert "mend it" in capsys.readouterr().out
