"""`tenure replay` says what the session itself needed later of what had left, and bills the recalls that this takes."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from chats import chat_file, drawn, exchange, quiet_console
from tenure.cli.main import main
from tenure.cli.replay import play, report
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.policies.cwl import Cwl
from tenure.lab.loading import source
from tenure.lab.replay import Options

PARTS = 12


def line(part: int, n: int) -> str:
    return f"    {n}: gauge_{part}_{n} = turbine_{part}.pressure({n * 37 + part}, unit='mbar')"


def session_file(path: Path) -> Path:
    """Parts that are read one after another and edited in the same order at the end, from what was read of them."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read every part, then mend them."}]
    for part in range(PARTS):
        text = "\n".join(line(part, n) for n in range(20))
        messages += exchange(f"read_{part}", "read", {"path": f"src/turbine_{part}.py"}, text)
    for part in range(PARTS):
        change = {"path": f"src/turbine_{part}.py", "old_string": line(part, 7), "new_string": "    pass"}
        messages += exchange(f"edit_{part}", "edit", change, "ok")
    return chat_file(path, [*messages, {"role": "assistant", "content": "All parts are mended."}])


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_of_a_replay_says_what_was_needed_later(
    width: int, tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    options = Options(budget=Budget(ceiling=6_000), policy=Cwl(), model="gpt-5")
    run = play([source(str(session_file(tmp_path / "session.json")))], ("session.json",), options, quiet_console())
    golden(f"replay-needs-{width}.txt", drawn(width, report(run)))


def written(tmp_path: Path, *options: str) -> list[dict[str, object]]:
    out = tmp_path / "out.jsonl"
    path = str(session_file(tmp_path / "s.json"))
    assert main(["replay", path, "--ceiling", "6k", "--model", "gpt-5", *options, "--json", str(out), "-q"]) == 0
    return [json.loads(each) for each in out.read_text(encoding="utf-8").splitlines()]


def test_the_lines_of_a_replay_have_the_needs_and_the_recalls(tmp_path: Path) -> None:
    lines = written(tmp_path)
    kinds = [each["type"] for each in lines]
    assert "harm" in kinds
    assert kinds[-1] == "summary"
    for before, each in pairwise(lines):
        if each["type"] == "harm" and before["type"] != "harm":
            assert before["type"] in ("entry", "recall")
        if each["type"] == "recall":
            assert (before["type"], before["route"]) == ("harm", each["handle"])
    assert lines[-1]["recalls"] == kinds.count("recall") > 0


def test_a_replay_that_looks_for_no_harm_says_nothing_of_it(tmp_path: Path) -> None:
    watched, plain = written(tmp_path), written(tmp_path, "--no-harm")
    assert {each["type"] for each in watched} - {each["type"] for each in plain} == {"edit_target", "harm", "recall"}
    assert plain[:-1] == [each for each in watched[:-1] if each["type"] not in ("edit_target", "harm", "recall")]
    assert (plain[-1]["needs"], plain[-1]["recalls"], plain[-1]["recalls_usd"]) == ({}, 0, 0.0)
    assert plain[-1]["usd"] == watched[-1]["usd"]
