"""One message of Gemini CLI's chats: parts, thoughts, and calls with their results inside."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.media import from_base64, from_url
from tenure.logs.mend import Damaged, decode


class _Inline(Struct, frozen=True, gc=False):
    data: str = ""
    mimeType: str = ""  # noqa: N815 - the log's own names, here and below


class _Linked(Struct, frozen=True, gc=False):
    fileUri: str = ""  # noqa: N815
    mimeType: str = ""  # noqa: N815


class _Response(Struct, frozen=True, gc=False):
    id: str | None = None
    response: dict[str, Raw] | None = None


class _Part(Struct, frozen=True, gc=False):
    text: str | None = None
    thought: bool | str | None = None
    inlineData: _Inline | None = None  # noqa: N815
    fileData: _Linked | None = None  # noqa: N815
    functionResponse: _Response | None = None  # noqa: N815


_Parts = str | list[_Part | str] | _Part | None


class _Thought(Struct, frozen=True, gc=False):
    subject: str | None = ""
    description: str | None = ""


class _Call(Struct, frozen=True, gc=False):
    id: str = ""
    name: str = ""
    args: Raw = Raw(b"{}")
    result: _Parts = None
    status: str | None = None


class _Tokens(Struct, frozen=True, gc=False):
    input: int | None = 0
    output: int | None = 0
    cached: int | None = 0
    thoughts: int | None = 0
    tool: int | None = 0


class Message(Struct, frozen=True, gc=False):
    """A message, or in files of one record per line a change of what came before."""

    id: str | None = None
    type: str = ""
    timestamp: str | float | None = None
    content: _Parts = None
    thoughts: list[_Thought] | None = None
    toolCalls: list[_Call] | None = None  # noqa: N815
    tokens: _Tokens | None = None
    model: str | None = None
    rewind: str | None = msgspec.field(default=None, name="$rewindTo")
    change: Raw = msgspec.field(default=Raw(b""), name="$set")


_string: Final = msgspec.json.Decoder(str)


def asked(message: Message, at: str, line: int) -> Iterator[Draft]:
    """What the human said."""
    if blocks := _blocks(message.content, Origin.HUMAN):
        yield Draft(role=Role.USER, blocks=blocks, at=at, line=line)


def answered(message: Message, at: str, line: int) -> Iterator[Draft]:
    """What the model said, then the results of its calls."""
    calls = message.toolCalls or []
    thoughts = tuple(Thinking(text=_thought(thought)) for thought in message.thoughts or ())
    called = tuple(
        ToolCall(call_id=call.id, name=call.name, arguments=bytes(call.args).decode("utf-8", "replace")) for call in calls
    )
    blocks: tuple[Block, ...] = (*thoughts, *_blocks(message.content, Origin.MODEL), *called)
    if not blocks:
        return
    usage = _usage(message.tokens)
    yield Draft(role=Role.ASSISTANT, blocks=blocks, at=at, line=line, model=message.model or "", usage=usage)
    for call in calls:
        if call.result is not None:
            yield Draft(role=Role.TOOL, blocks=(_result(call),), at=at, line=line)


def _thought(thought: _Thought) -> str:
    subject = f"**{thought.subject}**" if thought.subject else ""
    return "\n".join(filter(None, (subject, thought.description)))


def _parts(content: _Parts) -> list[_Part]:
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [_Part(text=item) if isinstance(item, str) else item for item in items]


def _blocks(content: _Parts, origin: Origin) -> tuple[Block, ...]:
    return tuple(block for part in _parts(content) if (block := _block(part, origin)) is not None)


def _block(part: _Part, origin: Origin) -> Block | None:
    if part.text and part.thought is True:
        return Thinking(text=part.text)
    if part.text:
        return Text(text=part.text, origin=origin)
    return _media(part, origin)


def _media(part: _Part, origin: Origin) -> Media | None:
    if part.inlineData is not None:
        return from_base64(part.inlineData.data, part.inlineData.mimeType, origin)
    if part.fileData is not None:
        return from_url(part.fileData.fileUri, part.fileData.mimeType, origin)
    return None


def _result(call: _Call) -> ToolResult:
    parts = _parts(call.result)
    text = "\n".join(said for part in parts if (said := _said(part)))
    media = tuple(found for part in parts if (found := _media(part, Origin.TOOL)) is not None)
    return ToolResult(call_id=call.id, text=text, error=call.status in ("error", "cancelled"), media=media)


def _said(part: _Part) -> str:
    """The text of a part of a result: the one field of the usual response, or the JSON of any other."""
    if part.functionResponse is None:
        return part.text or ""
    response = part.functionResponse.response or {}
    if len(response) == 1 and (key := next(iter(response))) in ("output", "error"):
        try:
            return decode(bytes(response[key]), _string)
        except Damaged:
            return bytes(response[key]).decode("utf-8", "replace")
    return msgspec.json.encode(response).decode("utf-8", "replace") if response else ""


def _usage(tokens: _Tokens | None) -> Usage | None:
    """Gemini counts cached tokens inside the input, and thoughts beside the output."""
    if tokens is None:
        return None
    cached = tokens.cached or 0
    uncached = max(0, (tokens.input or 0) - cached) + (tokens.tool or 0)
    return Usage(uncached=uncached, cache_read=cached, output=(tokens.output or 0) + (tokens.thoughts or 0))
