"""pi's session files (`~/.pi/agent/sessions/**/*.jsonl`): a header, then messages and notes, one per line.

Version 1 is linear and is read as it streams in. Later versions are a tree whose live branch ends at the last line: nothing in
it is certain before the end, so its drafts are held, and only those.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Draft, Origin, Role
from tenure.logs.jsonl import Record, records
from tenure.logs.moment import utc
from tenure.logs.pi.message import BRANCHED, COMPACTED, Message, Part, blocks_of, of_harness, spoken
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.tally import Tally
from tenure.logs.tree import branch

NAME: Final = "pi"

NOTES: Final = frozenset(
    {"session", "model_change", "thinking_level_change", "label", "session_info", "custom"}
)  # not for the model


class _Line(Struct, frozen=True, gc=False):
    type: str = ""
    id: str | None = None
    parentId: str | None = None  # noqa: N815
    timestamp: str | int | None = None
    message: Message | None = None
    content: str | list[Part] | None = None
    summary: str = ""
    firstKeptEntryIndex: int | None = None  # noqa: N815
    firstKeptEntryId: str | None = None  # noqa: N815


class _Probe(Struct, frozen=True, gc=False):
    type: str
    id: str | None = None
    cwd: str | None = None
    uuid: str | None = None
    message: dict[str, Raw] | None = None

    @property
    def fits(self) -> bool:
        if self.type == "session":
            return self.cwd is not None
        return self.type == "message" and self.uuid is None and self.message is not None and "role" in self.message


_decoder: Final = msgspec.json.Decoder(_Line)
_probe: Final = msgspec.json.Decoder(_Probe)


class Pi:
    """Reads pi's JSONL, linear and tree."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether one of the first lines is pi's header, or a message in its envelope."""
        return any(_fits(line) for line in head.split(b"\n")[:20])

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts of the live branch, in order."""
        return _Reading().events(chunks)


def _fits(line: bytes) -> bool:
    try:
        return _probe.decode(line).fits
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class _Step(Struct, frozen=True, gc=False):
    """One line that may matter, in the place where it stands."""

    key: str  # the id, or in version 1 the index among all entries
    line: int
    size: int
    parent: str | None
    draft: Draft | None = None
    kept: str | None = None  # of a compaction: the key of the first entry it kept, empty for none
    reason: str = ""  # why there is no draft, when that is worth saying


class _Reading:
    def __init__(self) -> None:
        self.tally = Tally()
        self.yielded = 0
        self.numbers: dict[str, int] = {}  # for each key the number of drafts before it
        self.steps: dict[str, _Step] = {}  # of a tree

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        index, last = -1, None
        for item in records(chunks, _decoder):
            if isinstance(item, Skipped):
                yield item
                continue
            record, line = item
            index += 1
            if line.id is None or line.type == "session":
                yield from self._place(_step(record, line, str(index), None))
            elif line.id in self.steps:
                self.tally.add("line whose id was there before", record.line, record.size)
            else:
                step = _step(record, line, line.id, line.parentId if line.parentId in self.steps else last)
                self.steps[line.id] = step if line.parentId is not None else msgspec.structs.replace(step, parent=None)
                last = line.id
        yield from self._live(last)
        yield from self.tally.skipped()

    def _live(self, leaf: str | None) -> Iterator[Event]:
        chain = branch({key: step.parent for key, step in self.steps.items()}, leaf) if leaf else []
        for key in chain:
            yield from self._place(self.steps.pop(key))
        left = [step for step in self.steps.values() if step.draft]
        if left:
            reason = f"abandoned branch: {len(left)} lines left by a rewind"
            yield Skipped(line=left[0].line, bytes=sum(step.size for step in left), reason=reason)

    def _place(self, step: _Step) -> Iterator[Event]:
        self.numbers[step.key] = self.yielded
        if step.reason:
            self.tally.add(step.reason, step.line, step.size)
        if step.draft is None:
            return
        if step.kept is not None:
            dropped = self.numbers.get(step.kept, self.yielded)
            yield Rewritten(reason="compaction", line=step.line, at=step.draft.at, drop_before=dropped)
        self.yielded += 1
        yield step.draft


def _step(record: Record, line: _Line, key: str, parent: str | None) -> _Step:
    draft, kept, reason = _draft(line, record.line), None, ""
    if line.type == "compaction":
        kept = line.firstKeptEntryId or ("" if line.firstKeptEntryIndex is None else str(line.firstKeptEntryIndex))
    elif draft is None and line.type not in NOTES:
        reason = _why_not(line)
    return _Step(key, record.line, record.size, parent, draft, kept, reason)


def _why_not(line: _Line) -> str:
    if line.message is None:
        return f"line type unknown to this version: {line.type!r}"
    if line.message.excludeFromContext:
        return "command whose output the user kept from the model"
    if line.message.role == "assistant":
        return "call that was aborted or failed before the model said anything"
    return "message without content"


def _draft(line: _Line, number: int) -> Draft | None:
    at = utc(line.timestamp)
    match line.type:
        case "message" if line.message is not None:
            return spoken(line.message, at, number)
        case "compaction":
            return of_harness(COMPACTED.format(line.summary), at, number)
        case "branch_summary" if line.summary:
            return of_harness(BRANCHED.format(line.summary), at, number)
        case "custom_message":
            blocks = blocks_of(line.content, Origin.HARNESS)
            return Draft(role=Role.USER, blocks=blocks, at=at, line=number) if blocks else None
        case _:
            return None
