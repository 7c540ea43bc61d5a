"""`tenure audit` on the command line."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import drawn
from made_up import everything, home_of_ada
from recordings import message_file
from tenure.cli.audit import NEWEST
from tenure.cli.audit_screen import brief, corpus, screen
from tenure.cli.main import main
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.lab.audit.audit import MOST, Auditor, AuditRequest
from tenure.lab.audit.recorded import LEAST
from tenure.lab.audit.report import COMMITS, HARMS, OBJECTS, POINTS, REREADS, ROWS, Audit, total
from tenure.lab.events import BudgetLine

ASKED = AuditRequest(
    policies=("cwl", "tiered", "oldest-turn", "clear-tool-uses"), budget=Budget(ceiling=4_000, floor=2_000), model="gpt-5"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "tenure" / "audits"


def reports(folder: Path, *tasks: int) -> list[Audit]:
    folder.mkdir(exist_ok=True)
    paths = [str(message_file(folder / f"session-{count}.json", tasks=count)) for count in tasks]
    return [each for each in Auditor(ASKED, o200k()).each(paths, lambda _: None) if isinstance(each, Audit)]


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen_of_a_session_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    golden(f"audit-{width}.txt", drawn(width, screen(reports(tmp_path, 6)[0], width)))


@pytest.mark.parametrize("width", [80, 160])
def test_the_screen_of_several_sessions_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    audits = reports(tmp_path, 1, 4, 6)
    shown = corpus([brief(each) for each in audits], total(audits), BudgetLine.of(ASKED.budget), width)
    golden(f"audit-sessions-{width}.txt", drawn(width, shown))


def test_every_screen_of_a_session_fits_a_small_terminal(tmp_path: Path) -> None:
    lines = drawn(80, screen(reports(tmp_path, 6)[0], 80)).splitlines()
    assert len(lines) + 2 < 24  # with the two policies that the usual ones are more
    assert max(map(len, lines)) <= 80


def test_lines_go_to_standard_output_and_nothing_else_does(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = str(message_file(tmp_path / "session.json"))
    command = ["audit", path, "--policy", "cwl", "--ceiling", "4k", "--json", "-"]
    assert main(command) == 0
    out, err = capsysbinary.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [lines[0]["type"], lines[-2]["type"], lines[-1]["type"]] == ["audit", "report", "total"]
    assert lines[0]["source"]["path"] == path
    assert [run["policy"] for run in lines[-1]["runs"]] == ["none", "cwl"]
    assert b"where the window went" in err
    assert main(command) == 0
    assert capsysbinary.readouterr().out == out
    assert main([*command, "--fresh"]) == 0
    assert capsysbinary.readouterr().out == out


def test_a_folder_is_audited_session_by_session_and_what_is_damaged_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(2):
        message_file(folder / f"session-{number}.json", tasks=2 + number)
    (folder / "broken.jsonl.xz").write_bytes(b"\xfd7zXZ\x00 and then nothing")
    (folder / "notes.md").write_text("No session.")
    assert main(["audit", str(folder), "--policy", "cwl", "--ceiling", "2k"]) == 0
    out, err = capsys.readouterr()
    assert "2 sessions, " in out
    assert "1 file below the folders holds no session" in out
    assert "1 session could not be read" in err
    assert "broken.jsonl.xz" in err
    assert len(list(cache.iterdir())) == 2
    assert main(["audit", str(folder), "--policy", "cwl", "--ceiling", "2k"]) == 0
    again = capsys.readouterr()
    assert again.out == out
    assert "2 sessions as audited before" in again.err


def test_nothing_that_can_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(tmp_path / "nowhere.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["audit", str(tmp_path)]) == 2
    assert "no session below these folders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "magic"], "policy: 'magic'"),
        (["--ceiling", "many"], "ceiling"),
        (["--head-tokens", "x"], "--head-tokens"),
        (["--keep", "/dev/null/x"], "--keep"),
    ],
)
def test_nonsense_is_refused_before_anything_is_read(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", str(message_file(tmp_path / "session.json")), *options]) == 2
    assert said in capsys.readouterr().err


def test_without_a_session_the_newest_of_the_user_are_audited_and_nothing_of_theirs_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.endswith(("_DIR", "_HOME", "_ROOT", "_DB", "_FILE", "APPDATA"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    where = home_of_ada(home)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(where.current)
    before = everything(home)
    assert main(["audit", "--policy", "cwl", "--newest", "2", "--keep", str(tmp_path / "kept")]) == 0
    out, err = capsys.readouterr()
    assert "2 sessions, " in out
    assert "your 2 newest sessions; --newest for more" in err
    assert everything(home) == before


def test_an_interrupted_audit_says_what_is_kept_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(message_file(tmp_path / f"session-{number}.json", tasks=3)) for number in range(3)]
    command = ["audit", *paths, "--policy", "cwl", "--ceiling", "2k"]
    counted = 0

    def interrupted() -> Tokenizer:
        def count(text: str, /) -> int:
            nonlocal counted
            counted += 1
            if counted == 150:  # in the second session
                raise KeyboardInterrupt
            return o200k()(text)

        return count

    with monkeypatch.context() as patched:
        patched.setattr("tenure.cli.audit.o200k", interrupted)
        assert main(command) == 130
    assert "interrupted: 1 of 3 sessions done and kept" in capsys.readouterr().err
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "1 session as audited before" in err
    assert main([*command, "--fresh"]) == 0
    assert capsys.readouterr().out == out


def test_the_figures_in_the_docs_are_those_of_the_code() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8").split())
    for said in (
        f"your own are taken ({NEWEST}, `--newest`)",
        f"at most {ROWS} rows",
        f"at least {LEAST} tokens",
        f"series of at most {POINTS} points",
        f"first and last {COMMITS // 2} commits with the {OBJECTS} largest objects of each",
        f"the {REREADS} dearest rereads, {HARMS} harms",
        f"more than {MOST:,} files",
    ):
        assert said in page


def test_every_policy_is_tried_when_all_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(message_file(tmp_path / "session.json", tasks=3))
    assert main(["audit", path, "--all", "--ceiling", "2k", "--json", str(tmp_path / "lines")]) == 0
    runs = json.loads((tmp_path / "lines").read_text().splitlines()[-1])["runs"]
    assert {"none", "cwl", "tiered", "graph", "cline", "sliding-window"} <= {run["policy"] for run in runs}


def test_the_page_is_written_beside_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = str(message_file(tmp_path / "session.json", tasks=3)), tmp_path / "audit.html"
    assert main(["audit", path, "--policy", "cwl", "--ceiling", "2k", "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert "where the window went" in capsys.readouterr().out
    assert main(["audit", path, "--policy", "cwl", "--html", str(tmp_path / "no" / "where.html")]) == 1
