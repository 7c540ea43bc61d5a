"""Gemini CLI's recorded chats (`~/.gemini/tmp/*/chats`): one document, or in newer versions one record per line.

Calls and their results are inside the model's message; its text was said before the calls, as token counts and wording show.
A record with an id that was there before replaces it, `$rewindTo` takes back what follows an id, `$set` changes the header.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from tenure.engine.record.entry import Block, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.json_files import Element, decoded, document, elements, records
from tenure.logs.parts import from_base64, from_url, plain, text_or_json
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.shape import bare, opening
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "Gemini CLI's chat: an object with `sessionId`, `projectHash` and `messages`, or one record per line"

NOTICES: Final = frozenset({"info", "error", "warning"})  # shown to the user, not to the model

_HEADER: Final = re.compile(rb'"projectHash"\s*:')


class _GeminiFile(Struct, frozen=True, gc=False, rename="camel"):
    """Media: in place, or by an address."""

    data: str = ""
    file_uri: str = ""
    mime_type: str = ""


class _GeminiResponse(Struct, frozen=True, gc=False):
    id: str | None = None
    response: dict[str, Raw] | None = None


class _GeminiPart(Struct, frozen=True, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | str | None = None
    inline_data: _GeminiFile | None = None
    file_data: _GeminiFile | None = None
    function_response: _GeminiResponse | None = None


_Parts = str | list[_GeminiPart | str] | _GeminiPart | None


class _GeminiThought(Struct, frozen=True, gc=False):
    subject: str | None = ""
    description: str | None = ""


class _GeminiCall(Struct, frozen=True, gc=False):
    id: str = ""
    name: str = ""
    args: Raw = Raw(b"{}")
    result: _Parts = None
    status: str | None = None


class _GeminiTokens(Struct, frozen=True, gc=False):
    """Cached tokens are counted inside the input, and thoughts beside the output."""

    input: int | None = 0
    output: int | None = 0
    cached: int | None = 0
    thoughts: int | None = 0
    tool: int | None = 0

    @property
    def usage(self) -> Usage:
        cached = self.cached or 0
        uncached = max(0, (self.input or 0) - cached) + (self.tool or 0)
        return Usage(uncached=uncached, cache_read=cached, output=(self.output or 0) + (self.thoughts or 0))


class _GeminiMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message, or in files of one record per line a change of what came before."""

    id: str | None = None
    type: str = ""
    timestamp: str | float | None = None
    content: _Parts = None
    thoughts: list[_GeminiThought] | None = None
    tool_calls: list[_GeminiCall] | None = None
    tokens: _GeminiTokens | None = None
    model: str | None = None
    rewind: str | None = field(default=None, name="$rewindTo")
    change: Raw = field(default=Raw(b""), name="$set")


class _GeminiChat(Struct, frozen=True, gc=False):
    messages: list[Raw]


class _Change(Struct, frozen=True, gc=False):
    messages: list[_GeminiMessage] | None = None


class GeminiCli:
    """Reads Gemini CLI's chats, document or lines."""

    name = "gemini-cli"

    def recognises(self, head: bytes) -> bool:
        """Whether the file opens with an object that names a project by its hash."""
        return opening(head) == "{" and _HEADER.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order; for one record per line those that no later record took back."""
        raw = b"".join(chunks)  # a later record may change any message, so all of them are held in either form
        reading = _GeminiReading()
        yield from reading.lines(raw) if _is_by_line(raw) else reading.document(raw)
        yield from reading.transcript.run(reading.held.values(), reading.message)


def _is_by_line(raw: bytes) -> bool:
    first, _, rest = bare(raw).partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(rest.strip()) or "messages" not in header


class _GeminiReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.held: dict[str, tuple[Element, _GeminiMessage]] = {}  # what the records amount to, in order of first appearance

    def document(self, raw: bytes) -> Iterator[Skipped]:
        chat = document((raw,), _GeminiChat, ALLOWED)
        for item in decoded(elements(chat.value.messages, chat.source, chat.faithful), _GeminiMessage, "message"):
            if isinstance(item, Skipped):
                yield item
            else:
                self.held[f"message {len(self.held)}"] = item
        yield from chat.skipped

    def lines(self, raw: bytes) -> Iterator[Skipped]:
        for item in records((raw,), _GeminiMessage):
            if isinstance(item, Skipped):
                yield item
                continue
            element, message = item
            if message.rewind is not None:
                self._rewind(message.rewind)
            elif bytes(message.change):
                self._replace(element, message)
            elif message.type:
                self.held[message.id or f"line {element.line}"] = item

    def _rewind(self, to: str) -> None:
        ids = list(self.held)
        for id_ in ids[ids.index(to) :] if to in self.held else ():
            gone, _ = self.held.pop(id_)
            self.transcript.skip("abandoned branch: message taken back by a rewind", gone.size, gone.line)

    def _replace(self, element: Element, message: _GeminiMessage) -> None:
        """Take a `$set`: of the header, which says nothing to the model, or of all messages."""
        try:
            messages = decode(bytes(message.change), _Change).messages
        except DamagedJson:
            self.transcript.skip("damaged change of the messages", element.size, element.line)
            return
        if messages is not None:
            here = Element(element.line, b"", b"")
            self.held = {one.id or f"{element.line}.{n}": (here, one) for n, one in enumerate(messages)}

    def message(self, element: Element, message: _GeminiMessage) -> None:
        transcript = self.transcript
        transcript.here(element.line, element.size, message.timestamp)
        match message.type:
            case "user":
                transcript.add(Role.USER, _blocks(message.content, Origin.HUMAN))
            case "gemini":
                self._answer(message)
            case kind if kind in NOTICES:
                transcript.skip("notice: shown to the user, not to the model")
            case kind:
                transcript.skip(f"message type unknown to this version: {kind!r}")

    def _answer(self, message: _GeminiMessage) -> None:
        calls = message.tool_calls or []
        thoughts = (Thinking(text=_thought(thought)) for thought in message.thoughts or ())
        made = (ToolCall(call_id=call.id, name=call.name, arguments=plain(call.args)) for call in calls)
        blocks = (*thoughts, *_blocks(message.content, Origin.MODEL), *made)
        self.transcript.add(
            Role.ASSISTANT, blocks, model=message.model or "", usage=message.tokens.usage if message.tokens else None
        )
        for call in calls:
            if call.result is not None:
                self.transcript.add(Role.TOOL, (_result(call),))


def _thought(thought: _GeminiThought) -> str:
    subject = f"**{thought.subject}**" if thought.subject else ""
    return "\n".join(filter(None, (subject, thought.description)))


def _parts(content: _Parts) -> list[_GeminiPart]:
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [_GeminiPart(text=item) if isinstance(item, str) else item for item in items]


def _blocks(content: _Parts, origin: Origin) -> list[Block]:
    return [block for part in _parts(content) if (block := _block(part, origin)) is not None]


def _block(part: _GeminiPart, origin: Origin) -> Block | None:
    if part.text:
        return Thinking(text=part.text) if part.thought is True else Text(text=part.text, origin=origin)
    return _media(part, origin)


def _media(part: _GeminiPart, origin: Origin) -> Media | None:
    if part.inline_data is not None:
        return from_base64(part.inline_data.data, part.inline_data.mime_type, origin)
    return from_url(part.file_data.file_uri, part.file_data.mime_type, origin) if part.file_data is not None else None


def _result(call: _GeminiCall) -> ToolResult:
    parts = _parts(call.result)
    text = "\n".join(text for part in parts if (text := _text(part)))
    media = tuple(image for part in parts if (image := _media(part, Origin.TOOL)) is not None)
    return ToolResult(call_id=call.id, text=text, error=call.status in ("error", "cancelled"), media=media)


def _text(part: _GeminiPart) -> str:
    """The text of a part of a result: the one field of the usual response, or the JSON of any other."""
    if part.function_response is None:
        return part.text or ""
    response = part.function_response.response or {}
    if len(response) == 1 and (value := response.get("output", response.get("error"))) is not None:
        return text_or_json(value)
    return plain(msgspec.json.encode(response)) if response else ""
