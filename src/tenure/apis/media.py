"""Images and documents in every provider's shape."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct

from tenure.apis.image_size import image_size, page_count
from tenure.apis.json_text import Json, load, optional_string, source
from tenure.engine.record.entry import NEUTRAL, Entry, Media, Origin, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

PLAIN: Final = "text/plain"
PDF: Final = "application/pdf"


class MediaSource(Struct, frozen=True, kw_only=True):
    """Where the bytes of an image or document are: one of `data`, `plain`, `url` and `file_id` is set."""

    media_type: str = ""
    data: str = ""  # base64
    plain: str = ""  # a document given as text
    url: str = ""
    file_id: str = ""  # known to one provider only
    name: str = ""  # file name, title or caption
    image: bool = True

    @property
    def data_url(self) -> str:
        """The bytes as a URL, or the URL they have."""
        return self.url or f"data:{self.media_type or 'application/octet-stream'};base64,{self.data}"


def source_of(part: Json) -> MediaSource | None:
    """The source that a content part of any provider names; None when it is no media part."""
    from tenure.apis import APIS  # which are made of what stands here

    if not isinstance(part, dict) or part.get("type") == "text":
        return None
    found = next(filter(None, (api.source_of(part) for api in APIS.values())), None)
    return found if found and (found.data or found.plain or found.url or found.file_id) else None


def media_of(item: MediaSource, origin: Origin) -> Media:
    """The block of a source."""
    data = _decoded(item)
    width, height = image_size(data)
    shown = [item.name, item.plain, "" if item.url.startswith("data:") else item.url, item.file_id]
    return Media(
        media_type=item.media_type,
        sha256=sha256(data or (item.data or item.url or item.file_id).encode()).hexdigest(),
        size=len(data),
        width=width,
        height=height,
        pages=page_count(data),
        text="\n".join(filter(None, shown)),
        origin=origin,
    )


def sources(piece: Piece) -> Mapping[str, MediaSource]:
    """The sources of a piece's media by their hash, from its payload in whatever dialect; empty where there is none."""
    wanted = any(isinstance(block, Media) or (isinstance(block, ToolResult) and block.media) for block in piece.blocks)
    if not wanted or not piece.payload or piece.dialect in ("", NEUTRAL):
        return {}
    try:
        found = _walk(load(source(piece.payload, "payload")))
    except InputError:  # a log's line need not be one JSON text
        return {}
    return {media_of(item, Origin.HUMAN).sha256: item for item in found}


def source_in(entry: Entry, media: Media) -> MediaSource | None:
    """The source of a medium of a record entry; None when the payload does not hold it."""
    piece = Piece(role=entry.role, blocks=entry.blocks, dialect=entry.dialect, payload=entry.payload)
    return sources(piece).get(media.sha256)


def medium_bytes(entry: Entry, media: Media) -> bytes:
    """The bytes of a medium exactly as they were. Raises InputError where the record has only an address of them."""
    found = source_in(entry, media)
    data = _decoded(found) if found is not None else b""
    if found is None or not data:
        where = f"only its address {found.url or found.file_id}" if found is not None else "none of its bytes"
        raise InputError("medium", f"the record has {where}", "a medium whose bytes the record holds")
    return data


def note(media: Media) -> str:
    """What stands for media whose bytes cannot be shown: its type and what is known of it in words."""
    if media.media_type == PLAIN:
        return media.text
    facts = [media.media_type or "media", f"{media.width}x{media.height}" if media.width else "", media.text]
    return "[" + ", ".join(filter(None, facts)) + "]"


def _decoded(item: MediaSource) -> bytes:
    if item.plain:
        return item.plain.encode()
    try:
        return base64.b64decode(item.data)
    except (binascii.Error, ValueError):
        return b""


def _walk(value: Json) -> Iterator[MediaSource]:
    if found := source_of(value):
        yield found
    children: Iterable[Json] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _walk(child)


def from_url(url: str, name: str = "", *, image: bool = True) -> MediaSource:
    """The source that a URL is, which may hold the bytes itself."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return MediaSource(media_type=head[5:-7].partition(";")[0], data=data, name=name, image=image)
    return MediaSource(url=url, name=name, image=image)


def image_url(part: Mapping[str, Json]) -> MediaSource:
    """The source of an image, as both APIs of OpenAI name it."""
    inner = part.get("image_url")
    url = optional_string(inner, "url") if isinstance(inner, dict) else optional_string(part, "image_url")
    return from_url(url) if url else MediaSource(file_id=optional_string(part, "file_id"))


def file(part: Mapping[str, Json]) -> MediaSource:
    """The source of a document, as both APIs of OpenAI name it."""
    inner = part.get("file")
    fields = inner if isinstance(inner, dict) else part
    name, data = optional_string(fields, "filename"), optional_string(fields, "file_data")
    if data:
        return from_url(data, name, image=False) if data.startswith("data:") else MediaSource(data=data, name=name, image=False)
    return MediaSource(
        url=optional_string(fields, "file_url"), file_id=optional_string(fields, "file_id"), name=name, image=False
    )
