from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.output import Output


def fed(output: Output, *chunks: bytes) -> Output:
    for chunk in chunks:
        output.feed(chunk)
    return output


def test_output_that_fits_is_given_as_it_was() -> None:
    assert fed(Output(1_000), b"one\ntw", b"o\n", b"three").text() == "one\ntwo\nthree"


def test_long_output_keeps_its_beginning_and_end_and_says_what_is_between(tmp_path: Path) -> None:
    spill = tmp_path / "scratch" / "output.txt"
    output = Output(2_000, spill=spill, spill_bytes=10**6)
    data = b"".join(b"line %d\n" % n for n in range(10_000))
    for at in range(0, len(data), 777):
        output.feed(data[at : at + 777])
    text = output.text()
    head, mark, tail = text.partition("[left out: ")
    said, _, tail = tail.partition("]\n")
    assert mark
    assert head.startswith("line 0\nline 1\n")
    assert head.endswith("\n")
    assert tail.startswith("line ")
    assert tail.endswith("line 9999\n")
    assert len(text) < 2_500
    left_out = len(data) - len(head) - len(tail)
    assert said == f"{left_out:,} bytes of {len(data):,}, which are 10,000 lines; all of it is in {spill}"
    assert spill.read_bytes() == data


def test_the_file_is_bounded_and_says_so(tmp_path: Path) -> None:
    spill = tmp_path / "output.txt"
    output = Output(1_000, spill=spill, spill_bytes=5_000)
    text = fed(output, *[b"x" * 999 + b"\n"] * 50).text()
    assert f"its first 5,000 bytes are in {spill}" in text
    assert spill.stat().st_size == 5_000


def test_output_that_shrinks_to_what_fits_leaves_no_file(tmp_path: Path) -> None:
    spill = tmp_path / "output.txt"
    output = Output(1_000, spill=spill, spill_bytes=10**6)
    assert fed(output, *[b"\r %d%%" % n for n in range(5_000)], b"\ndone\n").text() == " 4999%\ndone\n"
    assert not spill.exists()


def test_a_disk_that_takes_nothing_loses_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    text = fed(Output(100, spill=tmp_path / "file" / "output.txt", spill_bytes=10**6), b"x\n" * 500).text()
    assert text.startswith("x\nx\n")
    assert "are in" not in text


def test_memory_is_bounded_whatever_comes() -> None:
    output = Output(10_000)
    for _ in range(2_000):
        output.feed(b"y\n" * 32_768)
    assert output.bytes == 2_000 * 65_536
    kept = output.__dict__
    assert sum(map(len, kept["_ring"])) < 200_000
    assert sum(map(len, kept["_head"])) < 100_000
    assert output.text().count("\n") < 6_000


def test_a_character_that_is_cut_by_the_room_stays_whole() -> None:
    text = fed(Output(100), "é".encode() * 49, b"\xc3", b"\xa9" + "é".encode() * 500).text()
    assert "\ufffd" not in text


@given(st.lists(st.binary(max_size=60), max_size=60), st.integers(20, 400))
def test_news_is_harmless_and_the_beginning_is_never_lost(chunks: list[bytes], room: int) -> None:
    output, told = Output(room), ""
    for chunk in chunks:
        output.feed(chunk)
        told += output.news()
    text = output.text()
    told += output.news()
    assert not set(told + text) & set("\x1b\x07\b\r\x00")
    assert text[: min(20, room // 2 - 1)].startswith(told[: min(5, room // 4)]) or not told


def test_news_of_a_flood_is_its_beginning_and_then_its_newest() -> None:
    output = Output(1_000)
    flood = b"".join(b"%d\n" % line for line in range(5_000))
    output.feed(flood)
    first = output.news()
    assert first.startswith("0\n1\n2\n")
    assert "\n[…]\n" in first
    for _ in range(50):
        output.feed(flood)
    news = output.news()
    assert news.startswith("[…]\n")
    assert news.endswith("\n4998\n4999\n")
    assert len(news) < 5_000
    assert output.news() == ""
