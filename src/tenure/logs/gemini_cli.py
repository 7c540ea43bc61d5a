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
from tenure.logs.json_files import decoded, document, elements, records
from tenure.logs.parts import from_base64, from_url, plain, string
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.shape import bare, opening
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "Gemini CLI's chat: an object with `sessionId`, `projectHash` and `messages`, or one record per line"

NOTICES: Final = frozenset({"info", "error", "warning"})  # shown to the user, not to the model

_HEADER: Final = re.compile(rb'"projectHash"\s*:')


class _Inline(Struct, frozen=True, gc=False):
    data: str = ""
    mimeType: str = ""  # noqa: N815 - the log's own names, here and below


class _Linked(Struct, frozen=True, gc=False):
    fileUri: str = ""  # noqa: N815
    mimeType: str = ""  # noqa: N815


class _GeminiResponse(Struct, frozen=True, gc=False):
    id: str | None = None
    response: dict[str, Raw] | None = None


class _GeminiPart(Struct, frozen=True, gc=False):
    text: str | None = None
    thought: bool | str | None = None
    inlineData: _Inline | None = None  # noqa: N815
    fileData: _Linked | None = None  # noqa: N815
    functionResponse: _GeminiResponse | None = None  # noqa: N815


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
    input: int | None = 0
    output: int | None = 0
    cached: int | None = 0
    thoughts: int | None = 0
    tool: int | None = 0


class _GeminiMessage(Struct, frozen=True, gc=False):
    """A message, or in files of one record per line a change of what came before."""

    id: str | None = None
    type: str = ""
    timestamp: str | float | None = None
    content: _Parts = None
    thoughts: list[_GeminiThought] | None = None
    toolCalls: list[_GeminiCall] | None = None  # noqa: N815
    tokens: _GeminiTokens | None = None
    model: str | None = None
    rewind: str | None = field(default=None, name="$rewindTo")
    change: Raw = field(default=Raw(b""), name="$set")


class _GeminiChat(Struct, frozen=True, gc=False):
    messages: list[Raw]


class _Change(Struct, frozen=True, gc=False):
    messages: list[_GeminiMessage] | None = None


class _GeminiPlaced(Struct, frozen=True, gc=False):
    """A message and where it stands."""

    line: int
    size: int
    message: _GeminiMessage


_chat: Final = msgspec.json.Decoder(_GeminiChat)
_message: Final = msgspec.json.Decoder(_GeminiMessage)
_change: Final = msgspec.json.Decoder(_Change)


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
        for placed in reading.held.values():
            reading.add(placed)
        yield from reading.transcript.end()


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
        self.held: dict[str, _GeminiPlaced] = {}  # what the records amount to, in the order in which messages first appeared

    def document(self, raw: bytes) -> Iterator[Skipped]:
        chat = document((raw,), _chat, ALLOWED)
        for item in decoded(elements(chat.value.messages, chat.source, chat.faithful), _message, "message"):
            if isinstance(item, Skipped):
                yield item
            else:
                self.held[f"message {len(self.held)}"] = _GeminiPlaced(item[0].line, item[0].size, item[1])
        yield from chat.skipped

    def lines(self, raw: bytes) -> Iterator[Skipped]:
        for item in records((raw,), _message):
            if isinstance(item, Skipped):
                yield item
            else:
                self._apply(_GeminiPlaced(item[0].line, item[0].size, item[1]))

    def _apply(self, placed: _GeminiPlaced) -> None:
        message = placed.message
        if message.rewind is not None:
            ids = list(self.held)
            for id_ in ids[ids.index(message.rewind) :] if message.rewind in self.held else ():
                gone = self.held.pop(id_)
                self.transcript.skip("abandoned branch: message taken back by a rewind", gone.size, gone.line)
        elif bytes(message.change):
            self._replace(placed)
        elif message.type:
            self.held[message.id or f"line {placed.line}"] = placed

    def _replace(self, placed: _GeminiPlaced) -> None:
        """Take a `$set`: of the header, which says nothing to the model, or of all messages."""
        try:
            messages = decode(bytes(placed.message.change), _change).messages
        except DamagedJson:
            self.transcript.skip("damaged change of the messages", placed.size, placed.line)
            return
        if messages is not None:
            self.held = {one.id or f"{placed.line}.{n}": _GeminiPlaced(placed.line, 0, one) for n, one in enumerate(messages)}

    def add(self, placed: _GeminiPlaced) -> None:
        message = placed.message
        self.transcript.here(placed.line, placed.size, message.timestamp)
        match message.type:
            case "user":
                self.transcript.add(Role.USER, _blocks(message.content, Origin.HUMAN))
            case "gemini":
                self._answer(message)
            case kind if kind in NOTICES:
                self.transcript.skip("notice: shown to the user, not to the model")
            case kind:
                self.transcript.skip(f"message type unknown to this version: {kind!r}")

    def _answer(self, message: _GeminiMessage) -> None:
        """Add what the model said, then the results of its calls."""
        calls = message.toolCalls or []
        thoughts = (Thinking(text=_thought(thought)) for thought in message.thoughts or ())
        made = (ToolCall(call_id=call.id, name=call.name, arguments=plain(call.args)) for call in calls)
        blocks = (*thoughts, *_blocks(message.content, Origin.MODEL), *made)
        self.transcript.add(Role.ASSISTANT, blocks, model=message.model or "", usage=_usage(message.tokens))
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
    if part.inlineData is not None:
        return from_base64(part.inlineData.data, part.inlineData.mimeType, origin)
    if part.fileData is not None:
        return from_url(part.fileData.fileUri, part.fileData.mimeType, origin)
    return None


def _result(call: _GeminiCall) -> ToolResult:
    parts = _parts(call.result)
    text = "\n".join(text for part in parts if (text := _text(part)))
    media = tuple(image for part in parts if (image := _media(part, Origin.TOOL)) is not None)
    return ToolResult(call_id=call.id, text=text, error=call.status in ("error", "cancelled"), media=media)


def _text(part: _GeminiPart) -> str:
    """The text of a part of a result: the one field of the usual response, or the JSON of any other."""
    if part.functionResponse is None:
        return part.text or ""
    response = part.functionResponse.response or {}
    if len(response) == 1 and (key := next(iter(response))) in ("output", "error"):
        text = string(response[key])
        return plain(response[key]) if text is None else text
    return plain(msgspec.json.encode(response)) if response else ""


def _usage(tokens: _GeminiTokens | None) -> Usage | None:
    """Gemini counts cached tokens inside the input, and thoughts beside the output."""
    if tokens is None:
        return None
    cached = tokens.cached or 0
    uncached = max(0, (tokens.input or 0) - cached) + (tokens.tool or 0)
    return Usage(uncached=uncached, cache_read=cached, output=(tokens.output or 0) + (tokens.thoughts or 0))
