"""What images and documents weigh, per provider, as a table.

Providers count pixels or pages, never bytes. Where the dimensions are unknown the image is taken for a full-HD screenshot
(`SCREENSHOT`), which is what agents attach most; where the pages are unknown, for one page per 50 kB and at least one.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Final, Literal, NamedTuple

from tenure.engine.record.entry import Media

MediaKind = Literal["anthropic", "openai", "gemini", "flat"]

SCREENSHOT: Final = (1920, 1080)  # pixels, for an image of unknown size
PAGE_BYTES: Final = 50_000  # of a document whose pages are unknown
CHARACTERS_PER_TOKEN: Final = 4  # of a text document that travels as media: its bytes are known, its words are not
FLAT: Final = 1_600  # tokens; what an image costs at most with the provider that charges most


class MediaRule(NamedTuple):
    """Tokens of an image by its pixels, and of one page of a document."""

    image: Callable[[int, int], int]
    page: int


def anthropic_image(width: int, height: int) -> int:
    """`width * height / 750` after scaling to at most 1,568 pixels on the long edge and about 1,600 tokens.

    Source: docs.anthropic.com/en/docs/build-with-claude/vision, "Evaluate image size" and "Calculate image costs".
    """
    scale = min(1.0, 1568 / max(width, height), sqrt(1600 * 750 / (width * height)))
    return max(1, ceil(width * scale * height * scale / 750 - 1e-6))


def openai_image(width: int, height: int) -> int:
    """85 tokens, and as with high detail 170 per tile of 512 pixels after fitting into 2048 x 2048 and a short side of 768.

    Source: platform.openai.com/docs/guides/images-vision, "Calculating costs", the row of GPT-4o and GPT-4.1.
    """
    fit = min(1.0, 2048 / max(width, height))
    shrink = min(1.0, 768 / (min(width, height) * fit))
    tiles = ceil(width * fit * shrink / 512 - 1e-6) * ceil(height * fit * shrink / 512 - 1e-6)
    return 85 + 170 * max(1, tiles)


def gemini_image(width: int, height: int) -> int:
    """258 tokens up to 384 x 384 pixels; above, 258 per tile, whose edge is the short side / 1.5, from 256 to 768 pixels.

    Source: ai.google.dev/gemini-api/docs/image-understanding, "Token calculation".
    """
    if width <= 384 and height <= 384:
        return 258
    unit = min(768, max(256, int(min(width, height) / 1.5)))
    return 258 * ceil(width / unit) * ceil(height / unit)


def flat_image(_width: int, _height: int) -> int:
    """One price for every image: for providers that publish none."""
    return FLAT


RULES: Final[dict[MediaKind, MediaRule]] = {
    # docs.anthropic.com/en/docs/build-with-claude/pdf-support: 1,500 to 3,000 tokens of text per page, and its image; a dense page
    # was measured at 2,750 to 3,150 in all.
    "anthropic": MediaRule(anthropic_image, 3_000),
    # platform.openai.com/docs/guides/pdf-files: the extracted text, and an image of each page (765).
    "openai": MediaRule(openai_image, 1_500),
    # ai.google.dev/gemini-api/docs/document-processing: "each document page is equivalent to 258 tokens".
    "gemini": MediaRule(gemini_image, 258),
    "flat": MediaRule(flat_image, FLAT),
}


def media_tokens(media: Media, kind: MediaKind) -> int:
    """Tokens of an image, document or other attachment, without its caption, in the provider's own count."""
    rule = RULES[kind]
    family = media.media_type.partition("/")[0]
    if family in ("", "image"):
        known = media.width > 0 and media.height > 0
        width, height = (media.width, media.height) if known else SCREENSHOT
        return rule.image(width, height)
    if family == "text" and media.size:
        return ceil(media.size / CHARACTERS_PER_TOKEN)
    if family in ("application", "text"):
        return rule.page * (media.pages or max(1, ceil(media.size / PAGE_BYTES)))
    return FLAT  # sound and video: neither a length nor a frame count is known here
