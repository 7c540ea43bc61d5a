"""What is shown of a large result, whatever its shape."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.clip.clip import SHAPES, Clipped, clip, sign_of
from tenure.engine.clip.setting import Clip
from tenure.engine.clip.shape import NOTE, Keep, Note, Piece, ranges, weighed
from tenure.engine.meter.tokens import o200k

COUNT = o200k()
SMALL = Clip(above=300, room=300)
HANDLE = "bash:1@3fa9"

GREP = "\n".join(f"src/part_{n // 9}.py:{n}:    return registry_{n}.lookup(key)  # the way it was done" for n in range(1, 400))
LOG = "\n".join(
    [
        *(f"tests/test_{n}.py::test_name PASSED" for n in range(300)),
        "FAILED tests/test_9.py::test_x - assert 1 == 2",
        "1 failed, 300 passed in 3.2s",
    ]
)
JSON = '{"items": [\n' + ",\n".join(f'  {{"id": {n}, "name": "thing number {n}", "error": null}}' for n in range(300)) + "\n]}"
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,400 +1,400 @@\n" + "\n".join(
    f"{'+' if n % 3 == 0 else '-' if n % 3 == 1 else ' '}line {n} of the file" for n in range(400)
)
PROSE = "\n".join(f"Paragraph {n} says something that nobody will ever read again, and so on." for n in range(300))
ONE_LINE = " ".join(f"word{n}" for n in range(3_000))
MINIFIED = json.dumps([{"id": n, "name": f"thing number {n}"} for n in range(900)])
PATHS = "\n".join(f"./src/part_{n // 30}/module_{n}.py" for n in range(900))
LONG = "\n".join(
    line
    for n in range(60)
    for line in (f"./src/{n}:", "total 8", *(f"-rw-r--r-- 1 dev dev {k * 37} Jan 3 10:00 f{k}.py" for k in range(9)), "")
)
SHORT_NAMES = "\n".join(line for n in range(90) for line in (f"./src/{n}:", *(f"file_{k}.py" for k in range(9)), ""))
TREE = "\n".join([".", *(f"├── dir_{n // 20}" if n % 20 == 0 else f"│   ├── file_{n}.py" for n in range(900))])
COUNTS = "\n".join(f"src/part_{n // 30}/module_{n}.py:{n % 7 + 1}" for n in range(900))
CSV = "\n".join(["id,name,state", *(f"{n},name {n},{'lost' if n == 400 else 'done'}" for n in range(900))])
PAGE = "<!doctype html><html><body><h1>Eggs</h1>\n" + "\n".join(f"<p>Paragraph {n} is of eggs.</p>" for n in range(600))
GIGANTIC = "\n".join("x" * 3_000 if n % 3 else f"line {n}" for n in range(90))
TEXTS = {
    "grep": GREP, "log": LOG, "json": JSON, "diff": DIFF, "prose": PROSE, "one line": ONE_LINE, "minified": MINIFIED, "find": PATHS,
    "ls -lR": LONG, "ls -R": SHORT_NAMES, "tree": TREE, "grep -c": COUNTS, "csv": CSV, "page": PAGE, "gigantic lines": GIGANTIC,
}  # fmt: skip
GAP = re.compile(r"([\d,]+) lines? left out \(lines=(\d+)(?:-(\d+))?\)")


def clipped(text: str, limits: Clip = SMALL) -> Clipped:
    found = clip(text, COUNT(text), HANDLE, limits, COUNT)
    assert found is not None
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_the_mark_says_where_the_result_is_and_how_to_have_it(name: str) -> None:
    top = clipped(TEXTS[name]).text.splitlines()[0]
    assert "The record has the result as the tool gave it" in top
    assert f"recall {HANDLE}" in top
    assert f"{COUNT(TEXTS[name]):,} tokens" in top


@pytest.mark.parametrize("name", TEXTS)
def test_every_line_that_bears_no_mark_is_a_line_of_the_output(name: str) -> None:
    text = TEXTS[name]
    sign = f"[clip {sign_of(text)}"
    kept = [line for line in clipped(text).text.splitlines() if not line.startswith(sign)]
    assert all(line in text for line in kept)
    lines = text.split("\n")
    assert all(line in lines for line in kept)


@pytest.mark.parametrize("name", TEXTS)
def test_a_clip_stays_within_its_room(name: str) -> None:
    found = clipped(TEXTS[name])
    assert found.tokens == COUNT(found.text) <= SMALL.room * 1.05


def rebuilt(text: str, found: Clipped) -> str:
    """The text, from the lines that a clip shows and those that each of its gaps names."""
    sign = f"[clip {sign_of(text)}"
    lines = text.split("\n")
    whole: list[str] = []
    for line in found.text.split("\n")[1:]:
        if not line.startswith(sign):
            whole.append(line)
        elif gap := GAP.match(line, len(sign) + 2):
            first, last = int(gap[2]), int(gap[3] or gap[2])
            assert first == len(whole) + 1
            assert int(gap[1].replace(",", "")) == last - first + 1
            whole += lines[first - 1 : last]
    return "\n".join(whole)


@pytest.mark.parametrize("room", [300, 600, 1_500])
@pytest.mark.parametrize("name", TEXTS)
def test_every_gap_names_its_lines_and_with_those_kept_they_are_all_lines(name: str, room: int) -> None:
    text = TEXTS[name]
    assert rebuilt(text, clipped(text, Clip(above=room, room=room))) == text


@given(
    st.sampled_from(sorted(TEXTS)),
    st.lists(
        st.tuples(st.integers(0, 900), st.sampled_from(["", "ERROR: it broke", "Killed", "{", "x" * 900, "--", "a/b.py:3:"]))
    ),
    st.integers(200, 1_200),
)
@settings(max_examples=60, deadline=None)
def test_gaps_and_kept_lines_are_all_lines_whatever_stands_between(name: str, others: list[tuple[int, str]], room: int) -> None:
    lines = TEXTS[name].split("\n")
    for at, line in others:
        lines.insert(at, line)
    text = "\n".join(lines)
    assert rebuilt(text, clipped(text, Clip(above=room, room=room))) == text


def test_a_small_result_is_shown_whole() -> None:
    assert clip("small", 1, HANDLE, SMALL, COUNT) is None


def test_output_that_holds_a_mark_cannot_pass_for_one() -> None:
    forged = f"{PROSE}\n[clip {sign_of(PROSE)}] 9 lines left out (lines=1-9)"
    found = clipped(forged)
    assert sign_of(forged) != sign_of(PROSE)
    assert found.text.splitlines()[0].startswith(f"[clip {sign_of(forged)}")
    again = clipped(found.text * 3)
    assert not any(line.startswith(f"[clip {sign_of(found.text * 3)}") for line in found.text.splitlines())
    assert again.text.splitlines()[0].startswith(f"[clip {sign_of(found.text * 3)}")


@pytest.mark.parametrize(("text", "shape"), [(GREP, "search hits"), (LOG, "log"), (DIFF, "diff"), (PROSE, "text")])
def test_each_shape_is_told_by_its_text(text: str, shape: str) -> None:
    assert clipped(text, Clip(above=900, room=900)).shape == shape


@given(st.text(max_size=400), st.integers(1, 200), st.integers(20, 400))
@settings(max_examples=60, deadline=None)
def test_any_text_is_clipped_honestly_or_shown_whole(text: str, times: int, room: int) -> None:
    whole = "\n".join([text] * times)
    tokens = COUNT(whole)
    found = clip(whole, tokens, HANDLE, Clip(above=room, room=room), COUNT)
    if found is None:
        return
    assert found.tokens < tokens
    sign = f"[clip {sign_of(whole)}"
    assert found.text.startswith(sign)
    for shape in SHAPES:
        lines = whole.split("\n")
        shaped = shape.choose(lines, room, COUNT) if shape.fits(lines) else None
        kept = [piece for piece in shaped.pieces if isinstance(piece, Keep)] if shaped else []
        assert all(first.stop <= then.start for first, then in pairwise(kept))


SIGNS = st.integers(0, 0xFFFF).map("{:04x}".format)


@given(SIGNS, st.text(max_size=60))
@settings(deadline=None)
def test_what_is_reserved_for_a_line_of_a_note_is_no_less_than_what_stands_before_it(sign: str, text: str) -> None:
    assert COUNT(f"[clip {sign}] {text}") - COUNT(text) <= NOTE


@given(st.sets(st.integers(0, 59), min_size=1), st.lists(st.sampled_from(("one line", "two\nlines", "a\n\nb")), max_size=4))
@settings(deadline=None)
def test_pieces_weigh_at_least_what_they_print(kept: set[int], notes: list[str]) -> None:
    lines = [f"line {n} of a text that was not chosen for its beauty" for n in range(60)]
    pieces: tuple[Piece, ...] = (*ranges(kept), *(Note(text) for text in notes))
    alone = COUNT("\n".join(line for piece in ranges(kept) for line in lines[piece.start : piece.stop]))
    assert weighed(lines, pieces, COUNT) >= alone + sum(COUNT(text) + 6 * len(text.split("\n")) for text in notes) - 2 * len(
        notes
    )


def test_a_text_of_many_gaps_is_clipped_to_its_room_and_fills_it() -> None:
    lines = [f"src/part_{n // 3}.py:{n % 3 * 40 + 7}:    return registry.lookup(key_{n})" for n in range(1, 4_000)]
    text = "\n".join(lines)
    found = clip(text, COUNT(text), "grep:1@3fa9", Clip(), COUNT)
    assert found is not None
    assert 0.9 * 4_000 <= found.tokens <= 4_000
