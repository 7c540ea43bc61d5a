"""Sequences over files of real size: the model that plays them reads again what it cannot see."""

import asyncio
from pathlib import Path

import pytest

from tenure.agent.settings import World
from tenure.errors import InputError
from tenure.lab.bench.long_sequence import CEILING, EARLIER, EDITS, FACTS, SHAPES, long_sequence
from tenure.lab.bench.outcome import TaskOutcome
from tenure.lab.bench.play import PlaySetup, condition_named
from tenure.lab.bench.sequence import run

SIZE = 18_000  # characters that a task reads here


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of some 9,000 characters, each with its own definitions."""
    folder = tmp_path_factory.mktemp("repository")
    for number in range(12):
        functions = (
            f"def part_{number}_{n}(given, limit={n}):\n    first = given[:{n}]\n    return first or {number * n}\n\n"
            for n in range(110)
        )
        (folder / f"module_{number}.py").write_text("\n".join(functions), encoding="utf-8")
    return folder


def played(repository: Path, name: str, condition: str, ceiling: int, folder: Path) -> tuple[TaskOutcome, ...]:
    setup = PlaySetup(model="sample", condition=condition_named(condition), ceiling=ceiling)
    world = World(home=folder, seconds=lambda: 0.0, now=lambda: "2026-01-01T00:00:00.000000Z", today=None)
    return asyncio.run(run(long_sequence(name, repository, SIZE), setup, folder / "run", world))


def test_what_stays_in_the_window_is_not_looked_for_again(repository: Path, tmp_path: Path) -> None:
    first, second, third = played(repository, "canvas-long", "none", CEILING, tmp_path)
    for outcome, earlier in ((first, 0), (second, EARLIER), (third, 2 * EARLIER)):
        assert outcome.solved
        assert outcome.needs is not None
        assert (outcome.needs.visible, outcome.needs.routed, outcome.needs.lost) == (FACTS + earlier + EDITS, 0, 0)
        assert (outcome.needs.edits, outcome.needs.edits_gone) == (EDITS, 0)


@pytest.mark.parametrize("condition", ["cwl", "graph", "compaction"])
def test_what_has_left_is_recalled_or_looked_for_again_and_the_tasks_are_solved(
    condition: str, repository: Path, tmp_path: Path
) -> None:
    outcomes = played(repository, "canvas-long", condition, 14_000, tmp_path)
    assert [outcome.solved for outcome in outcomes] == [True] * 3
    needs = [outcome.needs for outcome in outcomes if outcome.needs is not None]
    assert sum(each.routed + each.lost for each in needs) > 0
    assert sum(outcome.recalls for outcome in outcomes) >= sum(each.routed for each in needs)
    assert all(each.visible + each.routed + each.lost == count for each, count in zip(needs, (16, 22, 28), strict=True))


@pytest.mark.parametrize("name", SHAPES)
def test_a_task_is_not_solved_before_anything_was_done_and_names_no_line_that_it_wants(
    name: str, repository: Path, tmp_path: Path
) -> None:
    sequence = long_sequence(name, repository, SIZE)
    sequence.lay_out(tmp_path)
    for step, task in zip(sequence.steps, sequence.tasks, strict=True):
        assert not sequence.checked(step, tmp_path).solved
        assert not any(fact.line in step.words for fact in (*task.facts, *task.earlier, *task.edits))


def test_a_folder_with_too_few_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too few source files"):
        long_sequence("kernel-long", tmp_path)
