"""The head that a log leaves out is what its reports leave over, and a replay puts it before every view."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from replay_reader import problems
from reported_sessions import HEAD, made, told, worked

from tenure.cli.main import main
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import POLICIES
from tenure.engine.record.entry import Usage
from tenure.lab.audit.audit import AuditRequest, audit
from tenure.lab.audit.report import Audit, AuditLine, RunLine
from tenure.lab.events import CallLine, HeadTokens, ReplayLine
from tenure.lab.recorded import PromptReport, head_of
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource

VAST = Budget(window=10_000_000)


def played(*sources: SessionSource, head: int | None = None, budget: Budget = VAST) -> tuple[ReplayLine, list[CallLine]]:
    header, *lines = replay(sources, Options(budget=budget, policy=POLICIES["graph"], head=head), o200k())
    assert isinstance(header, ReplayLine)
    return header, [line for line in lines if isinstance(line, CallLine)]


@pytest.mark.parametrize("ratio", [1.0, 1.4])
def test_a_replay_sends_the_head_that_the_reports_reveal_and_its_prompts_are_as_large_as_reported(ratio: float) -> None:
    header, calls = played(told(worked(), ratio=ratio))
    assert header.head.origin == "reported"
    assert header.head.provider_tokens == pytest.approx(HEAD, rel=0.02)
    assert {call.head_tokens for call in calls} == {header.head_tokens}
    for call in calls:
        assert call.reported
        prompt = call.reported.uncached + call.reported.cache_write + call.reported.cache_read
        assert call.view_tokens * call.ratio == pytest.approx(prompt, rel=0.03)


def test_a_head_that_is_given_counts_and_nothing_is_learned() -> None:
    header, calls = played(told(worked()), head=7_000)
    assert (header.head, header.head_tokens) == (HeadTokens(tokens=7_000, origin="given"), 7_000)
    assert {call.head_tokens for call in calls} == {7_000}


def test_without_reports_the_head_is_not_known_and_taken_as_none() -> None:
    header, _ = played(made(worked()))
    assert (header.head, header.head_tokens) == (HeadTokens(), 0)


def test_an_independent_reader_finds_nothing_wrong_behind_a_learned_head() -> None:
    options = Options(budget=Budget(ceiling=30_000), policy=POLICIES["graph"], head=None)
    lines = (msgspec.json.encode(line).decode() for line in replay([told(worked(20)), told(worked(9))], options, o200k()))
    assert list(problems(lines)) == []


UNTRUE: dict[str, Callable[[int, Usage], Usage]] = {
    "far less than the log holds": lambda n, usage: Usage(uncached=10),
    "a running total": lambda n, usage: Usage(uncached=(n + 1) * usage.prompt * 4),
    "more than any model takes": lambda n, usage: Usage(uncached=10**12),
    "nothing": lambda n, usage: Usage(),
}


@pytest.mark.parametrize("tell", UNTRUE.values(), ids=UNTRUE)
def test_reports_that_cannot_be_true_are_no_evidence_of_a_head(tell: Callable[[int, Usage], Usage]) -> None:
    header, _ = played(told(worked(), tell))
    assert header.head_tokens <= 100  # of the first call, whose log is that small
    assert header.head.origin == "unknown" or header.head.reports == 1


@pytest.mark.parametrize("wrong", [Usage(uncached=300), Usage(uncached=900_000)], ids=["a warm-up", "a jump"])
def test_one_report_that_is_off_changes_nothing(wrong: Usage) -> None:
    for place in (0, 1, 3):
        header, _ = played(told(worked(), lambda n, usage, at=place: wrong if n == at else usage))
        assert header.head.provider_tokens == pytest.approx(HEAD, rel=0.05)


def stretch(number: int, head: int, calls: int = 8) -> Iterator[PromptReport]:
    for n in range(calls):
        yield PromptReport(prompt=head + 600 * n, counted=600 * n, stretch=number, grown=600 * bool(n))


def test_a_history_that_was_begun_elsewhere_is_no_head_once_a_compaction_shows_the_smaller_one() -> None:
    assert head_of([*stretch(0, 110_000), *stretch(1, 42_000), *stretch(2, 55_000)]).provider_tokens == 42_000


def test_a_stretch_of_which_more_left_than_the_log_tells_says_nothing_of_the_head() -> None:
    assert head_of([*stretch(0, 9_000), *(each for each in stretch(1, -3_000) if each.prompt > 0)]).provider_tokens == 9_000


def test_sessions_that_run_as_one_have_one_head() -> None:
    small, large = told(worked()), told(worked(), lambda _, usage: Usage(uncached=usage.prompt + 40_000))
    header, calls = played(small, large, made(worked(3)), told(worked(5)))
    assert header.head.provider_tokens == pytest.approx(HEAD, rel=0.02)
    assert len({call.head_tokens for call in calls}) == 1


def test_every_run_of_an_audit_has_the_head_that_the_first_one_learned() -> None:
    lines = list(audit(told(worked()), AuditRequest(policies=("cwl", "tiered"), budget=Budget(ceiling=30_000)), o200k()))
    first, report = lines[0], lines[-1]
    assert isinstance(first, AuditLine)
    assert isinstance(report, Audit)
    assert first.head.origin == "reported"
    assert {line.head for line in lines if isinstance(line, RunLine)} == {first.head}
    assert report.session.head == first.head
    assert report.window.head.tokens == first.head_tokens > 0.98 * HEAD


# --- Where users meet it


def session_file(path: Path) -> Path:
    """A log of Claude Code's whose prompts are 30,000 tokens larger than what it holds."""
    lines: list[dict[str, object]] = []

    def said(role: str, content: object, **more: object) -> None:
        at = f"2026-02-01T10:{len(lines):02}:00.000Z"
        above = lines[-1]["uuid"] if lines else None
        message = {"role": role, "content": content, **more}
        lines.append(
            {"type": role, "uuid": f"u{len(lines)}", "parentUuid": above, "sessionId": "s", "timestamp": at, "message": message}
        )

    said("user", "Read every part.")
    held = o200k()("Read every part.")
    for n in range(20):
        text = "\n".join(f"{k}: part {n} has a gauge_{n}_{k} of turbine {k * 37 + n}" for k in range(90))
        call = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"/w/{n}.py"}}
        usage = {
            "input_tokens": 30_000 + held,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 20,
        }
        said("assistant", [call], id=f"m{n}", type="message", model="claude-sonnet-4-5", usage=usage)
        said("user", [{"type": "tool_result", "tool_use_id": f"t{n}", "content": text}])
        held += o200k()(text) + 40
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_by_default_a_replay_acts_where_the_recorded_prompts_would_have_passed_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`0 commits, ±0 %` was shown of a session whose prompts were far above the ceiling, since the log alone was not."""
    path, out = session_file(tmp_path / "s.jsonl"), tmp_path / "out.jsonl"
    found: dict[str, tuple[int, str]] = {}
    for name, more in {"learned": [], "none": ["--head-tokens", "0"], "given": ["--head-tokens", "31k"]}.items():
        assert main(["replay", str(path), "--ceiling", "50k", "--json", str(out), *more]) == 0
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert lines[0]["head"]["origin"] == ("reported" if name == "learned" else "given")
        found[name] = lines[-1]["commits"], capsys.readouterr().out
    assert {name: commits > 0 for name, (commits, _) in found.items()} == {"learned": True, "none": False, "given": True}
    assert "tokens in what the log leaves out, by 5 of its reports" in " ".join(found["learned"][1].split())
    assert "head" not in found["none"][1]
    assert "31,000 tokens of system prompt and tools, as given" in " ".join(found["given"][1].split())


def test_why_counts_the_head_in_the_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(session_file(tmp_path / "s.jsonl"))
    found: dict[str, dict[str, int]] = {}
    for ceiling in ("50k", "150k"):
        assert main(["why", path, "read:1", "--ceiling", ceiling, "--json"]) == 0
        found[ceiling] = json.loads(capsys.readouterr().out)["now"]
    assert 29_000 < found["150k"]["head"] < 31_000
    assert found["50k"]["view"] + found["50k"]["head"] < 50_000 < found["150k"]["view"] + found["150k"]["head"]
    assert main(["why", path, "read:1", "--ceiling", "150k"]) == 0
    assert "of them head" in " ".join(capsys.readouterr().out.split())


def test_an_audit_says_which_head_it_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(session_file(tmp_path / "s.jsonl"))
    assert main(["audit", path, "--ceiling", "50k", "--keep", "no"]) == 0
    said = capsys.readouterr().out
    assert "head" in said
    assert main(["audit", path, "--ceiling", "50k", "--keep", "no", "--head-tokens", "0"]) == 0
    assert "head" not in capsys.readouterr().out
