"""What a model answered, as OpenHands keeps it in both versions: words, reasoning, calls and what the call cost."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Media, Origin, Text, Thinking, ToolCall, Usage
from tenure.logs.media import from_url

_string: Final = msgspec.json.Decoder(str)


class Part(Struct, frozen=True, gc=False):
    """A content part: text, or images by their URLs."""

    type: str | None = "text"
    text: str | None = None
    image_urls: list[str] | None = None


Content = str | list[Part] | None


class Function(Struct, frozen=True, gc=False):
    """The call of a function, in the Chat Completions API's shape."""

    name: str | None = None
    arguments: Raw = Raw(b'"{}"')


class Call(Struct, frozen=True, gc=False):
    """A call in the Chat Completions API's shape, or with its name and arguments at the top."""

    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw(b'"{}"')
    function: Function | None = None

    def block(self, call_id: str) -> ToolCall:
        """The block; `call_id` where it has no id of its own."""
        shape = self.function or self
        return ToolCall(call_id=self.id or call_id, name=shape.name or "", arguments=as_text(shape.arguments))


class ThinkingBlock(Struct, frozen=True, gc=False):
    """Anthropic's."""

    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class ReasoningItem(Struct, frozen=True, gc=False):
    """The Responses API's."""

    summary: list[str] | None = None
    content: list[str] | None = None
    encrypted_content: str | None = None


class Reply(Struct, frozen=True, gc=False):
    """A message of the model."""

    role: str | None = None
    content: Content = None
    reasoning_content: str | None = None
    thinking_blocks: list[ThinkingBlock] | None = None
    responses_reasoning_item: ReasoningItem | None = None
    tool_calls: list[Call] | None = None


class _Details(Struct, frozen=True, gc=False):
    cached_tokens: int | None = None


class Tokens(Struct, frozen=True, gc=False):
    """Usage as LiteLLM and as OpenHands write it; the prompt includes what was read from or written to the cache."""

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
        """The same in our terms."""
        details = self.prompt_tokens_details or _Details()
        read = self.cache_read_tokens or self.cache_read_input_tokens or details.cached_tokens or 0
        write = self.cache_write_tokens or self.cache_creation_input_tokens or 0
        uncached = max(0, (self.prompt_tokens or 0) - read - write)
        return Usage(uncached=uncached, cache_write=write, cache_read=read, output=self.completion_tokens or 0)


def as_text(raw: Raw) -> str:
    """JSON that may be wrapped in a string; without the white space of the file where it is not."""
    json = bytes(raw)
    try:
        return _string.decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return msgspec.json.format(json, indent=-1).decode("utf-8", "replace")
    except (msgspec.DecodeError, RecursionError):
        return json.decode("utf-8", "replace")


def spoken(content: Content, origin: Origin) -> tuple[Block, ...]:
    """The blocks of a content, without empty ones."""
    if isinstance(content, str):
        return (Text(text=content, origin=origin),) if content else ()
    return tuple(block for part in content or () for block in _of_part(part, origin))


def images(urls: list[str] | None, origin: Origin) -> tuple[Media, ...]:
    """The images at `urls`."""
    return tuple(from_url(url, "", origin) for url in urls or () if url.strip())


def reasoned(reply: Reply) -> tuple[Thinking, ...]:
    """The reasoning once: in blocks with their signatures, or as text."""
    blocks = [Thinking(text=one.thinking or "", seal=_seal(one.signature or one.data)) for one in reply.thinking_blocks or ()]
    if shown := tuple(one for one in blocks if one.text or one.seal):
        return shown
    item = reply.responses_reasoning_item or ReasoningItem()
    text = reply.reasoning_content or "\n".join((*(item.summary or ()), *(item.content or ())))
    seal = _seal(item.encrypted_content)
    return (Thinking(text=text, seal=seal),) if text or seal else ()


def _of_part(part: Part, origin: Origin) -> Iterator[Block]:
    if part.text:
        yield Text(text=part.text, origin=origin)
    yield from images(part.image_urls, origin)


def _seal(secret: str | None) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""
