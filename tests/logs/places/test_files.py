import gzip
import io
import lzma
import os
import sys
from pathlib import Path

import pytest

from tenure.errors import InputError
from tenure.logs.places.files import CHUNK, open_session

DATA = b'{"type":"user"}\n' * 50_000


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress])
def test_files_are_unpacked_by_content_and_not_by_name(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = tmp_path / "session.txt"
    path.write_bytes(pack(DATA))
    chunks = list(open_session(path))
    assert b"".join(chunks) == DATA
    assert max(map(len, chunks)) <= CHUNK


def test_zstd_is_unpacked_frame_by_frame(tmp_path: Path) -> None:
    path, frame = tmp_path / "session", bytes.fromhex("28b52ffd2004210000") + b"text"
    path.write_bytes(frame + frame)
    assert b"".join(open_session(path)) == b"texttext"
    path.write_bytes(frame + frame[:-1])
    with pytest.raises(InputError, match="damaged archive"):
        list(open_session(path))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_what_windows_shells_write_is_read(encoding: str, tmp_path: Path) -> None:
    path, text = tmp_path / "session", "{} – 🚀\n" * 90_000
    path.write_bytes((b"" if encoding == "utf-16" else "\ufeff".encode(encoding)) + text.encode(encoding))
    assert b"".join(open_session(path)).decode() == text
    path.write_bytes(path.read_bytes()[:-1])
    assert b"".join(open_session(path)).decode() == text[:-1] + "\ufffd"


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
