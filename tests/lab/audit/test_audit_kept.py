"""Finished audits are kept, so that a corpus can be interrupted and gone on with."""

import io
import os
import stat
import sys
from pathlib import Path

import pytest

from recordings import message_file
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.lab.audit.audit import LINES, REPORT, AuditCache, Auditor, AuditRequest
from tenure.lab.audit.report import Audit, AuditOutput, RunLine, UnreadSession

ASKED = AuditRequest(policies=("cwl", "tiered"), budget=Budget(ceiling=3_000))


def sessions(folder: Path, count: int = 3) -> list[str]:
    return [str(message_file(folder / f"{number}.json", tasks=2 + number)) for number in range(count)]


def run(
    addresses: list[str], kept: AuditCache | None = None, *, asked: AuditRequest = ASKED, fresh: bool = False
) -> tuple[list[Audit | UnreadSession], bytes, int]:
    """Reports, lines, and how many of the reports were kept ones."""
    out = io.BytesIO()
    auditor = Auditor(asked, o200k(), kept=kept, fresh=fresh, out=out)
    return list(auditor.each(addresses, lambda _: None)), out.getvalue(), auditor.reused


def test_what_is_kept_is_what_a_fresh_audit_makes_to_the_byte(tmp_path: Path) -> None:
    addresses, kept = sessions(tmp_path), AuditCache(tmp_path / "kept")
    alone = run(addresses)
    assert run(addresses, kept) == (*alone[:2], 0)
    assert run(addresses, kept) == (*alone[:2], 3)
    assert run(addresses, kept, fresh=True) == (*alone[:2], 0)


def test_an_audit_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    addresses, folder = sessions(tmp_path), tmp_path / "kept"
    runs = 0

    def interrupt(line: AuditOutput) -> None:
        nonlocal runs
        runs += isinstance(line, RunLine)
        if runs == 5:  # in the second of three sessions
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Auditor(ASKED, o200k(), kept=AuditCache(folder), out=io.BytesIO()).each(addresses, interrupt))
    assert {path.suffixes[0] for path in folder.iterdir()} == {".report", ".lines"}
    reports, lines, reused = run(addresses, AuditCache(folder))
    assert reused == 1
    assert (reports, lines) == run(addresses)[:2]


def test_another_question_or_another_session_is_not_answered_by_what_is_kept(tmp_path: Path) -> None:
    addresses, kept = sessions(tmp_path, 1), AuditCache(tmp_path / "kept")
    run(addresses, kept)
    for other in (
        AuditRequest(policies=("cwl",), budget=ASKED.budget),
        AuditRequest(policies=ASKED.policies, budget=Budget(ceiling=2_999)),
        AuditRequest(policies=ASKED.policies, budget=ASKED.budget, model="gpt-5"),
        AuditRequest(policies=ASKED.policies, budget=ASKED.budget, head_tokens=1),
    ):
        assert run(addresses, kept, asked=other)[2] == 0
    message_file(Path(addresses[0]), tasks=5)
    assert run(addresses, kept)[2] == 0


@pytest.mark.parametrize("end", [REPORT, LINES])
@pytest.mark.parametrize("damage", ["cut", "empty", "other", "flipped"])
def test_a_file_that_is_damaged_is_made_again_and_said(end: str, damage: str, tmp_path: Path) -> None:
    addresses, folder = sessions(tmp_path, 1), tmp_path / "kept"
    fresh = run(addresses, AuditCache(folder))
    (path,) = folder.glob("*" + end)
    whole = path.read_bytes()
    flipped = bytes([*whole[:-9], whole[-9] ^ 1, *whole[-8:]])
    path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "other": b"{}", "flipped": flipped}[damage])
    kept = AuditCache(folder)
    assert run(addresses, kept) == fresh
    assert kept.damaged == [path]
    assert path.read_bytes() == whole


def test_what_is_not_wanted_in_lines_is_kept_without_them(tmp_path: Path) -> None:
    addresses, folder = sessions(tmp_path, 1), tmp_path / "kept"
    list(Auditor(ASKED, o200k(), kept=AuditCache(folder)).each(addresses, lambda _: None))
    assert [path.suffixes[0] for path in folder.iterdir()] == [".report"]
    assert run(addresses, AuditCache(folder)) == run(addresses)


def test_a_session_that_goes_on_while_it_is_audited_is_not_kept_as_what_it_was(tmp_path: Path) -> None:
    (address,) = sessions(tmp_path, 1)
    folder = tmp_path / "kept"

    def goes_on(line: AuditOutput) -> None:
        if isinstance(line, Audit):
            message_file(Path(address), tasks=9)

    list(Auditor(ASKED, o200k(), kept=AuditCache(folder)).each([address], goes_on))
    assert not list(folder.iterdir())


def test_what_was_longest_not_asked_for_goes_first(tmp_path: Path) -> None:
    addresses, folder = sessions(tmp_path), tmp_path / "kept"
    kept = AuditCache(folder)
    list(Auditor(ASKED, o200k(), kept=kept).each(addresses, lambda _: None))
    for age, path in enumerate(sorted(folder.iterdir())):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    list(Auditor(ASKED, o200k(), kept=kept).each(addresses[:1], lambda _: None))
    kept.prune(1)
    assert run(addresses[:1], kept)[0] == run(addresses[:1])[0]
    assert len(list(folder.glob("*" + REPORT))) == 1


def test_what_a_killed_audit_left_half_written_goes_after_a_day(tmp_path: Path) -> None:
    kept = AuditCache(tmp_path / "kept")
    old, new = tmp_path / "kept" / ".old.part", tmp_path / "kept" / ".new.part"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (1_000_000, 1_000_000))
    kept.prune()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [".new.part"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes are of other systems")
def test_what_is_kept_is_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    run(sessions(tmp_path, 1), AuditCache(folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_sessions_that_cannot_be_read_are_told_and_the_others_are_audited(tmp_path: Path) -> None:
    addresses = sessions(tmp_path, 1)
    damaged = tmp_path / "damaged.jsonl.xz"
    damaged.write_bytes(b"\xfd7zXZ\x00 and then nothing")
    prose = tmp_path / "prose.md"
    prose.write_text("Not a session.")
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    reports, _, _ = run([str(damaged), addresses[0], str(prose), str(tmp_path / "nowhere"), str(empty)])
    assert [type(each) for each in reports] == [UnreadSession, Audit, UnreadSession, UnreadSession, UnreadSession]
    unread = [each for each in reports if isinstance(each, UnreadSession)]
    assert "damaged archive" in unread[0].why
    assert "no such file" in unread[2].why
    assert all(each.path and each.why for each in unread)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="what a process has read is told by Linux")
def test_a_huge_file_that_is_no_session_is_refused_before_its_digest_is_made(tmp_path: Path) -> None:
    path = tmp_path / "endless.jsonl"
    with path.open("wb") as file:
        file.truncate(4 * 2**30)

    def bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = bytes_read()
    (outcome,) = Auditor(ASKED, o200k(), kept=AuditCache(tmp_path / "kept")).each([str(path)], lambda _: None)
    assert isinstance(outcome, UnreadSession)
    assert bytes_read() - before < 2**30
