"""Parts of messages as logs of several makers spell them: calls, texts, media, usage, and messages of two APIs."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.media import MediaSource, media_of, source_of
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.errors import InputError
from tenure.logs.json_files import Element
from tenure.logs.reader import Skipped
from tenure.logs.salvage import DamagedJson, cut, decode, salvage

# The APIs whose messages stand in logs.
CHAT_API: Final = APIS["openai-chat"]
RESPONSES_API: Final = APIS["openai-responses"]
ANTHROPIC_API: Final = APIS["anthropic"]


def seal(secret: str | None) -> str:
    """What a trace is known by whose signature or encrypted content is `secret`."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""


def plain(raw: Raw | bytes) -> str:
    """JSON as it stands."""
    return bytes(raw).decode("utf-8", "replace")


def compact(raw: Raw | bytes) -> str:
    """JSON without the layout of the file, which the model never saw; as it stands where it cannot be laid out anew."""
    try:
        return msgspec.json.format(bytes(raw), indent=-1).decode("utf-8", "replace")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return plain(raw)


def joined(fields: dict[str, bytes]) -> bytes:
    """A JSON object of fields whose values are JSON."""
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in fields.items()) + b"}"


def string(raw: Raw | bytes) -> str | None:
    """The text that is a JSON string; None for anything else."""
    try:
        return decode(bytes(raw), str) if bytes(raw)[:1] == b'"' else None
    except DamagedJson:
        return None


def text_of(raw: Raw | bytes) -> str:
    """The text that is a JSON string, or the JSON of what is none, compact."""
    text = string(raw)
    return compact(raw) if text is None else text


def text_or_json(raw: Raw | bytes) -> str:
    """The text that is a JSON string, or the JSON of what is none, as it stands."""
    text = string(raw)
    return plain(raw) if text is None else text


def texts(*words: tuple[str | None, Origin]) -> tuple[Text, ...]:
    """Blocks of those of the words that are not empty."""
    return tuple(Text(text=text, origin=origin) for text, origin in words if text)


def from_base64(data: str, media_type: str, origin: Origin) -> Media:
    """The media whose bytes are `data`."""
    return media_of(MediaSource(media_type=media_type, data=data, image=media_type.startswith("image/")), origin)


def from_url(url: str, media_type: str, origin: Origin) -> Media:
    """The media at `url`, or inside it when it is a data URL."""
    found = source_of({"type": "input_image", "image_url": url}) or MediaSource(url=url)
    return media_of(found if found.media_type else replace(found, media_type=media_type), origin)


def result_of(call_id: str, blocks: Sequence[Block], *, error: bool = False) -> ToolResult:
    """A result that holds the texts and media of `blocks`."""
    media = tuple(block for block in blocks if isinstance(block, Media))
    text = "\n".join(block.text for block in blocks if not isinstance(block, Media))
    return ToolResult(call_id=call_id, text=text, error=error, media=media)


class _PartFunction(Struct, frozen=True, gc=False):
    name: str = ""
    arguments: Raw = Raw(b"{}")


class LoggedCall(Struct, frozen=True, gc=False):
    """A call in ATIF's, OpenAgents', tau2-bench's or OpenAI's spelling."""

    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: Raw = Raw(b"{}")
    id: str | None = None
    name: str | None = None
    function: _PartFunction | None = None

    @property
    def call_id(self) -> str:
        """Empty when the call has none."""
        return self.tool_call_id or self.id or ""

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.function_name or self.name or (self.function.name if self.function else "")

    @property
    def sent(self) -> str:
        """The arguments as JSON text; a text, in which hosts put the JSON, stays as it is."""
        return text_of(self.function.arguments if self.function else self.arguments)


class _Details(Struct, frozen=True, gc=False):
    cached_tokens: int | None = None


class Tokens(Struct, frozen=True, gc=False):
    """Usage as OpenAI's API, LiteLLM and OpenHands write it; the prompt includes what was read from or written to the cache."""

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _Details | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    response_id: str | None = None

    @property
    def usage(self) -> Usage:
        """In the record's terms."""
        details = self.prompt_tokens_details or _Details()
        read = self.cache_read_tokens or self.cache_read_input_tokens or details.cached_tokens or 0
        return prompt_usage(
            self.prompt_tokens, self.completion_tokens, read, self.cache_write_tokens or self.cache_creation_input_tokens
        )


def prompt_usage(prompt: int | None, output: int | None, read: int | None, write: int | None = 0) -> Usage:
    """The usage of a call whose prompt counts what was cached."""
    uncached = max(0, (prompt or 0) - (read or 0) - (write or 0))
    return Usage(uncached=uncached, cache_write=write or 0, cache_read=read or 0, output=output or 0)


def usage_within(prompt: int | None, output: int | None, read: int | None, write: int | None = 0) -> Usage:
    """Like `prompt_usage`; a prompt that is less than what was cached does not count it."""
    total, cached = prompt or 0, (read or 0) + (write or 0)
    uncached = max(0, total - cached if total >= cached else total)
    return Usage(uncached=uncached, cache_write=write or 0, cache_read=read or 0, output=output or 0)


# Messages of the Chat Completions API, with notes of the tool that logged them.


def chat_message(element: Element, sent: Sequence[str]) -> Draft | Skipped:
    """The message of which only the fields named `sent` went to the model, in that order; its own bytes when it holds no others."""
    try:
        fields = decode(element.source, dict[str, Raw])
        message = element.faithful
        if not all(key in sent for key in fields):
            message = joined({key: cut(bytes(fields[key]), element.source, element.faithful) for key in sent if key in fields})
        return CHAT_API.parse([message])[0]
    except DamagedJson as damage:
        found = damage.found
    except InputError as error:
        found = str(error)[:200]
    reason = f"damaged message: found {found}, expected a chat message"
    return Skipped(line=element.line, bytes=element.size, reason=reason)


# Content of Anthropic's messages: one block per part, in order, so that blocks and payload line up.


class AnthropicPart(Struct, frozen=True, gc=False):
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


class AnthropicContent(Struct, frozen=True, gc=False):
    """A content that could be read: its blocks, and its JSON as it stood."""

    blocks: tuple[Block, ...]
    json: bytes
    left_out: tuple[str, ...] = ()  # fields of another shape than known

    @property
    def parts(self) -> bytes:
        """The JSON of the parts without the brackets around them; a text content is one text part."""
        json = self.json.strip()
        return json[1:-1].strip() if json[:1] == b"[" else b'{"type":"text","text":' + json + b"}"


_parts: Final = msgspec.json.Decoder(str | list[AnthropicPart] | None)
_any: Final = msgspec.json.Decoder[Any](Any)

OriginOf = Callable[[str], Origin]  # who wrote a text part


def anthropic_content(raw: bytes, origin_of: OriginOf) -> AnthropicContent:
    """The blocks of a message's `content`. Raises DamagedJson when it is neither text nor a list of parts."""
    value, source, faithful, left_out = salvage(raw, _parts)
    if isinstance(value, str):
        return AnthropicContent((Text(text=value, origin=origin_of(value)),), faithful)
    if value is None:
        return AnthropicContent((), b"[]")
    blocks = tuple(block for part in value if (block := _block(part, origin_of)) is not None)
    whole = blocks if len(blocks) == len(value) else tuple(_with_opaque(source, origin_of))
    return AnthropicContent(whole, faithful, left_out)


def anthropic_result(raw: bytes) -> tuple[str, tuple[Media, ...]]:
    """The text a model reads of a tool result's `content`, and the images in it; unknown parts count as their JSON."""
    try:
        value = decode(raw, _parts)
    except DamagedJson:
        return plain(raw), ()  # another shape: the model saw it as it is
    if value is None or isinstance(value, str):
        return value or "", ()
    media = [_media(part, Origin.TOOL) for part in value]
    raws = (
        decode(raw, list[Raw])
        if any(part.type != "text" and image is None for part, image in zip(value, media, strict=True))
        else ()
    )
    texts = (
        part.text if part.type == "text" else plain(raws[n])
        for n, (part, image) in enumerate(zip(value, media, strict=True))
        if image is None
    )
    return "\n".join(texts), tuple(image for image in media if image is not None)


def _block(part: AnthropicPart, origin_of: OriginOf) -> Block | None:
    match part.type:
        case "text":
            return Text(text=part.text, origin=origin_of(part.text))
        case "thinking":
            return Thinking(text=part.thinking, seal=seal(part.signature))
        case "redacted_thinking":
            return Thinking(text="", seal=seal(str(decode(bytes(part.data), _any))))
        case "tool_use":
            return ToolCall(call_id=part.id, name=part.name, arguments=plain(part.input))
        case "tool_result":
            text, media = anthropic_result(bytes(part.content))
            return ToolResult(call_id=part.tool_use_id, text=text, error=bool(part.is_error), media=media)
        case _:
            return _media(part, origin_of(""))


def _with_opaque(source: bytes, origin_of: OriginOf) -> Iterator[Block]:
    """Like `_block` for every part, with the JSON of unknown ones as their text."""
    other = Origin.MODEL if origin_of("") is Origin.MODEL else Origin.HARNESS
    for raw in decode(source, list[Raw]):
        part = decode(bytes(raw), AnthropicPart)
        yield _block(part, origin_of) or Opaque(type=part.type, text=plain(raw), origin=other)


def _media(part: AnthropicPart, origin: Origin) -> Media | None:
    source = decode(bytes(part.source), _any)
    found = source_of({"type": part.type, "source": source, "title": part.title, "context": part.context})
    return media_of(found, origin) if found else None
