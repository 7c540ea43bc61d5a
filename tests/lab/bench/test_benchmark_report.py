"""N runs as figures, and where they come from."""

import json
from pathlib import Path

import pytest

from tenure.engine.record.entry import Usage
from tenure.errors import InputError
from tenure.lab.bench.outcome import FILE, TaskOutcome, read_outcome, write_outcome
from tenure.lab.bench.run_folders import BenchRun, report, runs_in
from tenure.testing.builders import by_words


def outcome(task: str = "one", **more: object) -> TaskOutcome:
    usual: dict[str, object] = {"task": task, "condition": "cwl", "model": "m", "session": "s", "reason": "done"}
    return TaskOutcome(**(usual | more))  # type: ignore[arg-type]


def test_figures_have_the_spread_of_a_sample_and_shares_wilsons_interval() -> None:
    runs = [BenchRun(benchmark="b", condition="c", name="", tasks=(outcome(calls=n, solved=n == 2),)) for n in (2, 4, 6)]
    tried = BenchRun(benchmark="b", condition="d", name="", tasks=tuple(outcome(calls=5, solved=not n) for n in range(10)))
    row, alone = report([*runs, tried]).rows
    assert row["calls"] == {"n": 3, "mean": 4.0, "sd": 2.0, "low": 2, "high": 6}
    assert alone["calls"]["sd"] is None
    assert [round(alone["solved"][name], 4) for name in ("low", "high")] == [0.0179, 0.4042]
    assert report([BenchRun(benchmark="b", condition="c", name="", tasks=(outcome(),))]).rows[0]["solved"]["value"] is None


def test_a_row_says_what_runs_came_to() -> None:
    runs = [
        BenchRun(
            benchmark="b",
            condition="cwl",
            name=str(n),
            tasks=(
                outcome("one", solved=True, calls=10 * n, usage=Usage(cache_read=75, uncached=25), usd=float(n)),
                outcome("two", solved=n == 2, reason="step limit"),
                outcome("three"),
            ),
        )
        for n in (1, 2)
    ]
    [row] = report(runs).rows
    assert (row["runs"], row["tasks"], row["solved"]["hits"], row["solved"]["of"]) == (2, 6, 3, 4)
    assert row["ended"] == {"done": 4, "step limit": 2}
    assert row["calls"]["mean"] == 15
    assert row["usd"]["mean"] == 1.5
    assert row["cached_share"] == 0.75
    assert row["solved_share"]["mean"] == 0.75
    assert row["marks"]["delimiters"] is None, "without a session nothing is known of annotation"


def test_conditions_and_benchmarks_are_kept_apart() -> None:
    runs = [BenchRun(benchmark=b, condition=c, name="", tasks=(outcome(),)) for b in "xy" for c in ("cwl", "none")]
    assert [(row["benchmark"], row["condition"]) for row in report(runs).rows] == [
        ("x", "cwl"),
        ("x", "none"),
        ("y", "cwl"),
        ("y", "none"),
    ]


@pytest.mark.parametrize(
    ("name", "verdict", "solved"),
    [
        ("result.json", {"verifier_result": {"rewards": {"reward": 1.0}}}, True),
        ("result.json", {"verifier_result": {"rewards": {"reward": 0.5}}}, False),
        ("result.json", {"verifier_result": None}, None),
        ("results.json", {"is_resolved": True}, True),
        ("results.json", {"is_resolved": None}, None),
        ("result.json", [1], None),
    ],
)
def test_a_harness_says_beside_the_logs_whether_a_task_was_solved(
    name: str, verdict: object, solved: bool | None, tmp_path: Path
) -> None:
    trial = tmp_path / "job" / "one__x"
    write_outcome(outcome(), trial / "agent" / "tenure" / FILE)
    (trial / name).write_text(json.dumps(verdict))
    [run] = runs_in(tmp_path / "job", by_words).runs
    assert run.tasks[0].solved is solved


def test_a_verdict_above_the_run_is_not_the_tasks(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"is_resolved": True}))
    write_outcome(outcome(), tmp_path / "job" / FILE)
    assert runs_in(tmp_path / "job", by_words).runs[0].tasks[0].solved is None


def test_swe_benchs_report_decides_where_it_is_given(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_outcome(outcome(name), tmp_path / name / FILE)
    [run] = runs_in(tmp_path, by_words, resolved=frozenset({"two"})).runs
    assert {task.task: task.solved for task in run.tasks} == {"one": False, "two": True}


def test_a_damaged_outcome_and_a_session_that_is_not_there_are_said(tmp_path: Path) -> None:
    write_outcome(outcome(), tmp_path / "a" / FILE)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE).write_bytes(b'{"task": "x\x00')
    found = runs_in(tmp_path, by_words)
    assert len(found.runs[0].tasks) == 1
    assert ["is no outcome" in note or "session.db is not there" in note for note in found.notes] == [True, True]


def test_a_folder_without_an_outcome_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no outcome\.json below it"):
        runs_in(tmp_path, by_words)


def test_an_outcome_is_read_as_it_was_written(tmp_path: Path) -> None:
    wrote = outcome(text="\ufffd “done”", usage=Usage(uncached=3))
    write_outcome(wrote, tmp_path / FILE)
    assert read_outcome(tmp_path / FILE) == wrote
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
