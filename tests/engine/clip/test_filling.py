"""How a choice is weighed: as the clip prints it, but for the sign."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.clip.clip import clip
from tenure.engine.clip.setting import Clip
from tenure.engine.clip.shape import NOTE, Note, Piece, ranges, weighed
from tenure.engine.meter.tokens import o200k

COUNT = o200k()
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
