"""`tenure evidence` as a person runs it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli.evidence import SECTIONS
from tenure.cli.main import main

BULK = "\n".join(f"{n}: nothing here is ever wanted again, row {n * n}" for n in range(160))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions in a folder; finished work is kept beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("first", "second"):
        messages: list[dict[str, object]] = [{"role": "user", "content": f"Look through {name}."}]
        for n in range(13):
            call = {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": "read", "arguments": json.dumps({"path": f"{name}_{n}.txt"})},
            }
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n} of {name}\n{BULK}"},
            ]
        (tmp_path / "sessions" / name).mkdir(parents=True)
        (tmp_path / "sessions" / name / "session.json").write_text(json.dumps(messages), encoding="utf-8")
    return tmp_path / "sessions"  # fmt: skip


def written(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def test_a_section_is_written_twice_alike_and_says_how_it_was_made(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert main(["evidence", str(folder), "--only", "cuts", "--only", "sessions", "--out", str(once)]) == 0
    assert "2 sessions, 6 files in" in " ".join(capsys.readouterr().err.split())
    assert main(["evidence", str(folder), "--only", "cuts", "--only", "sessions", "--out", str(twice), "--resume", "-q"]) == 0
    assert written(once) == written(twice)
    assert {"cuts.md", "cuts-45.svg", "cuts.jsonl", "sessions.md"} <= written(once).keys()
    page = written(once)["cuts.md"].decode()
    assert "    tenure evidence FOLDER --only cuts --out docs/evidence" in page
    assert str(tmp_path) not in page


def test_a_sample_is_taken_by_hash_and_the_page_says_so(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["evidence", str(folder), "--only", "sessions", "--cap", "1", "--out", str(out), "-q"]) == 0
    page = (out / "sessions.md").read_text()
    assert "    tenure evidence FOLDER --cap 1 --only sessions --out docs/evidence" in page
    assert "a sample by hash of 2 (`--cap 1` of each owner)" in page


def test_labels_beside_the_pages_are_read_and_left_alone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    labels = Path(__file__).parents[2] / "docs" / "evidence" / "labels.jsonl"
    shutil.copy(labels, out)
    assert main(["evidence", str(folder), "--only", "detector", "--out", str(out), "-q"]) == 0
    assert written(out)["labels.jsonl"] == labels.read_bytes()
    assert b"precision (95 %)" in written(out)["detector.md"]


def test_sections_named_in_the_help_are_those_there_are() -> None:
    from tenure.lab.evidence import pages

    assert tuple(pages.SECTIONS) == SECTIONS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "everything"], "one of cuts, whole, accumulating"),
        (["--engine", "abacus"], "one of local, processes, ray"),
        (["--cap", "few"], "--cap: 'few', expected a number, or a number behind one of alone=, cuts="),
        (["--cap", "pages=2"], "--cap: 'pages=2', expected"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    arguments: list[str], said: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evidence", str(folder), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_other_commands_do_not_load_what_only_this_one_needs() -> None:
    script = "import sys, tenure.cli.main; print(*(name for name in sys.modules if 'lab.evidence' in name or name in ('ray', 'duckdb', 'altair', 'jinja2')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_make_says_what_it_needs() -> None:
    root = Path(__file__).parents[2]
    if shutil.which("make") is None:
        pytest.skip("no make here")
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    ready = ["-o", ".venv/.all"]  # whatever its age, it is not made again here
    done = subprocess.run(
        ["make", *ready, "evidence", "CORPUS="], cwd=root, env=quiet, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "CORPUS=FOLDER" in done.stderr
