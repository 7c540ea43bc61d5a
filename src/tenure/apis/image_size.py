"""How large an image is, read from its first bytes."""

from typing import Final

_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {
    0xC4,
    0xC8,
    0xCC,
}  # start-of-frame markers, without tables and arithmetic coding


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels of a PNG, GIF, JPEG or WebP; (0, 0) when the bytes do not tell."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return _big(data, 16, 4), _big(data, 20, 4)
    if data[:4] == b"GIF8" and len(data) >= 10:
        return _little(data, 6, 2), _little(data, 8, 2)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data[:2] == b"\xff\xd8" else (0, 0)


def page_count(data: bytes) -> int:
    """Pages of a PDF as far as its page objects are not compressed; 0 when unknown."""
    if data[:5] != b"%PDF-":
        return 0
    packed = data.replace(b"/Type /Page", b"/Type/Page")
    return packed.count(b"/Type/Page") - packed.count(b"/Type/Pages")


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        at += 2 if 0xD0 <= marker <= 0xD8 or marker == 0x01 else 2 + max(2, _big(data, at + 2, 2))
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
        case b"VP8L":
            bits = _little(data, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF


def _big(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
