import asyncio
import io
import os
from pathlib import Path

import pytest
from calling import here, workspace
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.files import Encoding
from tenure.agent.tools.read import Frame, LineWindow, window

TEXTS = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r\n", b"x" * 30, "é".encode()]), max_size=60).map(b"".join)


def lines_of(data: bytes) -> list[str]:
    """The lines of a text, plainly."""
    lines = data.decode().split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


@given(TEXTS, st.integers(1, 12), st.integers(1, 12), st.integers(1, 9))
def test_a_frame_shows_the_lines_that_splitting_gives_and_counts_all(data: bytes, first: int, most: int, size: int) -> None:
    frame = Frame(first, most, room=10**6, longest=100)
    for at in range(0, len(data), size):
        frame.feed(data[at : at + size])
    frame.end()
    whole = [line.replace("\r", "␍") for line in lines_of(data)]
    assert [line.text for line in frame.lines] == whole[first - 1 : first - 1 + most]
    assert [line.n for line in frame.lines] == list(range(first, first + len(frame.lines)))
    assert frame.count == len(whole)


@given(TEXTS, st.integers(1, 12), st.integers(1, 40))
def test_a_frame_never_takes_more_than_its_room(data: bytes, first: int, room: int) -> None:
    frame = Frame(first, 100, room, longest=10)
    frame.feed(data)
    frame.end()
    assert sum(len(line.text) + 1 for line in frame.lines[1:]) <= room
    assert all(len(line.text) <= 10 for line in frame.lines)
    assert all(line.cut == (len(whole) > 10) for line, whole in zip(frame.lines, lines_of(data)[first - 1 :], strict=False))


def seen(data: bytes, first: int, folder: Path, encoding: Encoding | None = None, most: int = 3) -> LineWindow:
    path = folder / "file"
    path.write_bytes(data)
    with path.open("rb") as file:
        return asyncio.run(window(file, encoding or Encoding(), first, most, here(workspace(folder))))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 10])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_last_lines_are_found_from_the_end(count: int, end: bytes, tmp_path: Path) -> None:
    data = b"\n".join(b"line %d" % n for n in range(1, count + 1)) + (end if count else b"")
    found = seen(data, -2, tmp_path)
    assert [line.text for line in found.lines] == [f"line {n}" for n in range(1, count + 1)][-2:]
    assert [line.n for line in found.lines] == list(range(1, count + 1))[-2:]
    assert found.total == count


def test_a_huge_file_is_read_from_its_end_and_its_lines_are_numbered_from_there(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(40 * 2**30)  # which takes no room
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast but one\nlast\n")
    with path.open("rb") as file:
        found = asyncio.run(window(file, Encoding(), -2, 10, here(workspace(tmp_path))))
    assert [(line.n, line.text) for line in found.lines] == [(-2, "last but one"), (-1, "last")]
    assert found.total is None


def test_a_line_of_gigabytes_is_cut_and_what_lies_behind_is_reached_or_said_to_be_too_far(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.truncate(40 * 2**30)
    place = here(workspace(tmp_path), limits={"search_s": 0.05, "line_chars": 20})
    with path.open("rb") as file:
        found = asyncio.run(window(file, Encoding(), 3, 10, place))
    assert (found.lines, found.total, found.stopped) == ((), None, True)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "latin-1"])
def test_every_encoding_has_the_same_lines(codec: str, tmp_path: Path) -> None:
    data = "".join(f"zeile {n} für ü\n" for n in range(3_000)).encode(codec)
    found = seen(data, 2_500, tmp_path, Encoding(codec=codec), most=2)
    assert [line.text for line in found.lines] == ["zeile 2499 für ü", "zeile 2500 für ü"]
    assert found.total == 3_000


def test_reading_ends_with_the_users_patience(tmp_path: Path) -> None:
    place = here(workspace(tmp_path))
    place.cancel.set()
    found = asyncio.run(window(io.BytesIO(b"a\n" * 5_000_000), Encoding(), 4_000_000, 5, place))
    assert found.stopped
