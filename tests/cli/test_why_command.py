"""`tenure why`: what its screen shows, and what it says to bad input."""

import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from chats import chat_file, exchange
from tenure.cli.main import main
from tenure.cli.why import screen
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import policy_named
from tenure.engine.view.guard import Hold
from tenure.lab.loading import source
from tenure.lab.replay import Options
from tenure.lab.why.explain import ObjectAccount, explain
from tenure.lab.why.past import Past, moment, replayed
from tenure.store.records import Conversation
from tenure.store.store import Store


def module(part: int) -> str:
    """Every fifth line defines something; the ones between explain it."""
    return "\n".join(
        f"def parse_part{part}_{n}(text): return keep_{part}_{n}(text)"
        if n % 5 == 0
        else f"                # line {n} of part {part} says in plain words what the code below it is there for"
        for n in range(40)
    )


def message_file(path: Path, about: str = "src/part") -> Path:
    """A chat in which files are read, changed, and the second one is asked for again at the end."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Make every part keep its comments."}]
    for part in range(1, 9):
        for name, arguments, text in (
            ("read", {"path": f"{about}_{part}.py"}, module(part)),
            ("edit", {"path": f"{about}_{part}.py", "old": f"keep_{part}_5", "new": "keep"}, "ok"),
        ):
            messages += exchange(f"{name}{part}", name, arguments, text)
    messages.append({"role": "assistant", "content": "Again: parse_part2_30 returns keep_2_30(text), parse_part1_10 too."})
    return chat_file(path, messages)


def replayed_file(path: Path, policy: str = "graph", ceiling: int = 5_000) -> Past:
    options = Options(budget=Budget(ceiling=ceiling), policy=policy_named(policy), model="gpt-5")
    return replayed([source(str(message_file(path)))], options, o200k())


def store_file(path: Path, held: Past) -> str:
    """A store of ours whose conversation has had the commits of a replay."""
    with Store(f"sqlite:///{path}") as store:
        store.create(Conversation(id="c", model="gpt-5"))
        store.append("c", held.entries)
        for commit in held.commits:
            store.commit("c", commit)
        store.hold("c", Hold(object="read:8", reason="the contract"))
    return str(path)


@pytest.mark.parametrize("width", [80, 160])
def test_the_answer_reads_well(width: int, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False, color_system=None)
    for policy, name, call in (
        ("graph", "read:2", None),
        ("graph", "read:4", 12),
        ("graph", "user:1", None),
        ("cwl", "read:2", None),
        ("cwl", "step:7", 10),
    ):
        held = replayed_file(tmp_path / "session.json", policy)
        console.print(screen(explain(moment(held, o200k(), call), name, "session.json"), width))
    assert isinstance(console.file, io.StringIO)
    golden(f"why-{width}.txt", "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n")


def test_json_holds_the_whole_account(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = str(message_file(tmp_path / "s.json"))
    assert main(["why", path, "read:2", "--ceiling", "5k", "--model", "gpt-5", "--json"]) == 0
    told = msgspec.json.decode(capfdbinary.readouterr().out, type=ObjectAccount)
    assert told == explain(moment(replayed_file(tmp_path / "s.json"), o200k()), "read:2", path)


def test_a_store_of_ours_tells_what_was_done_and_not_a_replay(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    held = replayed_file(tmp_path / "s.json", "cwl")
    store = store_file(tmp_path / "agent.db", held)
    assert main(["why", f"{store}#c", "read:2", "--json"]) == 0
    told = msgspec.json.decode(capfdbinary.readouterr().out, type=ObjectAccount)
    assert (told.now.simulated, told.now.policy) == (False, "cwl")  # the one its commits name
    assert told.touched == explain(moment(held, o200k()), "read:2").touched
    assert main(["why", store, "read:8"]) == 0
    shown = capfdbinary.readouterr().out.decode()
    assert "the contract" in shown
    assert "replayed" not in shown
    assert main(["why", f"{store}#other", "read:8"]) == 2
    assert "one of 'c'" in capfdbinary.readouterr().err.decode()


def test_what_cannot_be_asked_is_a_sentence_that_says_what_can(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(message_file(tmp_path / "s.json"))
    for arguments, said in (
        ([good, "read:99"], "read:1 to read:8"),
        ([good, "raed:1"], "a tool that was called: edit, read"),
        ([good, "nothing"], "a handle such as"),
        ([good, "read:1@ffff"], "for this record's read:1"),
        ([good, "read:8", "--at-call", "2"], "there was no read:8 yet"),
        ([good, "read:1", "--at-call", "99"], "0 to 16"),
        ([good, "read:1", "--at-call", "-1"], "0 to 16"),
        ([good, "read:1", "--policy", "hope"], "one of cwl"),
        ([str(tmp_path / "missing"), "read:1"], "no such file"),
        (["read:1", good], f"tenure why {good} read:1"),
    ):
        assert main(["why", *arguments]) == 2, arguments
        assert said in " ".join(capsys.readouterr().err.split()), arguments


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(message_file(tmp_path / "s.json", about="\x1b[2J\x07[bold]part\x00\u202e"))
    for name in ("read:1", "read:2", "step:3", "user:1"):
        assert main(["why", path, name, "--ceiling", "5k"]) == 0
        shown = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(shown)
        assert name in shown
