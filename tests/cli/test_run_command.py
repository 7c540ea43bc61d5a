"""`tenure run`: the agent in a shell, from its arguments to its exit code."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, get_args

import pytest

from tenure.agent.events import (
    CallDone,
    CallStarted,
    Committed,
    Delegated,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Gauged,
    Noticed,
    ObjectLeft,
    Reason,
    Recalled,
    Replied,
    Retrying,
    SessionOpened,
    TextDelta,
    TurnDone,
    TurnFailed,
)
from tenure.cli.main import main
from tenure.cli.run import EXIT, task_of
from tenure.cli.run_screen import Teller
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.entry import Usage
from tenure.engine.record.episodes import EpisodeType
from tenure.errors import Failure
from tenure.store.store import Store


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Runs a script in a folder, with a home of its own; the exit code."""
    where = tmp_path / "ws"
    where.mkdir()
    for name, value in (("HOME", tmp_path), ("XDG_STATE_HOME", tmp_path / "state"), ("XDG_CONFIG_HOME", tmp_path / "config")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("TENURE_MODEL", raising=False)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115, PTH123
    monkeypatch.chdir(where)

    def run(*arguments: str, replies: list[Any] | None = None) -> int:
        script = tmp_path / "script.json"
        if replies is not None:
            script.write_text(
                json.dumps({"model": "claude-opus-4-5", "dialect": "anthropic", "replies": replies}), encoding="utf-8"
            )
        return main(["run", *arguments, "--model", f"scripted:{script}"])

    yield run
    sys.stdin.close()


WRITE = {"text": "I write.", "calls": [{"name": "write", "arguments": {"path": "a.md", "content": "x"}}]}


def test_a_session_goes_on_under_its_own_policy_and_budget(at: Callable[..., int], tmp_path: Path) -> None:
    def held() -> tuple[str, int | None]:
        with Store(f"sqlite:///{tmp_path}/state/tenure/sessions.db") as store:
            (sheet,) = store.conversations(None)
        return Terms.stored(sheet.terms).policy, Budget.stored(sheet.budget).ceiling

    assert at("Go.", "--policy", "cwl", "--ceiling", "20k", replies=[{"text": "Done."}] * 4) == 0
    assert held() == ("cwl", 20_000)
    assert at("And on.", "--continue") == 0
    assert held() == ("cwl", 20_000)
    assert at("And on.", "--continue", "--policy", "tiered", "--target", "9k") == 0
    assert at("And on.", "--continue") == 0
    assert held() == ("tiered", None)


def test_the_answer_goes_to_standard_output_and_what_happens_on_the_way_to_standard_error(
    at: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert at("Go.", "--approve", "edits", replies=[WRITE, {"text": "Written."}]) == 0
    said = capsys.readouterr()
    assert said.out == "Written.\n"
    assert "I write." in said.err
    assert "✓ write a.md" in said.err
    assert "2 calls" in said.err
    assert Path("a.md").read_text() == "x"


def test_quiet_says_the_answer_and_nothing_else(at: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert at("Go.", "-q", replies=[{"text": "Hello."}]) == 0
    assert capsys.readouterr() == ("Hello.\n", "")


def test_json_is_one_event_a_line(at: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert at("Go.", "--json", replies=[{"text": "Hello."}]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (events[0]["event"], events[-1]["event"], events[-1]["text"]) == ("session_opened", "turn_done", "Hello.")


def test_what_needs_approval_ends_with_4_and_goes_on_with_continue(
    at: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    replies = [WRITE, WRITE, {"text": "Written."}]
    assert at("Go.", replies=replies) == 4
    assert "--approve edits" in capsys.readouterr().err
    assert not Path("a.md").exists()
    assert at("--continue", "--approve", "edits") == 0
    assert "goes on with session" in capsys.readouterr().err
    assert Path("a.md").exists()


def test_a_limit_ends_with_3_and_a_failure_with_1(at: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    look = {"calls": [{"name": "ls"}]}
    assert at("Go.", "--max-steps", "1", replies=[look, look]) == 3
    assert at("Go.", "--max-tokens", "1", replies=[look, look]) == 3
    assert at("Go.", "--max-usd", "0.000001", replies=[look, look]) == 3
    assert at("Go.", replies=[{"status": 401}]) == 1
    assert at("Go.", replies=[{"text": "No.", "stop": "refusal"}]) == 1
    assert "the model refused" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to do"),
        (("Go.", "--approve", "perhaps"), "--approve"),
        (("Go.", "--continue"), "none to go on with"),
        (("Go.", "--resume", "abc"), "no conversation 'abc'"),
        (("Go.", "--policy", "magic"), "policy"),
        (("Go.", "--target", "much"), "target"),
        (("Go.", "--mcp", "missing.json"), "no such file"),
        (("Go.", "--cwd", "missing"), "is no folder"),
        (("Go.", "--image", "missing.png"), "no such file"),
        (("Go.", "--continue", "--resume", "abc"), "one of the two"),
    ],
)
def test_bad_input_ends_with_2_and_a_sentence(
    arguments: tuple[str, ...], words: str, at: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert at(*arguments, replies=[{"text": "never"}]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


def test_a_model_must_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("TENURE_MODEL", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["run", "Go."]) == 2
    assert "no model was named: use --model MODEL (-m), or set TENURE_MODEL\n" in capsys.readouterr().err


def test_every_reason_has_an_exit_code_and_the_help_says_what_they_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(EXIT) == set(get_args(Reason))
    assert main(["run", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for code in sorted({*EXIT.values(), 2}):
        assert f"{code} " in said


def test_text_that_is_piped_in_is_added_to_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "piped.txt"
    text.write_text("line one\nline two\n", encoding="utf-8")
    for given, told in (("Sum up:", "Sum up:\n\nline one\nline two"), ("-", "line one\nline two"), ("", "line one\nline two")):
        for opened in (text.open(), piped(text)):
            with opened as file:
                monkeypatch.setattr("sys.stdin", file)
                assert task_of(given) == told


def piped(path: Path) -> TextIO:
    """A pipe that holds what a small file holds."""
    ours, theirs = os.pipe()
    os.write(theirs, path.read_bytes())
    os.close(theirs)
    return os.fdopen(ours, encoding="utf-8")


def test_options_count_before_the_files_of_settings(at: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    Path(".tenure").mkdir()
    Path(".tenure", "settings.toml").write_text('clip = "much"\npolicy = "tiered"\n', encoding="utf-8")
    assert at("Go.", replies=[{"text": "Done."}]) == 0
    assert "clip: 'much'" in capsys.readouterr().err
    assert at("Go.", "--compat", "paper", "--handoff-at", "often", replies=[{"text": "Done."}]) == 2
    assert "--handoff-at: 'often', expected a share of the window" in capsys.readouterr().err


def told(*events: Event, live: bool = False, quiet: bool = False) -> tuple[str, str]:
    """What the answer's stream and the other one say."""
    out, aside = io.StringIO(), io.StringIO()
    teller = Teller(out, aside, quiet=quiet, live=live)
    for event in events:
        teller.tell(event)
    return out.getvalue(), aside.getvalue()


STORY: tuple[Event, ...] = (
    SessionOpened(session="0123456789abcdef", folder="/home/ada/ws", model="openai:gpt-5", resumed=True, entries=12, interrupted=1),
    Noticed(text="skills in ~/x cannot be read: not a folder"),
    TextDelta(text="I "),
    TextDelta(text="look.\x1b[31m"),
    Replied(entry=3, text="I look.\x1b[31m", calls=2),
    EpisodeStarted(name="locate-auth", type=EpisodeType.EXPL),
    CallStarted(call="c1", tool="grep", summary="grep verify"),
    CallStarted(call="c2", tool="read", summary="read src/auth.py"),
    CallDone(call="c1", tool="grep", text="src/auth.py:12", handle="grep:1@3fa9", tokens=12, shown=12),
    CallDone(call="c2", tool="read", text="…", handle="read:1@3fa9", tokens=52_000, shown=4_000),
    CallDone(call="c3", tool="bash", text="exit code 1", handle="bash:1@3fa9", tokens=9, shown=9, outcome="error"),
    EpisodeEnded(name="locate-auth", type=EpisodeType.EXPL, description="auth is in src/auth.py"),
    Committed(n=1, policy="cwl", reason="over the ceiling", account="…", left=(ObjectLeft(action="trim", object="read:1"),), tokens_before=9_000, tokens_after=5_000),
    Recalled(objects=("read:1",), tokens=1_200),
    Delegated(call="c4", folder="/home/ada/ws/engine", of=CallDone(call="c5", tool="ls", text="", handle="ls:1@9a9a", tokens=3, shown=3)),
    TextDelta(text="Half"),
    Retrying(text="gpt-5: no answer", kind=Failure.UNAVAILABLE, attempt=2, most=8, wait_s=2.4, discard=True),
    TurnFailed(text="gpt-5: the key is wrong", kind=Failure.NOT_ACCEPTED),
    Gauged(tokens=41_000, limit=80_000, severity="ok", estimated=False),
    TextDelta(text="Done."),
    Replied(entry=9, text="Done.", calls=0),
    TurnDone(reason="done", text="Done.", steps=3, usage=Usage(uncached=1_000, cache_read=9_000, output=300), usd=0.0123, seconds=12.3),
)  # fmt: skip


@pytest.mark.parametrize("live", [False, True], ids=["piped", "live"])
def test_a_turn_reads_well(live: bool, golden: Callable[[str, str], None]) -> None:
    out, aside = told(*STORY, live=live)
    golden(f"run-{'live' if live else 'piped'}.txt", f"--- standard output\n{out}--- standard error\n{aside}")
    assert "\x1b" not in out + aside


def test_the_answer_is_said_once() -> None:
    for live in (False, True):
        out, aside = told(*STORY, live=live)
        assert (out + aside).count("Done.") == 1
    assert told(*STORY, quiet=True) == ("Done.\n", "")
