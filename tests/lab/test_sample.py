import json
import re
import sysconfig
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tenure.engine.record.entry import Draft, Origin, Role, Thinking, ToolCall, ToolResult
from tenure.errors import InputError
from tenure.lab.sample import TASKS, Task, sample_session

TOOLS = {"read", "grep", "glob", "ls", "bash", "edit", "write", "delimiter"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="module")
def session(workspace: Path) -> tuple[Draft, ...]:
    return tuple(sample_session(workspace))


def exchanges(session: tuple[Draft, ...]) -> Iterator[tuple[ToolCall, ToolResult]]:
    results = {block.call_id: block for draft in session for block in draft.blocks if isinstance(block, ToolResult)}
    for draft in session:
        for block in draft.blocks:
            if isinstance(block, ToolCall):
                yield block, results[block.call_id]


def calls_of(draft: Draft) -> list[ToolCall]:
    return [block for block in draft.blocks if isinstance(block, ToolCall)]


def output_of(session: tuple[Draft, ...], tool: str) -> list[ToolResult]:
    return [result for call, result in exchanges(session) if call.name == tool]


def test_another_folder_gives_the_same_session(session: tuple[Draft, ...], tmp_path: Path) -> None:
    again = tuple(sample_session(tmp_path / "elsewhere", tasks=7))
    assert again == session[: len(again)]


def test_a_session_is_several_hundred_thousand_tokens(session: tuple[Draft, ...]) -> None:
    tokens = sum(len(block.text) for draft in session for block in draft.blocks) // 4
    assert 250_000 < tokens < 800_000


def test_no_draft_names_the_workspace_or_the_library(session: tuple[Draft, ...], workspace: Path) -> None:
    said = "\n".join(block.text for draft in session for block in draft.blocks)
    assert str(workspace) not in said
    assert sysconfig.get_paths()["stdlib"] not in said


def test_drafts_are_neutral_and_20_seconds_apart(session: tuple[Draft, ...]) -> None:
    assert all(draft.dialect == "tenure" and draft.payload == b"" for draft in session)
    assert session[0].at == "2026-01-05T09:00:00Z"
    assert session[1].at == "2026-01-05T09:00:20Z"
    assert all(earlier.at < later.at for earlier, later in pairwise(session))


def test_every_task_begins_with_the_humans_words(session: tuple[Draft, ...]) -> None:
    asked = [block.text for draft in session for block in draft.blocks if block.origin is Origin.HUMAN]
    assert asked == [task.ask for task in TASKS]


def test_results_follow_their_calls_in_order(session: tuple[Draft, ...]) -> None:
    for draft, following in pairwise(session):
        if calls := calls_of(draft):
            assert following.role is Role.TOOL
            assert [call.call_id for call in calls] == [getattr(block, "call_id", None) for block in following.blocks]
        else:
            assert following.role is (Role.USER if draft.role is Role.ASSISTANT else Role.ASSISTANT)


def test_call_ids_are_unique_and_all_tools_are_used(session: tuple[Draft, ...]) -> None:
    calls = [call for call, _ in exchanges(session)]
    assert len({call.call_id for call in calls}) == len(calls)
    assert {call.name for call in calls} == TOOLS


def test_accepted_delimiter_calls_keep_the_protocol(session: tuple[Draft, ...]) -> None:
    kinds: dict[str, str] = {}
    active = ""
    for call, result in exchanges(session):
        if call.name != "delimiter" or result.error:
            continue
        said = json.loads(call.arguments)
        if said["action"] == "start":
            assert not active
            assert said["name"] not in kinds
            assert {kinds[name] for name in said.get("dependencies", ())} == ({"expl"} if said["type"] == "act" else set())
            active = said["name"]
            kinds[active] = said["type"]
        else:
            assert bool(said.get("description")) is (kinds[active] == "expl")
            active = ""
    assert not active


def test_work_is_done_inside_episodes_and_edits_inside_acts(session: tuple[Draft, ...]) -> None:
    active = ""
    for call, result in exchanges(session):
        if call.name == "delimiter":
            active = active if result.error else json.loads(call.arguments).get("type", "")
        elif call.name in {"edit", "write", "bash"}:
            assert active == "act"
        else:
            assert active


def test_one_delimiter_call_is_refused_and_corrected(session: tuple[Draft, ...]) -> None:
    delimits = [(call, result) for call, result in exchanges(session) if call.name == "delimiter"]
    [at] = [n for n, (_, result) in enumerate(delimits) if result.error]
    refused, corrected = json.loads(delimits[at][0].arguments), json.loads(delimits[at + 1][0].arguments)
    assert {**refused, "dependencies": corrected["dependencies"]} == corrected


def test_some_messages_end_one_episode_and_start_the_next(session: tuple[Draft, ...]) -> None:
    def actions(draft: Draft) -> list[str]:
        return [json.loads(call.arguments)["action"] for call in calls_of(draft) if call.name == "delimiter"]

    assert any(actions(draft) == ["end", "start"] for draft in session)
    assert any(actions(draft) == ["end"] for draft in session)


def test_some_messages_think_without_a_seal(session: tuple[Draft, ...]) -> None:
    thoughts = [block for draft in session for block in draft.blocks if isinstance(block, Thinking)]
    assert len(thoughts) > 10
    assert not any(thought.signed for thought in thoughts)


def test_the_agents_own_tests_really_ran(session: tuple[Draft, ...]) -> None:
    failed = [result for result in output_of(session, "bash") if result.error]
    assert [re.findall(r"^ImportError: cannot import name .*", result.text, re.MULTILINE) for result in failed] == [
        ["ImportError: cannot import name '_has_surrogates' from 'email.utils' (email/utils.py)"]
    ]
    checks = sum(len(task.checks) for task in TASKS)
    assert f"Ran {checks} tests in 0.01s\n\nOK" in output_of(session, "bash")[-1].text


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_the_workspace_is_really_edited(task: Task, session: tuple[Draft, ...], workspace: Path) -> None:
    assert session
    sources = [path.read_text(encoding="utf-8") for path in (workspace / task.package).rglob("*.py")]
    assert not any(task.words.search(source) for source in sources)
    assert any(task.new in source for source in sources)


def test_the_library_it_was_copied_from_is_left_alone(session: tuple[Draft, ...]) -> None:
    assert session
    original = Path(sysconfig.get_paths()["stdlib"], "json", "encoder.py").read_text(encoding="utf-8")
    assert "_build_iterencode" not in original


def test_a_file_that_is_not_there_is_an_error_result_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = TASKS[0]
    wanting = Task(name="x", ask="x", package="json", old=first.old, new=first.new, reads=(first.reads[0], "json/gone.py"))
    monkeypatch.setattr("tenure.lab.sample.TASKS", (wanting,))
    errors = [result.text for _, result in exchanges(tuple(sample_session(tmp_path, tasks=1))) if result.error]
    assert errors[0] == "read: No such file or directory"


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="expected an empty folder"):
        next(sample_session(tmp_path))


@pytest.mark.parametrize("tasks", [0, len(TASKS) + 1])
def test_the_number_of_tasks_is_checked(tasks: int, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected 1 to 12"):
        next(sample_session(tmp_path, tasks=tasks))
