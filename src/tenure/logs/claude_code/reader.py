"""Claude Code's session files (`~/.claude/projects/**/*.jsonl`).

Only user and assistant lines are conversation. One API message is spread over several lines with the same `message.id`; lines name
their parents, and what a rewind abandoned stays in the file. Results and hook output are repeated in other fields and lines: those
are left out. What a sub-agent did, on side-chain or progress lines, is a conversation of its own.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Usage
from tenure.logs.claude_code.stretch import CLEARED, Held, Stretch
from tenure.logs.jsonl import Record, records
from tenure.logs.mend import Damaged, cut, decode
from tenure.logs.moment import utc
from tenure.logs.reader import Agent, Event, Rewritten, Skipped
from tenure.logs.shape import keys
from tenure.logs.tally import Tally

NAME: Final = "claude-code"

# Documented line types that were never in the main context: said nothing about.
BESIDE: Final = frozenset(
    "system progress file-history-snapshot summary last-prompt custom-title ai-title agent-name agent-color mode permission-mode "
    "tag pr-link frame-link queue-operation".split()
)

TASK: Final = 500  # characters kept of what a sub-agent was asked

UNKNOWN_TYPE: Final = "line type unknown to this version: {!r}"
DUPLICATE: Final = "line whose uuid was there before"
NOTICE: Final = "notice of a failed API call: shown to the user, never sent to the model"
ATTACHMENT: Final = "context added by the harness, whose wording for the model is not in the log"
UNQUEUED: Final = "prompt taken out of the queue: whether the model saw it is not in the log"


class _Written(Struct, frozen=True, gc=False):
    ephemeral_1h_input_tokens: int | None = 0
    ephemeral_5m_input_tokens: int | None = 0


class _Usage(Struct, frozen=True, gc=False):
    input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation: _Written | None = None


class _Message(Struct, frozen=True, gc=False):
    content: Raw = Raw(b"[]")
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Kind(Struct, frozen=True, gc=False):
    kind: str | None = None


class _Attachment(Struct, frozen=True, gc=False):
    type: str = ""
    prompt: Raw = Raw(b'""')
    commandMode: str | None = None  # noqa: N815 - the log's own names, here and below


class _Segment(Struct, frozen=True, gc=False):
    headUuid: str | None = None  # noqa: N815


class _Metadata(Struct, frozen=True, gc=False):
    trigger: str | None = None
    preservedSegment: _Segment | None = None  # noqa: N815 - of a compaction that kept the newest messages
    compactedToolIds: list[str] | None = None  # noqa: N815


class _Inner(Struct, frozen=True, gc=False):
    """A line of a sub-agent's conversation, wrapped in a progress line of its parent's."""

    type: str = ""
    uuid: str | None = None
    timestamp: str | None = None
    message: _Message | None = None


class _Progress(Struct, frozen=True, gc=False):
    type: str = ""
    agentId: str | None = None  # noqa: N815
    prompt: str | None = None
    message: _Inner | None = None


class _Line(Struct, frozen=True, gc=False):
    type: str = ""
    data: Raw = Raw(b"null")
    subtype: str | None = None
    uuid: str | None = None
    parentUuid: str | UnsetType | None = UNSET  # noqa: N815
    isSidechain: bool | None = False  # noqa: N815
    agentId: str | None = None  # noqa: N815
    isMeta: bool | None = False  # noqa: N815
    isCompactSummary: bool | None = False  # noqa: N815
    isApiErrorMessage: bool | None = False  # noqa: N815
    timestamp: str | None = None
    operation: str | None = None
    origin: _Kind | str | None = None
    message: _Message | None = None
    attachment: _Attachment | None = None
    compactMetadata: _Metadata | None = None  # noqa: N815
    microcompactMetadata: _Metadata | None = None  # noqa: N815


_decoder: Final = msgspec.json.Decoder(_Line)
_progress: Final = msgspec.json.Decoder(_Progress | None)


class _Probe(Struct, frozen=True, gc=False):
    type: str
    uuid: str | None = None
    sessionId: str | None = None  # noqa: N815
    leafUuid: str | None = None  # noqa: N815
    isSnapshotUpdate: bool | None = None  # noqa: N815

    @property
    def fits(self) -> bool:
        marks = (self.uuid, self.sessionId, self.leafUuid, self.isSnapshotUpdate)
        return self.type in BESIDE | {"user", "assistant", "attachment"} and any(mark is not None for mark in marks)


_probe: Final = msgspec.json.Decoder(_Probe)


class ClaudeCode:
    """Reads Claude Code's JSONL."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether one of the first lines is one of Claude Code's."""
        return any(_begins(line) or _fits(line) for line in head.split(b"\n")[:50])

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts of the live branch, in order."""
        return _Reading().events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent, by its id or, in logs without ids, by that of its first line."""
        return _Reading(agent).events(chunks)


def _begins(line: bytes) -> bool:
    """Whether a line that may be cut off, or hold what is no Unicode, has the keys of one of Claude Code's."""
    top = keys(line)
    return "parentUuid" in top and bool({"type", "uuid", "message", "isSidechain"} & set(top))


def _fits(line: bytes) -> bool:
    try:
        return _probe.decode(line).fits
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class _Reading:
    """One pass over one file, for one of its conversations. Kept: the current stretch, the ids of all lines, and counts of what was left out.

    `agent` names a sub-agent's conversation. Without it the main one is read: of a file that starts inside a sub-agent, that one's.
    """

    def __init__(self, agent: str = "") -> None:
        self.tally = Tally()
        self.stretch = Stretch()
        self.seen: set[str] = set()
        self.yielded = 0
        self.agent = agent
        self.agents: dict[str, Agent] = {}
        self.roots: dict[str, str] = {}  # of side-chain lines without an agent's id: their first ancestor
        self.own: str | None = None  # whose log the whole file is; empty for the main agent's

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        for item in records(chunks, _decoder):
            if isinstance(item, Skipped):
                yield item
            elif item[1].uuid in self.seen:
                self.tally.add(DUPLICATE, item[0].line, item[0].size)
            elif (agent := self._agent_of(item[1])) != self.agent:
                self._beside(agent, *item)
            elif self._is_boundary(item[1]):
                yield from self._boundary(*item)
            else:
                self._take(*item)
        yield from self._settled()
        if not self.agent:
            yield from self.tally.skipped()
            yield from self.agents.values()

    def _agent_of(self, line: _Line) -> str:
        """Which sub-agent a line belongs to; empty for the one whose log this file is."""
        if line.type == "progress":
            return _progress_of(line).agentId or ""
        if not line.isSidechain and self.own is not None:
            return ""
        agent = line.agentId or self._root(line) if line.isSidechain else ""
        if self.own is None and line.type in ("user", "assistant"):
            self.own = agent
        return "" if agent == self.own else agent

    def _root(self, line: _Line) -> str:
        id_, parent = line.uuid or "", line.parentUuid or None
        root = self.roots.get(parent, id_) if parent else id_
        if parent and parent not in self.seen and parent not in self.roots:  # cut off or damaged
            root = next(reversed(self.roots.values()), id_)
        self.roots[id_] = root
        return root

    def _beside(self, agent: str, record: Record, line: _Line) -> None:
        """Count a line of another conversation than the one that is read."""
        if line.uuid is not None:
            self.seen.add(line.uuid)
            if not line.isSidechain:
                self.stretch.link(line.uuid, line.parentUuid or None)  # others may hang on it
        if not agent or (line.type == "progress" and _progress_of(line).message is None):
            return
        known = self.agents.get(agent)
        if known is None:
            task = _progress_of(line).prompt if line.type == "progress" else ""
            known = Agent(id=agent, line=record.line, messages=0, task=(task or "")[:TASK])
        self.agents[agent] = replace(known, messages=known.messages + 1, bytes=known.bytes + record.size)

    def _is_boundary(self, line: _Line) -> bool:
        return line.type == "system" and line.subtype == "compact_boundary"

    def _boundary(self, record: Record, line: _Line) -> Iterator[Event]:
        metadata = line.compactMetadata or _Metadata()
        head = self.stretch.line_of(metadata.preservedSegment and metadata.preservedSegment.headUuid)
        kept = 0
        for event in self._settled():
            kept += isinstance(event, Draft) and head is not None and (kept > 0 or event.line >= head)
            yield event
        reason = f"compaction ({metadata.trigger or 'unknown'})"
        yield Rewritten(reason=reason, line=record.line, at=utc(line.timestamp), drop_before=self.yielded - kept)
        if line.uuid is not None:
            self.seen.add(line.uuid)
            self.stretch.link(line.uuid, None)

    def _settled(self) -> Iterator[Event]:
        for event in self.stretch.settle():
            self.yielded += isinstance(event, Draft)
            yield event

    def _take(self, record: Record, line: _Line) -> None:
        if line.uuid is not None:
            self.seen.add(line.uuid)
        if line.type == "progress" and self.agent:
            self._take_progress(record, _progress_of(line))
        elif held := self._held(record, line):
            self.stretch.hold(held, linked=line.parentUuid is not UNSET)
        else:
            self._pass(record, line)

    def _take_progress(self, record: Record, progress: _Progress) -> None:
        """Hold what a progress line repeats of a sub-agent's conversation."""
        inner = progress.message
        if inner is None or inner.type not in ("user", "assistant") or inner.message is None:
            return
        held = Held(
            id=inner.uuid or f"line {record.line}",
            parent=None,
            line=record.line,
            size=record.size,
            at=utc(inner.timestamp),
            harness=False,
        )
        self.stretch.hold(_with_message(held, inner.type, inner.message, record), linked=False)

    def _pass(self, record: Record, line: _Line) -> None:
        """Leave a line out, keeping its place in the tree."""
        if line.uuid is not None:
            self.stretch.link(line.uuid, line.parentUuid or None)
        if line.type == "queue-operation" and line.operation == "remove":
            self.tally.add(UNQUEUED, record.line, record.size)
        elif line.type == "attachment":
            self.tally.add(ATTACHMENT, record.line, record.size)
        elif line.type in ("user", "assistant"):
            self.tally.add(NOTICE if line.isApiErrorMessage else "conversation line without a message", record.line, record.size)
        elif line.type not in BESIDE:
            self.tally.add(UNKNOWN_TYPE.format(line.type), record.line, record.size)

    def _held(self, record: Record, line: _Line) -> Held | None:
        """What of the line is kept until its branch is known to live; None when it is no part of the conversation."""
        held = Held(
            id=line.uuid or f"line {record.line}",
            parent=line.parentUuid or None,
            line=record.line,
            size=record.size,
            at=utc(line.timestamp),
            harness=_by_harness(line),
        )
        if line.type in ("user", "assistant") and line.message is not None and not line.isApiErrorMessage:
            return _with_message(held, line.type, line.message, record)
        if line.type == "system" and line.subtype == "microcompact_boundary":
            cleared = (line.microcompactMetadata and line.microcompactMetadata.compactedToolIds) or ()
            return replace(held, kind=CLEARED, cleared=tuple(cleared))
        if line.attachment is not None and line.attachment.type == "queued_command":
            harness = held.harness or line.attachment.commandMode not in (None, "prompt")
            return replace(held, kind="queued", content=bytes(line.attachment.prompt), harness=harness)
        return None


def _by_harness(line: _Line) -> bool:
    kind = line.origin.kind if isinstance(line.origin, _Kind) else line.origin
    return bool(line.isMeta or line.isCompactSummary) or kind not in (None, "human")


def _progress_of(line: _Line) -> _Progress:
    try:
        return decode(bytes(line.data), _progress) or _Progress()
    except Damaged:
        return _Progress()  # of another kind, which nobody's window held


def _with_message(held: Held, kind: str, message: _Message, record: Record) -> Held:
    return replace(
        held,
        kind=kind,
        content=cut(bytes(message.content), record.source, record.faithful),
        message=message.id or held.id,
        model=message.model or "",
        usage=_usage(message.usage),
        cache_life=_life(message.usage),
    )


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        uncached=usage.input_tokens or 0,
        cache_write=usage.cache_creation_input_tokens or 0,
        cache_read=usage.cache_read_input_tokens or 0,
        output=usage.output_tokens or 0,
    )


def _life(usage: _Usage | None) -> str:
    """How long the request asked for what it wrote to be kept, as far as it wrote anything."""
    written = usage.cache_creation if usage is not None else None
    if written is None:
        return ""
    return "1h" if written.ephemeral_1h_input_tokens else "5m" if written.ephemeral_5m_input_tokens else ""
