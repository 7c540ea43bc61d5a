"""The sequences of dependent tasks, played by their own scripts: real files, real tools, real checks."""

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.agent.events import Event, SessionOpened, TurnDone
from tenure.agent.settings import World
from tenure.errors import InputError
from tenure.lab.bench.outcome import TaskOutcome
from tenure.lab.bench.play import BenchTask, PlaySetup, condition_named, play
from tenure.lab.bench.run_folders import report, runs_in
from tenure.lab.bench.sequence import run, sequence_named, sequence_names
from tenure.testing.builders import by_words
from tenure.testing.store import MemoryStore


def played(
    folder: Path, name: str, condition: str, ceiling: int = 0, heard: list[Event] | None = None
) -> tuple[TaskOutcome, ...]:
    async def wait(seconds: float) -> None:
        if seconds > 1:
            await asyncio.Event().wait()

    sequence = sequence_named(name)
    setup = PlaySetup(model="sample", condition=condition_named(condition), ceiling=ceiling or sequence.ceiling)
    world = World(home=folder, wait=wait, seconds=lambda: 0.0, now=lambda: "2026-01-01T00:00:00.000000Z", today=None)
    return asyncio.run(
        run(sequence, setup, folder / "run", world, on_event=(heard.append if heard is not None else lambda _: None))
    )


class Play(NamedTuple):
    """A sequence that was played once for all tests that look at it."""

    folder: Path
    outcomes: tuple[TaskOutcome, ...]
    heard: list[Event]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Play]:
    @cache
    def play(name: str, condition: str, ceiling: int = 0) -> Play:
        folder, heard = tmp_path_factory.mktemp(name), list[Event]()
        return Play(folder, played(folder, name, condition, ceiling, heard), heard)

    return play


@pytest.mark.parametrize("name", sequence_names())
def test_no_task_is_solved_before_anything_was_done(name: str, tmp_path: Path) -> None:
    sequence = sequence_named(name)
    sequence.lay_out(tmp_path)
    assert [step.name for step in sequence.steps if sequence.checked(step, tmp_path).solved] == []


@pytest.mark.parametrize("name", sequence_names())
def test_a_sequence_is_solved_under_cwl_while_episodes_leave(name: str, once: Callable[..., Play]) -> None:
    outcomes = once(name, "cwl").outcomes
    assert [(each.reason, each.solved) for each in outcomes] == [("done", True)] * len(sequence_named(name).steps)
    assert sum(each.commits for each in outcomes) > 0
    assert [each.first for each in outcomes[1:]] == [each.last for each in outcomes[:-1]], "one session over all tasks"


def test_under_compaction_a_summary_is_written_once_the_ceiling_is_reached(once: Callable[..., Play]) -> None:
    _, outcomes, heard = once("kernel", "compaction")
    assert all(each.solved for each in outcomes)
    assert sum(each.summaries for each in outcomes) == 1
    assert sum(each.commits for each in outcomes) == 0
    whole = once("kernel", "none").outcomes
    assert outcomes[-1].usage.prompt < whole[-1].usage.prompt
    assert outcomes[-1].usd > whole[-1].usd, "the summary is in the bill"
    assert [event.reason for event in heard if isinstance(event, TurnDone)] == ["done"] * 4, "turns of one call are not told of"
    opened = [event for event in heard if isinstance(event, SessionOpened)]
    assert [event.resumed for event in opened] == [False, True, True, True]


def test_a_ceiling_that_is_never_reached_changes_nothing(once: Callable[..., Play]) -> None:
    compacted, whole = once("hashes", "compaction", 100_000).outcomes, once("hashes", "none").outcomes
    assert [each.calls for each in compacted] == [each.calls for each in whole]
    assert sum(each.summaries for each in compacted) == 0


def test_a_run_is_gathered_from_its_folder_with_the_measures_of_its_session(once: Callable[..., Play]) -> None:
    folder, outcomes, _ = once("hashes", "cwl")
    found = runs_in(folder / "run", by_words, benchmark="hashes")
    assert found.notes == ()
    [one] = found.runs
    assert (one.benchmark, one.condition, one.tasks) == ("hashes", "cwl", outcomes)
    [session] = one.sessions
    assert session.overhead.delimiters == 12
    assert (session.typing.expl, session.typing.act, session.typing.mistyped) == (3, 3, ())
    assert session.dependencies.missing == ()
    assert session.replies == sum(each.calls for each in outcomes)


def test_without_episodes_the_script_marks_none(once: Callable[..., Play]) -> None:
    [session] = runs_in(once("hashes", "none").folder / "run", by_words).runs[0].sessions
    assert (session.overhead.delimiters, session.overhead.standing_tokens, session.typing.declared) == (0, 0, 0)


def test_two_runs_of_a_script_come_to_the_same(tmp_path: Path, once: Callable[..., Play]) -> None:
    played(tmp_path, "hashes", "cwl")
    runs = [
        run
        for folder in (once("hashes", "cwl").folder, tmp_path)
        for run in runs_in(folder / "run", by_words, benchmark="x").runs
    ]
    [row] = report(runs).rows
    assert (row["runs"], row["tasks"], row["solved"]["hits"]) == (2, 2 * len(sequence_named("hashes").steps), row["tasks"])
    assert row["calls"]["sd"] == 0


def test_an_unknown_sequence_or_condition_names_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'doom', expected one of canvas, hashes, kernel"):
        sequence_named("doom")
    with pytest.raises(InputError, match=r"'best', expected one of cwl, compaction, none, paper, pi-cwl, cwl-inferred, tiered"):
        condition_named("best")


def test_the_agent_annotates_under_a_policy_that_reads_marks_and_under_no_other() -> None:
    names = ("cwl", "tiered+cwl", "tiered", "graph", "none")
    assert [condition_named(name).episodes for name in names] == [True, True, False, False, False]


@pytest.mark.parametrize("condition", ["none", "compaction"])
def test_no_progress_ends_a_task_under_any_condition(condition: str, tmp_path: Path) -> None:
    again = {"text": "Again.", "calls": [{"name": "ls", "arguments": {"path": "."}}]}
    (tmp_path / "script.json").write_text(json.dumps({"replies": [again] * 20}))
    (tmp_path / "ws").mkdir()
    setup = PlaySetup(model=f"scripted:{tmp_path / 'script.json'}", condition=condition_named(condition))
    task = BenchTask(name="x", words="Look.", folder=tmp_path / "ws")
    outcome = asyncio.run(play(task, setup, "s", World(home=tmp_path, store=MemoryStore())))
    assert (outcome.reason, outcome.calls) == ("stuck", 6)


def test_calls_are_limited_under_compaction_too(tmp_path: Path) -> None:
    calls = [{"text": "", "calls": [{"name": "bash", "arguments": {"command": f"echo {n}"}}]} for n in range(9)]
    (tmp_path / "script.json").write_text(json.dumps({"replies": calls}))
    (tmp_path / "ws").mkdir()
    setup = PlaySetup(model=f"scripted:{tmp_path / 'script.json'}", condition=condition_named("compaction"), most_calls=4)
    task = BenchTask(name="x", words="Count.", folder=tmp_path / "ws")
    outcome = asyncio.run(play(task, setup, "s", World(home=tmp_path, store=MemoryStore())))
    assert (outcome.reason, outcome.calls) == ("step limit", 4)
