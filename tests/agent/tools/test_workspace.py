import os
from pathlib import Path

import pytest

from tenure.agent.workspace import Workspace, sighted
from tenure.errors import InputError


def test_paths_are_read_from_the_root_and_without_dots(ws: Workspace) -> None:
    assert ws.path("a/../b") == ws.root / "b"
    assert ws.path("/etc/./hosts") == Path("/etc/hosts")
    assert ws.path("~/x") == ws.home / "x"
    assert ws.path("~") == ws.home
    assert ws.path("x", ws.root / "sub") == ws.root / "sub" / "x"
    for text in ("", " ", "\0", "x" * 5_000):
        with pytest.raises(InputError):
            ws.path(text)


def test_inside_is_judged_by_where_links_lead(tmp_path: Path, ws: Workspace) -> None:
    (ws.root / "in").symlink_to("real")
    (ws.root / "out").symlink_to(tmp_path / "elsewhere")
    (ws.root / "up").symlink_to("..")
    (ws.root / "a").symlink_to("b")
    (ws.root / "b").symlink_to("a")
    assert [ws.holds(ws.root / name) for name in ("x", "new/deep/x", "in", "out", "out/x", "up/x", "..")] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert ws.scratch is not None
    assert ws.holds(ws.scratch / "x")
    assert not ws.holds(Path(f"{ws.root}-too") / "x")  # a name that only begins alike
    ws.holds(ws.root / "a")  # a circle is no error


def test_paths_are_shown_as_a_reader_needs_them(ws: Workspace) -> None:
    assert ws.shown(ws.root / "src" / "a.py") == "src/a.py"
    assert ws.shown(ws.root) == "."
    assert ws.shown(Path("/etc/hosts")) == "/etc/hosts"
    assert ws.shown(ws.root / os.fsdecode(b"caf\xe9")) == "caf\ufffd"


def test_what_was_seen_is_known_by_its_content_through_links(ws: Workspace) -> None:
    path = ws.root / "a"
    path.write_text("one")
    (ws.root / "link").symlink_to("a")
    assert ws.unseen(path) == "was not read"
    sight = sighted(path)
    assert sight is not None
    ws.see(ws.root / "link", sight)
    assert ws.unseen(path) == ""
    path.write_text("two")
    assert ws.unseen(path) == "changed"
    path.unlink()
    assert ws.unseen(path) == "changed"
    assert sighted(ws.root) is None
