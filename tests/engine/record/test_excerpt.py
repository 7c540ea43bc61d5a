import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.record.excerpt import Lines, excerpt, lines_of
from tenure.errors import InputError
from tenure.testing.builders import by_words

texts = st.text(st.sampled_from("ab \n\r\x00道🙂"), max_size=300)


def by_chars(text: str) -> int:
    return len(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("120-180", Lines(first=120, last=180)),
        ("120:180", Lines(first=120, last=180)),
        (" 120 .. 180 ", Lines(first=120, last=180)),
        ("7", Lines(first=7, last=7)),
        ("7-", Lines(first=7)),
        ("7@4001-9", Lines(first=7, char=4001, last=9)),
    ],
)
def test_a_range_is_understood_in_the_ways_it_is_written(written: str, meant: Lines) -> None:
    assert lines_of(written) == meant


@pytest.mark.parametrize("written", ["", "x", "0-4", "9-1", "1-2-3", "-4", "7@0-", "9" * 5_000])
def test_what_is_no_range_is_refused(written: str) -> None:
    with pytest.raises(InputError, match="a range such as"):
        lines_of(written)


@given(texts, st.integers(1, 40))
def test_what_is_left_out_asked_for_again_and_again_gives_every_byte(text: str, room: int) -> None:
    wanted, parts = Lines(), list[str]()
    for _ in range(len(text) + 2):
        cut = excerpt(text, wanted, room, by_chars)
        parts.append(cut.text)
        if cut.left is None:
            break
        parts.append("" if cut.left.char > 1 else "\n")
        wanted = lines_of(str(cut.left))
    assert "".join(parts) == text


@given(texts, st.integers(1, 40))
def test_an_excerpt_fits_and_holds_whole_lines_unless_not_even_one_fits(text: str, room: int) -> None:
    cut = excerpt(text, Lines(), room, by_chars)
    assert by_chars(cut.text) <= room
    if cut.left is not None and cut.left.char == 1:
        assert text.split("\n")[: cut.left.first - 1] == cut.text.split("\n")


def test_one_gigantic_line_is_cut_at_a_character_and_goes_on_there() -> None:
    cut = excerpt("x" * 1_000_000 + "\nend", Lines(), 100, by_chars)
    assert (len(cut.text), str(cut.left)) == (100, "1@101-2")
    assert excerpt("x" * 1_000_000 + "\nend", Lines(first=1, char=1_000_000), 100, by_chars).text == "x\nend"


def test_lines_beyond_the_text_are_refused_with_how_many_there_are() -> None:
    with pytest.raises(InputError, match="the 2 lines there are"):
        excerpt("a\nb", Lines(first=3), None, by_words)
    assert excerpt("a\nb", Lines(first=2, last=99), None, by_words).text == "b"
