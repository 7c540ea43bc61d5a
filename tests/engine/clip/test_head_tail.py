import re

from hypothesis import given
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, notes, shaped

from tenure.engine.clip import head_tail
from tenure.engine.clip.shape import Keep, weighed


def test_a_quarter_of_the_room_goes_to_the_beginning() -> None:
    lines = [f"line {n} of an ordinary text" for n in range(5_000)]
    found = shaped(head_tail, lines, 2_000)
    head, tail = (COUNT("\n".join(lines[piece.start : piece.stop])) for piece in found.pieces if isinstance(piece, Keep))
    assert 400 <= head <= 520
    assert 1_300 <= tail <= 1_520


def test_what_fits_is_kept_whole() -> None:
    found = shaped(head_tail, ["one", "two", "three"], 100)
    assert found.pieces == (Keep(0, 3),)


def test_of_one_line_longer_than_the_room_both_ends_are_quoted() -> None:
    text = " ".join(f"word{n}" for n in range(10_000))
    found = shaped(head_tail, [text], 500)
    slices = re.findall(rf"line 1, characters ([\d,]+) to ([\d,]+) of {len(text):,}: (.*?)…?$", notes(found), re.MULTILINE)
    assert slices[0][0] == "1"
    assert slices[-1][1] == f"{len(text):,}"
    assert all(text[int(first.replace(",", "")) - 1 : int(last.replace(",", ""))] == words for first, last, words in slices)
    assert 400 <= weighed([text], found.pieces, COUNT) <= 500


def test_of_a_gigantic_line_between_short_ones_both_ends_are_quoted() -> None:
    found = shaped(head_tail, ["begin", "word " * 10_000, "end"], 500)
    assert notes(found).count("line 2, characters") == 2
    assert weighed(["begin", "word " * 10_000, "end"], found.pieces, COUNT) >= 400


def ordinary(size: int, *errors: tuple[int, str]) -> list[str]:
    lines = [f"Paragraph {n} says something that nobody will ever read again." for n in range(size)]
    for at, line in errors:
        lines[at] = line
    return lines


def test_lines_that_look_like_errors_stay_where_no_shape_fits() -> None:
    errors = [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "Segmentation fault",
        "E: Unable to locate package libfoo-dev",
        "ENOENT: no such file or directory, open '/x/y'",
        '<testcase name="t"><failure message="assert 1 == 2">',
    ]
    lines = ordinary(2_000, *((300 * n + 200, line) for n, line in enumerate(errors)))
    found = shaped(head_tail, lines, 900)
    assert set(errors) <= {lines[at] for at in kept(found)}


def test_an_error_that_comes_again_is_shown_once_and_counted() -> None:
    lines = ordinary(
        4_000, *((n, f"read error: Input/output error on block {n}") for n in range(100, 3_900, 10)), (2_000, "Bus error")
    )
    found = shaped(head_tail, lines, 900)
    assert "Bus error" in [lines[at] for at in kept(found)]
    assert "378 more like the one above" in notes(found)


def test_hundreds_of_different_errors_leave_room_for_both_ends() -> None:
    word = "abcdefghij"
    lines = ordinary(
        4_000, *((n, f"Bus error in {word[n % 10]}{word[n // 10 % 10]}{word[n // 100 % 10]}") for n in range(100, 900))
    )
    found = shaped(head_tail, lines, 2_000)
    ends = [piece for piece in found.pieces if isinstance(piece, Keep)]
    assert sum(weighed(lines[p.start : p.stop], (Keep(0, p.stop - p.start),), COUNT) for p in (ends[0], ends[-1])) >= 1_000


def test_an_error_line_larger_than_the_room_is_shown_in_part() -> None:
    lines = ordinary(2_000, (700, "ERROR: the request broke: " + "detail " * 9_000))
    found = shaped(head_tail, lines, 900)
    assert "line 701, characters 1 to" in notes(found)
    assert "ERROR: the request broke: detail" in notes(found)


def test_an_error_far_inside_a_single_gigantic_line_is_shown() -> None:
    lines = ["x=1;" * 40_000 + "Error: ENOENT: no such file" + "y=2;" * 40_000]
    found = shaped(head_tail, lines, 890)
    assert "Error: ENOENT: no such file" in notes(found)


def test_an_error_far_inside_a_long_line_is_shown() -> None:
    lines = ordinary(2_000, (700, "x=1; " * 9_000 + "Error: ENOENT: no such file or directory" + "y=2; " * 9_000))
    found = shaped(head_tail, lines, 900)
    assert "Error: ENOENT: no such file or directory" in notes(found)


def test_a_gigantic_line_in_the_middle_of_many_is_left_out() -> None:
    lines = ["ordinary line"] * 500 + ["x" * 1_000_000] + ["ordinary line"] * 500
    found = shaped(head_tail, lines, 400)
    assert weighed(lines, found.pieces, COUNT) >= 300


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n"), max_size=80), max_size=120), room=st.integers(1, 600))
def test_laws_of_both_ends(lines: list[str], room: int) -> None:
    lawful(head_tail, lines, room)
