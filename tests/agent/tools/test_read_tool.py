import os
import socket
import struct
from pathlib import Path

import pytest
from calling import called, here, refused, told, workspace

from tenure.agent.approval import CallEffect
from tenure.agent.tools.read import Read
from tenure.agent.workspace import Workspace

READ = Read()
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\0" * 20


def test_lines_come_behind_their_numbers_and_the_end_is_not_mentioned(ws: Workspace) -> None:
    (ws.root / "a.txt").write_text("one\ntwo\n\nfour")
    assert told(READ, ws, path="a.txt") == "1\tone\n2\ttwo\n3\t\n4\tfour"
    assert told(READ, ws, path=str(ws.root / "a.txt"), offset=4) == "4\tfour\n[lines 4 to 4, the last.]"
    assert told(READ, ws, path="a.txt", offset=-2) == "3\t\n4\tfour\n[lines 3 to 4, the last.]"


def test_a_part_says_how_to_go_on(ws: Workspace) -> None:
    (ws.root / "a.txt").write_text("line\n" * 5_000)
    assert told(READ, ws, path="a.txt", offset=3, limit=1) == "3\tline\n[lines 3 to 3 of 5,000; go on with offset=4.]"
    assert told(READ, ws, path="a.txt").endswith("\n2000\tline\n[lines 1 to 2000 of 5,000; go on with offset=2001.]")
    assert refused(READ, ws, path="a.txt", offset=5_001) == "read: a.txt has 5,000 lines; offset 5,001 is behind them"


def test_a_long_line_is_cut_and_its_length_said(ws: Workspace) -> None:
    (ws.root / "min.js").write_text("x" * 3_000_000 + "\nshort\n")
    text = told(READ, ws, path="min.js")
    assert text == "1\t" + "x" * 2_000 + "… [cut: a line of 3,000,000 bytes]\n2\tshort"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\xef\xbb\xbfhi\n", "1\thi\n[Encoding: UTF-8 with a byte order mark.]"),
        ("hé\nß".encode("utf-16"), "1\thé\n2\tß\n[Encoding: UTF-16.]"),
        (b"\xff\xfe\0\0" + "hi".encode("utf-32-le"), "1\thi\n[Encoding: UTF-32.]"),
        ("plain words\n".encode("utf-16-le"), "1\tplain words\n[Encoding: UTF-16 without a byte order mark.]"),
        (b"caf\xe9\n", "1\tcafé\n[Encoding: no UTF-8, read as Latin-1.]"),
        (b"\x93quoted\x94\n", "1\t“quoted”\n[Encoding: no UTF-8, read as Windows-1252.]"),
        (b"a\r\nb\r\n", "1\ta\n2\tb"),
        (
            b"ok\n" * 30_000 + b"\xff\n",
            "30001\t\ufffd\n[lines 30001 to 30001, the last. Bytes that are no UTF-8 are shown as \ufffd.]",
        ),
        (b"\x1b[31mred\x07\n", "1\t␛[31mred␇"),
    ],
)
def test_encodings_are_understood_and_what_was_guessed_is_said(data: bytes, shown: str, ws: Workspace) -> None:
    (ws.root / "f").write_bytes(data)
    assert told(READ, ws, path="f", offset=int(shown.partition("\t")[0])) == shown


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (bytes(range(256)) * 9, "2,304 bytes that are no text: binary"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF: `pdftotext FILE -` may show its words"),
        (b"PK\x03\x04\0\0", "a ZIP archive"),
        (b"\x7fELF\x02\0\0", "an ELF program"),
    ],
)
def test_what_is_no_text_is_named_rather_than_shown(data: bytes, said: str, ws: Workspace) -> None:
    (ws.root / "f").write_bytes(data)
    assert said in refused(READ, ws, path="f")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
        (b"GIF89a\0\0", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_comes_as_one_whatever_it_is_called(data: bytes, kind: str, ws: Workspace) -> None:
    (ws.root / "picture.txt").write_bytes(data)
    outcome = called(READ, ws, path="picture.txt")
    assert not outcome.error
    assert [source.media_type for source in outcome.media] == [kind]
    assert outcome.text == f"picture.txt: {kind}, {len(data)} bytes"


def test_an_image_that_no_provider_takes_is_refused(ws: Workspace) -> None:
    (ws.root / "p.png").write_bytes(PNG + b"\0" * 1_000)
    assert "an image of" in refused(READ, here(ws, limits={"image_bytes": 500}), path="p.png")


def test_a_missing_file_comes_with_names_like_it(ws: Workspace) -> None:
    (ws.root / "src").mkdir()
    for name in ("parser.py", "README.md"):
        (ws.root / "src" / name).write_text("x")
    (ws.root / "gone").symlink_to("nowhere")
    assert refused(READ, ws, path="src/prser.py") == "read: src/prser.py: there is no such file. Did you mean src/parser.py?"
    assert refused(READ, ws, path="src/readme.md").endswith("Did you mean src/README.md?")
    assert refused(READ, ws, path="scr/parser.py").endswith("Did you mean src/parser.py?")
    assert refused(READ, ws, path="src/parser.ts").endswith("Did you mean src/parser.py?")
    assert refused(READ, ws, path="zzz/yyy.py") == "read: zzz/yyy.py: there is no such file"
    assert "it is a link to 'nowhere'" in refused(READ, ws, path="gone")


def test_a_folder_shows_what_is_in_it(ws: Workspace) -> None:
    (ws.root / "src").mkdir()
    (ws.root / "src" / "a.py").write_text("12345")
    assert told(READ, ws, path="src") == "src is a folder. It holds:\na.py 5"


def test_devices_pipes_and_sockets_are_not_opened(ws: Workspace) -> None:
    os.mkfifo(ws.root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    previous = Path.cwd()
    os.chdir(ws.root)  # the name of a socket is short
    listener.bind("sock")
    os.chdir(previous)
    assert "this is a pipe" in refused(READ, ws, path="pipe")
    assert "this is a socket" in refused(READ, ws, path="sock")
    assert "this is a device" in refused(READ, ws, path="/dev/zero")
    listener.close()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux")
def test_files_without_a_size_are_read_and_none_of_them_hangs(ws: Workspace) -> None:
    assert told(READ, ws, path="/proc/self/maps", limit=2).startswith("1\t")
    for path in ("/proc/kmsg", "/proc/self/mem", "/proc/self/pagemap", "/sys/kernel/debug/tracing/trace_pipe"):
        called(READ, ws, path=path)


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "x" * 5_000, "x" * 300, "a/" * 2_000])
def test_impossible_paths_are_refused_in_words(path: str, tmp_path: Path) -> None:
    assert refused(READ, workspace(tmp_path), path=path).startswith("read: ")


def test_links_in_a_circle_are_refused(ws: Workspace) -> None:
    (ws.root / "a").symlink_to("b")
    (ws.root / "b").symlink_to("a")
    assert refused(READ, ws, path="a").startswith("read: a")


def test_reading_is_free_but_where_keys_are_kept(ws: Workspace) -> None:
    (ws.root / "harmless").symlink_to(ws.home / ".ssh" / "id_rsa")
    for path in ("a.py", "/etc/hosts", ".env.example", "docs/.environment", "../x"):
        assert READ.needs(f'{{"path":"{path}"}}', ws) is None, path
    for path in ("~/.ssh/config", ".env", "sub/.env.local", "~/.aws/credentials", "harmless", "/proc/self/environ", "~/.netrc"):
        needed = READ.needs(f'{{"path":"{path}"}}', ws)
        assert needed is not None, path
        assert needed.act is CallEffect.OUTSIDE
    assert READ.needs("nonsense", ws) is None


def test_an_empty_file_is_said_to_be_empty(ws: Workspace) -> None:
    (ws.root / "e").write_text("")
    assert told(READ, ws, path="e") == "[e is empty]"
