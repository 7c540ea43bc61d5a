import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.clip.filling import weighed
from tenure.clip.head_tail import HeadTail, cut
from tenure.clip.shape import Keep
from tenure.meter.tokens import o200k

CLUSTERS = ("e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "\u1112\u1161\u11ab", "\r\n", "word ", "x", "中", "\ud83d\ude00")


def test_a_quarter_of_the_room_goes_to_the_beginning() -> None:
    lines = [f"line {n} of an ordinary text" for n in range(5_000)]
    shaped = HeadTail().shaped(lines, 2_000, o200k())
    assert shaped is not None
    head, tail = (o200k()("\n".join(lines[piece.start : piece.stop])) for piece in shaped.pieces if isinstance(piece, Keep))
    assert 400 <= head <= 520
    assert 1_300 <= tail <= 1_520


def test_what_fits_is_kept_whole() -> None:
    shaped = HeadTail().shaped(["one", "two", "three"], 100, o200k())
    assert shaped is not None
    assert shaped.pieces == (Keep(0, 3),)


def test_one_line_longer_than_the_room_is_left_to_the_cut() -> None:
    assert HeadTail().shaped(["word " * 10_000], 500, o200k()) is None


def test_a_gigantic_line_between_short_ones_is_left_to_the_cut() -> None:
    assert HeadTail().shaped(["begin", "word " * 10_000, "end"], 500, o200k()) is None


def test_a_gigantic_line_in_the_middle_of_many_is_left_out() -> None:
    lines = ["ordinary line"] * 500 + ["x" * 1_000_000] + ["ordinary line"] * 500
    shaped = HeadTail().shaped(lines, 400, o200k())
    assert shaped is not None
    assert weighed(lines, shaped.pieces, o200k()) >= 300


def test_a_cut_falls_at_a_words_end_and_counts_what_it_leaves_out() -> None:
    text = " ".join(f"word{n}" for n in range(20_000))
    head, tail, left_out = cut(text, 100, 300, o200k())
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head.endswith(" ")
    assert tail.startswith("word")
    assert 90 <= o200k()(head) <= 100
    assert 270 <= o200k()(tail) <= 300
    assert left_out == o200k()(text[len(head) : len(text) - len(tail)])


def test_a_short_text_is_not_cut() -> None:
    assert cut("short enough", 10, 10, o200k()) == ("short enough", "", 0)


@given(parts=st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=200), head=st.integers(0, 30), tail=st.integers(0, 30))
def test_a_cut_never_parts_what_is_one_character_to_the_reader(parts: list[str], head: int, tail: int) -> None:
    text = "".join(parts)
    left, right, left_out = cut(text, head, tail, o200k())
    edges = {0}
    for part in parts:
        edges.add(max(edges) + len(part))
    assert text.startswith(left)
    assert text.endswith(right)
    assert len(left) + len(right) <= len(text)
    joined = [(len(left)), len(text) - len(right)]
    for at in joined:
        if 0 < at < len(text):
            assert not unicodedata.combining(text[at])
            assert text[at] != "\u200d"
            assert text[at - 1] != "\u200d"
            assert not ("\ud800" <= text[at - 1] <= "\udbff" and "\udc00" <= text[at] <= "\udfff")
            assert not (text[at - 1] == "\r" and text[at] == "\n")
    assert o200k()(left) <= head or not left_out
    assert o200k()(right) <= tail or not left_out


@pytest.mark.parametrize(
    "text", ["a" * 2_000_000, " " * 2_000_000, "e" + "\u0301" * 300_000, "🇩🇪" * 100_000, "\x00" * 500_000, "7" * 1_000_000]
)
def test_a_gigantic_line_is_cut_in_linear_time(text: str) -> None:
    head, tail, left_out = cut(text, 500, 1_500, o200k())
    assert o200k()(head) <= 500
    assert o200k()(tail) <= 1_500
    assert left_out > 0


@given(lines=st.lists(st.text(max_size=80), max_size=120), room=st.integers(1, 600))
def test_laws_of_both_ends(lines: list[str], room: int) -> None:
    shaped = HeadTail().shaped(lines, room, o200k())
    if shaped is None:
        return
    ranges = [piece for piece in shaped.pieces if isinstance(piece, Keep)]
    assert all(left.stop <= right.start for left, right in pairwise(ranges))
    assert weighed(lines, shaped.pieces, o200k()) <= room
