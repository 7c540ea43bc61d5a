from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from logged import START, read, recording

from tenure.engine.record.entry import Draft
from tenure.lab.loading import source
from tenure.lab.protocols.accumulating import GAP_S, RARE_TASKS, SHARED_NAMES, ConversationTask, layout_of
from tenure.testing.builders import by_words


def plain(path: Path, start: datetime | None = START, words: int = 3, **more: float) -> str:
    return recording(path, ("human", "word " * words), ("say", "Done."), start=start, **more)


def naming(path: Path, *files: str) -> str:
    return recording(path, ("human", "Go on."), *(read(file, "nothing of note") for file in files), ("say", "Done."))


def laid(*addresses: str, human_tokens: int | None = None) -> list[ConversationTask]:
    return [task for tasks in layout_of(addresses, by_words, human_tokens=human_tokens) for task in tasks]


def times(task: ConversationTask) -> list[datetime]:
    _, events = task.as_source().events()
    return [datetime.fromisoformat(event.at) for event in events if isinstance(event, Draft) and event.at]


def names(tasks: list[ConversationTask]) -> list[str]:
    return [Path(task.source).name for task in tasks]


def test_tasks_come_by_project_then_by_when_they_began_then_by_address(tmp_path: Path) -> None:
    addresses = [
        plain(tmp_path / "b" / "early.jsonl", START),
        plain(tmp_path / "a" / "z.jsonl", START + timedelta(hours=1)),
        plain(tmp_path / "a" / "y.jsonl", START + timedelta(hours=1)),
        plain(tmp_path / "a" / "late.jsonl", START + timedelta(days=1)),
    ]
    assert names(laid(*addresses)) == ["y.jsonl", "z.jsonl", "late.jsonl", "early.jsonl"]
    assert laid(*addresses) == laid(*reversed(addresses))


def test_a_task_begins_a_gap_after_the_one_before_it_ended_and_keeps_its_own_pauses(tmp_path: Path) -> None:
    first, second = laid(
        plain(tmp_path / "one.jsonl", START, step_s=30), plain(tmp_path / "two.jsonl", START + timedelta(days=40), step_s=700)
    )
    ends, begins, *rest = (*times(first)[1:], *times(second))
    assert begins - ends == timedelta(seconds=GAP_S)
    assert rest == [begins + timedelta(seconds=700)]


def test_a_task_without_times_keeps_none_and_the_next_follows_the_last_one_that_had_some(tmp_path: Path) -> None:
    tasks = laid(
        plain(tmp_path / "a" / "one.jsonl"), plain(tmp_path / "b" / "two.jsonl", None), plain(tmp_path / "c" / "three.jsonl")
    )
    assert times(tasks[1]) == []
    assert times(tasks[2])[0] - times(tasks[0])[-1] == timedelta(seconds=GAP_S)


def test_a_time_without_a_zone_is_in_utc_on_every_machine(tmp_path: Path) -> None:
    path = Path(plain(tmp_path / "one.jsonl"))
    path.write_text(path.read_text(encoding="utf-8").replace('Z"', '"'), encoding="utf-8")
    (task,) = laid(str(path))
    assert times(task)[0].astimezone(UTC) == START


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "soon"])
def test_a_time_that_cannot_be_moved_is_no_time(tmp_path: Path, at: str) -> None:
    path = Path(plain(tmp_path / "a.jsonl", step_s=0))
    path.write_text(path.read_text(encoding="utf-8").replace("2026-03-01T09:00:00Z", at, 1), encoding="utf-8")
    tasks = laid(str(path), plain(tmp_path / "b.jsonl"))
    assert len(tasks) == 2
    assert all(len(times(task)) in (1, 2) for task in tasks)


def test_a_conversation_ends_before_the_words_of_people_would_fill_it(tmp_path: Path) -> None:
    sizes = {"a": 40, "b": 40, "c": 40, "d": 300, "e": 40}
    addresses = [plain(tmp_path / name / "s.jsonl", words=words) for name, words in sizes.items()]
    found = layout_of(addresses, by_words, human_tokens=100)
    assert [[Path(task.source).parent.name for task in tasks] for tasks in found] == [["a", "b"], ["c"], ["d"], ["e"]]
    assert [(task.conversation, task.number) for tasks in found for task in tasks] == [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0)]
    assert len(layout_of(addresses, by_words, human_tokens=None)) == 1


def test_a_task_depends_on_an_earlier_one_of_its_project_whose_names_it_uses(tmp_path: Path) -> None:
    files = [f"src/part_{number}/core.py" for number in range(SHARED_NAMES)]
    tasks = laid(
        naming(tmp_path / "p" / "1.jsonl", *files),
        naming(tmp_path / "p" / "2.jsonl", *files[1:]),
        naming(tmp_path / "p" / "3.jsonl", *files),
    )
    assert [task.depends_on for task in tasks] == [(), (), (0,)]


def test_names_that_two_projects_use_make_no_dependency(tmp_path: Path) -> None:
    files = [f"src/part_{number}/core.py" for number in range(SHARED_NAMES)]
    one, two = naming(tmp_path / "p" / "1.jsonl", *files), naming(tmp_path / "p" / "2.jsonl", *files)
    assert [task.depends_on for task in laid(one, two)] == [(), (0,)]
    assert not any(task.depends_on for task in laid(one, two, naming(tmp_path / "q" / "1.jsonl", *files)))


def test_names_that_all_tasks_of_a_suite_use_make_no_dependency(tmp_path: Path) -> None:
    files = [f"src/part_{number}/core.py" for number in range(SHARED_NAMES)]
    addresses = [naming(tmp_path / "p" / f"{number}.jsonl", *files) for number in range(RARE_TASKS + 1)]
    assert not any(task.depends_on for task in laid(*addresses))
    assert any(task.depends_on for task in laid(*addresses[:-1]))


def test_what_people_paste_is_no_name_of_the_task(tmp_path: Path) -> None:
    pasted = " ".join(f"src/part_{number}/core.py" for number in range(SHARED_NAMES))
    addresses = [recording(tmp_path / "p" / f"{n}.jsonl", ("human", pasted), ("say", "Done.")) for n in range(2)]
    assert not any(task.depends_on for task in laid(*addresses))


def test_a_session_that_no_model_answered_is_no_task(tmp_path: Path) -> None:
    silent = recording(tmp_path / "silent.jsonl", ("human", "Hello?"))
    assert laid(silent, plain(tmp_path / "one.jsonl")) == laid(plain(tmp_path / "one.jsonl"))


def test_a_task_reads_what_its_session_holds(tmp_path: Path) -> None:
    (task,) = laid(recording(tmp_path / "s.jsonl", ("human", "one two three"), read("a/b.py", "four five"), ("say", "six")))
    _, events = source(task.source).events()
    assert task.entries == len([event for event in events if isinstance(event, Draft)])
    assert (task.calls, task.human_tokens) == (2, 3)
    assert task.lasted_s == 30
