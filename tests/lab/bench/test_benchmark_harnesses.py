"""What the adapters do without the harnesses: commands, sessions that are carried over, trajectories, SWE-bench's predictions."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tenure.agent.settings import World
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Draft, Usage
from tenure.errors import InputError
from tenure.lab.bench.harnesses import logs
from tenure.lab.bench.harnesses.command import FOLDER, WORDS, PlayCommand, command, requirement, spec_of, stop
from tenure.lab.bench.harnesses.logs import trajectory
from tenure.lab.bench.harnesses.swe_bench import (
    Instance,
    Prediction,
    instances_in,
    patch_since,
    predict,
    resolved_in,
    snapshot,
)
from tenure.lab.bench.outcome import FILE, STORE, read_outcome
from tenure.lab.bench.play import PlaySetup, condition_named
from tenure.lab.bench.run_folders import runs_in
from tenure.logs.detect import read
from tenure.logs.places.files import open_session
from tenure.testing.builders import by_words, call, human, placed, reply, result, system, thinking

TENURE = [sys.executable, "-m", "tenure.cli.main"]


def script(path: Path, *replies: dict[str, Any]) -> str:
    path.write_text(json.dumps({"model": "claude-sonnet-4-5", "dialect": "anthropic", "replies": replies}))
    return f"scripted:{path}"


def writes(name: str) -> dict[str, Any]:
    return {"text": "I write.", "calls": [{"name": "write", "arguments": {"path": name, "content": f"{name}\n"}}]}


# --- Commands


@pytest.mark.parametrize(
    ("model", "spec"),
    [
        ("anthropic/claude-opus-4-5", ("anthropic:claude-opus-4-5", "")),
        ("openai/gpt-5", ("openai:gpt-5", "")),
        ("openrouter/z-ai/glm-5", ("openai:z-ai/glm-5", "https://openrouter.ai/api/v1")),
        ("openai-chat:qwen/x", ("openai-chat:qwen/x", "")),
        ("scripted:/a/b.json", ("scripted:/a/b.json", "")),
        ("gpt-5", ("openai:gpt-5", "")),
        ("org/model", ("openai:org/model", "")),
    ],
)
def test_a_harnesss_model_is_named_as_ours(model: str, spec: tuple[str, str]) -> None:
    assert spec_of(model) == spec


def test_a_command_survives_any_words_in_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "it's a $(folder)"
    folder.mkdir()
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\nfor each in "$@"; do printf "%s\\n" "$each"; done\n')
    program.chmod(0o755)
    line = command(PlayCommand(model="x/y z", fields='{"a": "\'"}', program=str(program)), str(folder), task="a;b")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "bench",
        "task",
        f"--words={folder}/{WORDS}",
        f"--folder={folder}",
        "--task=a;b",
        "--session=tenure",
        "--cwd=.",
        "--model=openai:x/y z",
        "--condition=cwl",
        "--ceiling=80000",
        '--fields={"a": "\'"}',
    ]
    assert (folder / "log.txt").read_text() == done.stdout
    assert (folder / "pid").read_text().strip().isdecimal()


def test_what_is_installed_is_a_wheel_a_version_or_a_requirement() -> None:
    assert requirement("") == "tenure[agent,anthropic,openai]"
    assert requirement("0.1.0") == "tenure[agent,anthropic,openai]==0.1.0"
    assert requirement("/x/tenure.whl") == "tenure[agent,anthropic,openai] @ file:///x/tenure.whl"
    assert requirement("tenure @ git+https://example.org/tenure") == "tenure @ git+https://example.org/tenure"


# --- Tasks, as a container runs them


def task(folder: Path, workspace: Path, model: str, words: str, **more: str) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    workspace.mkdir(parents=True, exist_ok=True)
    (folder / WORDS).write_text(words)
    line = command(PlayCommand(model=model, program="PROGRAM", ceiling="20k", **more), str(folder), task=workspace.name)
    line = line.replace("PROGRAM", shlex.join(TENURE).replace("'", ""))
    return subprocess.Popen(
        ["bash", "-c", f"set -o pipefail; {line}"], cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.mark.long
def test_one_session_goes_on_from_container_to_container(tmp_path: Path) -> None:
    model = script(tmp_path / "s.json", writes("one"), {"text": "Done one."}, writes("two"), {"text": "Done two."})
    host = tmp_path / "session"
    for name in ("one", "two"):
        container = tmp_path / f"logs-{name}" / FOLDER
        container.mkdir(parents=True)
        with logs.held(host):
            for path in logs.session_files(host):
                (container / path.name).write_bytes(path.read_bytes())
            ran = task(container, tmp_path / name, model, f"Write {name}.")
            said = ran.communicate(timeout=60)[0].decode()
            assert ran.returncode == 0, said
            logs.kept(host, lambda fresh, container=container: (fresh / STORE).write_bytes((container / STORE).read_bytes()))
        assert (tmp_path / name / name).read_text() == f"{name}\n"
    second = read_outcome(tmp_path / "logs-two" / FOLDER / FILE)
    assert (second.task, second.reason, second.calls, second.text) == ("two", "done", 2, "Done two.")
    assert second.first == read_outcome(tmp_path / "logs-one" / FOLDER / FILE).last == 5
    assert [path.name for path in host.iterdir()] == [STORE]
    path = logs.write_trajectory(tmp_path / "logs-two", second)
    assert path is not None
    steps = json.loads(path.read_text())["steps"]
    assert f"work in {tmp_path / 'two'} now" in steps[0]["message"], "it is told where it is"
    assert [step["source"] for step in steps] == ["user", "agent", "agent"], "this task alone"


@pytest.mark.long
def test_a_task_whose_time_is_up_leaves_a_session_that_goes_on(tmp_path: Path) -> None:
    waits = {"text": "I wait.", "calls": [{"name": "bash", "arguments": {"command": "touch here; sleep 60"}}]}
    model = script(tmp_path / "s.json", waits, {"text": "Later."})
    folder, workspace = tmp_path / "logs", tmp_path / "ws"
    ran = task(folder, workspace, model, "Wait.")
    until = time.monotonic() + 30
    while not (workspace / "here").exists() and time.monotonic() < until:
        time.sleep(0.05)
    subprocess.run(["bash", "-c", stop(str(folder))], check=True, timeout=30)
    ran.communicate(timeout=30)
    cut = read_outcome(folder / FILE)
    assert (cut.reason, cut.calls) == ("cancelled", 1)
    again = task(folder, workspace, model, "And now?")
    assert again.communicate(timeout=60)[0].decode().find("Later.") >= 0
    assert read_outcome(folder / FILE).first == cut.last


def test_a_task_that_is_killed_leaves_what_it_had_come_to(tmp_path: Path) -> None:
    waits = {"text": "I wait.", "calls": [{"name": "bash", "arguments": {"command": "touch here; sleep 60"}}]}
    folder, workspace = tmp_path / "logs", tmp_path / "ws"
    ran = task(folder, workspace, script(tmp_path / "s.json", waits), "Wait.")
    until = time.monotonic() + 30
    while not (workspace / "here").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    ran.communicate(timeout=90)
    left = read_outcome(folder / FILE)
    assert (left.reason, left.why, left.calls) == ("cancelled", "it was stopped from outside, before it was done", 1)
    assert left.usage.prompt > 0


def test_two_tasks_cannot_use_one_session_at_a_time(tmp_path: Path) -> None:
    with logs.held(tmp_path), pytest.raises(InputError, match="another task is using this session"), logs.held(tmp_path):
        pass
    with logs.held(tmp_path):
        pass


def test_a_session_that_could_not_be_fetched_leaves_the_one_before(tmp_path: Path) -> None:
    (tmp_path / STORE).write_text("before")
    logs.kept(tmp_path, lambda fresh: (fresh / "other").write_text("x"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(STORE, "before")]


# --- Trajectories


def told(*drafts: Draft, spent: dict[int, Spent] | None = None) -> dict[str, Any]:
    return trajectory(placed(*drafts), spent or {}, session="s", model="m", version="1", extra={})


SAID = (
    system("You work."),
    human("mend it"),
    reply(thinking("where?"), "I look.", call("read", "a", path="x.py"), call("bash", "b", command="ls")),
    result("text", "b"),
    result("gone", "a", error=True),
    reply("Done."),
)


def test_a_trajectory_has_a_step_for_each_message_and_results_at_their_calls() -> None:
    found = told(*SAID, spent={2: Spent(usage=Usage(uncached=1, cache_read=9, output=2), usd=0.5)})
    steps = found["steps"]
    assert [(step["step_id"], step["source"], step["message"]) for step in steps] == [
        (1, "system", "You work."),
        (2, "user", "mend it"),
        (3, "agent", "I look."),
        (4, "agent", "Done."),
    ]
    assert steps[2]["reasoning_content"] == "where?"
    assert steps[2]["tool_calls"][0] == {"tool_call_id": "a", "function_name": "read", "arguments": {"path": "x.py"}}
    assert steps[2]["observation"]["results"] == [
        {"content": "text", "source_call_id": "b"},
        {"content": "gone", "source_call_id": "a", "extra": {"is_error": True}},
    ]
    assert steps[2]["metrics"] == {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 9, "cost_usd": 0.5}
    assert found["final_metrics"]["total_prompt_tokens"] == 10


def test_a_trajectory_is_read_back_as_the_same_messages(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(told(*SAID)))
    reader, events = read(open_session(str(path)), str(path), "")
    assert reader.name == "atif"
    drafts = [event for event in events if isinstance(event, Draft)]
    texts = [[block.text for block in draft.blocks] for draft in drafts]
    assert texts[:2] == [["You work."], ["mend it"]]
    assert [block.text for draft in drafts for block in draft.blocks if block.__struct_config__.tag == "tool_result"] == [
        "text",
        "gone",
    ]
    assert texts[-1] == ["Done."]


def test_arguments_that_are_no_object_stand_as_they_are() -> None:
    broken = Draft(role=SAID[5].role, blocks=(call("read", "a").__class__(call_id="a", name="read", arguments='["x'),))
    assert told(broken)["steps"][0]["tool_calls"][0]["arguments"] == {"raw": '["x'}


def test_an_empty_stretch_is_a_trajectory_of_one_empty_step() -> None:
    assert told()["steps"] == [{"step_id": 1, "source": "user", "message": ""}]


# --- SWE-bench


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """A clone of a made-up project whose later commit holds the answer."""
    folder = tmp_path / "repositories" / "acme__tool"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "tool.py").write_text("def double(x):\n    return x\n")
    (folder / ".gitignore").write_text("*.pyc\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "before")
    (folder / "tool.py").write_text("def double(x):\n    return 2 * x\n")
    git(folder, "commit", "--quiet", "--all", "--message", "the answer")
    return tmp_path / "repositories"


def instance(repositories: Path, name: str = "acme__tool-1") -> Instance:
    base = git(repositories / "acme__tool", "rev-parse", "HEAD~1")
    return Instance(instance_id=name, repo="acme/tool", base_commit=base, problem_statement="double does not double")


MENDS = {
    "text": "I mend it.",
    "calls": [
        {"name": "edit", "arguments": {"path": "tool.py", "old": "return x", "new": "return 2 * x"}},
        {"name": "write", "arguments": {"path": "notes/new.txt", "content": "new\n"}},
    ],
}


def predictions_of(tmp_path: Path, repositories: Path, *replies: dict[str, Any], together: bool = False, names: tuple[str, ...] = ("acme__tool-1",)) -> tuple[Prediction, ...]:  # fmt: skip
    setup = PlaySetup(model=script(tmp_path / "s.json", *replies), condition=condition_named("cwl"), ceiling=20_000)
    wanted = [instance(repositories, name) for name in names]
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    world = World(home=tmp_path)
    return asyncio.run(predict(wanted, setup, repositories, out, world, together=together))


def test_a_prediction_is_the_patch_that_mends_the_commit(tmp_path: Path, repositories: Path) -> None:
    [found] = predictions_of(tmp_path, repositories, MENDS, {"text": "Mended."})
    [line] = (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "instance_id": "acme__tool-1",
        "model_name_or_path": found.model_name_or_path,
        "model_patch": found.model_patch,
    }
    assert "/" not in found.model_name_or_path
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "--quiet", str(repositories / "acme__tool"), str(fresh))
    git(fresh, "checkout", "--quiet", "HEAD~1")
    subprocess.run(["git", "-C", str(fresh), "apply"], input=found.model_patch.encode(), check=True)
    assert (fresh / "tool.py").read_text() == "def double(x):\n    return 2 * x\n"
    assert (fresh / "notes/new.txt").read_text() == "new\n"


def test_the_history_does_not_hold_the_answer(tmp_path: Path, repositories: Path) -> None:
    place = tmp_path / "place"
    snapshot(repositories, instance(repositories), place)
    assert git(place, "log", "--all", "--format=%s") == "as it was"
    assert git(repositories / "acme__tool", "status", "--porcelain") == "", "the clone is as it was"


def test_what_the_agent_committed_is_in_the_patch_too(tmp_path: Path, repositories: Path) -> None:
    place = tmp_path / "place"
    base = snapshot(repositories, instance(repositories), place)
    (place / "tool.py").write_text("mended\n")
    git(place, "commit", "--quiet", "--all", "--message", "mine")
    (place / "junk.pyc").write_text("x")
    assert "+mended" in patch_since(base, place)
    assert "junk" not in patch_since(base, place)


def test_instances_run_in_one_session_and_what_is_done_is_passed_over(tmp_path: Path, repositories: Path) -> None:
    names = ("acme__tool-1", "acme__tool-2")
    replies = (MENDS, {"text": "One."}, MENDS, {"text": "Two."})
    predictions_of(tmp_path, repositories, *replies, together=True, names=names[:1])
    found = predictions_of(tmp_path, repositories, *replies, together=True, names=names)
    assert [each.instance_id for each in found] == list(names)
    second = read_outcome(tmp_path / "out" / names[1] / FILE)
    assert (second.session, second.text, second.first > 0) == ("swe-bench", "Two.", True)
    [run] = runs_in(tmp_path / "out", by_words, resolved=frozenset(names)).runs
    assert (len(run.tasks), len(run.sessions)) == (2, 1)


def test_instances_are_read_as_lines_or_as_a_list_and_the_answer_is_not(tmp_path: Path) -> None:
    fields = {"instance_id": "a", "repo": "b/c", "base_commit": "d", "problem_statement": "e", "patch": "the answer"}
    for text in (json.dumps(fields) + "\n\n", json.dumps([fields])):
        (tmp_path / "x.json").write_text(text)
        assert instances_in(tmp_path / "x.json") == (
            Instance(instance_id="a", repo="b/c", base_commit="d", problem_statement="e"),
        )
    (tmp_path / "x.json").write_text('{"instance_id": "a"}\n')
    with pytest.raises(InputError, match=r"x\.json:1"):
        instances_in(tmp_path / "x.json")


def test_a_commit_or_repository_that_is_not_there_is_said(tmp_path: Path, repositories: Path) -> None:
    for wrong, said in (({"repo": "acme/other"}, "no such repository"), ({"base_commit": "0" * 40}, "git read-tree")):
        fields = {"instance_id": "x", "repo": "acme/tool", "base_commit": "HEAD", "problem_statement": "p"} | wrong
        with pytest.raises(InputError, match=said):
            snapshot(repositories, Instance(**fields), tmp_path / "place")


def test_what_was_resolved_is_read_from_the_harnesss_report(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"resolved_ids": ["a"], "schema_version": 2}))
    assert resolved_in(tmp_path / "r.json") == {"a"}
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(InputError, match="has no resolved_ids"):
        resolved_in(tmp_path / "r.json")
