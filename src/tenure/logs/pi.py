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

# Lines that are not for the model.
NOTES: Final = frozenset({"session", "model_change", "thinking_level_change", "label", "session_info", "custom"})

# What pi puts around a summary when it builds the model's context.
COMPACTED: Final = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)
BRANCHED: Final = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}\n</summary>"

ORIGINS: Final = {"user": Origin.HUMAN, "assistant": Origin.MODEL}  # all other roles are the harness's


class _PiPart(Struct, frozen=True, gc=False, rename="camel"):
    """A part of a content; which fields are set depends on `type`."""

    type: str = ""
    text: str | None = ""
    thinking: str | None = ""
    thinking_signature: str | None = None
    id: str = ""
    name: str = ""
    arguments: Raw = Raw(b"{}")
    data: str = ""
    mime_type: str = ""

    def block(self, origin: Origin) -> Block:
        match self.type:
            case "text":
                return Text(text=self.text or "", origin=origin)
            case "thinking":
                return Thinking(text=self.thinking or "", seal=seal(self.thinking_signature))
            case "toolCall":
                return ToolCall(call_id=self.id, name=self.name, arguments=plain(self.arguments))
            case "image":
                return from_base64(self.data, self.mime_type, origin)
            case kind:
                return Opaque(type=kind, text=self.text or "")


class _PiUsage(Struct, frozen=True, gc=False, rename="camel"):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def usage(self) -> Usage:
        return Usage(uncached=self.input, cache_write=self.cache_write, cache_read=self.cache_read, output=self.output)


class _PiMessage(Struct, frozen=True, gc=False, rename="camel"):
    """A message; which fields are set depends on `role`."""

    role: str = ""
    content: str | list[_PiPart] | None = None
    model: str | None = None
    usage: _PiUsage | None = None
    tool_call_id: str = ""
    is_error: bool | None = False
    command: str = ""
    output: str | None = ""
    exit_code: int | None = None
    cancelled: bool | None = False
    truncated: bool | None = False
    full_output_path: str | None = None
    exclude_from_context: bool | None = False
    summary: str = ""

    @property
    def ran(self) -> str:
        """A command the human ran at the prompt, in the words in which pi shows it to the model."""
        text = f"Ran `{self.command}`\n" + (f"```\n{self.output}\n```" if self.output else "(no output)")
        if self.cancelled:
            text += "\n\n(command cancelled)"
        elif self.exit_code:
            text += f"\n\nCommand exited with code {self.exit_code}"
        if self.truncated and self.full_output_path:
            text += f"\n\n[Output truncated. Full output: {self.full_output_path}]"
        return text

    @property
    def result(self) -> ToolResult:
        parts = [_PiPart(type="text", text=self.content)] if isinstance(self.content, str) else self.content or []
        text = "\n".join(part.text or "" for part in parts if part.type == "text")
        media = tuple(from_base64(part.data, part.mime_type, Origin.TOOL) for part in parts if part.type == "image")
        return ToolResult(call_id=self.tool_call_id, text=text, error=bool(self.is_error), media=media)


class _PiLine(Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    id: str | None = None
    parent_id: str | None = None
    timestamp: str | int | None = None
    message: _PiMessage | None = None
    content: str | list[_PiPart] | None = None
    summary: str = ""
    first_kept_entry_index: int | None = None
    first_kept_entry_id: str | None = None

    @property
    def meaning(self) -> tuple[Role, tuple[Block, ...], _PiMessage | None]:
        """Whose message it is, its blocks, and the message itself where it is one of a conversation; no blocks for what the model saw nothing of."""
        message = self.message if self.type == "message" else None
        match message.role if message is not None else self.type:
            case "bashExecution" if message is not None:
                return Role.USER, () if message.exclude_from_context else (Text(text=message.ran, origin=Origin.HUMAN),), None
            case "compaction" | "compactionSummary":
                return Role.USER, _harness(COMPACTED.format((message or self).summary)), None
            case "branchSummary" if message is not None:
                return Role.USER, _harness(BRANCHED.format(message.summary)), None
            case "branch_summary" if self.summary:
                return Role.USER, _harness(BRANCHED.format(self.summary)), None
            case "toolResult" if message is not None:
                return Role.TOOL, (message.result,), None
            case "custom_message":
                return Role.USER, _blocks(self.content, Origin.HARNESS), None
            case role if message is not None:
                speaker = Role.ASSISTANT if role == "assistant" else Role.USER
                return speaker, _blocks(message.content, ORIGINS.get(role, Origin.HARNESS)), message
            case _:
                return Role.USER, (), None

    @property
    def silence(self) -> str:
        if self.message is None:
            return f"line type unknown to this version: {self.type!r}"
        if self.message.exclude_from_context:
            return "command whose output the user kept from the model"
        if self.message.role == "assistant":
            return "call that was aborted or failed before the model said anything"
        return "message without content"


class _PiProbe(Struct, frozen=True, gc=False):
    type: str
    id: str | None = None
    cwd: str | None = None
    uuid: str | None = None
    message: dict[str, Raw] | None = None


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
        probe = msgspec.json.decode(line, type=_PiProbe)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if probe.type == "session":
        return probe.cwd is not None
    return probe.type == "message" and probe.uuid is None and "role" in (probe.message or {})


class _PiReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.drafts_before: dict[str, int] = {}  # each line, by its id or in version 1 its index
        self.held: dict[str, tuple[int, int, _PiLine]] = {}  # of a tree: number, size and line
        self.parents: dict[str, str | None] = {}
        self.index = -1
        self.last: str | None = None

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        yield from self.transcript.each(records(chunks, _PiLine), self._line)
        for key in branch(self.parents, self.last):
            number, size, line = self.held.pop(key)
            self.transcript.here(number, size, line.timestamp)
            self._add(line, key)
            yield from self.transcript.take()
        left = [(number, size) for number, size, line in self.held.values() if line.meaning[1]]
        if left:
            reason = f"abandoned branch: {len(left)} lines left by a rewind"
            yield Skipped(line=left[0][0], bytes=sum(size for _, size in left), reason=reason)
        yield from self.transcript.end()

    def _line(self, element: Element, line: _PiLine) -> None:
        self.transcript.here(element.line, element.size, line.timestamp)
        self.index += 1
        if line.id is None or line.type == "session":
            self._add(line, str(self.index))
        elif line.id in self.held:
            self.transcript.skip("line whose id was there before")
        else:
            parent = line.parent_id if line.parent_id in self.held else self.last
            self.held[line.id] = element.line, element.size, line
            self.parents[line.id] = parent if line.parent_id is not None else None
            self.last = line.id

    def _add(self, line: _PiLine, key: str) -> None:
        self.drafts_before[key] = self.transcript.count
        role, blocks, message = line.meaning
        if line.type == "compaction":
            kept = line.first_kept_entry_id or ("" if line.first_kept_entry_index is None else str(line.first_kept_entry_index))
            self.transcript.rewrite("compaction", self.drafts_before.get(kept, self.transcript.count))
        usage = message.usage.usage if message is not None and message.usage is not None else None
        self.transcript.add(role, blocks, model=(message and message.model) or "", usage=usage)
        if not blocks and line.type not in NOTES:
            self.transcript.skip(line.silence)


def _harness(text: str) -> tuple[Block, ...]:
    return (Text(text=text, origin=Origin.HARNESS),)


def _blocks(content: str | list[_PiPart] | None, origin: Origin) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content, origin=origin),) if content else ()
    return tuple(part.block(origin) for part in content or ())
