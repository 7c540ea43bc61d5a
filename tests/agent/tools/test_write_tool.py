import json
import os
import stat
from pathlib import Path

import pytest
from calling import here, refused, told, workspace

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.read import Read
from tenure.agent.tools.write import Write
from tenure.agent.workspace import Workspace

WRITE, READ = Write(), Read()


def needed(ws: Workspace, path: str, content: str = "x") -> Approval | None:
    return WRITE.needs(json.dumps({"path": path, "content": content}), ws)


def test_a_new_file_is_written_with_its_folders(ws: Workspace) -> None:
    assert told(WRITE, ws, path="a/b/c.txt", content="one\ntwo\n") == "Wrote a/b/c.txt: 2 lines, 8 bytes."
    assert (ws.root / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert [path.name for path in (ws.root / "a/b").iterdir()] == ["c.txt"]  # nothing temporary stays


def test_what_it_wrote_itself_it_may_overwrite(ws: Workspace) -> None:
    told(WRITE, ws, path="a.txt", content="one")
    assert told(WRITE, ws, path="./a.txt", content="") == "Overwrote a.txt: 0 lines, 0 bytes."


def test_a_file_that_was_not_read_is_not_overwritten(ws: Workspace) -> None:
    (ws.root / "a.txt").write_text("theirs")
    assert "you have not read it in this session" in refused(WRITE, ws, path="a.txt", content="mine")
    assert (ws.root / "a.txt").read_text() == "theirs"
    told(READ, ws, path="a.txt")
    told(WRITE, ws, path="a.txt", content="mine")


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(ws: Workspace) -> None:
    path = ws.root / "a.txt"
    path.write_text("seen!!")
    told(READ, ws, path="a.txt")
    before = path.stat()
    path.write_text("theirs")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # of the same size and time: its content tells
    assert "it has changed since you read it" in refused(WRITE, ws, path="a.txt", content="mine")
    assert path.read_text() == "theirs"


def test_a_file_that_was_only_touched_may_be_overwritten(ws: Workspace) -> None:
    path = ws.root / "a.txt"
    path.write_text("seen")
    told(READ, ws, path="a.txt")
    os.utime(path, ns=(1, 1))
    told(WRITE, ws, path="a.txt", content="mine")


def test_mode_line_ends_and_encoding_of_a_file_stay(ws: Workspace) -> None:
    path = ws.root / "run.sh"
    path.write_bytes("\ufeffé\r\nb\r\n".encode("utf-16-le"))
    path.chmod(0o750)
    told(READ, ws, path="run.sh")
    text = told(WRITE, ws, path="run.sh", content="ü\nc\n")
    assert text.endswith("with CRLF line ends as before.")
    assert path.read_bytes() == "\ufeffü\r\nc\r\n".encode("utf-16-le")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_what_an_encoding_cannot_hold_makes_the_file_utf8_and_that_is_said(ws: Workspace) -> None:
    path = ws.root / "a.txt"
    path.write_bytes(b"caf\xe9\n")
    told(READ, ws, path="a.txt")
    assert "as UTF-8: latin-1 cannot hold all of it" in told(WRITE, ws, path="a.txt", content="€\n")
    assert path.read_bytes() == "€\n".encode()


def test_a_link_stays_and_what_it_leads_to_is_written(ws: Workspace) -> None:
    (ws.root / "real").write_text("a")
    (ws.root / "link").symlink_to("real")
    told(READ, ws, path="link")
    told(WRITE, ws, path="link", content="b")
    assert (ws.root / "link").is_symlink()
    assert (ws.root / "real").read_text() == "b"


def test_what_cannot_be_written_is_refused_in_words(ws: Workspace) -> None:
    (ws.root / "file").write_text("x")
    (ws.root / "folder").mkdir()
    assert "this is a folder" in refused(WRITE, ws, path="folder", content="x")
    assert "cannot be written" in refused(WRITE, ws, path="file/x", content="x")
    assert "expected the path" in refused(WRITE, ws, path="a\0b", content="x")
    assert "at most 5" in refused(WRITE, here(ws, limits={"write_chars": 5}), path="y", content="123456")
    assert not (ws.root / "y").exists()


def test_a_write_asks_and_shows_what_would_change(ws: Workspace) -> None:
    (ws.root / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 12)))
    found = needed(ws, "a.txt", "".join(f"{n}\n" if n != 6 else "six\nsix\n" for n in range(1, 12)))
    assert found is not None
    assert (found.act, found.summary, found.exact) == (CallEffect.EDIT, "write a.txt", "write a.txt")
    assert found.detail == "--- a.txt\n+++ a.txt\n@@ -3,7 +3,8 @@\n 3\n 4\n 5\n-6\n+six\n+six\n 7\n 8\n 9"


def test_a_huge_or_hostile_change_is_shown_in_part_and_harmless(tmp_path: Path) -> None:
    found = needed(workspace(tmp_path), "a.txt", "\x1b[31m" + "x" * 10_000 + "\n" + "line\n" * 100_000)
    assert found is not None
    assert "\x1b" not in found.detail
    assert "+[99,601 more lines]" in found.detail
    assert len(found.detail) < 10_000


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../x", "it is outside the workspace"),
        ("/etc/x", "it is outside the workspace"),
        ("~/x", "it is outside the workspace"),
        ("out/x", "a link leads to"),
        ("deep/../../x", "it is outside the workspace"),
        ("~/.ssh/authorized_keys", "keys or passwords are kept there"),
        (".env", "keys or passwords are kept there"),
        (".git/hooks/pre-commit", "it belongs to git itself"),
        ("sub/.git", "it belongs to git itself"),
    ],
)
def test_a_write_that_leaves_the_workspace_is_told_from_one_that_does_not(
    path: str, reason: str, tmp_path: Path, ws: Workspace
) -> None:
    (ws.root / "out").symlink_to(tmp_path)
    found = needed(ws, path)
    assert found is not None
    assert found.act is CallEffect.OUTSIDE
    assert found.reason.startswith(reason)


def test_agreement_is_asked_for_even_where_a_file_must_be_read_first(ws: Workspace) -> None:
    (ws.root / "a.txt").write_text("x")
    assert needed(ws, "a.txt") is not None  # a read beside it could make the write possible
