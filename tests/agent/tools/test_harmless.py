import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.terminal_text import Cleaner, plain
from tenure.engine.record.visible import visible

PIECES = st.sampled_from(
    [
        "a",
        "b\n",
        "\r",
        "\b",
        "\x1b[31m",
        "\x1b]0;t\x07",
        "\x1bP1q\x1b\\",
        "\x1b",
        "[",
        "\u202e",
        "\x00",
        "é",
        "\n",
        "\x9b",
        "\ufeff",
        "x" * 20,
    ]
)
WHOLE = st.sampled_from(["a", "b\n", "\r", "\b", "\x1b[31m", "\x1b]0;t\x07", "\u202e", "\x00", "é", "\n", "\t", "x" * 20])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m b\n", "ared b\n"),
        ("\x1b]0;title\x07hi \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "hi link"),
        ("\x1b[2J\x1b[1;1H\x1b(Bhome", "home"),
        ("\x9b31mred", "red"),
        (" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("N\bNA\bAM\bME\bE", "NAME"),
        ("file\x1b", "file␛"),
        ("nul\x00 bell\x07 del\x7f", "nul␀ bell␇ del␡"),
        ("x\u202ey\u2066z", "x<U+202E>y<U+2066>z"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("tab\tand ünï – 🚀\n", "tab\tand ünï – 🚀\n"),
    ],
)
def test_what_would_act_on_a_terminal_is_taken_out_or_shown(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_bytes_that_are_no_text_are_counted_rather_than_shown() -> None:
    noise = bytes({*range(256)} - {*range(32, 128)} - {*b"\b\n\r"})
    shown = Cleaner().feed(b"before\n" + (noise + b"\n") * 100 + b"after\n", final=True)
    assert shown == f"before\n[binary: {len((noise + b'x').decode(errors='replace')) * 100:,} characters]\nafter\n"


@given(st.lists(PIECES, max_size=40), st.integers(1, 7))
def test_nothing_that_acts_comes_through_in_whatever_pieces_it_comes(pieces: list[str], size: int) -> None:
    data, cleaner = "".join(pieces).encode(), Cleaner()
    shown = "".join(cleaner.feed(data[at : at + size]) for at in range(0, len(data), size)) + cleaner.feed(b"", final=True)
    assert not set(shown) & set("\x00\x07\b\r\x1b\x9b\u202e\ufeff")


@given(st.lists(WHOLE, max_size=40), st.integers(1, 7))
def test_how_output_is_cut_up_on_its_way_changes_nothing(pieces: list[str], size: int) -> None:
    text, cleaner = "".join(pieces), Cleaner()
    data = text.encode()
    shown = "".join(cleaner.feed(data[at : at + size]) for at in range(0, len(data), size)) + cleaner.feed(b"", final=True)
    assert shown == plain(text)


def test_a_line_without_end_and_a_sequence_without_end_are_not_held_for_ever() -> None:
    cleaner = Cleaner()
    given = sum(len(cleaner.feed(b"x" * 50_000)) for _ in range(20))
    assert given > 900_000
    cleaner = Cleaner()
    for _ in range(100):
        cleaner.feed(b"\x1b]0;" + b"x" * 1_000)
    assert len(cleaner.feed(b"", final=True)) < 70_000


@given(st.text())
def test_visible_text_keeps_all_that_has_a_shape(text: str) -> None:
    shown = visible(text)
    assert shown == visible(shown)
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in shown)
