"""Which call made which message of an Inspect conversation, and what a compaction left in the window.

Messages are told apart by id. Old versions wrote none, pools give equal messages one id, and compactions make new ones: then a
message is known by the calls that it made or answers, or by its text.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Block, Text, ToolCall, ToolResult
from tenure.logs.inspect_log.messages import InspectMessage, blocks_of
from tenure.logs.inspect_log.sample import HistoryCompaction, InspectCall, Sample, SampleMessage
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.transcript import TranscriptBuilder

CLEARED: Final = "(Tool result removed)"  # what a compaction puts in place of a result

Key: TypeAlias = tuple[str, ...]


class ConversationLine(Struct, frozen=True):
    """A message of the conversation."""

    said: SampleMessage
    blocks: tuple[Block, ...]

    @property
    def role(self) -> str:
        """The role as the log names it."""
        return self.said.message.role


class CompactedWindow(Struct, frozen=True):
    """What a compaction left."""

    compaction: HistoryCompaction
    kept: frozenset[int] | None  # messages of the conversation, by index; None when that is not known
    cleared: tuple[str, ...] = ()  # call ids
    elsewhere: int = 0  # messages in the window that the conversation does not hold


class _InspectMetadata(Struct, frozen=True, gc=False):
    combined_from: list[str | None] | None = None  # messages sent as one, to APIs that take no two of one role in a row


_metadata: Final = msgspec.json.Decoder(_InspectMetadata | None)


def replies(lines: Sequence[ConversationLine], calls: Sequence[InspectCall], sample: Sample) -> dict[int, InspectCall]:
    """The calls by the index of the message that they were answered with; calls of no message are left out."""
    by_id: dict[str, int] = {}
    for n, line in enumerate(lines):
        if line.role == "assistant" and line.said.message.id:
            by_id.setdefault(line.said.message.id, n)
    found: dict[int, InspectCall] = {}
    left: list[InspectCall] = []
    for call in calls:
        n = by_id.get(call.id, -1)
        if n >= 0 and n not in found:
            found[n] = call
        else:
            left.append(call)
    alone = [n for n, line in enumerate(lines) if line.role == "assistant" and n not in found]
    return found | _by_text(lines, alone, left, sample) if alone and left else found


def windows(
    lines: Sequence[ConversationLine], found: Mapping[int, InspectCall], compactions: Sequence[HistoryCompaction], sample: Sample
) -> dict[int, CompactedWindow]:
    """The compactions of the conversation, by the index of the first message after each."""
    made = sorted((call.n, n) for n, call in found.items())
    last = {made[at]: each for each in compactions if (at := bisect(made, (each.n, len(lines)))) < len(made)}
    index = _Index(lines)
    result: dict[int, CompactedWindow] = {}
    for (_, n), compaction in last.items():
        if n >= index.known:
            window = index.window(n, found[n], compaction, sample)
            result[_start(lines, n, window.kept or frozenset())] = window
    return result


class Track:
    """Which drafts of a conversation are in the window."""

    def __init__(self, transcript: TranscriptBuilder) -> None:
        self.transcript = transcript
        self.numbers: dict[int, int] = {}  # of the drafts, by the index of their messages
        self.live: set[int] = set()
        self.results: set[str] = set()  # that can still be cleared

    def place(self, n: int, number: int, blocks: Iterable[Block]) -> None:
        """The message `n` became the draft `number`."""
        self.numbers[n] = number
        self.live.add(number)
        self.results.update(block.call_id for block in blocks if isinstance(block, ToolResult))

    def rewrite(self, window: CompactedWindow, line: int) -> None:
        """Say what a compaction did to the drafts until then."""
        say, at, end = self.transcript.rewrite, window.compaction.at, self.transcript.count
        if window.kept is None:
            say(window.compaction.reason, line=line, at=at)
            return
        kept = sorted(self.numbers[n] for n in window.kept if n in self.numbers)
        cleared = tuple(dict.fromkeys(id_ for id_ in window.cleared if id_ in self.results))
        self.results.difference_update(cleared)
        if self.live <= set(kept):
            say(window.compaction.reason, cleared=cleared, line=line, at=at)
            return
        self.live = set(kept)
        while kept and kept[-1] == end - 1:  # what stayed at the end needs no naming
            end = kept.pop()
        say(window.compaction.reason, end, kept, cleared, line=line, at=at)


def _by_text(
    lines: Sequence[ConversationLine], alone: Sequence[int], calls: Sequence[InspectCall], sample: Sample
) -> dict[int, InspectCall]:
    waiting: dict[Key, list[int]] = {}
    for n in reversed(alone):
        waiting.setdefault(_wording(lines[n].said.message, lines[n].blocks), []).append(n)
    found: dict[int, InspectCall] = {}
    for call in calls:
        message = sample.answer(call)
        if message is not None and (places := waiting.get(_wording(message, blocks_of(message)))):
            found[places.pop()] = call
    return found


def _start(lines: Sequence[ConversationLine], n: int, kept: frozenset[int]) -> int:
    """What the compaction itself put there, a summary, stands right before the next answer."""
    while n - 1 in kept and lines[n - 1].role in ("user", "system"):
        n -= 1
    return n


class _Index:
    """The messages before one compaction after the other."""

    def __init__(self, lines: Sequence[ConversationLine]) -> None:
        self.lines = lines
        self.known = 0
        self.places: dict[Key, list[int]] = {}

    def window(self, until: int, call: InspectCall, compaction: HistoryCompaction, sample: Sample) -> CompactedWindow:
        for n in range(self.known, until):
            for key in _keys(self.lines[n].said.message, self.lines[n].blocks):
                self.places.setdefault(key, []).append(n)
        self.known = until
        kept, cleared, elsewhere = set[int](), list[str](), 0
        sent = [said.message for said in sample.sent(call)]
        passed: dict[Key, int] = {}
        for message in sent:
            places = list(self._places(message, kept, passed))
            kept.update(places)
            elsewhere += not places
            if message.role == "tool" and message.content == CLEARED and isinstance(message.tool_call_id, str):
                cleared.append(message.tool_call_id)
        if not sent or sample.exhausted:
            return CompactedWindow(compaction, None)
        return CompactedWindow(compaction, frozenset(kept), tuple(cleared), elsewhere)

    def _places(self, message: InspectMessage, kept: set[int], passed: dict[Key, int]) -> Iterator[int]:
        """Where the message stands, or where those stand that were combined into it."""
        combined = [("id", id_) for id_ in _combined(message) if id_ and ("id", id_) in self.places]
        if combined:
            yield from (self.places[key][-1] for key in combined)
            return
        for key in _keys(message, blocks_of(message)):
            places = self.places.get(key, [])
            while (at := passed.get(key, 0)) < len(places):  # the newest that is not taken yet
                passed[key] = at + 1
                if places[-1 - at] not in kept:
                    yield places[-1 - at]
                    return


def _combined(message: InspectMessage) -> Sequence[str | None]:
    try:
        metadata = decode(bytes(message.metadata), _metadata)
    except DamagedJson:
        return ()
    return (metadata and metadata.combined_from) or ()


def _keys(message: InspectMessage, blocks: tuple[Block, ...]) -> Iterator[Key]:
    """What the message may be known by, the surest first."""
    if message.id:
        yield "id", message.id
    if message.role == "tool" and isinstance(message.tool_call_id, str):
        yield "result", message.tool_call_id
    if called := [block.call_id for block in blocks if isinstance(block, ToolCall)]:
        yield "calls", *called
    elif message.role != "tool":
        yield _wording(message, blocks)


def _wording(message: InspectMessage, blocks: tuple[Block, ...]) -> Key:
    said = (f"{type(block).__name__} {block.text}" for block in blocks if isinstance(block, Text | ToolCall))
    return ("wording", message.role, *said)
