"""One message of a Cline-like task: Anthropic's with fields of Cline's own, or one in the AI SDK's words (Roo Code's version 2).

What is a plain Anthropic message keeps its bytes as payload, without the fields beside role and content. What is not becomes
blocks of ours.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import NEUTRAL, Block, Media, Origin, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.anthropic_message import content, result
from tenure.logs.media import from_base64, from_url
from tenure.logs.mend import Damaged, decode, decode_with_source

PLAIN: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"})  # Anthropic's

BESIDE: Final = frozenset({"thoughtSignature"})  # parts that carry a signature and no words

_MEDIA: Final = frozenset({"image", "file", "media"})


class _Detail(Struct, frozen=True, gc=False):
    """A piece of reasoning as OpenRouter returns it."""

    type: str = ""
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None


class _Output(Struct, frozen=True, gc=False):
    """A result in the AI SDK's words."""

    type: str = ""
    value: Raw = Raw(b'""')


class _Part(Struct, frozen=True, gc=False):
    """A part, as far as it is not Anthropic's."""

    type: str = ""
    text: str | None = None
    signature: str | None = None
    reasoning_details: list[_Detail] | None = None
    toolCallId: str = ""  # noqa: N815 - the log's own names, here and below
    toolName: str = ""  # noqa: N815
    input: Raw = Raw(b"{}")
    output: Raw = Raw(b'""')
    content: Raw = Raw(b'""')
    tool_use_id: str = ""
    is_error: bool | None = None
    path: str | None = None
    image: str | None = None
    data: str | None = None
    mediaType: str | None = None  # noqa: N815
    call_id: Raw = Raw(b"")


class _Tokens(Struct, frozen=True, gc=False):
    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0


class _Metrics(Struct, frozen=True, gc=False):
    tokens: _Tokens | None = None  # Cline's extension
    inputTokens: int | None = None  # noqa: N815 - and here Cline's SDK
    outputTokens: int | None = None  # noqa: N815
    cacheReadTokens: int | None = None  # noqa: N815
    cacheWriteTokens: int | None = None  # noqa: N815


class _Model(Struct, frozen=True, gc=False):
    modelId: str | None = None  # noqa: N815
    id: str | None = None


class _Metadata(Struct, frozen=True, gc=False):
    kind: str | None = None
    displayRole: str | None = None  # noqa: N815


class Message(Struct, frozen=True, gc=False):
    """A message, or a piece of reasoning that stands between messages (`type` is "reasoning", no role)."""

    role: str = ""
    content: Raw = Raw(b"")
    type: str | None = None
    ts: float | str | None = None
    modelInfo: _Model | None = None  # noqa: N815
    metrics: _Metrics | None = None
    metadata: _Metadata | None = None
    isSummary: bool | None = False  # noqa: N815
    condenseId: str | None = None  # noqa: N815
    condenseParent: str | None = None  # noqa: N815
    isTruncationMarker: bool | None = False  # noqa: N815
    truncationId: str | None = None  # noqa: N815
    truncationParent: str | None = None  # noqa: N815
    reasoning_content: str | None = None
    reasoning_details: list[_Detail] | None = None
    summary: list[_Detail] | None = None
    encrypted_content: str | None = None
    text: str | None = None

    @property
    def model(self) -> str:
        """The model that answered, where the message says it."""
        found = self.modelInfo or _Model()
        return found.modelId or found.id or ""

    @property
    def of_harness(self) -> bool:
        """Whether the message says itself that no human wrote it."""
        told = self.metadata or _Metadata()
        return bool(self.isSummary or self.isTruncationMarker) or bool(told.kind) or told.displayRole in ("system", "status")

    @property
    def usage(self) -> Usage | None:
        """Both kinds of figures count cached tokens inside the prompt."""
        if self.metrics is None:
            return None
        if (tokens := self.metrics.tokens) is not None:
            return _usage(tokens.prompt, tokens.completion, tokens.cached, 0)
        if self.metrics.inputTokens is None and self.metrics.outputTokens is None:
            return None
        return _usage(
            self.metrics.inputTokens, self.metrics.outputTokens, self.metrics.cacheReadTokens, self.metrics.cacheWriteTokens
        )


class Read(Struct, frozen=True):
    """A content that could be read; without a payload the blocks are ours."""

    blocks: tuple[Block, ...]
    dialect: str = NEUTRAL
    payload: bytes = b""


_parts: Final = msgspec.json.Decoder(str | list[_Part] | None)
_raws: Final = msgspec.json.Decoder(list[Raw])
_outputs: Final = msgspec.json.Decoder(str | _Output | list[_Part])
_string: Final = msgspec.json.Decoder(str)
_part_list: Final = msgspec.json.Decoder(list[_Part])


def read_message(message: Message, raw: bytes) -> Read:
    """The blocks of a message whose content is spelled `raw`. Raises Damaged."""
    origin = Origin.MODEL if message.role == "assistant" else Origin.HUMAN
    parts, source = _parts_of(raw)
    beside = _thoughts(message)
    if all(_is_plain(part) for part in parts):
        found = content(raw, lambda _: origin)
        if beside or not found.blocks or message.role not in ("user", "assistant"):
            return Read((*_unless_said(beside, found.blocks), *found.blocks))
        payload = b'{"role":"' + message.role.encode() + b'","content":' + found.json + b"}"
        return Read(found.blocks, "anthropic", payload)
    blocks = list(_of_parts(parts, source, origin))
    details = beside or _of_details([detail for part in parts for detail in part.reasoning_details or ()])
    return Read((*_unless_said(details, blocks), *blocks))


def _parts_of(raw: bytes) -> tuple[list[_Part], bytes]:
    """The parts of a content, none when it is a text, and the bytes that they were decoded from. Raises Damaged."""
    value, source, _ = decode_with_source(raw, _parts)
    if value is None or isinstance(value, str):
        return [], source
    return value, source


def _of_parts(parts: list[_Part], source: bytes, origin: Origin) -> Iterator[Block]:
    for part, raw in zip(parts, decode(source, _raws) if parts else (), strict=True):
        yield from _blocks(part, bytes(raw), origin)


def thought(message: Message) -> Thinking:
    """A piece of reasoning that stands between messages."""
    text = "\n".join(detail.text or detail.summary or "" for detail in message.summary or ()) or message.text or ""
    return Thinking(text=text, seal=_seal(message.encrypted_content))


def _thoughts(message: Message) -> tuple[Thinking, ...]:
    """The reasoning beside the content, of which there may be two spellings."""
    if message.reasoning_content:
        return (Thinking(text=message.reasoning_content),)
    return _of_details(message.reasoning_details or [])


def _unless_said(thoughts: tuple[Thinking, ...], blocks: Sequence[Block]) -> tuple[Thinking, ...]:
    """The reasoning beside the parts, unless the parts hold it too."""
    said = any(isinstance(block, Thinking) and block.text for block in blocks)
    return tuple(block for block in thoughts if not said or not block.text)


def _of_details(details: list[_Detail]) -> tuple[Thinking, ...]:
    text = "".join(detail.text or detail.summary or "" for detail in details)
    secret = "".join(detail.signature or detail.data or "" for detail in details)
    return (Thinking(text=text, seal=_seal(secret)),) if text or secret else ()


def _is_plain(part: _Part) -> bool:
    """Whether a part is Anthropic's, with nothing in it that only other providers know."""
    if part.type not in PLAIN or part.reasoning_details is not None or bytes(part.call_id):
        return False
    if part.type == "tool_result":
        return b'"mediaType"' not in bytes(part.content) and b'"file"' not in bytes(part.content)
    return not (part.type == "image" and (part.data or part.image)) and not (part.signature and part.type != "thinking")


def _blocks(part: _Part, raw: bytes, origin: Origin) -> Iterator[Block]:
    """The blocks of one part, which are one, or none for what carries no words."""
    match part.type:
        case "reasoning":
            yield Thinking(text=part.text or "", seal=_seal(part.signature))
        case "tool-call":
            yield ToolCall(call_id=part.toolCallId, name=part.toolName, arguments=bytes(part.input).decode("utf-8", "replace"))
        case "tool-result":
            text, media, error = _output(bytes(part.output))
            yield ToolResult(call_id=part.toolCallId, text=text, error=error, media=media)
        case "tool_result" if not _is_plain(part):
            text, media = _result(bytes(part.content))
            yield ToolResult(call_id=part.tool_use_id, text=text, error=bool(part.is_error), media=media)
        case "file" if part.path is not None:
            yield Text(text=_file(part), origin=Origin.HARNESS)
        case "image" | "file" | "media" if part.image or part.data:
            yield _media(part, origin)
        case kind if kind in BESIDE:
            return
        case _:
            yield from content(b"[" + raw + b"]", lambda _: origin).blocks


def _file(part: _Part) -> str:
    """A file as Cline's SDK shows it to the model."""
    try:
        text = decode(bytes(part.content), _string)
    except Damaged:
        text = bytes(part.content).decode("utf-8", "replace")
    return f'<file_content path="{part.path}">\n{text}\n</file_content>'


def _media(part: _Part, origin: Origin) -> Media:
    kind = part.mediaType or ""
    return from_url(part.image, kind, origin) if part.image else from_base64(part.data or "", kind, origin)


def _result(raw: bytes) -> tuple[str, tuple[Media, ...]]:
    """Text and images of a result in the words of Cline's SDK."""
    parts, source = _parts_of(raw)
    if not parts:
        return result(raw)
    blocks = list(_of_parts(parts, source, Origin.TOOL))
    text = "\n".join(block.text for block in blocks if not isinstance(block, Media))
    return text, tuple(block for block in blocks if isinstance(block, Media))


def _output(raw: bytes) -> tuple[str, tuple[Media, ...], bool]:
    """Text and images of a result in the AI SDK's words, and whether it is an error."""
    try:
        value = decode(raw, _outputs)
    except Damaged:
        return raw.decode("utf-8", "replace"), (), False
    if isinstance(value, str):
        return value, (), False
    parts = _listed(value) if isinstance(value, _Output) else value
    if parts is not None or not isinstance(value, _Output):
        media = tuple(_media(part, Origin.TOOL) for part in parts or () if part.type in _MEDIA and (part.image or part.data))
        return "\n".join(part.text for part in parts or () if part.text), media, False
    error = value.type.startswith("error")
    try:
        return decode(bytes(value.value), _string), (), error
    except Damaged:
        return bytes(value.value).decode("utf-8", "replace"), (), error


def _listed(output: _Output) -> list[_Part] | None:
    if output.type != "content":
        return None
    try:
        return decode(bytes(output.value), _part_list)
    except Damaged:
        return None


def _usage(prompt: int | None, completion: int | None, read: int | None, write: int | None) -> Usage:
    total, cached, written = prompt or 0, read or 0, write or 0
    uncached = total - cached - written if total >= cached + written else total
    return Usage(uncached=max(0, uncached), cache_write=written, cache_read=cached, output=completion or 0)


def _seal(secret: str | None) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""
