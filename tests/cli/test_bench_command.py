"""`tenure bench`: what it prints, writes and refuses."""

import io
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console
from typer.main import get_command

from tenure.cli.bench_screen import marks_of, tables
from tenure.cli.main import made, main
from tenure.engine.record.entry import Usage
from tenure.engine.record.episodes import EpisodeType
from tenure.lab.bench.measures import (
    Dependencies,
    EpisodeTypes,
    Exploration,
    Measures,
    MissingDependency,
    Overhead,
    Repetition,
    WrongType,
)
from tenure.lab.bench.outcome import TaskOutcome
from tenure.lab.bench.run_folders import BenchRun, report

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"

SESSION = Measures(
    first=0,
    last=80,
    replies=40,
    calls=60,
    recalls=2,
    overhead=Overhead(
        delimiters=12, refused=1, tokens=600, replies=4, replies_tokens=90_000, replies_usd=0.02, standing_tokens=650
    ),
    typing=EpisodeTypes(
        expl=3, act=3, open=1, mistyped=(WrongType(episode="look", type=EpisodeType.EXPL, why="edit:1 changed a.py"),)
    ),
    dependencies=Dependencies(declared=3, used=4, missing=(MissingDependency(act="do", expl="look", anchors=("src/a.py",)),)),
    explored=Exploration(
        looks=20,
        tokens=9_000,
        again=(Repetition(object="read:2", earlier="read:1", about="a.py", tokens=700, across=True, gone=True),),
    ),
)
NOTHING = replace(SESSION, overhead=Overhead(), typing=EpisodeTypes(), dependencies=Dependencies(), recalls=0)


def task(name: str, condition: str, **more: object) -> TaskOutcome:
    usual = {
        "calls": 20,
        "usage": Usage(uncached=9_000, cache_read=91_000, output=2_000),
        "usd": 0.08,
        "seconds": 12.5,
        "solved": True,
    }
    fields = {"task": name, "condition": condition, "model": "m", "session": "s", "reason": "done"} | usual | more
    return TaskOutcome(**fields)  # type: ignore[arg-type]


RUNS = [
    BenchRun(
        benchmark="kernel",
        condition=condition,
        name=str(n),
        tasks=(
            task("syscall", condition, commits=n if condition == "cwl" else 0, calls=20 + n),
            task("build", condition, solved=n == 1, summaries=int(condition == "compaction")),
        ),
        sessions=(SESSION if condition == "cwl" else NOTHING,),
    )
    for condition in ("cwl", "compaction")
    for n in (1, 2, 3)
]


@pytest.mark.parametrize("width", [80, 160])
def test_a_report_reads_well(width: int, golden: Callable[[str, str], None]) -> None:
    out = io.StringIO()
    tables(report(RUNS, ["a note of what could not be read\x1b[31m"]), Console(file=out, width=width))
    golden(f"bench-{width}.txt", "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def test_findings_are_named(golden: Callable[[str, str], None]) -> None:
    out = io.StringIO()
    marks_of([("sessions.db#a", SESSION), ("b.jsonl", NOTHING)], Console(file=out, width=100))
    golden("bench-measure.txt", "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n")


def test_a_sequence_is_played_told_and_written_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, json_ = tmp_path / "out", tmp_path / "report.json"
    assert main(["bench", "sequences", "hashes", "--condition", "cwl", "--out", str(out), "--json", str(json_)]) == 0
    told = capsys.readouterr()
    assert "✓ novalues: 7 calls" in told.err
    assert "followed a script" in " ".join(told.out.split())
    [row] = json.loads(json_.read_text())["rows"]
    assert (row["condition"], row["solved"]["hits"], row["marks"]["mistyped"]["of"]) == ("cwl", 3, 6)
    run = out / "hashes" / "cwl" / "run-1"
    assert main(["bench", "measure", str(run / "session.db")]) == 0
    assert "expl, act episodes" in capsys.readouterr().out
    assert main(["bench", "report", str(run), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["benchmark"] == "cwl"
    assert main(["bench", "sequences", "hashes", "--out", str(out)]) == 2, "nothing is written over"
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sequences", "doom"], "one of canvas, hashes, kernel"),
        (["sequences", "--condition", "best"], "one of cwl, compaction"),
        (["sequences", "--ceiling", "many"], "tokens such as 80000"),
        (["report", "."], "no outcome.json below it"),
        (["task", "--words", "none", "--folder", "f", "--model", "openai:x"], "no such file"),
        (["task", "--words", "task.txt", "--folder", "f", "--model", ""], "model"),
    ],
)
def test_what_cannot_be_is_said(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.txt").write_text("Do it.")
    assert main(["bench", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_every_command_of_the_page_can_be_given() -> None:
    lines = re.findall(r"^    tenure bench (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 7
    commands = get_command(made(("bench",))).commands["bench"].commands  # type: ignore[attr-defined]
    for line in lines:
        name, *arguments = shlex.split(line)
        commands[name].make_context(name, arguments)
