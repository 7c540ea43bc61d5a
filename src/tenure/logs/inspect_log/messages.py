"""Inspect's chat messages: their blocks, and who wrote them."""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis.media import MediaSource, media_of
from tenure.engine.record.entry import Block, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.parts import compact, from_url, plain, result_of, seal, text_of
from tenure.logs.salvage import DamagedJson, salvage, valid

ROLES: Final = {"system": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}

# Who wrote a user message, by its `source`; without one it is the harness's own: a nudge, a summary, a notice.
WRITERS: Final = {"input": Origin.HUMAN, "generate": Origin.HUMAN, "operator": Origin.HUMAN}

REMOVED: Final = "<base64-data-removed>"  # what stands for the bytes of media in logs that were to hold none

_TEXT_DOCUMENT: Final = re.compile(r"data:(text/[^;,]*)[^,]*;base64,")


class _InspectPart(Struct, frozen=True, gc=False):
    """Any content part; which fields are set depends on `type`."""

    type: str = ""
    text: str = ""
    reasoning: str = ""
    summary: str | None = None
    signature: str | None = None
    redacted: bool | None = False
    image: str = ""
    audio: str = ""
    video: str = ""
    document: str = ""
    filename: str | None = None
    mime_type: str | None = None
    format: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b'""')
    result: Raw = Raw(b'""')
    error: str | None = None
    data: Raw = Raw(b"{}")


class _InspectError(Struct, frozen=True, gc=False):
    message: str | None = None


class _ToolCall(Struct, frozen=True, gc=False):
    id: str | None = None
    function: str = ""
    arguments: Raw = Raw(b"{}")


class InspectMessage(Struct, frozen=True, gc=False):
    """A message as any version writes it."""

    role: str = ""
    content: str | list[Raw] | None = None
    id: str | None = None
    source: str | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | list[str] | None = None  # a list where a user message carries what a tool returned
    error: _InspectError | None = None
    tool_error: str | None = None  # instead of `error`, in 2024
    reasoning: str | None = None  # beside the content, before there were reasoning parts
    model: str | None = None
    metadata: Raw = Raw(b"null")

    @property
    def failure(self) -> str:
        """What a model reads of a failed call: its error, in place of what the tool had returned."""
        return valid((self.error and self.error.message) or self.tool_error or "")


def blocks_of(message: InspectMessage, new_id: Callable[[], str] = str, *, first: bool = False) -> tuple[Block, ...]:
    """The blocks of a message, none for an unknown role. Calls and results without an id get a new one; `first` is the first user's."""
    match ROLES.get(message.role):
        case None:
            return ()
        case Role.TOOL:
            return (_result(message, new_id),)
        case Role.ASSISTANT:
            thought = (Thinking(text=message.reasoning),) if message.reasoning else ()
            calls = (
                ToolCall(call_id=call.id or new_id(), name=call.function, arguments=compact(call.arguments))
                for call in message.tool_calls or ()
            )
            return (*thought, *_content(message, Origin.MODEL), *calls)
        case Role.SYSTEM:
            return tuple(_content(message, Origin.HARNESS))
        case Role.USER:
            writer = WRITERS.get(message.source or "", Origin.HUMAN if first else Origin.HARNESS)
            return tuple(_content(message, Origin.TOOL if message.tool_call_id else writer))


def unshown(message: InspectMessage) -> int:
    """Characters that a tool returned and the model never saw, since it was shown the error in their place."""
    text = "\n".join(block.text for block in _content(message, Origin.TOOL)) if message.failure else ""
    return 0 if text.strip() in message.failure else len(text)


def _result(message: InspectMessage, new_id: Callable[[], str]) -> ToolResult:
    call_id = message.tool_call_id if isinstance(message.tool_call_id, str) and message.tool_call_id else new_id()
    failed = message.error is not None or bool(message.tool_error)
    blocks = tuple(_content(message, Origin.TOOL))
    return (
        ToolResult(call_id=call_id, text=message.failure, error=failed)
        if message.failure
        else result_of(call_id, blocks, error=failed)
    )


def _content(message: InspectMessage, origin: Origin) -> Iterator[Block]:
    if isinstance(message.content, str):
        if message.content:
            yield Text(text=message.content, origin=origin)
        return
    for raw in message.content or ():
        try:
            block = _block(salvage(bytes(raw), _InspectPart).value, bytes(raw), origin)
        except DamagedJson:  # no object, or one of another version: carried as it stands
            block = Opaque(type="", text=plain(raw), origin=origin)
        if block is not None:
            yield block


def _block(part: _InspectPart, raw: bytes, origin: Origin) -> Block | None:
    match part.type:
        case "text":
            return Text(text=part.text, origin=origin) if part.text else None
        case "reasoning":
            return _thinking(part)
        case "image":
            return _media(part.image, "", origin)
        case "audio" | "video":
            url = part.audio or part.video
            return _media(url, f"{part.type}/{part.format}" if part.format else part.type, origin)
        case "document":
            return _document(part, origin)
        case "tool_use":  # a tool that ran at the provider: call and result are one part of the answer
            texts = (part.name, _shown(part.arguments), part.error or _shown(part.result))
            return Opaque(type=part.type, text="\n".join(filter(None, texts)), origin=origin)
        case _:
            return Opaque(type=part.type, text=compact(part.data if part.type == "data" else Raw(raw)), origin=origin)


def _thinking(part: _InspectPart) -> Thinking | None:
    """A redacted part holds what the provider sealed in `reasoning`, and what can be read of it in `summary`."""
    text = (part.summary or "") if part.redacted else part.reasoning or part.summary or ""
    secret = part.reasoning if part.redacted else part.signature
    return Thinking(text=text, seal=seal(secret)) if text or secret else None


def _media(url: str, media_type: str, origin: Origin) -> Media:
    media = from_url(url, media_type, origin)
    return replace(media, text="") if url == REMOVED else media


def _document(part: _InspectPart, origin: Origin) -> Media:
    name = part.filename or ""
    if plain := _TEXT_DOCUMENT.match(part.document):  # the model reads its text
        try:
            text = b64decode(part.document[plain.end() :]).decode("utf-8", "replace")
            return media_of(MediaSource(media_type=plain[1], plain=text, name=name, image=False), origin)
        except (binascii.Error, ValueError):
            pass
    media = _media(part.document, part.mime_type or "", origin)
    return replace(media, text="\n".join(filter(None, (name, media.text)))) if name not in media.text else media


def _shown(raw: Raw) -> str:
    return "" if bytes(raw) == b"null" else text_of(raw)
