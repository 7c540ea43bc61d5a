"""The lines of an audit, read as a stranger would: what the report says can be recomputed from them."""

import io
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from replay_reader import problems

from recordings import message_file
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.lab.audit.audit import Auditor, AuditRequest

Line = dict[str, Any]

BULK = {"grep"}  # as record/tools.py has them
DURABLE = {"edit"}
BUDGET = Budget(ceiling=4_000, floor=2_000)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    out = io.BytesIO()
    asked = AuditRequest(policies=("cwl", "tiered", "graph"), budget=BUDGET, head_tokens=500)
    path = message_file(tmp_path_factory.mktemp("lines") / "session.json")
    list(Auditor(asked, o200k(), out=out).each([str(path)], lambda _: None))
    return [json.loads(line) for line in out.getvalue().decode().splitlines()]


def runs(lines: list[Line]) -> list[list[Line]]:
    """The lines of each run, its own first line first."""
    starts = [n for n, line in enumerate(lines) if line["type"] == "run"]
    return [lines[start:stop] for start, stop in zip(starts, [*starts[1:], len(lines) - 1], strict=True)]


def of(lines: list[Line], kind: str) -> list[Line]:
    return [line for line in lines if line["type"] == kind]


def test_the_lines_come_in_the_order_that_is_documented(lines: list[Line]) -> None:
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "audit"
    first = kinds.index("run")
    assert set(kinds[1:first]) <= {"entry", "skipped"}
    assert "entry" not in kinds[first:]
    assert kinds[-1] == "report"
    assert lines[0]["policies"] == [line["policy"] for line in of(lines, "run")] == [run["policy"] for run in lines[-1]["runs"]]


def replayed(lines: list[Line], run: list[Line]) -> Iterator[Line]:
    """A run with the entries put back: each before the first line that sees it."""
    entries = iter(of(lines, "entry"))
    told = 0
    yield {**run[0], "type": "replay"}
    for at, line in enumerate(run[1:], start=1):
        sees = next(later for later in run[at:] if later["type"] in ("call", "commit", "summary"))["entries"]
        while told < sees:
            yield next(entries)
            told += 1
        yield line


def test_each_run_with_the_entries_put_back_is_a_replay_with_which_an_independent_reader_agrees(lines: list[Line]) -> None:
    for run in runs(lines):
        assert list(problems(json.dumps(line) for line in replayed(lines, run))) == []


def kind(block: Line) -> str:
    if "name" in block and block["kind"] in ("tool_call", "tool_result"):
        tool = "bulk" if block["name"] in BULK else "durable" if block["name"] in DURABLE else "intermediate"
        return f"{block['kind'].removeprefix('tool_')}s of {tool} tools"
    return f"{block['origin']} {block['kind']}" if block["kind"] in ("text", "media") else block["kind"]


def test_where_the_window_went_can_be_recomputed(lines: list[Line]) -> None:
    entries, report, recorded = of(lines, "entry"), lines[-1], runs(lines)[0]
    calls = of(recorded, "call")
    admitted, paid, tools = Counter[str](), Counter[str](), Counter[str]()
    for entry in entries:
        carried = sum(call["entries"] > entry["entry"] for call in calls)  # nothing ever leaves here
        for block in entry["blocks"]:
            admitted[kind(block)] += block["tokens"]
            paid[kind(block)] += block["tokens"] * carried
            tools[block.get("name", "")] += block["tokens"]
    table = report["window"]["by_kind"]["rows"]
    assert {row["name"]: row["tokens"] for row in table} == dict(admitted)
    assert {row["name"]: row["paid"] for row in table} == dict(paid)
    assert {row["name"]: row["tokens"] for row in report["window"]["by_tool"]["rows"]} == dict(tools)
    assert math.isclose(sum(row["share"] for row in table), 1.0)
    prices = recorded[0]["prices"]
    prompts = sum(
        c["uncached"] * prices["uncached"] + c["cache_write"] * prices["write"] + c["cache_read"] * prices["read"] for c in calls
    )
    assert math.isclose(sum(row["usd"] for row in table) + report["window"]["head"]["usd"], prompts)


def test_every_figure_of_a_run_can_be_recomputed(lines: list[Line]) -> None:
    for run, said in zip(runs(lines), lines[-1]["runs"], strict=True):
        calls, commits, harms = of(run, "call"), of(run, "commit"), of(run, "harm")
        prices = run[0]["prices"]
        for part, price in (("uncached", "uncached"), ("cache_write", "write"), ("cache_read", "read"), ("output", "output")):
            assert said["bill"][part]["tokens"] == sum(call[part] for call in calls)
            assert math.isclose(said["bill"][part]["usd"], sum(call[part] for call in calls) * prices[price])
        assert said["bill"]["recalls"] == len(of(run, "recall"))
        assert said["peak"] == max(call["uncached"] + call["cache_write"] + call["cache_read"] for call in calls)
        assert said["commits_made"] == len(commits)
        assert said["left"] == sum(commit["tokens_before"] - commit["tokens_after"] for commit in commits)
        verdicts = Counter(harm["verdict"] for harm in harms if harm["part"] != "thinking")
        assert {name: said["harms"][name] for name in ("visible", "routed", "lost")} == {
            name: verdicts[name] for name in ("visible", "routed", "lost")
        }
        assert [point["call"] for point in said["series"]["points"]] == [call["call"] for call in calls]
        assert [sum(point["tokens"]) + 500 for point in said["series"]["points"]] == [call["view_tokens"] for call in calls]
        assert said["unmet"] == len(of(run, "unmet"))
        assert said["violations"] == of(run, "summary")[0]["violations"] == []


def test_there_is_something_to_recompute(lines: list[Line]) -> None:
    made = {run["policy"]: (run["commits_made"], run["harms"]["routed"] + run["harms"]["lost"]) for run in lines[-1]["runs"]}
    assert made.pop("none") == (0, 0)
    assert all(commits for commits, _ in made.values())
    assert any(missed for _, missed in made.values())


def test_a_harm_shows_the_very_places(lines: list[Line]) -> None:
    texts = {(entry["entry"], block["block"]): block["text"] for entry in of(lines, "entry") for block in entry["blocks"]}
    for run in lines[-1]["runs"]:
        for harm in run["harms"]["listed"]:
            line = harm["line"]
            assert line["text"] in harm["step"]
            assert line["text"] in harm["held"]
            assert line["text"] in texts[tuple(line["held"][-1])]
            assert "@" in harm["held_handle"]
