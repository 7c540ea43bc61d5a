import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.meter.media import FLAT, RULES, MediaKind, anthropic_image, gemini_image, media_tokens, openai_image
from tenure.engine.record.entry import Media

KINDS = tuple(RULES)


def media(kind: str = "image/png", **fields: int) -> Media:
    return Media(media_type=kind, sha256="0" * 64, **fields)


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(200, 200, 54), (1000, 1000, 1334), (1092, 1092, 1590), (4000, 4000, 1600), (4000, 400, 328)]
)
def test_anthropic_counts_pixels_up_to_its_limits(width: int, height: int, tokens: int) -> None:
    assert anthropic_image(width, height) == tokens


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(512, 512, 255), (1024, 1024, 765), (2048, 4096, 1105), (4096, 8192, 1105)]
)
def test_openai_counts_tiles_in_high_detail(width: int, height: int, tokens: int) -> None:
    assert openai_image(width, height) == tokens


@pytest.mark.parametrize(("width", "height", "tokens"), [(384, 384, 258), (960, 540, 6 * 258), (768, 768, 4 * 258)])
def test_gemini_counts_tiles(width: int, height: int, tokens: int) -> None:
    assert gemini_image(width, height) == tokens


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_of_unknown_size_is_a_full_hd_screenshot(kind: MediaKind) -> None:
    assert media_tokens(media(), kind) == media_tokens(media(width=1920, height=1080), kind)


def test_a_document_weighs_its_pages() -> None:
    assert media_tokens(media("application/pdf", pages=3), "gemini") == 3 * 258
    assert media_tokens(media("application/pdf", size=120_000), "gemini") == 3 * 258
    assert media_tokens(media("application/pdf"), "gemini") == 258


def test_a_text_document_weighs_its_bytes() -> None:
    assert media_tokens(media("text/plain", size=4_001), "anthropic") == 1_001


def test_sound_has_one_price() -> None:
    assert media_tokens(media("audio/wav", size=10**6), "openai") == FLAT


@given(st.sampled_from(KINDS), st.integers(1, 20_000), st.integers(1, 20_000))
def test_every_image_weighs_something_and_has_a_ceiling(kind: MediaKind, width: int, height: int) -> None:
    assert 0 < media_tokens(media(width=width, height=height), kind) <= (10**9 if kind == "gemini" else 3_000)
