"""Devices, pipes, loops and archives that unpack to more than any log: refused or bounded, whoever reads them."""

import gzip
import io
import lzma
import os
import socket
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from tenure.agent.pictures import read_pictures
from tenure.agent.tools import sandbox
from tenure.cli.main import made, main
from tenure.errors import InputError
from tenure.lab.loading import source
from tenure.logs.places import archives, files, opencode_store, stored, tenure_store
from tenure.logs.places.files import CHUNK, open_session, read_file
from tenure.store.store import Store

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LINE = b'{"role": "user", "content": "hello"}\n'


class Endless(io.RawIOBase):
    """A stream without an end that counts what is read of it."""

    def __init__(self, piece: bytes) -> None:
        self.piece, self.count = piece, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), len(self.piece))
        buffer[:size] = self.piece[:size]
        self.count += size
        return size


def piped(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> Endless:
    stream = Endless(piece)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(stream)))
    return stream


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What is no file: by kind."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with socket.socket(socket.AF_UNIX) as bound:
        place = os.path.relpath(tmp_path / "socket")  # a longer path may be no address
        bound.bind(place if len(place) < 100 else "\0none")
        kinds = {name: str(tmp_path / name) for name in ("fifo", "loop", "socket")}
        yield {
            **kinds,
            "kernel": "/proc/kmsg",
            "zero": "/dev/zero",
            "full": "/dev/full",
            "random": "/dev/urandom",
            "folder": str(tmp_path),
        }


@pytest.mark.parametrize("kind", ["fifo", "loop", "socket", "kernel", "zero", "full", "random"])
def test_what_is_no_file_is_refused_by_every_command_that_takes_a_path(
    kind: str, odd: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "WRITER_S", 0.0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    place = odd[kind]
    calls = [
        ["show", place],
        ["context", place],
        ["recall", place, "entry:0"],
        ["why", place, "entry:0"],
        ["replay", place],
        ["query", place, "select 1"],
        ["audit", place, "--keep", "no"],
        ["judge", place, "--model", "stand-in"],
        ["evidence", place],
        ["verify", place],
        ["seal", place],
        ["rewind", "--store", place, "x"],
        ["bench", "report", place],
        ["bench", "measure", place],
        ["report", place],
        ["forget", f"{place}#x"],
        ["serve", "--store", place, "--port", "0"],
        ["run", "--model", f"scripted:{place}", "Go."],
        ["run", "--model", "scripted:none", "--mcp", place, "Go."],
    ]
    pathless = {"demo", "doctor", "mcp", "plugins", "sessions", "settings", "wrap"}  # or they list what is there
    told = {call[0] for call in calls} | pathless
    assert told == set(get_command(made()).commands)  # type: ignore[attr-defined]
    for call in calls:
        assert main(call) != 0, call
        text = capsys.readouterr().err
        assert text
        assert "Traceback" not in text
    assert main(["sessions", place]) in (0, 2)


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="no /proc here")
@pytest.mark.parametrize("path", ["/proc/kmsg", "/proc/version", "/proc/self/environ"])
def test_a_file_of_the_kernel_keeps_no_reader_waiting(path: str) -> None:
    for read in (lambda: read_file(Path(path), 100), lambda: open_session(path), lambda: source(path)):
        with pytest.raises(InputError, match=r"a file of the kernel|cannot be opened"):
            read()


def test_a_pipe_is_waited_for_and_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(LINE * 9_000))
    writer.start()
    assert b"".join(open_session(pipe)) == LINE * 9_000
    writer.join()


def test_an_endless_pipe_that_is_no_session_is_left_after_its_first_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = piped(monkeypatch, b"\0" * CHUNK)
    with pytest.raises(InputError, match="standard input"):
        source("-")
    assert stream.count <= 4 * CHUNK


def test_an_endless_pipe_of_messages_is_read_no_further_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_PIPED", 2**22)
    stream = piped(monkeypatch, LINE * 1_000)
    with pytest.raises(InputError, match="more than 4,194,304 bytes"):
        source("-")
    assert stream.count <= 2**22 + 2 * CHUNK


def test_a_file_that_grows_while_it_is_read_ends_where_it_did(tmp_path: Path) -> None:
    path = tmp_path / "grows.jsonl"
    path.write_bytes(LINE * 20_000)
    size = path.stat().st_size
    got = 0
    with path.open("ab") as writer:
        for chunk in open_session(path):
            got += len(chunk)
            writer.write(LINE * 20_000)
            writer.flush()
    assert got == size


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress, zstd.compress], ids=["xz", "gzip", "zstd"])
def test_an_archive_that_unpacks_to_more_than_any_log_is_refused(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "ALWAYS", 2**20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b" " * 2**25))
    sizes: list[int] = []
    with pytest.raises(InputError, match="unpacks to more than"):
        sizes.extend(map(len, open_session(path)))
    assert sum(sizes) <= max(2**20, archives.MOST_TIMES * path.stat().st_size) + CHUNK


def xz_of(dictionary: int) -> bytes:
    """A line, packed in a stream that says it needs a dictionary of 2 to the power of so much."""
    packed = bytearray(lzma.compress(LINE, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}]))
    end = 12 + 4 * packed[12]  # of the header of the only block
    packed[16] = 2 * (dictionary - 12)
    packed[end : end + 4] = zlib.crc32(packed[12:end]).to_bytes(4, "little")
    return bytes(packed)


def zstd_of(window: int) -> bytes:
    return bytes.fromhex("28b52ffd00") + bytes([(window - 10) << 3]) + (len(LINE) << 3 | 1).to_bytes(3, "little") + LINE


@pytest.mark.parametrize("bomb", [xz_of(30), xz_of(20) + xz_of(30), zstd_of(30)], ids=["xz", "second stream", "zstd"])
def test_an_archive_that_asks_for_more_memory_than_any_log_is_refused(bomb: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(bomb)
    with pytest.raises(InputError, match="takes more than 256 MiB of memory to unpack"):
        list(open_session(path))


def test_the_streams_of_an_xz_file_are_read_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "streams"
    path.write_bytes(xz_of(20) + bytes(8) + xz_of(26) + b"what another program wrote")
    assert b"".join(open_session(path)) == LINE * 2


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress, zstd.compress], ids=["xz", "gzip", "zstd"])
def test_an_archive_in_an_archive_is_unpacked_once(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "nested"
    inner = pack(LINE * 10)
    path.write_bytes(pack(inner))
    assert b"".join(open_session(path)) == inner
    with pytest.raises(InputError, match="one of the formats"):
        source(str(path)).events()


def test_a_zip_of_a_zip_is_no_session(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("header.json", b" " * 2**20)
    path = tmp_path / "outer.eval"
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr("inner.zip", inner.getvalue())
    with pytest.raises(InputError, match="no Inspect log"):
        list(open_session(path))


def test_a_script_or_a_list_of_servers_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * 101)
    assert read_file(path, 101) == b"x" * 101
    with pytest.raises(InputError, match="more than 100 bytes"):
        read_file(path, 100)
    with pytest.raises(InputError, match="found a device, expected a file"):
        read_file(Path("/dev/zero"), 100)


@pytest.mark.parametrize("kind", ["fifo", "zero", "socket"])
def test_what_is_no_file_is_refused_before_it_is_opened_as_a_store_or_an_image(kind: str, odd: dict[str, str]) -> None:
    place = odd[kind]
    for read_only in (True, False):
        with pytest.raises(InputError, match="found no file, expected a SQLite file"):
            Store(f"sqlite:///{place}", read_only=read_only)
    with pytest.raises(InputError, match="found no file"):
        list(tenure_store.sessions(Path(place)))
    if kind != "fifo":
        with pytest.raises(InputError, match="expected a file or a pipe"):
            read_pictures([Path(place)])


def test_a_pipe_in_place_of_gits_folder_keeps_no_command_waiting(odd: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    assert list(sandbox._git_folders(tmp_path)) == []


def test_a_message_of_a_folder_that_is_larger_than_any_line_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LONGEST_LINE", 100)
    (tmp_path / "large.json").write_text(f'{{"id": "{"x" * 200}"}}')
    (tmp_path / "small.json").write_text('{"id": "x"}')
    assert (opencode_store._read(tmp_path / "large.json"), opencode_store._read(tmp_path / "small.json")) == (b"", b'{"id": "x"}')
