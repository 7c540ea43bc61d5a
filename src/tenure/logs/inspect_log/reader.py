"""Inspect's eval logs (`logs/*.json`; `*.eval` is the same, zipped): one document of samples and the events of each.

A sample's `messages` are its conversation as it was in the end. Its events repeat that many times over, and are read for what they
alone tell: usage, times, compactions, and the conversations of sub-agents. Scores, targets, states and the raw traffic with the
API are left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Role, ToolCall, ToolResult
from tenure.logs.inspect_log.messages import ROLES, blocks_of, unshown
from tenure.logs.inspect_log.sample import InspectCall, Sample, SampleMessage, sent
from tenure.logs.inspect_log.window import ConversationLine, Track, replies, windows
from tenure.logs.json_files import Element, document, elements
from tenure.logs.reader import Event, Skipped, SubAgent
from tenure.logs.salvage import DamagedJson
from tenure.logs.shape import keys
from tenure.logs.transcript import TASK, TranscriptBuilder

ALLOWED: Final = "an Inspect log: an object with `eval` and `samples`"

REPLACED: Final = "reply that a later call was sent, but `messages` no longer holds: its history was replaced or is another's"
BESIDE: Final = "call beside the conversation, such as one for a summary: its answer is no message of it"
EMPTY: Final = "message without content"
ELSEWHERE: Final = "message in a compacted window that `messages` does not hold"

_SPEC: Final = re.compile(rb'"(?:run_id|task_id|eval_id|task_version|task_file)"\s*:')
_SAMPLE: Final = (re.compile(rb'"epoch"\s*:\s*\d'), re.compile(rb'"target"\s*:\s*["\[]'), re.compile(rb'"input"\s*:\s*["\[]'))

# Python's JSON has constants that no JSON has, and logs of few samples are full of them; `mend` would read those at a tenth of the speed.
_UP_TO_CONSTANT: Final = re.compile(rb'((?:[^"NI-]++|-(?!I)|"(?:[^"\\]++|\\.)*+")*+)(?:NaN|-?Infinity)', re.DOTALL)


class _Log(Struct, frozen=True, gc=False):
    samples: list[Raw] | None = None
    epoch: Raw = Raw()  # of a document that is one sample


class InspectLog:
    """Reads Inspect's logs."""

    name = "inspect"

    def recognises(self, head: bytes) -> bool:
        """Whether the document is a log, by its specification or its first sample; or a sample alone."""
        top = set(keys(head))
        if "eval" in top and {"version", "status", "plan", "samples"} & top:
            return _SPEC.search(head) is not None
        return ("samples" in top or {"epoch", "target"} <= top) and all(mark.search(head) for mark in _SAMPLE)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The samples one after the other, each a new conversation."""
        return _InspectReading().events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """What the last call of a sub-agent was sent, and its answer."""
        return _InspectReading().of_agent(chunks, agent)


class _InspectReading:
    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.made = 0  # call ids

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        for item in _samples(chunks, self.transcript):
            if isinstance(item, Skipped):
                yield item
                continue
            number, sample = item
            self.transcript.here(sample.element.line, len(sample.element.source))
            self.transcript.restart()
            said = sample.messages()
            if not said:
                self.transcript.skip("sample without messages")
            calls = [call for call in sample.calls if not call.scoring]
            own = self._conversation(said, calls, sample)
            groups: dict[str, list[InspectCall]] = {}
            for call in calls:
                if call.owner not in own:
                    groups.setdefault(call.owner, []).append(call)
            for owner, group in groups.items():
                self.transcript.event(_agent(f"{number}/{owner}", sample, group))
            yield from self.transcript.take()
        yield from self.transcript.end()

    def of_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        for item in _samples(chunks, self.transcript):
            if isinstance(item, Skipped) or not agent.startswith(f"{item[0]}/"):
                continue
            number, sample = item
            calls = [call for call in sample.calls if not call.scoring and f"{number}/{call.owner}" == agent]
            if calls:
                self._conversation(sample.conversation(calls[-1]), calls, sample)
                yield from self.transcript.end()

    def _conversation(self, said: Sequence[SampleMessage], calls: Sequence[InspectCall], sample: Sample) -> set[str]:
        """Add one conversation; returns whose calls were part of it."""
        lines = self._lines(said)
        made = replies(lines, calls, sample)
        own = {"", *(call.owner for call in made.values())}
        self._note_others([call for call in calls if call.owner in own], made, sample)
        compactions = [each for each in sample.events.compactions if each.owner in own]
        after = windows(lines, made, compactions, sample)
        track = Track(self.transcript)
        for n, line in enumerate(lines):
            if n in after:
                for _ in range(after[n].elsewhere):
                    self.transcript.skip(ELSEWHERE, 0, line.said.line)
                track.rewrite(after[n], line.said.line)
            if line.blocks:
                track.place(n, self._add(line, made.get(n), sample.events.answered), line.blocks)
        return own

    def _add(self, line: ConversationLine, call: InspectCall | None, answered: Mapping[str, str]) -> int:
        role = ROLES[line.role]
        result = next((block.call_id for block in line.blocks if isinstance(block, ToolResult)), "")
        at = call.at if call else answered.get(result, "") if role is Role.TOOL else ""
        model = (call.model if call else "") or line.said.message.model or ""
        return self.transcript.add(role, line.blocks, at=at, line=line.said.line, model=model, usage=call.usage if call else None)

    def _lines(self, said: Sequence[SampleMessage]) -> list[ConversationLine]:
        lines: list[ConversationLine] = []
        open_: dict[str, None] = {}  # calls without a result yet
        asked = any(each.message.role == "user" and each.message.source == "input" for each in said)
        for each in said:
            message = each.message
            first = not asked and message.role == "user"
            new_id = (lambda: next(iter(open_))) if message.role == "tool" and open_ else self._new_id
            blocks = blocks_of(message, new_id, first=first)
            asked = asked or first
            open_.update((block.call_id, None) for block in blocks if isinstance(block, ToolCall))
            for block in blocks:
                if isinstance(block, ToolResult):
                    open_.pop(block.call_id, None)
            self._note_lost(each, blocks)
            lines.append(ConversationLine(each, blocks))
        return lines

    def _new_id(self) -> str:
        self.made += 1
        return f"call-{self.made}"

    def _note_lost(self, said: SampleMessage, blocks: Sequence[Block]) -> None:
        message = said.message
        if not blocks:
            self.transcript.skip(
                EMPTY if message.role in ROLES else f"message of unknown role {message.role!r}", said.size, said.line
            )
        if hidden := unshown(message):
            self.transcript.skip("output of a tool that failed: the model was shown the error in its place", hidden, said.line)

    def _note_others(self, calls: Sequence[InspectCall], found: Mapping[int, InspectCall], sample: Sample) -> None:
        used = {call.n for call in found.values()}
        others = [call for call in calls if call.n not in used]
        later = sent(calls, sample.pool) if others else set[str]()
        for call in others:
            self.transcript.skip(REPLACED if call.id in later else BESIDE, len(bytes(call.answer)), sample.element.line)


def _samples(chunks: Iterable[bytes], notes: TranscriptBuilder) -> Iterator[tuple[int, Sample] | Skipped]:
    """The samples of a log, or the one that the document is, numbered from 1."""
    log = document((_without_constants(b"".join(chunks)),), _Log, ALLOWED)
    if log.value.samples is None and bytes(log.value.epoch):
        array = iter((Element(1, log.source, log.faithful, len(log.source)),))
    else:
        array = elements(log.value.samples or [], log.source, log.faithful)
    number = 0
    for number, element in enumerate(array, 1):
        try:
            yield number, Sample(element, notes)
        except DamagedJson as damage:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged sample: found {damage.found}")
    if not number:
        yield Skipped(line=1, bytes=0, reason="log without samples: it was written before the first one, or without them")
    yield from log.skipped


def _without_constants(raw: bytes) -> bytes:
    """The log with null for every NaN and infinity."""
    if b"NaN" not in raw and b"Infinity" not in raw:
        return raw
    pieces: list[bytes] = []
    at = 0
    while found := _UP_TO_CONSTANT.match(raw, at):
        pieces += (found[1], b"null")
        at = found.end()
    return b"".join((*pieces, raw[at:]))


def _agent(id_: str, sample: Sample, calls: Sequence[InspectCall]) -> SubAgent:
    messages = sample.conversation(calls[-1])
    asked = (blocks_of(each.message) for each in messages if each.message.role == "user")
    task = "\n".join(block.text for block in next(asked, ()))
    size = sum(len(bytes(call.event)) for call in calls)
    return SubAgent(id=id_, line=sample.line_of(calls[0].event), messages=len(messages), bytes=size, task=task[:TASK])
