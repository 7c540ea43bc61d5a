"""Texts cut inside a line."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.clip.cut import cut
from tenure.engine.meter.tokens import o200k

CLUSTERS = ("e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "\u1112\u1161\u11ab", "\r\n", "word ", "x", "中", "\ud83d\ude00")


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
