import gzip
import io
import lzma
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tenure.errors import InputError
from tenure.files import CHUNK, open_session, usual_places

DATA = b'{"type":"user"}\n' * 50_000


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress])
def test_files_are_unpacked_by_content_and_not_by_name(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / "session.txt"
    path.write_bytes(pack(DATA))
    chunks = list(open_session(path))
    assert b"".join(chunks) == DATA
    assert max(map(len, chunks)) <= CHUNK


def test_zstd_is_unpacked_or_the_missing_package_is_named(tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(bytes.fromhex("28b52ffd2004210000") + b"text")
    if find_spec("zstandard"):
        assert b"".join(open_session(path)) == b"text"
    else:
        with pytest.raises(InputError, match="zstd archive, expected the package `zstandard`"):
            list(open_session(path))


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(lzma.compress(DATA))))
    monkeypatch.setattr(sys, "stdin", piped)
    assert b"".join(open_session("-")) == DATA


def test_what_cannot_be_opened_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file, expected a session file"):
        open_session(tmp_path / "missing.jsonl")
    with pytest.raises(InputError, match="found a directory"):
        open_session(tmp_path)
    with pytest.raises(InputError, match="cannot be opened"):
        open_session("nul\0byte")


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "locked.jsonl"
    path.write_bytes(DATA)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(InputError, match="cannot be opened"):
        open_session(path)


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
def test_a_damaged_archive_is_said(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    packed = pack(os.urandom(1000) + DATA)
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match="a damaged archive"):
        list(open_session(path))


def test_an_empty_file_has_no_bytes(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert list(open_session(path)) == []


def test_the_usual_places_list_sessions_newest_first(tmp_path: Path) -> None:
    places = {
        ".claude/projects/-w/s1.jsonl": 3,
        ".claude/projects/-w/agent-1.jsonl": 9,
        ".codex/sessions/2026/03/01/rollout-1.jsonl": 1,
        ".pi/agent/sessions/--w--/s2.jsonl": 2,
        ".gemini/tmp/h/chats/session-1.json": 5,
        ".gemini/tmp/h/logs.json": 7,
        ".local/share/opencode/export.json": 4,
    }
    for name, age in places.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
    found = list(usual_places(tmp_path))
    assert [session.tool for session in found] == ["gemini-cli", "opencode", "claude-code", "pi", "codex"]
    assert all(session.size == 2 for session in found)


def test_a_home_without_sessions_has_none(tmp_path: Path) -> None:
    assert list(usual_places(tmp_path / "nobody")) == []
