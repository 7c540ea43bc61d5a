"""One sample of an Inspect log: its messages, with what was moved to its attachments put back, and what its events tell of the model calls.

The events give usage and time of each call, whose it was, and where history was compacted. Every event of a call holds its whole input,
in place or as ranges of a pool; inputs are left as they stand until somebody asks. The same text can be referred to any number of times, so
what is put back is bounded by the sample's own size.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Usage
from tenure.logs.inspect_log.messages import InspectMessage
from tenure.logs.json_files import Element, elements
from tenure.logs.salvage import DamagedJson, Shape, decode, salvage
from tenure.logs.transcript import TranscriptBuilder, utc

# Spans, and the steps of 2024, whose calls may be another conversation than the sample's; calls for scoring are none at all.
AGENTS: Final = frozenset({"agent", "subtask", "tool"})
SCORERS: Final = frozenset({"scorer", "scorers"})

DEEPEST: Final = 16  # events inside events, as tools and subtasks held theirs until 2025


class _InspectUsage(Struct, frozen=True, gc=False):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    total_tokens: int | None = 0
    input_tokens_cache_write: int | None = 0
    input_tokens_cache_read: int | None = 0


class _InspectChoice(Struct, frozen=True, gc=False):
    message: Raw = Raw()


class _InspectOutput(Struct, frozen=True, gc=False):
    model: str | None = None
    choices: list[_InspectChoice] | None = None
    usage: _InspectUsage | None = None


class _Event(Struct, frozen=True, gc=False):
    event: str = ""
    type: str | None = None
    action: str | None = None  # of a step: begin or end
    id: str | None = None  # of a span, or of the call that a tool answered
    parent_id: str | None = None
    span_id: str | None = None
    timestamp: str | float | None = None
    completed: str | float | None = None
    model: str | None = None
    input: Raw = Raw(b"[]")
    input_refs: list[tuple[int, int]] | None = None
    output: Raw = Raw(b"null")
    source: str | None = None
    events: list[Raw] | None = None


class _Named(Struct, frozen=True, gc=False):
    id: str | None = None


class InspectCall(Struct, frozen=True, kw_only=True):
    """A model call that was answered."""

    n: int  # its place among the sample's events
    answer: Raw  # the message
    id: str  # of the message, empty in old versions
    model: str
    usage: Usage | None
    at: str = ""
    owner: str = ""  # the innermost span that may hold another conversation, empty for the sample's own
    scoring: bool = False
    event: Raw = Raw()
    input: Raw = Raw(b"[]")
    refs: tuple[tuple[int, int], ...] = ()  # ranges of the pool, instead of `input`


class HistoryCompaction(Struct, frozen=True, gc=False):
    """The harness compacted the history here."""

    n: int
    reason: str
    at: str
    owner: str  # as of a call


class SampleEvents(Struct, frozen=True):
    """The events that matter, in order."""

    calls: tuple[InspectCall, ...] = ()
    compactions: tuple[HistoryCompaction, ...] = ()
    answered: dict[str, str] = {}  # when each tool call was answered, by its id


class _Scope(Struct, frozen=True, gc=False):
    owner: str = ""
    scoring: bool = False

    def inside(self, kind: str, id_: str) -> "_Scope":
        return _Scope(id_ if kind in AGENTS else self.owner, self.scoring or kind in SCORERS)


_output: Final = msgspec.json.Decoder(_InspectOutput | None)


def events_of(events: Raw, notes: TranscriptBuilder, line: int) -> SampleEvents:
    """What matters of a sample's `events`."""
    reading = _EventReader(notes, line)
    try:
        reading.take(decode(bytes(events), list[Raw]), _Scope(), 0)
    except DamagedJson as damage:
        notes.skip(f"damaged events: found {damage.found}, expected an array", len(bytes(events)), line)
    return SampleEvents(tuple(reading.calls), tuple(reading.compactions), reading.answered)


def call_of(output: Raw, n: int = 0) -> InspectCall | None:
    """The call that had this output; None when it was not answered. Raises DamagedJson."""
    found = salvage(bytes(output), _output).value or _InspectOutput()
    answer = next((choice.message for choice in found.choices or ()), Raw())
    if not bytes(answer).startswith(b"{"):
        return None
    return InspectCall(n=n, answer=answer, id=name_of(answer), model=found.model or "", usage=_counted(found.usage))


def input_of(call: InspectCall, pool: Sequence[Raw]) -> Iterator[Raw]:
    """The messages that the model was sent. Ranges may name one of the pool any number of times: bound what you take."""
    if call.refs:
        for start, end in call.refs:
            yield from (pool[n] for n in range(max(0, start), min(end, len(pool))))
        return
    try:
        yield from decode(bytes(call.input), list[Raw])
    except DamagedJson:
        return


def name_of(message: Raw) -> str:
    """The id of a message, empty when it has none."""
    try:
        return decode(bytes(message), _Named).id or ""
    except DamagedJson:
        return ""


def sent(calls: Iterable[InspectCall], pool: Sequence[Raw]) -> set[str]:
    """The ids of all messages that some call was sent."""
    inline = (message for call in calls if not call.refs for message in input_of(call, pool))
    return {name_of(message) for source in (pool, inline) for message in source} - {""}


class _EventReader:
    def __init__(self, notes: TranscriptBuilder, line: int) -> None:
        self.notes, self.line = notes, line
        self.calls: list[InspectCall] = []
        self.compactions: list[HistoryCompaction] = []
        self.answered: dict[str, str] = {}
        self.spans: dict[str, _Scope] = {}
        self.n = 0

    def take(self, events: list[Raw], scope: _Scope, depth: int) -> None:
        steps = [scope]
        for raw in events:
            self.n += 1
            try:
                self._take(raw, salvage(bytes(raw), _Event).value, steps, depth)
            except DamagedJson as damage:
                self.notes.skip(f"damaged event: found {damage.found}", len(bytes(raw)), self.line)

    def _take(self, raw: Raw, event: _Event, steps: list[_Scope], depth: int) -> None:
        scope = self.spans.get(event.span_id or "", steps[-1])
        match event.event:
            case "model":
                self._call(raw, event, scope)
            case "span_begin" if event.id is not None:
                outer = self.spans.get(event.parent_id or "", steps[-1])
                self.spans[event.id] = outer.inside(event.type or "", event.id)
            case "step" if event.action == "begin":
                steps.append(steps[-1].inside(event.type or "", f"step-{self.n}"))
            case "step" if len(steps) > 1:
                steps.pop()
            case "compaction":
                by = f" by {event.source}" if event.source and event.source != "inspect" else ""
                reason = f"compaction ({event.type or 'unknown'}){by}"
                self.compactions.append(HistoryCompaction(self.n, reason, utc(event.timestamp), scope.owner))
            case "tool" | "subtask":
                if event.event == "tool" and event.id is not None:
                    self.answered[event.id] = utc(event.completed or event.timestamp)
                self._nested(raw, event, scope, depth)
            case _:
                pass  # notes of the harness, none of them for the model

    def _nested(self, raw: Raw, event: _Event, scope: _Scope, depth: int) -> None:
        if event.events and depth < DEEPEST:
            self.take(event.events, scope.inside(event.event, f"{event.event}-{self.n}"), depth + 1)
        elif event.events:
            self.notes.skip("events nested too deeply", len(bytes(raw)), self.line)

    def _call(self, raw: Raw, event: _Event, scope: _Scope) -> None:
        if (call := call_of(event.output, self.n)) is not None:  # else it failed, or was still under way
            self.calls.append(
                replace(
                    call,
                    owner=scope.owner,
                    scoring=scope.scoring,
                    event=raw,
                    input=event.input,
                    refs=tuple(event.input_refs or ()),
                    model=call.model or event.model or "",
                    at=utc(event.completed or event.timestamp),
                )
            )


def _counted(usage: _InspectUsage | None) -> Usage | None:
    """Inspect counts cached tokens beside the input; some of its providers of 2024 and 2025 did so inside: the total tells."""
    if usage is None:
        return None
    fresh, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, write = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    total = usage.total_tokens or 0
    if total and total < fresh + read + write + output:
        fresh = max(0, fresh - read - write)
    return Usage(uncached=fresh, cache_write=write, cache_read=read, output=output)


T = TypeVar("T")

_REFERENCE: Final = re.compile(rb'(?<!\\)"(?:attachment|tc)://([0-9A-Za-z]{1,64})"')  # a whole string; "tc" in 2024
_MARKS: Final = (b'"attachment://', b'"tc://')

# What may be put back, and looked at again: a real log shows an attachment about once in its messages, and again where we compare.
_ALWAYS: Final = 64 * 2**20  # bytes
_TIMES: Final = 4  # the size of the sample
_EACH: Final = 2**10  # bytes that a message counts for at least


class _Pools(Struct, frozen=True, gc=False):
    messages: Raw = Raw(b"[]")


class _Old(Struct, frozen=True, gc=False):
    events: Raw = Raw(b"[]")
    content: Raw = Raw(b"{}")


class _InspectSample(Struct, frozen=True, gc=False):
    messages: Raw = Raw(b"[]")
    events: Raw = Raw(b"[]")
    events_data: Raw = Raw(b"null")
    attachments: Raw = Raw(b"{}")
    transcript: Raw = Raw(b"null")  # events and attachments in 2024
    error_retries: Raw = Raw(b"null")
    input: Raw = Raw(b"null")
    output: Raw = Raw(b"null")


class SampleMessage(Struct, frozen=True):
    """A message, where it stands and how long it is there."""

    line: int
    size: int
    message: InspectMessage


_pools: Final = msgspec.json.Decoder(_Pools | None)
_list: Final = msgspec.json.Decoder(list[Raw] | None)
_texts: Final = msgspec.json.Decoder(dict[str, Raw] | None)


class Sample:
    """A sample that is being read. Raises DamagedJson when it is no object."""

    def __init__(self, element: Element, notes: TranscriptBuilder) -> None:
        self.element, self.notes = element, notes
        self._at, self._line = 0, element.line
        self._left = _ALWAYS + _TIMES * len(element.source)
        self._parts = salvage(element.source, _InspectSample).value
        old = self._old()
        texts = self._decoded(old.content if old else self._parts.attachments, _texts, "attachments")
        self._attached: dict[str, Raw] = texts or {}
        pools = self._decoded(self._parts.events_data, _pools, "pools")
        self.pool: list[Raw] = (self._decoded(pools.messages, _list, "message pool") or []) if pools else []
        self.events = events_of(old.events if old else self._parts.events, notes, element.line)
        self.calls = self.events.calls or self._lone_call()
        retries = bytes(self._parts.error_retries)
        if b'"choices"' in retries:
            notes.skip("attempts that failed and were run again: no part of this one", len(retries), element.line)

    def messages(self) -> list[SampleMessage]:
        """The sample's conversation as it was in the end; where the log has none, what the last call tells of it."""
        own = [call for call in self.calls if not call.scoring]
        if (said := list(self._messages())) or not own:
            return said
        last = next(call for call in reversed(own) if call.owner == own[0].owner)
        return self.conversation(last) if self.events.calls else [*self._asked(), *self._all((last.answer,))]

    def conversation(self, call: InspectCall) -> list[SampleMessage]:
        """What a call was sent, and its answer."""
        return [*self.sent(call), *self._all((call.answer,))]

    def _messages(self) -> Iterator[SampleMessage]:
        array = bytes(self._parts.messages)
        raws: list[Raw] = self._decoded(self._parts.messages, _list, "messages") or []
        start = max(0, self.element.source.find(array))
        before = self.element.line + self.element.faithful.count(b"\n", 0, start)
        for item in elements(raws, array, self.element.faithful[start : start + len(array)]):
            yield from self._said(item.source, before + item.line - 1)

    @property
    def exhausted(self) -> bool:
        """Whether the log repeats itself so often that not everything was looked at."""
        return self._left < 0

    def line_of(self, event: Raw) -> int:
        """Where an event stands; asked in the order of the log."""
        at = self.element.source.find(bytes(event), self._at)
        if at >= 0:
            self._line += self.element.faithful.count(b"\n", self._at, at)
        self._at = at if at >= 0 else len(self.element.source)
        return self._line

    def _asked(self) -> Iterator[SampleMessage]:
        asked = bytes(self._parts.input)
        if asked.startswith(b'"'):
            yield from self._said(b'{"role":"user","source":"input","content":' + asked + b"}", self.element.line)
        else:
            yield from self._all(self._decoded(self._parts.input, _list, "input") or ())

    def sent(self, call: InspectCall) -> Iterator[SampleMessage]:
        """The messages that a call was sent."""
        yield from self._all(input_of(call, self.pool))

    def answer(self, call: InspectCall) -> InspectMessage | None:
        """What a call was answered."""
        return next((said.message for said in self._all((call.answer,))), None)

    def _all(self, raws: Iterable[Raw]) -> Iterator[SampleMessage]:
        for raw in raws:
            part = bytes(raw)
            self._left -= max(_EACH, len(part))
            if self._left < 0:
                self.notes.skip("inputs of calls, too long to look at all of them", 0, self.element.line)
                return
            yield from self._said(part, self.element.line)

    def _said(self, raw: bytes, line: int) -> Iterator[SampleMessage]:
        try:
            read = salvage(self._whole(raw), InspectMessage)
        except DamagedJson as damage:
            self.notes.skip(f"damaged message: found {damage.found}", len(raw), line)
            return
        for reason in read.left_out:
            self.notes.skip(reason, 0, line)
        yield SampleMessage(line, len(raw), read.value)

    def _whole(self, raw: bytes) -> bytes:
        return _REFERENCE.sub(self._attachment, raw) if any(mark in raw for mark in _MARKS) else raw

    def _attachment(self, reference: re.Match[bytes]) -> bytes:
        found = bytes(self._attached.get(reference[1].decode("ascii"), b""))
        if not found.startswith(b'"'):
            self.notes.skip("reference to an attachment that is not in the log", len(reference[0]), self.element.line)
            return reference[0]
        self._left -= len(found)
        if self._left < 0:
            self.notes.skip(
                "reference to an attachment, too often to put it back each time", len(reference[0]), self.element.line
            )
            return reference[0]
        return found

    def _lone_call(self) -> tuple[InspectCall, ...]:
        """The last call, of logs without events."""
        try:
            call = call_of(self._parts.output)
        except DamagedJson:
            call = None
        return (call,) if call is not None else ()

    def _old(self) -> _Old | None:
        if bytes(self._parts.transcript) == b"null":
            return None
        return self._decoded(self._parts.transcript, _Old, "transcript")

    def _decoded(self, raw: Raw, shape: Shape[T], what: str) -> "T | None":
        try:
            return salvage(bytes(raw), shape).value
        except DamagedJson as damage:
            self.notes.skip(f"damaged {what}: found {damage.found}", len(bytes(raw)), self.element.line)
            return None
