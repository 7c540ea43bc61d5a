"""`tenure replay --faithful`: a peer's rule as it was published, and what it does to what we protect."""

import json
from pathlib import Path
from typing import Any

import pytest

from chats import chat_file, exchange
from tenure.cli.main import main
from tenure.engine.policies import COMPAT, PEERS, POLICIES


def session_file(path: Path) -> Path:
    """Twelve tasks of a person, each with three large reads."""
    messages: list[dict[str, Any]] = []
    for n in range(12):
        messages.append({"role": "user", "content": f"Task {n}: change part {n}, and never push."})
        for m in range(3):
            messages += exchange(f"c{n}{m}", "read", {"path": f"src/part_{n}_{m}.py"}, f"value_{n}_{m} = compute()\n" * 40)
        messages.append({"role": "assistant", "content": f"Task {n} is done."})
    return chat_file(path, messages, model="gpt-5")


def lines_of(tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    out = tmp_path / "out.jsonl"
    assert main(["replay", str(session_file(tmp_path / "s.json")), "--ceiling", "6k", "--json", str(out), "-q", *options]) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def shown_at_the_end(lines: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """The blocks of a person's words that are left."""
    said = {
        (line["entry"], block["block"])
        for line in lines
        if line["type"] == "entry"
        for block in line["blocks"]
        if block["origin"] == "human"
    }
    edits = [edit for line in lines if line["type"] == "commit" for edit in line["edits"]]
    return said - {(edit["entry"], edit["block"]) for edit in edits if edit["op"] == "drop"}


def test_what_a_rule_takes_of_a_persons_words_is_counted_and_is_no_violation(tmp_path: Path) -> None:
    governed, faithful = (lines_of(tmp_path, "--policy", "sliding-window", *more) for more in ([], ["--faithful"]))
    assert len(shown_at_the_end(governed)) == 12
    assert len(shown_at_the_end(faithful)) == 12 - faithful[-1]["waived"]["human"] < 12
    assert governed[-1]["waived"] == {}
    assert (governed[0]["settings"]["faithful"], faithful[0]["settings"]["faithful"]) == (False, True)
    assert (governed[-1]["violations"], faithful[-1]["violations"]) == ([], [])
    assert faithful[-1]["recoverable_share"] == 1.0


@pytest.mark.parametrize("policy", PEERS)
def test_every_peers_rule_can_be_followed_as_it_is(policy: str, tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "--policy", policy, "--faithful")
    assert (0, 0) in shown_at_the_end(lines)  # a request opens with the user
    assert lines[-1]["violations"] == []


def test_the_report_says_what_was_waived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(session_file(tmp_path / "s.json"))
    assert main(["replay", path, "--ceiling", "6k", "--policy", "sliding-window", "--faithful"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "faithful protection was waived: " in said
    assert " of human" in said
    assert main(["replay", path, path, "--each", "--ceiling", "6k", "--policy", "sliding-window", "--faithful"]) == 0
    assert "faithful: protection was waived: " in " ".join(capsys.readouterr().out.split())
    assert main(["replay", path, "--ceiling", "6k", "--policy", "sliding-window"]) == 0
    assert "faithful" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [*(["--policy", name] for name in (*POLICIES, "none", "opencode-prune+cwl")), *(["--compat", name] for name in COMPAT)],
    ids=" ".join,
)
def test_our_own_policies_have_no_faithful_version(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(session_file(tmp_path / "s.json")), "--faithful", *options]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "--faithful" in told
    assert "opencode-prune" in told
