"""Whatever a session, a store, a path or a model says, no command writes it so that a terminal obeys it."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from chats import chat_file, exchange
from hostile_text import CLASSES, EVIL, MARKUP, NAME, OWN_STYLE, SOUND, acting, drafts, log_file, message_file
from tenure.cli.main import COMMANDS, made, main
from tenure.engine.record.chain import Chain
from tenure.store.records import Conversation
from tenure.store.store import Store
from tenure.testing.builders import weigh_words

REPLIES = [
    {
        "text": f"I {EVIL}",
        "calls": [
            {"name": "bash", "arguments": {"command": "printf 'o\\033[2Jx\\a'; exit 3"}},
            {"name": f"no tool {EVIL}", "arguments": {"path": EVIL}},
            {"name": "read", "arguments": {"path": f"no {EVIL}"}},
        ],
    },
    {"text": f"done {EVIL}", "calls": []},
]


END = "-- the end of a command --"


class Stage:
    """Hostile sessions, a hostile store and a folder of them, all under hostile names."""

    def __init__(self, home: Path) -> None:
        folder = home / NAME
        folder.mkdir()
        self.folder = str(folder)
        self.chat = str(message_file(folder / f"{NAME}.json"))
        self.log = str(log_file(folder / f"log {NAME}.jsonl"))
        self.script = str(home / "script.json")
        Path(self.script).write_text(json.dumps({"model": "claude-opus-4-5", "dialect": "anthropic", "replies": REPLIES}))
        self.store = str(folder / f"own {NAME}.db")
        self._store(folder / f"own {NAME}.db")
        claude = home / ".claude" / "projects" / NAME
        claude.mkdir(parents=True)
        log_file(claude / "0.jsonl")
        self.missing = str(folder / f"no {NAME}")

    def _store(self, path: Path) -> None:
        chain = Chain()
        entries = [chain.place(draft, weigh_words(draft.blocks)) for draft in drafts()]
        with Store(f"sqlite:///{path}") as store:
            sheet = store.create(Conversation(id=f"id{SOUND}", title=SOUND, model=SOUND))
            store.append(sheet.id, entries)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    home = tmp_path / "home"
    home.mkdir()
    for name, value in (
        ("HOME", home),
        ("XDG_STATE_HOME", home / "state"),
        ("XDG_CONFIG_HOME", home / "config"),
        ("COLUMNS", "100"),
    ):
        monkeypatch.setenv(name, str(value))
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name == "TENURE_MODEL"]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(home)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield Stage(home)


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be called, and how."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, *path, name)
    else:
        yield path, command


EVERY = dict(commands(get_command(made())))

# What each command is called with so that it has much to print. A command that is not here is called with hostile arguments all the same.
CALLS: dict[tuple[str, ...], Callable[[Stage], list[list[str]]]] = {
    ("run",): lambda at: [
        ["--model", f"scripted:{at.script}", "--approve", "all", "--store", at.store + "2", *more, f"do {SOUND}"]
        for more in ([], ["--json"], ["--quiet"])
    ],
    ("demo",): lambda at: [["--replay"]],
    ("wrap",): lambda at: [["--store", at.folder + "/wrapped", *more] for more in (["true"], [NAME], ["--policy", NAME, "true"])],
    ("doctor",): lambda at: [["--store", at.folder], ["--store", at.folder + NAME, "--json"]],
    ("sessions",): lambda at: [[], ["--all"], ["--json"], [at.folder], [at.folder, "--json"]],
    ("show",): lambda at: [[at.chat], [at.log, "--all"], [at.store], [at.chat, at.log]],
    ("context",): lambda at: [[at.chat]],
    ("recall",): lambda at: [
        [each, *what]
        for each in (at.chat, at.log, at.store)
        for what in (
            ["step:1"],
            ["user:1"],
            ["entry:1"],
            ["entry:2"],
            ["read:1"],
            ["entry:1,entry:2"],
            ["--words", "owned value_7919"],
            ["--path", "evil"],
            ["--pattern", "own.d"],
            ["entry:2", "--lines", "1-3"],
            ["entry:2", "--cap", "100"],
            [f"read:1{NAME}"],
            ["--pattern", f"({NAME}"],
        )
    ],
    ("why",): lambda at: [
        [each, what, *more]
        for each, more in ((at.chat, []), (at.log, ["--json"]), (at.store, []))
        for what in ("step:1", "user:1", "entry:2", f"x{NAME}")
    ],
    ("rewind",): lambda at: [["id", "--store", at.store], ["none", "--store", at.store], ["id", "1", "--store", at.store]],
    ("verify",): lambda at: [[at.store], ["--store", at.store], [at.chat]],
    ("seal",): lambda at: [[at.store], [at.chat]],
    ("replay",): lambda at: [
        [at.chat, at.log, "--ceiling", "3k", *more] for more in ([], ["--json", "-"], ["--each"], ["--planner", "stand-in"])
    ],
    ("query",): lambda at: [
        [each, sql, *more]
        for each, sql, more in (
            (at.chat, "select * from blocks", []),
            (at.log, "select * from blocks", ["--json"]),
            (at.store, "select * from commits", ["--ceiling", "3k"]),
            (at.chat, f"select '{NAME}'", []),
        )
    ],
    ("audit",): lambda at: [
        ["--ceiling", "3k", *more] for more in ([at.chat], [at.folder], [at.log, "--json", "-"], [at.chat, "--html", "-"], [])
    ],
    ("judge",): lambda at: [
        [at.chat, "--model", "stand-in", "--cuts", "1", *more] for more in ([], ["--json", "-"], ["--dry-run"])
    ],
    ("evidence",): lambda at: [[at.folder, "--out", at.folder + "/out", "--keep", at.folder + "/kept", "--only", "sessions"]],
    ("settings",): lambda at: [[at.folder], [at.store]],
    ("forget",): lambda at: [[at.store], [f"{at.store}#{NAME}"]],
    ("report",): lambda at: [[at.store], [at.store + NAME]],
    ("plugins",): lambda at: [[]],
    ("mcp",): lambda at: [[at.missing + NAME]],
    ("serve",): lambda at: [["--policy", NAME], ["--upstream", NAME], ["--store", at.folder]],
    ("bench", "measure"): lambda at: [[at.store], [at.store, "--json", "-"]],
    ("bench", "report"): lambda at: [[at.folder], [at.folder, "--json", "-"]],
}


# What each call of a command begins with: a server refuses to listen beyond this machine, and one policy prints as much as all.
BEGINS: dict[tuple[str, ...], list[str]] = {
    ("serve",): ["--host", "198.51.100.1"],
    ("audit",): ["--policy", "cwl", "--keep", "no"],
}


def hostile_calls(command: Any, at: Stage) -> Iterator[list[str]]:
    """Hostile values for every argument and every option of a command, of which each is to be refused or printed as it is."""
    for place in (at.missing, at.chat, at.folder, NAME):
        yield [place for each in command.params if each.param_type_name == "argument" for _ in range(1 if each.nargs == 1 else 2)]
    given = [at.chat for each in command.params if each.param_type_name == "argument"]
    for each in command.params:
        if each.param_type_name == "option" and not getattr(each, "is_flag", False) and each.name != "help":
            yield [*given, max(each.opts, key=len), NAME]
    yield [*given, f"--{NAME}"]


def printed(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    main(arguments)
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_no_command_obeys_what_it_prints(path: tuple[str, ...], stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    calls = CALLS[path](stage) if path in CALLS else []
    for arguments in [*calls, *hostile_calls(EVERY[path], stage)]:
        text = printed(capsys, [*path, *BEGINS.get(path, []), *arguments])
        assert not acting(text), (arguments, acting(text))
        assert "Traceback" not in text, arguments


def test_every_command_that_prints_a_session_is_called_with_one() -> None:
    """The commands that play tasks print only what the others do, and need a container or a network."""
    assert {path[0] for path in CALLS} == COMMANDS.keys()
    assert CALLS.keys() <= EVERY.keys()


def test_a_terminal_gets_our_own_colours_and_nothing_else(stage: Stage) -> None:
    calls = (["recall", stage.chat, "entry:2"], ["show", stage.chat], ["sessions", stage.folder], ["why", stage.chat, "step:1"])
    for text in on_a_terminal(*calls):
        assert "owned" in text
        assert not acting(OWN_STYLE.sub("", text))


def test_markup_is_printed_as_it_is(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert MARKUP in printed(capsys, ["recall", stage.chat, "entry:2"])
    assert "[bold]x[link=e]" in printed(capsys, ["show", stage.chat])


def test_raw_bytes_are_exact_in_a_pipe_and_signs_on_a_terminal(stage: Stage, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Go."}]
    for kind, text in CLASSES.items():
        messages += exchange(kind, "read", {}, text)
    chat_file(Path(stage.script), messages)
    calls = [["recall", stage.script, f"read:{n}", "--raw"] for n in range(1, len(CLASSES) + 1)]
    for (kind, text), arguments in zip(CLASSES.items(), calls, strict=True):
        assert main(arguments) == 0
        assert capfdbinary.readouterr().out == text.encode("utf-8", "replace") or kind == "surrogate"
    for shown in on_a_terminal(*calls):
        assert not acting(OWN_STYLE.sub("", shown))


def on_a_terminal(*calls: list[str]) -> list[str]:
    """What commands write to a terminal, one after another in one process."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    code = f"from tenure.cli.main import main\nfor each in {list(calls)!a}:\n    main(each)\n    print({END!r}, flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        held = b""
        while True:
            try:
                piece = os.read(ours, 2**16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            held += piece
    os.close(ours)
    shown = held.decode("utf-8", "surrogateescape").split(END)
    assert len(shown) == len(calls) + 1
    return shown[:-1]
