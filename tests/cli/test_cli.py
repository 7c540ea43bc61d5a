import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import chat_file, drawn, exchange, quiet_console
from tenure.cli.main import main
from tenure.cli.options import LimitOptions
from tenure.cli.replay import play, report
from tenure.cli.show import summary
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies.cwl import Cwl
from tenure.engine.record.entry import Usage
from tenure.errors import InputError
from tenure.lab.loading import load, source
from tenure.lab.replay import Options
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten, Skipped, SubAgent
from tenure.testing.builders import call, human, reply, result

LINES = "\n".join(f"{n}: a line of the module that was read" for n in range(1, 41))


def delimiter(**arguments: object) -> tuple[str, dict[str, object]]:
    return "delimiter", arguments


def message_file(path: Path, tasks: int = 10) -> Path:
    """A chat of several tasks, annotated, as a plain file of messages."""
    messages: list[dict[str, object]] = []
    number = 0
    for task in range(tasks):
        messages.append({"role": "user", "content": f"Task {task}: make the parser of part {task} accept comments."})
        for name, arguments in (
            delimiter(action="start", name=f"find-{task}", type="expl"),
            ("grep", {"pattern": f"class Parser{task}"}),
            ("read", {"path": f"src/parser_{task}.py"}),
            delimiter(action="end", description=f"Parser{task} is in src/parser_{task}.py, comments are dropped in skip()"),
            delimiter(action="start", name=f"change-{task}", type="act", dependencies=[f"find-{task}"]),
            ("edit", {"path": f"src/parser_{task}.py", "old": "skip()", "new": "keep()"}),
            delimiter(action="end"),
        ):
            text = "ok" if name in ("delimiter", "edit") else f"{name} of part {task}\n{LINES}"
            messages += exchange(f"call_{number}", name, arguments, text)
            number += 1
        messages.append({"role": "assistant", "content": f"Part {task} keeps its comments now."})
    return chat_file(path, messages)


@pytest.mark.parametrize("width", [80, 160])
def test_the_report_of_a_replay_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    chosen = source(str(message_file(tmp_path / "session.json")))
    options = Options(budget=Budget(ceiling=3_000), policy=Cwl(), model="gpt-5")
    run = play([chosen], ("session.json",), options, quiet_console())
    golden(f"replay-{width}.txt", drawn(width, report(run)))


@pytest.mark.parametrize("width", [80, 160])
def test_what_show_prints_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    loaded = load([source(str(message_file(tmp_path / "session.json")))], o200k())
    golden(f"show-{width}.txt", drawn(width, summary("session.json", loaded, 5, width)))


@pytest.mark.parametrize("width", [80, 160])
def test_what_show_prints_of_reports_and_sub_agents_reads_well(width: int, golden: Callable[[str, str], None]) -> None:
    events: list[Event] = [human("Go.")]
    for n in range(9):
        usage = Usage(uncached=10, cache_write=400, cache_read=9_000 + 500 * n, output=40)
        called = reply(call("mcp__a_server_with_a_long_name__and_a_tool", f"c{n}", path=f"{n}.py"), usage=usage, model="a-model")
        events += [called, result(LINES[: 900 + n], f"c{n}")]
    events += [SubAgent(id=f"a{n}", line=9, messages=20 + n, task="Search the parser for " + "everything " * n) for n in (1, 9)]
    events += [Rewritten(reason="compaction", drop_before=3), Skipped(line=7, bytes=90, reason="something unknown")]
    loaded = load([SessionSource("a", lambda: ("claude-code", iter(events)))], o200k())
    golden(f"show-reported-{width}.txt", drawn(width, summary("a.jsonl", loaded, 4, width)))


def test_a_replay_writes_every_event_and_exits_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert main(["replay", str(message_file(tmp_path / "s.json")), "--ceiling", "3k", "--json", str(out), "--quiet"]) == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert (lines[0]["type"], lines[-1]["type"]) == ("replay", "summary")
    assert lines[0]["budget"] == {"target": None, "ceiling": 3000, "floor": 1800, "window": 180_000}
    assert lines[-1]["violations"] == []
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode there")
def test_a_session_whose_name_is_no_unicode_is_replayed_as_any_other(tmp_path: Path) -> None:
    path, out = os.fsdecode(os.fsencode(tmp_path) + b"/s\xff.json"), tmp_path / "out.jsonl"
    message_file(tmp_path / "session.json").rename(path)
    assert main(["replay", path, "--policy", "cwl", "--ceiling", "8k", "--json", str(out), "-q"]) == 0
    header = json.loads(out.read_text(encoding="utf-8").splitlines()[0])
    assert header["sources"][0]["path"].endswith("s\\udcff.json")


def test_recall_writes_the_original_bytes_and_nothing_else(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = str(message_file(tmp_path / "s.json"))
    assert main(["recall", path, "read:3", "--raw"]) == 0
    assert capfdbinary.readouterr().out == f"read of part 2\n{LINES}".encode()
    assert main(["recall", path, "entry:0", "--raw"]) == 0
    first = json.loads(Path(path).read_bytes())[0]
    assert json.loads(capfdbinary.readouterr().out) == first
    assert main(["recall", path, "read:3", "--lines", "2-3"]) == 0
    assert capfdbinary.readouterr().out.decode().splitlines() == LINES.splitlines()[:2]


def test_every_bad_input_is_a_sentence_and_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(message_file(tmp_path / "s.json"))
    noise, empty = tmp_path / "noise.bin", tmp_path / "empty"
    noise.write_bytes(bytes(range(256)) * 40)
    empty.write_bytes(b"")
    for arguments, said in (
        (["replay", str(tmp_path / "missing")], "no such file"),
        (["replay", str(tmp_path)], "found a directory"),
        (["replay", str(noise)], "one of the formats"),
        (["replay", str(empty)], "found an empty file"),
        (["replay", good, "--ceiling", "80,5"], "80,000"),
        (["replay", good, "--ceiling", "300k"], "more than the window holds"),
        (["replay", good, "--policy", "hope"], "one of cwl"),
        (["replay", good, "--compat", "hope"], "one of paper"),
        (["recall", good, "read:99"], "read:1 to read:10"),
        (["recall", good, "episode:find"], "episode:find-"),
        (["recall", good, "nothing"], "a handle such as"),
    ):
        assert main(arguments) == 2, arguments
        assert said in " ".join(capsys.readouterr().err.split()), arguments


def test_a_disk_that_is_full_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    assert main(["replay", str(message_file(tmp_path / "s.json")), "--json", "/dev/full", "-q"]) == 1
    assert "/dev/full: cannot be written (No space left on device)" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_ends_a_replay_quietly(tmp_path: Path) -> None:
    path = message_file(tmp_path / "s.json", tasks=60)
    command = [sys.executable, "-m", "tenure.cli.main", "replay", str(path), "--json", "-", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        run.stdout.close()
        assert run.stderr.read() == b""


def test_several_sessions_apart_are_a_table_with_a_row_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = message_file(tmp_path / "one.json"), message_file(tmp_path / "two.json", tasks=3)
    assert main(["replay", str(one), str(two), "--each", "--ceiling", "3k"]) == 0
    shown = capsys.readouterr().out
    assert "one.json" in shown
    assert "two.json" in shown


def test_demo_replays_the_newest_session_it_finds_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    lines: list[str] = []
    for n in range(80):
        use = {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": f"/src/{n}.py"}}
        back = {"type": "tool_result", "tool_use_id": f"t{n}", "content": LINES}
        parent = f"b{n - 1}" if n else "u"
        lines += [
            json.dumps(
                {
                    "type": "assistant",
                    "uuid": f"a{n}",
                    "parentUuid": parent,
                    "message": {"id": f"m{n}", "role": "assistant", "content": [use]},
                }
            ),
            json.dumps({"type": "user", "uuid": f"b{n}", "parentUuid": f"a{n}", "message": {"role": "user", "content": [back]}}),
        ]
    first = json.dumps(
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "go"}}
    )
    path = folder / "s.jsonl"
    path.write_text("\n".join([first, *lines]) + "\n", encoding="utf-8")
    before = path.read_bytes()
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith(("_DIR", "_HOME", "_ROOT", "_DB", "_FILE", "APPDATA"))]:
        monkeypatch.delenv(name)  # where tools were told to keep their sessions
    assert main(["demo", "--replay"]) == 0
    assert "Replaying your newest claude-code session" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_the_default_budget_is_a_ceiling_of_80k_unless_a_target_is_given() -> None:
    assert LimitOptions().budget() == Budget(ceiling=80_000)
    assert LimitOptions(target="80k").budget() == Budget(target=80_000)
    assert LimitOptions(target="50%", window="100k").budget() == Budget(target=50_000, window=100_000)
    assert LimitOptions(ceiling="100k", floor="50%").budget().floor_of(100_000) == 50_000
    with pytest.raises(InputError):
        LimitOptions(ceiling="80kk").budget()


@pytest.mark.parametrize("command", ["show", "replay"])
def test_what_a_session_holds_is_neither_markup_nor_obeyed_by_the_terminal(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "[/bold][red]\x1b[2J\x1b]0;title\x07"
    start = json.dumps({"action": "start", "name": "[/red]", "type": "expl"})
    messages: list[dict[str, object]] = [{"role": "user", "content": hostile}]
    for n, (name, arguments) in enumerate(
        [("delimiter", start), (hostile, json.dumps({"path": hostile})), *[("read", "{}")] * 30]
    ):
        call = {"id": str(n), "type": "function", "function": {"name": name, "arguments": arguments}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": str(n), "content": "word " * 300}]
    path = tmp_path / "[bold].json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    assert main([command, str(path), *(["--ceiling", "3k"] if command == "replay" else [])]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[bold]" in shown
