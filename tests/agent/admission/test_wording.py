import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.admission.wording import cut, harmless, one_line, wording

UNSEEN = "\x00\x07\x1b\x9b\u200b\u202e\u2066\ufeff\U000e0041"


def test_a_character_that_is_cut_in_two_is_left_out_unless_the_file_ends_so() -> None:
    data = "naïve".encode()[:3]
    whole, start = wording(data), wording(data, whole=False)
    assert (start.text if start else "", start.oddities if start else ("?",)) == ("na", ())
    assert (whole.text if whole else "") == "naÃ"


def test_escape_sequences_leave_nothing_behind() -> None:
    text = "\x1b]0;title\x07a\x1b[1;31mb\x1b[0m\x1b]8;;http://x\x1b\\c\x1b]8;;\x1b\\\x1bMd"
    assert harmless(text) == "abcd"


def test_other_line_ends_are_ours() -> None:
    assert harmless("a\r\nb\rc\u2028d\x0be\x85f") == "a\nb\nc\nd\ne\nf"


def test_lone_surrogates_become_something_that_can_be_sent() -> None:
    assert harmless("a\ud800b") == "a\ufffdb"


def test_escapes_without_an_end_take_no_time() -> None:
    assert harmless("\x1b]" * 200_000) == "]" * 200_000
    assert len(harmless("\x1b[" + "1" * 200_000)) == 200_001


@pytest.mark.parametrize(
    ("text", "most", "kept"),
    [
        ("short", 10, "short"),
        ("x" * 30, 20, "x" * 20),
        ("line one is very long\nline", 23, "line one is very long"),
        ("some words that go on", 18, "some words that go"),
        ("a\n" + "x" * 50, 30, "a\n" + "x" * 28),
    ],
)
def test_a_cut_comes_at_the_end_of_a_line_or_word_that_is_near(text: str, most: int, kept: str) -> None:
    assert cut(text, most) == kept


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_become_text_that_can_be_sent_and_seen_or_none(data: bytes, whole: bool) -> None:
    found = wording(data, whole=whole)
    if found is not None:
        found.text.encode()
        assert not set(UNSEEN) & set(found.text)


@given(st.text(max_size=300), st.integers(1, 50))
def test_one_line_is_one_line_of_that_length(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1


@given(st.text(max_size=300), st.integers(0, 320))
def test_a_cut_is_a_start_and_keeps_nine_tenths(text: str, most: int) -> None:
    kept = cut(text, most)
    assert text.startswith(kept)
    assert len(kept) <= most or kept == text
