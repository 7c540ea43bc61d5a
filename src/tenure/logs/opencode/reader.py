"""OpenCode's exported sessions (`opencode export`): one document of messages and their parts.

A tool call and its result are one part, a message may hold several steps, and each step is an API call of its own. Outputs that
OpenCode pruned are still in the file, with the time of the pruning.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.document import Element, decoded, document, elements
from tenure.logs.media import from_url
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.shape import keys
from tenure.logs.tally import Tally

NAME: Final = "opencode"
ALLOWED: Final = "OpenCode's export: an object with `info` and `messages`"

# What OpenCode tells the model in place of parts that are not text.
STANDS_FOR: Final = {"subtask": "The following tool was executed by the user", "compaction": "What did we do so far?"}

BESIDE: Final = frozenset({"step-start", "step-finish", "patch", "snapshot", "agent", "retry", "subtask", "compaction"})

_MARKS: Final = (b'"projectID"', b'"sessionID"', b'"ses_')


class _Cache(Struct, frozen=True, gc=False):
    read: int = 0
    write: int = 0


class _Tokens(Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = _Cache()


class _Time(Struct, frozen=True, gc=False):
    created: float = 0
    compacted: float | None = None


class _File(Struct, frozen=True, gc=False):
    mime: str = ""
    url: str = ""


class _State(Struct, frozen=True, gc=False):
    status: str = ""
    input: Raw = Raw(b"{}")
    output: str | None = None
    error: str | None = None
    time: _Time = _Time()
    attachments: list[_File] | None = None


class _Part(Struct, frozen=True, gc=False):
    type: str = ""
    text: str = ""
    synthetic: bool | None = False
    ignored: bool | None = False
    callID: str = ""  # noqa: N815 - the log's own names, here and below
    tool: str = ""
    state: _State | None = None
    tokens: _Tokens | None = None
    mime: str = ""
    url: str = ""


class _Error(Struct, frozen=True, gc=False):
    name: str = ""


class _Info(Struct, frozen=True, gc=False):
    role: str = ""
    time: _Time = _Time()
    modelID: str = ""  # noqa: N815
    tokens: _Tokens | None = None
    error: _Error | None = None
    summary: Raw = Raw(b"false")


class _Message(Struct, frozen=True, gc=False):
    info: _Info
    parts: list[_Part] = []


class _Session(Struct, frozen=True, gc=False):
    parentID: str | None = None  # noqa: N815


class _Export(Struct, frozen=True, gc=False):
    messages: list[Raw]
    info: _Session = _Session()


_export: Final = msgspec.json.Decoder(_Export)
_message: Final = msgspec.json.Decoder(_Message)


class OpenCode:
    """Reads OpenCode's export."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the file is an object that opens with `info` or `messages` and holds OpenCode's ids."""
        return keys(head)[:1] in (["info"], ["messages"]) and any(mark in head for mark in _MARKS)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file, each step its own; prunings where they happened."""
        export = document(chunks, _export, ALLOWED)
        if parent := export.value.info.parentID:
            reason = f"session of a sub-agent: what led to it is in its parent {parent!r}"
            yield Skipped(line=1, bytes=0, reason=reason)
        yield from _Reading().events(elements(export.value.messages, export.source, export.faithful))
        yield from export.skipped


class _Reading:
    def __init__(self) -> None:
        self.tally = Tally()
        self.yielded = 0
        self.asked: int | None = None  # the number of the draft that asked for a summary
        self.pruned: dict[float, list[str]] = {}  # when, and the calls whose results left

    def events(self, array: Iterable[Element]) -> Iterator[Event]:
        read: list[tuple[Element, _Message]] = []
        for item in decoded(array, _message, "message"):
            if isinstance(item, Skipped):
                yield item
            else:
                read.append(item)
        self._note_prunings(message for _, message in read)
        for element, message in read:
            yield from self._prunings(message.info.time.created)
            for event in self._message(element, message):
                self.yielded += isinstance(event, Draft)
                yield event
        yield from self._prunings(float("inf"))
        yield from self.tally.skipped()

    def _note_prunings(self, messages: Iterable[_Message]) -> None:
        for message in messages:
            for part in message.parts:
                if part.state is not None and part.state.time.compacted:
                    self.pruned.setdefault(part.state.time.compacted, []).append(part.callID)

    def _prunings(self, until: float) -> Iterator[Rewritten]:
        times = sorted(time for time in self.pruned if time <= until)
        if times:  # one pruning stamps each output with its own millisecond
            cleared = tuple(call for time in times for call in self.pruned.pop(time))
            yield Rewritten(reason="outputs pruned", at=utc(times[-1]), cleared=cleared)

    def _message(self, element: Element, message: _Message) -> Iterator[Event]:
        if message.info.role == "user":
            yield from self._user(element, message)
        elif message.info.error is not None and message.info.error.name != "MessageAbortedError":
            self.tally.add("call that failed: never sent back to the model", element.line, len(element.faithful))
        else:
            for step in _steps(message):
                yield from self._step(element, message, step)
            if bytes(message.info.summary) == b"true":
                dropped = self.yielded - 1 if self.asked is None else self.asked
                at = utc(message.info.time.created)
                yield Rewritten(reason="compaction", line=element.line, at=at, drop_before=max(0, dropped))
                self.asked = None

    def _user(self, element: Element, message: _Message) -> Iterator[Draft]:
        blocks = [block for part in message.parts if (block := self._said(element, part)) is not None]
        if any(part.type == "compaction" for part in message.parts):
            self.asked = self.yielded
        if blocks:
            yield Draft(role=Role.USER, blocks=tuple(blocks), at=utc(message.info.time.created), line=element.line)

    def _said(self, element: Element, part: _Part) -> Block | None:
        match part.type:
            case "text" if not part.ignored:
                return Text(text=part.text, origin=Origin.HARNESS if part.synthetic else Origin.HUMAN)
            case "file":
                return _file(part) if not part.mime.startswith("text/") and part.mime != "application/x-directory" else None
            case kind if kind in STANDS_FOR:
                return Text(text=STANDS_FOR[kind], origin=Origin.HARNESS)
            case kind:
                if kind not in BESIDE and kind != "text":
                    self.tally.add(f"part type unknown to this version: {kind!r}", element.line, 0)
                return None

    def _step(self, element: Element, message: _Message, step: list[_Part]) -> Iterator[Draft]:
        blocks = [block for part in step if (block := self._answered(element, part)) is not None]
        if not blocks:
            return
        at = utc(message.info.time.created)
        yield Draft(
            role=Role.ASSISTANT,
            blocks=tuple(blocks),
            at=at,
            line=element.line,
            model=message.info.modelID,
            usage=_usage(next((part.tokens for part in step if part.tokens is not None), message.info.tokens)),
        )
        for part in step:
            if (result := _result(part)) is not None:
                yield Draft(role=Role.TOOL, blocks=(result,), at=at, line=element.line)

    def _answered(self, element: Element, part: _Part) -> Block | None:
        match part.type:
            case "text":
                return Text(text=part.text, origin=Origin.HARNESS if part.synthetic else Origin.MODEL) if part.text else None
            case "reasoning":
                return Thinking(text=part.text) if part.text else None
            case "tool" if part.state is not None:
                arguments = _compact(bytes(part.state.input))
                return ToolCall(call_id=part.callID, name=part.tool, arguments=arguments)
            case _:
                return self._said(element, part) if part.type not in STANDS_FOR else None


def _compact(arguments: bytes) -> str:
    """JSON without the layout of the export, which the model never saw."""
    with suppress(msgspec.DecodeError):  # nested more deeply than can be laid out anew
        arguments = msgspec.json.format(arguments, indent=-1)
    return arguments.decode("utf-8", "replace")


def _steps(message: _Message) -> Iterator[list[_Part]]:
    """The parts of each API call: up to a `step-finish`, or the whole of what has none."""
    step: list[_Part] = []
    for part in message.parts:
        if part.type == "step-start" and any(held.type == "tool" for held in step):
            yield step
            step = []
        step.append(part)
        if part.type == "step-finish":
            yield step
            step = []
    if step:
        yield step


def _result(part: _Part) -> ToolResult | None:
    """The result in a tool part; None while the tool had not ended."""
    state = part.state
    if part.type != "tool" or state is None:
        return None
    if state.error is not None and state.status != "completed":
        return ToolResult(call_id=part.callID, text=state.error, error=True)
    if state.output is None:
        return None
    media = tuple(from_url(file.url, file.mime, Origin.TOOL) for file in state.attachments or ())
    return ToolResult(call_id=part.callID, text=state.output, media=media)


def _file(part: _Part) -> Media:
    return from_url(part.url, part.mime, Origin.HUMAN)


def _usage(tokens: _Tokens | None) -> Usage | None:
    if tokens is None:
        return None
    cache = tokens.cache
    return Usage(uncached=tokens.input, cache_write=cache.write, cache_read=cache.read, output=tokens.output + tokens.reasoning)
