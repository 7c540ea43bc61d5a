"""OpenCode's exported sessions (`opencode export`): one document of messages and their parts.

A tool call and its result are one part, a message may hold several steps, and each step is an API call of its own. Outputs that
OpenCode pruned are still in the file, with the time of the pruning.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.json_files import Element, decoded, document, elements
from tenure.logs.parts import compact, from_url
from tenure.logs.reader import Event, Skipped
from tenure.logs.shape import keys
from tenure.logs.transcript import TranscriptBuilder, utc

ALLOWED: Final = "OpenCode's export: an object with `info` and `messages`"

# What OpenCode tells the model in place of parts that are not text.
STANDS_FOR: Final = {"subtask": "The following tool was executed by the user", "compaction": "What did we do so far?"}

BESIDE: Final = frozenset({"step-start", "step-finish", "patch", "snapshot", "agent", "retry", "subtask", "compaction", "text"})

_MARKS: Final = (b'"projectID"', b'"sessionID"', b'"ses_')


class _Cache(Struct, frozen=True, gc=False):
    read: int = 0
    write: int = 0


class _OpenCodeTokens(Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = _Cache()

    @property
    def usage(self) -> Usage:
        output = self.output + self.reasoning
        return Usage(uncached=self.input, cache_write=self.cache.write, cache_read=self.cache.read, output=output)


class _OpenCodeTime(Struct, frozen=True, gc=False):
    created: float = 0
    compacted: float | None = None


class _OpenCodeFile(Struct, frozen=True, gc=False):
    mime: str = ""
    url: str = ""


class _OpenCodeState(Struct, frozen=True, gc=False):
    status: str = ""
    input: Raw = Raw(b"{}")
    output: str | None = None
    error: str | None = None
    time: _OpenCodeTime = _OpenCodeTime()
    attachments: list[_OpenCodeFile] | None = None


class _OpenCodePart(Struct, frozen=True, gc=False):
    type: str = ""
    text: str = ""
    synthetic: bool | None = False
    ignored: bool | None = False
    callID: str = ""  # noqa: N815 - the log's own names, here and below
    tool: str = ""
    state: _OpenCodeState | None = None
    tokens: _OpenCodeTokens | None = None
    mime: str = ""
    url: str = ""


class _OpenCodeError(Struct, frozen=True, gc=False):
    name: str = ""


class _OpenCodeInfo(Struct, frozen=True, gc=False):
    role: str = ""
    time: _OpenCodeTime = _OpenCodeTime()
    modelID: str = ""  # noqa: N815
    tokens: _OpenCodeTokens | None = None
    error: _OpenCodeError | None = None
    summary: Raw = Raw(b"false")


class _OpenCodeMessage(Struct, frozen=True, gc=False):
    info: _OpenCodeInfo
    parts: list[_OpenCodePart] = []


class _OpenCodeSession(Struct, frozen=True, gc=False):
    parentID: str | None = None  # noqa: N815


class _Export(Struct, frozen=True, gc=False):
    messages: list[Raw]
    info: _OpenCodeSession = _OpenCodeSession()


class OpenCode:
    """Reads OpenCode's export."""

    name = "opencode"

    def recognises(self, head: bytes) -> bool:
        """Whether the file is an object that opens with `info` or `messages` and holds OpenCode's ids."""
        return keys(head)[:1] in (("info",), ("messages",)) and any(mark in head for mark in _MARKS)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file, each step its own; prunings where they happened."""
        export = document(chunks, _Export, ALLOWED)
        reading = _OpenCodeReading()
        if parent := export.value.info.parentID:
            reading.transcript.here(1, 0)
            reading.transcript.of_parent(parent)
            yield from reading.transcript.take()
        yield from reading.events(elements(export.value.messages, export.source, export.faithful))
        yield from export.skipped


class _OpenCodeReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.asked: int | None = None  # the number of the draft that asked for a summary
        self.pruned: dict[float, list[str]] = {}  # when, and the calls whose results left

    def events(self, array: Iterable[Element]) -> Iterator[Event]:
        read: list[tuple[Element, _OpenCodeMessage]] = []
        for item in decoded(array, _OpenCodeMessage, "message"):
            if isinstance(item, Skipped):
                yield item
                continue
            read.append(item)
            for part in item[1].parts:
                if part.state is not None and part.state.time.compacted:
                    self.pruned.setdefault(part.state.time.compacted, []).append(part.callID)
        yield from self.transcript.each(read, self._read)
        self._prune(float("inf"))
        yield from self.transcript.end()

    def _prune(self, until: float) -> None:
        times = sorted(time for time in self.pruned if time <= until)
        if times:  # one pruning stamps each output with its own millisecond
            cleared = [call for time in times for call in self.pruned.pop(time)]
            self.transcript.rewrite("outputs pruned", cleared=cleared, line=0, at=utc(times[-1]))

    def _read(self, element: Element, message: _OpenCodeMessage) -> None:
        info = message.info
        self.transcript.here(element.line, element.size, info.time.created)
        self._prune(info.time.created)
        if info.role == "user":
            if any(part.type == "compaction" for part in message.parts):
                self.asked = self.transcript.count
            self.transcript.add(Role.USER, filter(None, map(self._asked, message.parts)))
        elif info.error is not None and info.error.name != "MessageAbortedError":
            self.transcript.skip("call that failed: never sent back to the model")
        else:
            for step in _steps(message):
                self._step(info, step)
            if bytes(info.summary) == b"true":
                asked = self.transcript.count - 1 if self.asked is None else self.asked
                self.transcript.rewrite("compaction", max(0, asked))
                self.asked = None

    def _asked(self, part: _OpenCodePart) -> Block | None:
        match part.type:
            case "text" if not part.ignored:
                return Text(text=part.text, origin=Origin.HARNESS if part.synthetic else Origin.HUMAN)
            case "file":
                is_text = part.mime.startswith("text/") or part.mime == "application/x-directory"
                return None if is_text else from_url(part.url, part.mime, Origin.HUMAN)
            case kind if kind in STANDS_FOR:
                return Text(text=STANDS_FOR[kind], origin=Origin.HARNESS)
            case kind:
                if kind not in BESIDE:
                    self.transcript.skip(f"part type unknown to this version: {kind!r}", 0)
                return None

    def _step(self, info: _OpenCodeInfo, step: list[_OpenCodePart]) -> None:
        tokens = next((part.tokens for part in step if part.tokens is not None), info.tokens)
        blocks = filter(None, map(self._answered, step))
        if self.transcript.add(Role.ASSISTANT, blocks, model=info.modelID, usage=tokens and tokens.usage) >= 0:
            for part in step:
                self.transcript.add(Role.TOOL, _result(part))

    def _answered(self, part: _OpenCodePart) -> Block | None:
        match part.type:
            case "text":
                return Text(text=part.text, origin=Origin.HARNESS if part.synthetic else Origin.MODEL) if part.text else None
            case "reasoning":
                return Thinking(text=part.text) if part.text else None
            case "tool" if part.state is not None:
                return ToolCall(call_id=part.callID, name=part.tool, arguments=compact(part.state.input))
            case _:
                return self._asked(part) if part.type not in STANDS_FOR else None


def _steps(message: _OpenCodeMessage) -> Iterator[list[_OpenCodePart]]:
    """The parts of each API call: up to a `step-finish`, or the whole of what has none."""
    step: list[_OpenCodePart] = []
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


def _result(part: _OpenCodePart) -> tuple[ToolResult, ...]:
    """The result in a tool part; none while the tool had not ended."""
    state = part.state
    if part.type != "tool" or state is None:
        return ()
    if state.error is not None and state.status != "completed":
        return (ToolResult(call_id=part.callID, text=state.error, error=True),)
    if state.output is None:
        return ()
    media = tuple(from_url(file.url, file.mime, Origin.TOOL) for file in state.attachments or ())
    return (ToolResult(call_id=part.callID, text=state.output, media=media),)
