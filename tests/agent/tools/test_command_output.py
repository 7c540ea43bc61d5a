from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.output import Output


def fed(output: Output, *chunks: bytes) -> Output:
    for chunk in chunks:
        output.feed(chunk)
    return output


def test_output_that_fits_is_given_as_it_was() -> None:
    assert fed(Output(1_000), b"one\ntw", b"o\n", b"three").text() == "one\ntwo\nthree"


def lines(count: int) -> bytes:
    return b"".join(b"line %d\n" % n for n in range(1, count + 1))


def test_long_output_gives_its_beginning_and_end_and_keeps_all_of_it_in_a_file(tmp_path: Path) -> None:
    output, data = Output(2_000, part=tmp_path / "spills" / "a.part", most=10**6), lines(10_000)
    for at in range(0, len(data), 777):
        output.feed(data[at : at + 777])
    text, spill = output.text(), output.spill
    assert spill is not None
    head, _, rest = text.partition("[")
    note, _, tail = rest.partition("]\n")
    assert head.startswith("line 1\nline 2\n")
    assert tail.endswith("line 9999\nline 10000\n")
    first, last = spill.left
    assert head.endswith(f"line {first - 1}\n")
    assert tail.startswith(f"line {last + 1}\n")
    left_out = len(data) - len(head) - len(tail)
    assert note.startswith(
        f"left out here: lines {first}-{last} of 10,000, {left_out:,} of {len(data):,} bytes; the whole output is kept"
    )
    assert spill.handle in note
    kept = tmp_path / "spills" / sha256(data).hexdigest()
    assert kept.read_bytes() == data
    assert (spill.size, spill.lines, spill.of_size, spill.of_lines) == (len(data), 10_000, len(data), 10_000)


def test_an_output_over_the_limit_of_its_file_says_to_the_byte_what_is_kept_and_what_is_lost(tmp_path: Path) -> None:
    output = fed(Output(1_000, part=tmp_path / "a.part", most=5_000), *[b"x" * 999 + b"\n"] * 50)
    text, spill = output.text(), output.spill
    assert spill is not None
    assert (spill.size, spill.lines, spill.of_size, spill.of_lines) == (5_000, 5, 50_000, 50)
    assert (tmp_path / spill.sha256).read_bytes() == (b"x" * 999 + b"\n") * 5
    shown = len(text.rpartition("]\n")[2])
    assert "the first 5,000 bytes are kept (the limit is 5,000)" in text
    assert f"; {50_000 - 5_000 - shown:,} bytes behind them are lost]" in text


def test_a_full_disk_is_said_with_what_is_kept(tmp_path: Path) -> None:
    output = fed(Output(100, part=tmp_path / "a.part", most=10**6, spare=2**62), b"x\n" * 500)
    assert "that is not kept: the disk has less than" in output.text()
    assert output.spill is None


def test_output_that_fits_needs_no_spill(tmp_path: Path) -> None:
    output = fed(Output(1_000, part=tmp_path / "a.part", most=10**6), b"one\n")
    assert (output.text(), output.spill) == ("one\n", None)


def test_what_is_no_text_is_kept_as_it_was_however_little_it_is(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4
    output = fed(Output(10_000, part=tmp_path / "a.part", most=10**6), b"text\n", data)
    text, spill = output.text(), output.spill
    assert spill is not None
    assert (tmp_path / spill.sha256).read_bytes() == b"text\n" + data
    assert f"[not all of its {5 + len(data):,} bytes are text: the whole output is kept: recall" in text


@pytest.mark.parametrize("place", ["no folder", "a folder that is a file"])
def test_a_disk_that_takes_nothing_loses_only_the_file_and_says_so(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    part = tmp_path / "file" / "a.part" if place == "a folder that is a file" else None
    text = fed(Output(100, part=part, most=10**6), b"x\n" * 500).text()
    assert text.startswith("x\nx\n")
    assert "; that is not kept: " in text


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("width", [1, 7, 300, 5_000])
def test_the_lines_left_out_are_those_between(width: int, end: bytes, tmp_path: Path) -> None:
    data = b"\n".join(b"%d%s" % (n, b"." * width) for n in range(1, 2_000)) + end
    output = Output(2_000, part=tmp_path / "a.part", most=2**30)
    for at in range(0, len(data), 4_096):
        output.feed(data[at : at + 4_096])
    text, spill = output.text(), output.spill
    assert spill is not None
    assert spill.lines == spill.of_lines == 1_999
    head, tail = text.partition("[left out")[0], text.partition("]\n")[2]
    first, last = spill.left
    if head.endswith("\n") and width < 1_000:
        assert head.rstrip("\n").rpartition("\n")[2].startswith(str(first - 1))
        assert tail.startswith(str(last + 1))
    else:  # cut inside a line, which is then among those that are left out
        assert head.startswith("1.")
        assert last == 1_999


def test_memory_is_bounded_whatever_comes() -> None:
    output = Output(10_000)
    for _ in range(2_000):
        output.feed(b"y\n" * 32_768)
    assert output.bytes == 2_000 * 65_536
    kept = output.__dict__
    assert sum(map(len, kept["_tail"])) < 200_000
    assert len(kept["_head"]) <= 10_000
    assert output.text().count("\n") < 6_000


def test_a_character_that_is_cut_by_the_room_stays_whole() -> None:
    text = fed(Output(100), "é".encode() * 49, b"\xc3", b"\xa9" + "é".encode() * 500).text()
    assert "\ufffd" not in text


@given(st.lists(st.binary(max_size=60), max_size=60), st.integers(20, 400))
def test_news_is_harmless_and_together_the_whole_text_of_what_fits(chunks: list[bytes], room: int) -> None:
    short, whole, told = Output(room), Output(4_000), ""
    for chunk in chunks:
        short.feed(chunk)
        whole.feed(chunk)
        told += whole.news.text()
    text = whole.text()
    assert told + whole.news.text() == text
    assert not set(text + short.text() + short.news.text()) & set("\x1b\x07\b\r\x00")


def test_news_of_a_flood_is_its_beginning_and_then_its_newest() -> None:
    output = Output(1_000)
    flood = b"".join(b"%d\n" % line for line in range(5_000))
    output.feed(flood)
    first = output.news.text()
    assert first.startswith("0\n1\n2\n")
    assert "\n[…]\n" in first
    for _ in range(50):
        output.feed(flood)
    news = output.news.text()
    assert news.startswith("[…]\n")
    assert news.endswith("\n4998\n4999\n")
    assert len(news) < 5_000
    assert output.news.text() == ""
