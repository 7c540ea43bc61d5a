"""`tenure judge`: what it asks, what it says of the answers, and what it does when a model does not answer."""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import drawn
from judge_scenes import INVALID, VALID, chosen, recorded
from tenure.cli.judge import JudgeLine
from tenure.cli.judge_screen import JudgeScope, report
from tenure.cli.main import main
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.engine.record.entry import Usage
from tenure.lab.intervals import wilson
from tenure.lab.judges.cases import cases
from tenure.lab.judges.figures import figures
from tenure.lab.judges.running import Book, Judge, run
from tenure.lab.judges.stand_in import NAME, DetectorJudge
from tenure.lab.loading import source
from tenure.testing.model import Line, ScriptedModel
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Fault, Reply, Script

BOTH = {name: PEERS[name] for name in ("tool-prune", "observation-masking")}
PAIR = ("tool-prune", "observation-masking")


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """A judge that is right at times, contradicts the detector at others, favours a place, and refuses once."""
    path = str(recorded(tmp_path, wanted=2))
    priced = {"usage": Usage(uncached=90_000, output=1_200), "cost_usd": 0.125}
    lines = [INVALID, VALID, INVALID, INVALID, VALID, VALID, VALID, INVALID, INVALID, VALID]
    model = ScriptedModel(*(Line(text=text, **priced) for text in lines), then=Line(text=chosen("A_better"), **priced))
    judge = Judge(model=model, name="openai:gpt-5-mini", count=o200k())
    made = (case for case in cases(source(path), BOTH, o200k(), pairs=1))
    outcomes = list(run(made, judge, Book(), against=PAIR))
    asked = JudgeScope(model="openai:gpt-5-mini", sessions=("session.json",), cuts=5, prune=0.45, room=100_000)
    shown = figures(outcomes, PAIR)
    assert shown.disagreements
    text = drawn(width, report(shown, asked, ["broken.jsonl: found noise"], Book()))
    golden(f"judge-{width}.txt", text.replace(path, "session.json"))


def test_a_run_with_the_stand_in_needs_no_key_and_says_that_it_is_a_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(recorded(tmp_path, wanted=2))
    assert main(["judge", path, "--model", "stand-in", "--policy", "tool-prune"]) == 0
    said = flat(capsys.readouterr().out)
    assert "a rule, no model: the mechanical detector on what its question shows" in said
    assert "1 of 1 (100.0 %, 20.7 – 100.0) caught" in said
    assert "0 of 1 (0.0 %, 0.0 – 79.3) said to have an impact" in said


def test_every_figure_can_be_counted_again_from_the_lines(tmp_path: Path) -> None:
    path, out = str(recorded(tmp_path, wanted=2)), tmp_path / "out.jsonl"
    options = ["--model", "stand-in", "--policy", "tool-prune", "--against", "observation-masking", "--json", str(out), "-q"]
    assert main(["judge", path, *options]) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    header, summary = lines[0], lines[-1]
    assert (header["type"], header["model"], header["contracts"]) == ("judge", NAME, ["no-impact/1", "a-b/1"])
    assert {line["type"] for line in lines[1:-1]} == {"judged", "compared"}
    judged = [line for line in lines if line["type"] == "judged" and not line["facts"]["control"]]
    for row in summary["rows"]:
        own = [line for line in judged if line["facts"]["policy"] == row["policy"]]
        assert (row["no_impact"]["hits"], row["no_impact"]["of"]) == (sum(line["verdict"]["valid"] for line in own), len(own))
        assert row["pruned"] == pytest.approx(sum(line["facts"]["pruned"] for line in own) / len(own))
    table = Counter((not line["verdict"]["valid"], bool(line["lost"])) for line in judged)
    agreement = summary["agreement"]
    assert [agreement[key] for key in ("both", "judge_only", "detector_only", "neither")] == [
        table[key] for key in ((True, True), (True, False), (False, True), (False, False))
    ]
    assert wilson(summary["rows"][0]["no_impact"]["hits"], summary["rows"][0]["no_impact"]["of"]).high <= 1


def test_the_same_run_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    path = str(recorded(tmp_path, wanted=2))
    written = []
    for name in ("a", "b"):
        main(["judge", path, "--model", "stand-in", "--against", "tool-prune", "--json", str(tmp_path / name), "-q"])
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    assert written[0].count(b"\n") > 5


# --- Models


def test_a_model_is_asked_over_its_sdk_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, kept = str(recorded(tmp_path, wanted=2)), str(tmp_path / "verdicts.jsonl")
    command = ["judge", path, "--model", "openai:gpt-5-mini", "--policy", "tool-prune", "--cuts", "2", "--controls", "0"]
    command += ["--verdicts", kept]
    provider = FakeProvider(Script(replies=(Reply(text="hm"), Reply(text=INVALID), Reply(text=VALID))), clock=lambda: 0.0)
    with serve(provider.app) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "-")
        assert main(command) == 0
    said = flat(capsys.readouterr().out)
    assert "3 questions" in said
    assert "1 asked again because the first reply could not be read" in said
    assert len(provider.seen) == 3
    assert main(command) == 0  # the provider is gone
    said = flat(capsys.readouterr().out)
    assert "nothing was asked; 3 answers remembered" in said


def test_a_model_that_fails_is_counted_said_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(recorded(tmp_path, wanted=2))
    provider = FakeProvider(Script(replies=(Fault(status=401),)), clock=lambda: 0.0)
    with serve(provider.app) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "-")
        assert main(["judge", path, "--model", "anthropic:claude-opus-4-5", "--controls", "0"]) == 1
    said = flat(capsys.readouterr().out)
    assert "0 of 0" in said
    assert "1 × not accepted" in said
    assert "3 cases, after failures in a row" in said
    assert len(provider.seen) == 1


def test_a_dry_run_asks_nobody_and_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = str(recorded(tmp_path, wanted=2))
    assert main(["judge", path, "--model", "openai:gpt-5", "--dry-run"]) == 0
    said = flat(capsys.readouterr().out)
    assert "6 questions to openai:gpt-5, " in said
    assert "for the prompts at list price" in said


# --- Bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "gpt-5"], "--model: 'gpt-5', expected stand-in, openai:NAME, anthropic:NAME or batch:[MODEL@]FILE"),
        (["--model", "hope:gpt-5"], "openai:NAME"),
        (["--model", "stand-in", "--policy", "none"], "--policy: 'none', expected a policy that takes something"),
        (["--model", "stand-in", "--policy", "hope"], "one of cwl"),
        (
            ["--model", "stand-in", "--against", "graph"],
            "--against: 'graph' again, expected another policy than --policy",
        ),
        (["--model", "stand-in", "--prune", "45"], "--prune: '45', expected a share above 0 and below 1, such as 0.45 or 45%"),
        (["--model", "stand-in", "--prune", "much"], "--prune: 'much'"),
        (["--model", "stand-in", "--prune", "nan"], "--prune: 'nan'"),
        (["--model", "stand-in", "--room", "1k"], "--room: '1k', expected at least 4,000 tokens"),
        (["--model", "stand-in", "--cuts", "0"], "--cuts"),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", str(recorded(tmp_path)), *options]) == 2
    assert said in flat(capsys.readouterr().err)


def test_sessions_too_short_to_be_cut_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(recorded(tmp_path, calls=5)), "--model", "stand-in"]) == 2
    assert "no session long enough to be cut, expected 12 calls, and 8,000 tokens at a cut" in flat(capsys.readouterr().err)


def test_a_session_that_cannot_be_read_costs_the_others_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise.bin"
    noise.write_bytes(bytes(range(256)) * 40)
    path = str(recorded(tmp_path, wanted=2))
    assert main(["judge", str(noise), path, "--model", "stand-in", "--policy", "tool-prune"]) == 2
    said = flat(capsys.readouterr().out)
    assert "could not be read: " in said
    assert "of 4" in said


def test_a_share_can_be_given_in_per_cent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(recorded(tmp_path, wanted=2))
    assert main(["judge", path, "--model", "stand-in", "--policy", "tool-prune", "--prune", "30%", "--controls", "0"]) == 0
    assert "30 % to leave" in flat(capsys.readouterr().out)


def test_what_a_session_or_a_judge_says_is_neither_markup_nor_obeyed_by_the_terminal(tmp_path: Path) -> None:
    hostile = "[/bold][red]\x1b[2J\x1b]0;title\x07"
    answer = json.loads(INVALID)
    answer["failure_culprit"]["missing"] = answer["summary"] = answer["dependencies"][0]["used_by"] = hostile
    path = recorded(tmp_path, wanted=2, name="[bold].json")
    judge = Judge(model=ScriptedModel(then=Line(text=json.dumps(answer))), name=hostile, count=o200k())
    outcomes = list(run(cases(source(str(path)), {"cwl": POLICIES["cwl"]}, o200k()), judge, Book()))
    asked = JudgeScope(model=hostile, sessions=(str(path),), cuts=5, prune=0.45, room=100_000)
    text = drawn(120, report(figures(outcomes), asked, [hostile], Book()))
    assert "\x1b" not in text
    assert "[bold].json" in text


def test_a_path_that_is_no_text_is_spelled_out(tmp_path: Path) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/a\xff.json")
    try:
        recorded(tmp_path, wanted=2).rename(path)
    except (OSError, UnicodeError):
        pytest.skip("this file system holds no such name")
    kept, out = tmp_path / "verdicts.jsonl", tmp_path / "out.jsonl"
    assert main(["judge", path, "--model", "stand-in", "--verdicts", str(kept), "--json", str(out), "-q"]) == 0
    assert json.loads(kept.read_text(encoding="utf-8").splitlines()[0])["facts"]["source"].endswith("a\\udcff.json")


def test_the_header_names_all_that_a_run_hangs_on() -> None:
    header = JudgeLine(
        model="m", contracts=("no-impact/1",), policies=("cwl",), sessions=("a",), cuts=5, prune=0.45, controls=1, room=100_000
    )
    assert (header.version, DetectorJudge().name) == (1, NAME)
