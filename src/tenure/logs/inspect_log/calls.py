"""What Inspect's events tell of a sample's model calls: their usage and time, whose they were, and where history was compacted.

Every event of a call holds its whole input, in place or as ranges of a pool; inputs are left as they stand until somebody asks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Usage
from tenure.logs.salvage import Damaged, decode, salvage
from tenure.logs.tally import Tally
from tenure.logs.transcript import utc

# Spans, and the steps of 2024, whose calls may be another conversation than the sample's; calls for scoring are none at all.
AGENTS: Final = frozenset({"agent", "subtask", "tool"})
SCORERS: Final = frozenset({"scorer", "scorers"})

DEEPEST: Final = 16  # events inside events, as tools and subtasks held theirs until 2025


class _Usage(Struct, frozen=True, gc=False):
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    total_tokens: int | None = 0
    input_tokens_cache_write: int | None = 0
    input_tokens_cache_read: int | None = 0


class _Choice(Struct, frozen=True, gc=False):
    message: Raw = Raw()


class _Output(Struct, frozen=True, gc=False):
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


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


class Call(Struct, frozen=True, kw_only=True):
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


class Compaction(Struct, frozen=True, gc=False):
    """The harness compacted the history here."""

    n: int
    reason: str
    at: str
    owner: str  # as of a call


class Transcript(Struct, frozen=True):
    """The events that matter, in order."""

    calls: tuple[Call, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    answered: dict[str, str] = {}  # when each tool call was answered, by its id


class _Scope(Struct, frozen=True, gc=False):
    owner: str = ""
    scoring: bool = False

    def inside(self, kind: str, id_: str) -> "_Scope":
        return _Scope(id_ if kind in AGENTS else self.owner, self.scoring or kind in SCORERS)


_event: Final = msgspec.json.Decoder(_Event)
_list: Final = msgspec.json.Decoder(list[Raw])
_output: Final = msgspec.json.Decoder(_Output | None)
_named: Final = msgspec.json.Decoder(_Named)


def transcript(events: Raw, tally: Tally, line: int) -> Transcript:
    """The transcript of a sample's `events`."""
    reading = _Reading(tally, line)
    try:
        reading.take(decode(bytes(events), _list), _Scope(), 0)
    except Damaged as damage:
        tally.add(f"damaged events: found {damage.found}, expected an array", line, len(bytes(events)))
    return Transcript(tuple(reading.calls), tuple(reading.compactions), reading.answered)


def call_of(output: Raw, n: int = 0) -> Call | None:
    """The call that had this output; None when it was not answered. Raises Damaged."""
    found = salvage(bytes(output), _output).value or _Output()
    answer = next((choice.message for choice in found.choices or ()), Raw())
    if not bytes(answer).startswith(b"{"):
        return None
    return Call(n=n, answer=answer, id=name_of(answer), model=found.model or "", usage=_counted(found.usage))


def input_of(call: Call, pool: Sequence[Raw]) -> Iterator[Raw]:
    """The messages that the model was sent. Ranges may name one of the pool any number of times: bound what you take."""
    if call.refs:
        for start, end in call.refs:
            yield from (pool[n] for n in range(max(0, start), min(end, len(pool))))
        return
    try:
        yield from decode(bytes(call.input), _list)
    except Damaged:
        return


def name_of(message: Raw) -> str:
    """The id of a message, empty when it has none."""
    try:
        return decode(bytes(message), _named).id or ""
    except Damaged:
        return ""


def sent(calls: Iterable[Call], pool: Sequence[Raw]) -> set[str]:
    """The ids of all messages that some call was sent."""
    inline = (message for call in calls if not call.refs for message in input_of(call, pool))
    return {name_of(message) for source in (pool, inline) for message in source} - {""}


class _Reading:
    def __init__(self, tally: Tally, line: int) -> None:
        self.tally, self.line = tally, line
        self.calls: list[Call] = []
        self.compactions: list[Compaction] = []
        self.answered: dict[str, str] = {}
        self.spans: dict[str, _Scope] = {}
        self.n = 0

    def take(self, events: list[Raw], scope: _Scope, depth: int) -> None:
        steps = [scope]
        for raw in events:
            self.n += 1
            try:
                self._take(raw, salvage(bytes(raw), _event).value, steps, depth)
            except Damaged as damage:
                self.tally.add(f"damaged event: found {damage.found}", self.line, len(bytes(raw)))

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
                self.compactions.append(Compaction(self.n, reason, utc(event.timestamp), scope.owner))
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
            self.tally.add("events nested too deeply", self.line, len(bytes(raw)))

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


def _counted(usage: _Usage | None) -> Usage | None:
    """Inspect counts cached tokens beside the input; some of its providers of 2024 and 2025 did so inside: the total tells."""
    if usage is None:
        return None
    fresh, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, write = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    total = usage.total_tokens or 0
    if total and total < fresh + read + write + output:
        fresh = max(0, fresh - read - write)
    return Usage(uncached=fresh, cache_write=write, cache_read=read, output=output)
