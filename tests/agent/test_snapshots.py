import subprocess
from pathlib import Path

import pytest
from holding import Outside, call, end, folder, heard, of, open_agent, played, results, says

from tenure.agent import snapshots as module
from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import ApprovalAsked, Noticed
from tenure.agent.snapshots import Snapshots
from tenure.errors import InputError

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def kept(tmp_path: Path, where: Path, conversation: str = "c1") -> Snapshots:
    return Snapshots(tmp_path / "kept", where, conversation, environment=PATH, now=lambda: "2026-01-01T00:00:00Z")


def files(where: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(where)): path.read_bytes() for path in where.rglob("*") if path.is_file()}


def test_everything_that_a_command_did_to_the_folder_is_undone_byte_for_byte(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="one\n")
    (where / "deep/er").mkdir(parents=True)
    (where / "deep/er/b").write_bytes(b"\r\n\0\xff")
    (where / "run").write_text("x")
    (where / "run").chmod(0o755)
    (where / "link").symlink_to("a.py")
    (where / "-odd name\n*").write_text("odd")
    (where / "turns").write_text("a file")
    (where / ".gitattributes").write_text("* text eol=crlf\n*.py filter=evil\n")
    before = files(where)
    held = kept(tmp_path, where)
    assert held.take("bash rm -rf everything", message="do it") == ""
    for path in ("a.py", "run", "link", "-odd name\n*", "turns"):
        (where / path).unlink()
    (where / "deep/er/b").unlink()
    (where / "deep/er").rmdir()
    (where / "deep").rmdir()
    (where / "deep").write_text("a folder was here")
    (where / "turns").mkdir()
    (where / "turns/new").write_text("x")
    (where / "made/by").mkdir(parents=True)
    (where / "made/by/command").write_text("x")
    after = files(where)
    done = held.rewind(1)
    assert files(where) == before
    assert (where / "link").readlink() == Path("a.py")
    assert (where / "run").stat().st_mode & 0o111
    assert not (where / "made").exists()
    assert {"made/by/command", "turns/new", "deep"} == set(done.removed)
    assert [(each.number, each.cause, each.message) for each in held.listed()] == [
        (1, "bash rm -rf everything", "do it"),
        (2, "rewind 1", ""),
    ]
    held.rewind(2)  # what was put back can be undone too
    assert files(where) == after


def test_the_folders_own_repository_is_neither_read_nor_written_and_runs_nothing(tmp_path: Path) -> None:
    where = folder(tmp_path, a_py="one\n")
    subprocess.run(["git", "init", "-q", str(where)], check=True)
    canary = tmp_path / "canary"
    config = where / ".git/config"
    config.write_text(
        config.read_text()
        + f'[core]\n\tfsmonitor = "touch {canary}"\n\thooksPath = {where}/hooks\n[filter "evil"]\n\tclean = touch {canary}\n\tsmudge = touch {canary}\n'
    )
    (where / "hooks").mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        (where / "hooks" / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (where / "hooks" / name).chmod(0o755)
    (where / ".gitattributes").write_text("* filter=evil\n")
    before = files(where / ".git")
    held = kept(tmp_path, where)
    assert held.take("first") == ""
    (where / "a.py").write_text("two\n")
    held.rewind(1)
    assert (where / "a.py").read_text() == "one\n"
    assert files(where / ".git") == before
    assert not canary.exists()


def test_what_is_ignored_or_too_large_is_left_alone_unless_a_call_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 10)
    where = folder(tmp_path, a="1")
    for path, text in (
        (".gitignore", "*.log\n"),
        ("x.log", "log 1"),
        ("named.log", "named 1"),
        ("large", "x" * 11),
        ("node_modules/m", "m 1"),
    ):
        (where / path).parent.mkdir(exist_ok=True)
        (where / path).write_text(text)
    held = kept(tmp_path, where)
    held.take("write named.log", also=[where / "named.log", tmp_path / "elsewhere"])
    for path in ("x.log", "named.log", "node_modules/m", "a"):
        (where / path).write_text("2" * 8)
    (where / "large").write_text("2" * 12)
    (where / "a").write_text("2" * 20)  # which is too large to be kept now
    done = held.rewind(1)
    assert (where / "named.log").read_text() == "named 1"
    assert [(where / path).read_text() for path in ("x.log", "node_modules/m", "large")] == ["2" * 8, "2" * 8, "2" * 12]
    assert done.left == ("a",)
    assert (where / "a").read_text() == "2" * 20


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    where = folder(tmp_path)
    for n in range(50):
        (where / f"f{n}").write_text(f"{n}")
    held = kept(tmp_path, where)
    held.take("first")

    def objects() -> int:
        return sum(1 for path in (tmp_path / "kept").rglob("objects/??/*") if path.is_file())

    first = objects()
    (where / "f7").write_text("changed")
    held.take("second")
    assert objects() - first == 3  # one file, one folder, one snapshot
    held.take("third")
    assert objects() - first == 4


def test_sessions_of_one_folder_list_their_own_changes(tmp_path: Path) -> None:
    where = folder(tmp_path, a="1")
    one, two = kept(tmp_path, where), kept(tmp_path, where, "c2")
    one.take("of one")
    two.take("of two")
    assert [each.cause for each in one.listed()] == ["of one"]
    assert [each.cause for each in two.listed()] == ["of two"]
    with pytest.raises(InputError, match="from 1 to 1"):
        one.rewind(2)


def test_a_lock_that_a_killed_git_left_stops_nothing(tmp_path: Path) -> None:
    where = folder(tmp_path, a="1")
    held = kept(tmp_path, where)
    held.take("first")
    next((tmp_path / "kept").glob("*.git")).joinpath("index.lock").touch()
    (where / "a").write_text("2")
    assert held.take("second") == ""
    assert len(held.listed()) == 2


def test_a_link_that_took_a_folders_place_leads_no_removal_outside(tmp_path: Path) -> None:
    where = folder(tmp_path, a="1")
    held = kept(tmp_path, where)
    held.take("first")
    (where / "d").mkdir()
    (where / "d/x").write_text("new")
    held.take("second")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/x").write_text("new")
    (where / "d/x").unlink()
    (where / "d").rmdir()
    (where / "d").symlink_to(tmp_path / "theirs")
    held.rewind(1)
    assert (tmp_path / "theirs/x").read_text() == "new"


async def _undone(outside: Outside) -> None:
    agent = await open_agent(outside, mode=Mode.ALL)
    try:
        await heard(agent, "Clean up.")
        listed = agent.snapshots()
        assert [(each.cause, each.message) for each in listed] == [
            ("bash rm a.py; touch b.py", "Clean up."),
            ("write c.py", "Clean up."),
        ]
        done = await agent.rewind(1)
        assert (done.written, done.removed) == (("a.py",), ("b.py", "c.py"))
    finally:
        await agent.close()


def test_what_all_mode_did_is_undone_from_before_its_first_change(tmp_path: Path) -> None:
    import asyncio

    where = folder(tmp_path, a_py="one")
    outside = Outside(
        where,
        says("", call("bash", command="rm a.py; touch b.py")),
        says("", call("write", path="c.py", content="x")),
        says("Done."),
    )
    asyncio.run(_undone(outside))
    assert files(where) == {"a.py": b"one"}


@pytest.mark.parametrize(("answer", "ran"), [(ApprovalAnswer.ONCE, True), (ApprovalAnswer.NO, False)])
def test_without_git_all_mode_asks_before_commands_that_could_not_be_undone(
    answer: ApprovalAnswer, ran: bool, tmp_path: Path
) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="touch x")), says("Done."))
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    events = played(outside, "Go.", answer=answer, mode=Mode.ALL, world={"environment": environment})
    asked = of(events, ApprovalAsked)
    assert [each.approval.reason.rpartition(", and ")[2] for each in asked] == ["that could not be undone: git is not installed"]
    assert [each.text for each in of(events, Noticed)] == ["Changes of files cannot be undone: git is not installed"]
    assert bool("declined" not in results(outside)[0]) is ran
    assert end(events).reason == "done"


def test_a_session_that_wants_no_copies_keeps_none_and_is_not_asked(tmp_path: Path) -> None:
    outside = Outside(folder(tmp_path), says("", call("bash", command="touch x")), says("Done."))
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    events = played(outside, "Go.", mode=Mode.ALL, snapshots=False, world={"environment": environment})
    assert not of(events, ApprovalAsked)
    assert not of(events, Noticed)


def test_a_folder_that_is_too_large_to_be_kept_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 2)
    where = folder(tmp_path, a="1", b="2", c="3")
    writes = [says("", call("write", path=f"{n}", content="x")) for n in range(3)]
    events = played(Outside(where, *writes, says("Done.")), "Go.", mode=Mode.ALL)
    assert [each.text for each in of(events, Noticed)] == [
        "Changes of files cannot be undone: the folder has more than 2 files or 1,024 MB to keep copies of"
    ]
