"""Anthropic messages inside logs: one block per content part, in order, so that blocks and payload line up."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from tenure.apis.media import media_of, source_of
from tenure.engine.record.entry import Block, Media, Opaque, Origin, Text, Thinking, ToolCall, ToolResult
from tenure.logs.mend import Damaged, decode
from tenure.logs.salvage import salvage


class Part(Struct, frozen=True, gc=False):
    """Any content part; which fields are set depends on `type`."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: Raw = Raw(b'""')  # encrypted reasoning; anything else in parts of other types
    id: str = ""
    name: str = ""
    input: Raw = Raw(b"{}")
    tool_use_id: str = ""
    content: Raw = Raw(b'""')
    is_error: bool | None = None
    source: Raw = Raw(b"null")
    title: str | None = None
    context: str | None = None


class Content(Struct, frozen=True, gc=False):
    """A content that could be read: its blocks, and its JSON as it stood."""

    blocks: tuple[Block, ...]
    json: bytes
    left_out: tuple[str, ...] = ()  # fields of another shape than known

    @property
    def parts(self) -> bytes:
        """The JSON of the parts without the brackets around them; a text content is one text part."""
        json = self.json.strip()
        return json[1:-1].strip() if json[:1] == b"[" else b'{"type":"text","text":' + json + b"}"


_raws: Final = msgspec.json.Decoder(list[Raw])
_parts: Final = msgspec.json.Decoder(str | list[Part] | None)
_any: Final = msgspec.json.Decoder[Any](Any)
_part: Final = msgspec.json.Decoder(Part)

OriginOf = Callable[[str], Origin]  # who wrote a text part


def content(raw: bytes, origin_of: OriginOf) -> Content:
    """The blocks of a message's `content`. Raises Damaged when it is neither text nor a list of parts."""
    value, source, faithful, left_out = salvage(raw, _parts)
    if isinstance(value, str):
        return Content((Text(text=value, origin=origin_of(value)),), faithful)
    if value is None:
        return Content((), b"[]")
    blocks = [_block(part, origin_of) for part in value]
    if None in blocks:
        return Content(tuple(_with_opaque(source, origin_of)), faithful, left_out)
    return Content(tuple(block for block in blocks if block is not None), faithful, left_out)


def _block(part: Part, origin_of: OriginOf) -> Block | None:
    """The block of a known part, None for an unknown one."""
    match part.type:
        case "text":
            return Text(text=part.text, origin=origin_of(part.text))
        case "thinking":
            return Thinking(text=part.thinking, seal=_seal(part.signature))
        case "redacted_thinking":
            return Thinking(text="", seal=_seal(str(decode(bytes(part.data), _any))))
        case "tool_use":
            return ToolCall(call_id=part.id, name=part.name, arguments=bytes(part.input).decode("utf-8", "replace"))
        case "tool_result":
            text, media = result(bytes(part.content))
            return ToolResult(call_id=part.tool_use_id, text=text, error=bool(part.is_error), media=media)
        case _:
            return _media(part, origin_of(""))


def _with_opaque(source: bytes, origin_of: OriginOf) -> Iterator[Block]:
    """Like `_block` for every part, with the JSON of unknown ones as their text."""
    for raw in decode(source, _raws):
        part = decode(bytes(raw), _part)
        block = _block(part, origin_of)
        other = Origin.MODEL if origin_of("") is Origin.MODEL else Origin.HARNESS
        yield block or Opaque(type=part.type, text=bytes(raw).decode("utf-8", "replace"), origin=other)


def result(raw: bytes) -> tuple[str, tuple[Media, ...]]:
    """The text a model reads of a tool result's `content`, and the images in it; unknown parts count as their JSON."""
    try:
        value = decode(raw, _parts)
    except Damaged:
        return raw.decode("utf-8", "replace"), ()  # another shape: the model saw it as it is
    if value is None:
        return "", ()
    if isinstance(value, str):
        return value, ()
    found = [_media(part, Origin.TOOL) for part in value]
    media = tuple(item for item in found if item is not None)
    if all(part.type == "text" for part, item in zip(value, found, strict=True) if item is None):
        return "\n".join(part.text for part in value if part.type == "text"), media
    texts = (
        _text(part, bytes(item)) for part, item, image in zip(value, decode(raw, _raws), found, strict=True) if image is None
    )
    return "\n".join(texts), media


def _text(part: Part, raw: bytes) -> str:
    return part.text if part.type == "text" else raw.decode("utf-8", "replace")


def _media(part: Part, origin: Origin) -> Media | None:
    source = decode(bytes(part.source), _any)
    found = source_of({"type": part.type, "source": source, "title": part.title, "context": part.context})
    return media_of(found, origin) if found else None


def _seal(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""
