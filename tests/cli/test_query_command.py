"""`tenure query` as a person runs it."""

import json
from pathlib import Path

import pytest

from tenure.cli.main import main

BULK = "\n".join(f"{n}: nothing here is ever wanted again, row {n * n}" for n in range(160))


@pytest.fixture
def session(tmp_path: Path) -> str:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Look at \x1b[2J it."}]
    for n in range(8):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"part_{n}.txt"})},
        }
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n}\n{BULK}"},
        ]
    messages.append({"role": "assistant", "content": "Done."})
    path = tmp_path / "session.json"
    path.write_text(json.dumps(messages))
    return str(path)


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_session_answers_in_rows(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", session, "select kind, count(*) as blocks from blocks group by 1 order by 1", "--json"]) == 0
    assert rows(capsys) == [
        {"kind": "text", "blocks": 2},
        {"kind": "tool_call", "blocks": 8},
        {"kind": "tool_result", "blocks": 8},
    ]


def test_without_a_query_the_tables_are_listed(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", session]) == 0
    assert {"blocks", "calls", "commits", "needs"} <= set(capsys.readouterr().out.split())


def test_with_a_ceiling_something_leaves(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    question = "select count(*) as commits from commits"
    assert main(["query", session, question, "--json"]) == 0
    assert rows(capsys) == [{"commits": 0}]
    assert main(["query", session, question, "--ceiling", "10k", "--json"]) == 0
    assert rows(capsys) != [{"commits": 0}]


def test_a_file_of_events_is_read_as_it_is(session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.jsonl")
    assert main(["replay", session, "--ceiling", "10k", "--json", out, "-q"]) == 0
    assert main(["query", out, "select policy, budget.ceiling as ceiling from replays", "--json"]) == 0
    assert rows(capsys)[-1:] == [{"policy": "graph", "ceiling": 10_000}]


@pytest.mark.parametrize("sql", ["select nothing from calls", "selct", "select * from '/etc/passwd'"])
def test_a_wrong_query_is_one_sentence(sql: str, session: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", session, sql]) == 2
    error = capsys.readouterr().err
    assert error.startswith("tenure: query: ")
    assert "Traceback" not in error


def test_nothing_that_a_session_holds_reaches_the_terminal_as_it_is(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--json"]):
        assert main(["query", session, "select text from blocks where role = 'user' limit 1", *more]) == 0
        assert "\x1b" not in capsys.readouterr().out
