"""What is shown of a large result, whatever its shape."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.clip.clip import SHAPES, Clipped, clip, sign_of
from tenure.clip.setting import Clip
from tenure.clip.shape import Keep
from tenure.meter.tokens import o200k

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
TEXTS = {"grep": GREP, "log": LOG, "json": JSON, "diff": DIFF, "prose": PROSE, "one line": ONE_LINE}


def clipped(text: str, limits: Clip = SMALL) -> Clipped:
    found = clip(text, COUNT(text), HANDLE, limits, COUNT)
    assert found is not None
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_the_mark_says_that_the_result_is_intact_and_how_to_have_it(name: str) -> None:
    top = clipped(TEXTS[name]).text.splitlines()[0]
    assert "intact" in top
    assert f"recall {HANDLE}" in top
    assert f"{COUNT(TEXTS[name]):,} tokens" in top


@pytest.mark.parametrize("name", TEXTS)
def test_every_line_that_bears_no_mark_is_a_line_of_the_output(name: str) -> None:
    text = TEXTS[name]
    sign = f"[clip {sign_of(text)}"
    kept = [line for line in clipped(text).text.splitlines() if not line.startswith(sign)]
    assert all(line in text for line in kept)
    if name != "one line":
        lines = text.splitlines()
        assert all(line in lines for line in kept)


@pytest.mark.parametrize("name", TEXTS)
def test_a_clip_stays_within_its_room(name: str) -> None:
    found = clipped(TEXTS[name])
    assert found.tokens == COUNT(found.text) <= SMALL.room * 1.05


def test_the_lines_of_every_gap_and_those_kept_are_all_lines() -> None:
    text = clipped(PROSE).text
    gaps = [(int(first), int(last)) for first, last in re.findall(r"\(lines=(\d+)-(\d+)\)", text)]
    lines = PROSE.splitlines()
    left_out = {n for first, last in gaps for n in range(first, last + 1)}
    kept = {n for n, line in enumerate(lines, start=1) if line in text}
    assert left_out | kept == set(range(1, len(lines) + 1))
    assert not left_out & kept


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
        shaped = shape.shaped(lines, room, COUNT) if shape.fits(lines) else None
        kept = [piece for piece in shaped.pieces if isinstance(piece, Keep)] if shaped else []
        assert all(first.stop <= then.start for first, then in pairwise(kept))
