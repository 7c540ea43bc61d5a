import base64

import pytest
from dialect_messages import PNG

from tenure.apis.image_size import image_size, page_count
from tenure.apis.media import media_of, note, source_of
from tenure.engine.record.entry import Origin

GIF = b"GIF89a" + (7).to_bytes(2, "little") + (5).to_bytes(2, "little")
JPEG = b"\xff\xd8" + b"\xff\xe0\x00\x04ab" + b"\xff\xc0\x00\x11\x08" + (5).to_bytes(2, "big") + (7).to_bytes(2, "big") + b"\x03"
VP8X = b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + (6).to_bytes(3, "little") + (4).to_bytes(3, "little")
VP8L = b"RIFF\0\0\0\0WEBPVP8L" + b"\0" * 4 + b"\x2f" + (6 | 4 << 14).to_bytes(4, "little") + b"\0" * 5
VP8 = b"RIFF\0\0\0\0WEBPVP8 " + b"\0" * 10 + (7).to_bytes(2, "little") + (5).to_bytes(2, "little")


@pytest.mark.parametrize("data", [GIF, JPEG, VP8X, VP8L, VP8])
def test_sizes_are_read_from_headers(data: bytes) -> None:
    assert image_size(data) == (7, 5)


@pytest.mark.parametrize("data", [b"", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", JPEG[:12]])
def test_what_does_not_tell_has_no_size(data: bytes) -> None:
    assert image_size(data) == (0, 0)


def test_pages_are_counted() -> None:
    assert page_count(b"%PDF-1.7 /Type /Pages /Type /Page /Type/Page") == 2
    assert page_count(b"nothing") == 0


def test_the_same_bytes_are_the_same_media_in_every_dialect() -> None:
    parts = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ]
    found = [source_of(part) for part in parts]
    assert len({media_of(item, Origin.HUMAN) for item in found if item}) == 1


def test_bytes_that_are_no_base64_still_have_a_hash() -> None:
    found = source_of({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "é"}})
    assert found
    assert (media_of(found, Origin.HUMAN).size, len(media_of(found, Origin.HUMAN).sha256)) == (0, 64)


def test_a_plain_text_document_is_noted_by_its_words() -> None:
    found = source_of({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}})
    assert found
    assert note(media_of(found, Origin.HUMAN)) == "words"
    assert base64.b64decode(PNG)[:4] == b"\x89PNG"
