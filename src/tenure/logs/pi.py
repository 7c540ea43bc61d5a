"""pi's session files (`~/.pi/agent/sessions/**/*.jsonl`): a header, then messages and notes, one per line.

Version 1 is linear and is read as it streams in. Later versions are a tree whose live branch ends at the last line: nothing in
it is certain before the end, so its lines are held.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.json_files import Element, records
from tenure.logs.parts import from_base64, plain, seal
from tenure.logs.reader import Event, Skipped
from tenure.logs.transcript import TranscriptBuilder, branch

NOTES: Final = frozenset(
    {"session", "model_change", "thinking_level_change", "label", "session_info", "custom"}
)  # not for the model

# What pi puts around a summary when it builds the model's context.
COMPACTED: Final = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)
BRANCHED: Final = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}\n</summary>"

ORIGINS: Final = {"user": Origin.HUMAN, "assistant": Origin.MODEL}  # all other roles are the harness's


class _PiPart(Struct, frozen=True, gc=False):
    """A part of a content; which fields are set depends on `type`."""

    type: str = ""
    text: str | None = ""
    thinking: str | None = ""
    thinkingSignature: str | None = None  # noqa: N815 - the log's own names, here and below
    id: str = ""
    name: str = ""
    arguments: Raw = Raw(b"{}")
    data: str = ""
    mimeType: str = ""  # noqa: N815


class _PiUsage(Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    cacheRead: int = 0  # noqa: N815
    cacheWrite: int = 0  # noqa: N815


class _PiMessage(Struct, frozen=True, gc=False):
    """A message; which fields are set depends on `role`."""

    role: str = ""
    content: str | list[_PiPart] | None = None
    model: str | None = None
    usage: _PiUsage | None = None
    toolCallId: str = ""  # noqa: N815
    isError: bool | None = False  # noqa: N815
    command: str = ""
    output: str | None = ""
    exitCode: int | None = None  # noqa: N815
    cancelled: bool | None = False
    truncated: bool | None = False
    fullOutputPath: str | None = None  # noqa: N815
    excludeFromContext: bool | None = False  # noqa: N815
    summary: str = ""

    @property
    def ran(self) -> str:
        """A command the human ran at the prompt, in the words in which pi shows it to the model."""
        text = f"Ran `{self.command}`\n" + (f"```\n{self.output}\n```" if self.output else "(no output)")
        if self.cancelled:
            text += "\n\n(command cancelled)"
        elif self.exitCode:
            text += f"\n\nCommand exited with code {self.exitCode}"
        if self.truncated and self.fullOutputPath:
            text += f"\n\n[Output truncated. Full output: {self.fullOutputPath}]"
        return text


class _PiLine(Struct, frozen=True, gc=False):
    type: str = ""
    id: str | None = None
    parentId: str | None = None  # noqa: N815
    timestamp: str | int | None = None
    message: _PiMessage | None = None
    content: str | list[_PiPart] | None = None
    summary: str = ""
    firstKeptEntryIndex: int | None = None  # noqa: N815
    firstKeptEntryId: str | None = None  # noqa: N815


class _PiProbe(Struct, frozen=True, gc=False):
    type: str
    id: str | None = None
    cwd: str | None = None
    uuid: str | None = None
    message: dict[str, Raw] | None = None


_decoder: Final = msgspec.json.Decoder(_PiLine)
_probe: Final = msgspec.json.Decoder(_PiProbe)


class Pi:
    """Reads pi's JSONL, linear and tree."""

    name = "pi"

    def recognises(self, head: bytes) -> bool:
        """Whether one of the first lines is pi's header, or a message in its envelope."""
        return any(_fits(line) for line in head.split(b"\n")[:20])

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts of the live branch, in order."""
        return _PiReading().events(chunks)


def _fits(line: bytes) -> bool:
    try:
        probe = _probe.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if probe.type == "session":
        return probe.cwd is not None
    return probe.type == "message" and probe.uuid is None and "role" in (probe.message or {})


class _PiHeld(Struct, frozen=True, gc=False):
    """A line of a tree."""

    number: int
    size: int
    line: _PiLine


class _PiReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.drafts_before: dict[str, int] = {}  # each line, by its id or in version 1 its index
        self.held: dict[str, _PiHeld] = {}  # of a tree
        self.parents: dict[str, str | None] = {}
        self.index = -1
        self.last: str | None = None

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        yield from self.transcript.each(records(chunks, _decoder), self._line)
        for key in branch(self.parents, self.last):
            held = self.held.pop(key)
            self.transcript.here(held.number, held.size, held.line.timestamp)
            self._add(held.line, key)
            yield from self.transcript.take()
        left = [held for held in self.held.values() if _read(held.line)[1]]
        if left:
            reason = f"abandoned branch: {len(left)} lines left by a rewind"
            yield Skipped(line=left[0].number, bytes=sum(held.size for held in left), reason=reason)
        yield from self.transcript.end()

    def _line(self, element: Element, line: _PiLine) -> None:
        self.transcript.here(element.line, element.size, line.timestamp)
        self.index += 1
        if line.id is None or line.type == "session":
            self._add(line, str(self.index))
        elif line.id in self.held:
            self.transcript.skip("line whose id was there before")
        else:
            parent = line.parentId if line.parentId in self.held else self.last
            self.held[line.id] = _PiHeld(element.line, element.size, line)
            self.parents[line.id] = parent if line.parentId is not None else None
            self.last = line.id

    def _add(self, line: _PiLine, key: str) -> None:
        self.drafts_before[key] = self.transcript.count
        role, blocks, message = _read(line)
        if line.type == "compaction":
            kept = line.firstKeptEntryId or ("" if line.firstKeptEntryIndex is None else str(line.firstKeptEntryIndex))
            self.transcript.rewrite("compaction", self.drafts_before.get(kept, self.transcript.count))
        self.transcript.add(role, blocks, model=(message and message.model) or "", usage=_usage(message and message.usage))
        if not blocks and line.type not in NOTES:
            self.transcript.skip(_why_not(line))


def _why_not(line: _PiLine) -> str:
    if line.message is None:
        return f"line type unknown to this version: {line.type!r}"
    if line.message.excludeFromContext:
        return "command whose output the user kept from the model"
    if line.message.role == "assistant":
        return "call that was aborted or failed before the model said anything"
    return "message without content"


def _read(line: _PiLine) -> tuple[Role, tuple[Block, ...], _PiMessage | None]:
    """Whose message a line is, its blocks, and the message itself where it is one of a conversation; no blocks for what the model saw nothing of."""
    message = line.message if line.type == "message" else None
    match message.role if message is not None else line.type:
        case "bashExecution" if message is not None:
            return Role.USER, () if message.excludeFromContext else (Text(text=message.ran, origin=Origin.HUMAN),), None
        case "compaction" | "compactionSummary":
            return Role.USER, _harness(COMPACTED.format((message or line).summary)), None
        case "branchSummary" if message is not None:
            return Role.USER, _harness(BRANCHED.format(message.summary)), None
        case "branch_summary" if line.summary:
            return Role.USER, _harness(BRANCHED.format(line.summary)), None
        case "toolResult" if message is not None:
            return Role.TOOL, (_result(message),), None
        case "custom_message":
            return Role.USER, _blocks(line.content, Origin.HARNESS), None
        case role if message is not None:
            speaker = Role.ASSISTANT if role == "assistant" else Role.USER
            return speaker, _blocks(message.content, ORIGINS.get(role, Origin.HARNESS)), message
        case _:
            return Role.USER, (), None


def _harness(text: str) -> tuple[Block, ...]:
    return (Text(text=text, origin=Origin.HARNESS),)


def _result(message: _PiMessage) -> ToolResult:
    parts = [_PiPart(type="text", text=message.content)] if isinstance(message.content, str) else message.content or []
    text = "\n".join(part.text or "" for part in parts if part.type == "text")
    media = tuple(from_base64(part.data, part.mimeType, Origin.TOOL) for part in parts if part.type == "image")
    return ToolResult(call_id=message.toolCallId, text=text, error=bool(message.isError), media=media)


def _blocks(content: str | list[_PiPart] | None, origin: Origin) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content, origin=origin),) if content else ()
    return tuple(_block(part, origin) for part in content or ())


def _block(part: _PiPart, origin: Origin) -> Block:
    match part.type:
        case "text":
            return Text(text=part.text or "", origin=origin)
        case "thinking":
            return Thinking(text=part.thinking or "", seal=seal(part.thinkingSignature))
        case "toolCall":
            return ToolCall(call_id=part.id, name=part.name, arguments=plain(part.arguments))
        case "image":
            return from_base64(part.data, part.mimeType, origin)
        case _:
            return Opaque(type=part.type, text=part.text or "")


def _usage(usage: _PiUsage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(uncached=usage.input, cache_write=usage.cacheWrite, cache_read=usage.cacheRead, output=usage.output)
