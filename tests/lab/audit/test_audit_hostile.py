"""Sessions that nobody should have written: an audit reads what can be read, and hands nothing on that a terminal would obey."""

import io
import json
import os
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from recordings import LINES, audited, message_file, step
from tenure.cli.audit_screen import brief, corpus, screen, unreadable
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.errors import InputError
from tenure.lab.audit.audit import Auditor, AuditRequest, audit
from tenure.lab.audit.report import ROWS, Audit, UnreadSession, total
from tenure.lab.events import BudgetLine
from tenure.lab.loading import source
from tenure.logs.reader import Skipped
from tenure.store.records import Conversation
from tenure.store.store import Store
from tenure.testing.builders import human, placed, reply

EVIL = "\x1b]0;owned\x07\x1b[2J\x00\u202e [bold]x[/bold] \x9b31m"


def shown(report: Audit, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False, markup=False, emoji=False, color_system=None)
    console.print(screen(report, width))
    every = total([report], [UnreadSession(path=EVIL, why=EVIL)])
    console.print(corpus([brief(report)], every, BudgetLine.of(Budget(ceiling=600)), width))
    for line in unreadable(every.unread):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    report = audited(
        Skipped(line=3, bytes=9, reason=EVIL),
        human(EVIL),
        *step("read", LINES, path=f"src/{EVIL}.py"),
        *step(f"tool{EVIL}", EVIL * 50, command=EVIL),
        *step("read", LINES.replace("1", "2"), path=f"src/{EVIL}.py"),
        reply(EVIL, model=EVIL),
        policies=("cwl",),
    )
    for width in (40, 80, 160):
        text = shown(report, width)
        assert not [sign for sign in text.replace("\n", "") if not sign.isprintable()]
        assert "owned" in text


def test_a_report_of_any_text_is_json_and_comes_back(tmp_path: Path) -> None:
    report = audited(human(EVIL), *step("read", LINES + EVIL, path=EVIL), reply(EVIL), policies=("tiered",))
    assert msgspec.json.decode(msgspec.json.encode(report), type=Audit) == report


def test_thousands_of_names_are_one_row_and_the_sums_hold() -> None:
    steps = [draft for n in range(ROWS + 50) for draft in step("bash", f"text {n}", command=f"cat f{n}.txt")]
    report = audited(human("Go."), *steps, reply("Done."))
    table = report.window.by_path
    assert (len(table.rows), table.merged) == (ROWS, 51)  # and what touches no file
    assert table.rest is not None
    assert sum(row.tokens for row in table.rows) + table.rest.tokens == report.session.tokens


def damaged(folder: Path) -> list[str]:
    """Files that are broken in many ways; the first few can be read in part."""
    whole = message_file(folder / "whole.json").read_bytes()
    cut = folder / "cut.json"
    cut.write_bytes(whole[: len(whole) // 2])
    holes = folder / "holes.json"
    holes.write_bytes(whole.replace(b"comments", b"\\ud800\\u0000", 3))
    lines = folder / "lines.jsonl"
    said = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Go."}}
    answer = {
        "type": "assistant",
        "uuid": "a",
        "parentUuid": "u",
        "message": {"id": "m", "role": "assistant", "content": "Done."},
    }
    deep = b'{"type": "user", "message": ' + b"[" * 100_000
    lines.write_bytes(
        b"\n".join([json.dumps(said).encode(), deep, b"\x00" * 1000, b"{" + b"x" * 3_000_000, json.dumps(answer).encode()])
    )
    for name, content in (
        ("nul", b"\0" * 5000),
        ("deep", b"[" * 100_000),
        ("number", b"7"),
        ("object", b"{}"),
        ("blank", b"\n" * 9),
    ):
        (folder / f"{name}.json").write_bytes(content)
    return [
        str(path) for path in (cut, holes, lines, *(folder / f"{n}.json" for n in ("nul", "deep", "number", "object", "blank")))
    ]


def test_damaged_files_are_audited_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    asked = AuditRequest(policies=("cwl", "graph"), budget=Budget(ceiling=3_000))
    out = io.BytesIO()
    found = list(Auditor(asked, o200k(), out=out).each(damaged(tmp_path), lambda _: None))
    assert [type(each) for each in found[:3]] == [Audit, Audit, Audit]
    assert [type(each) for each in found[3:]] == [UnreadSession] * 5
    cut, _, lines = found[:3]
    assert isinstance(cut, Audit)
    assert isinstance(lines, Audit)
    assert cut.session.skipped
    assert (lines.session.entries, len(lines.session.skipped)) == (2, 3)
    assert all(json.loads(line)["type"] for line in out.getvalue().splitlines())


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode there")
def test_a_name_that_is_not_unicode_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/s\xff.json"
    message_file(tmp_path / "session.json").rename(os.fsdecode(path))
    asked = AuditRequest(policies=(), budget=Budget(ceiling=3_000))
    (report,) = Auditor(asked, o200k(), out=io.BytesIO()).each([os.fsdecode(path)], lambda _: None)
    assert isinstance(report, Audit)
    assert report.session.path.endswith("s\\udcff.json")


def test_a_damaged_store_of_our_own_costs_the_other_sessions_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with Store(f"sqlite:///{path}") as store:
        store.create(Conversation(id="a"), placed(human("a-word-to-find " * 40), reply("Done.")))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"a-word-to-find", b"a-word\xff\xfe-find"))
    asked = AuditRequest(policies=(), budget=Budget(ceiling=3_000))
    addresses = [str(path), str(message_file(tmp_path / "session.json"))]
    first, second = Auditor(asked, o200k(), out=io.BytesIO()).each(addresses, lambda _: None)
    assert isinstance(first, UnreadSession)
    assert "cannot be read back" in first.why
    assert isinstance(second, Audit)


def test_a_session_of_which_nothing_is_left_says_what_was_left_out_and_where(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type":"session.start","data":{"selectedModel":"x","cwd":"/w', encoding="utf-8")
    with pytest.raises(
        InputError, match=r"a session without a message \(left out: line 1: damaged line: found JSON that ends too"
    ):
        list(audit(source(str(path)), AuditRequest(policies=(), budget=Budget(ceiling=600)), o200k()))
