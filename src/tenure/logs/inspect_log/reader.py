"""Inspect's eval logs (`logs/*.json`; `*.eval` is the same, zipped): one document of samples and the events of each.

A sample's `messages` are its conversation as it was in the end. Its events repeat that many times over, and are read for what they
alone tell: usage, times, compactions, and the conversations of sub-agents. Scores, targets, states and the raw traffic with the
API are left out.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Draft, Role, ToolCall, ToolResult
from tenure.logs.inspect_log.calls import Call, sent
from tenure.logs.inspect_log.message import ROLES, blocks_of, unshown
from tenure.logs.inspect_log.sample import Said, Sample
from tenure.logs.inspect_log.window import Line, Track, Window, replies, windows
from tenure.logs.json_files import Element, document, elements
from tenure.logs.reader import Agent, Event, Rewritten, Skipped
from tenure.logs.salvage import Damaged
from tenure.logs.shape import keys
from tenure.logs.tally import Tally

NAME: Final = "inspect"
ALLOWED: Final = "an Inspect log: an object with `eval` and `samples`"

REPLACED: Final = "reply that a later call was sent, but `messages` no longer holds: its history was replaced or is another's"
BESIDE: Final = "call beside the conversation, such as one for a summary: its answer is no message of it"
UNSHOWN: Final = "output of a tool that failed: the model was shown the error in its place"
EMPTY: Final = "message without content"
ELSEWHERE: Final = "message in a compacted window that `messages` does not hold"

TASK: Final = 500  # characters kept of what a sub-agent was asked

_SPEC: Final = re.compile(rb'"(?:run_id|task_id|eval_id|task_version|task_file)"\s*:')
_SAMPLE: Final = (re.compile(rb'"epoch"\s*:\s*\d'), re.compile(rb'"target"\s*:\s*["\[]'), re.compile(rb'"input"\s*:\s*["\[]'))

# Python's JSON has constants that no JSON has, and logs of few samples are full of them; `mend` would read those at a tenth of the speed.
_UP_TO_CONSTANT: Final = re.compile(rb'((?:[^"NI-]++|-(?!I)|"(?:[^"\\]++|\\.)*+")*+)(?:NaN|-?Infinity)', re.DOTALL)


class _Log(Struct, frozen=True, gc=False):
    samples: list[Raw] | None = None
    epoch: Raw = Raw()  # of a document that is one sample


_log: Final = msgspec.json.Decoder(_Log)


class InspectLog:
    """Reads Inspect's logs."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the document is a log, by its specification or its first sample; or a sample alone."""
        top = set(keys(head))
        if "eval" in top and {"version", "status", "plan", "samples"} & top:
            return _SPEC.search(head) is not None
        return ("samples" in top or {"epoch", "target"} <= top) and all(mark.search(head) for mark in _SAMPLE)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The samples one after the other, each a new conversation."""
        return _Reading().events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """What the last call of a sub-agent was sent, and its answer."""
        return _Reading().of_agent(chunks, agent)


class _Reading:
    def __init__(self) -> None:
        self.tally = Tally()
        self.yielded = 0
        self.made = 0  # call ids

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        for item in _samples(chunks, self.tally):
            if isinstance(item, Skipped):
                yield item
                continue
            number, sample = item
            if self.yielded:
                yield Rewritten(reason="new sample", line=sample.element.line, drop_before=self.yielded)
            said = sample.messages()
            if not said:
                self.tally.add("sample without messages", sample.element.line, len(sample.element.source))
            calls = [call for call in sample.calls if not call.scoring]
            own = yield from self._conversation(said, calls, sample)
            agents = _agents([call for call in calls if call.owner not in own])
            yield from (_agent(f"{number}/{owner}", sample, group) for owner, group in agents.items())
        yield from self.tally.skipped()

    def of_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        for item in _samples(chunks, self.tally):
            if isinstance(item, Skipped) or not agent.startswith(f"{item[0]}/"):
                continue
            number, sample = item
            calls = [call for call in sample.calls if not call.scoring and f"{number}/{call.owner}" == agent]
            if calls:
                yield from self._conversation(sample.conversation(calls[-1]), calls, sample)
                yield from self.tally.skipped()

    def _conversation(self, said: Sequence[Said], calls: Sequence[Call], sample: Sample) -> Generator[Event, None, set[str]]:
        """The events of one conversation; returns whose calls were part of it."""
        lines = self._lines(said)
        found = replies(lines, calls, sample)
        own = {"", *(call.owner for call in found.values())}
        self._note_others([call for call in calls if call.owner in own], found, sample)
        compactions = [each for each in sample.transcript.compactions if each.owner in own]
        after = windows(lines, found, compactions, sample)
        track = Track()
        for n, line in enumerate(lines):
            if n in after:
                self._note_elsewhere(after[n], line)
                yield track.rewritten(after[n], line.said.line, self.yielded)
            if line.blocks:
                yield _draft(line, found.get(n), sample.transcript.answered)
                track.place(n, self.yielded, line.blocks)
                self.yielded += 1
        return own

    def _lines(self, said: Sequence[Said]) -> list[Line]:
        lines: list[Line] = []
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
            lines.append(Line(each, blocks))
        return lines

    def _new_id(self) -> str:
        self.made += 1
        return f"call-{self.made}"

    def _note_lost(self, said: Said, blocks: Sequence[Block]) -> None:
        message = said.message
        if not blocks:
            self.tally.add(EMPTY if message.role in ROLES else f"message of unknown role {message.role!r}", said.line, said.size)
        if hidden := unshown(message):
            self.tally.add(UNSHOWN, said.line, hidden)

    def _note_others(self, calls: Sequence[Call], found: Mapping[int, Call], sample: Sample) -> None:
        used = {call.n for call in found.values()}
        others = [call for call in calls if call.n not in used]
        later = sent(calls, sample.pool) if others else set[str]()
        for call in others:
            self.tally.add(REPLACED if call.id in later else BESIDE, sample.element.line, len(bytes(call.answer)))

    def _note_elsewhere(self, window: Window, line: Line) -> None:
        for _ in range(window.elsewhere):
            self.tally.add(ELSEWHERE, line.said.line, 0)


def _samples(chunks: Iterable[bytes], tally: Tally) -> Iterator[tuple[int, Sample] | Skipped]:
    """The samples of a log, or the one that the document is, numbered from 1."""
    log = document((_without_constants(b"".join(chunks)),), _log, ALLOWED)
    if log.value.samples is None and bytes(log.value.epoch):
        array = iter((Element(1, log.source, log.faithful),))
    else:
        array = elements(log.value.samples or [], log.source, log.faithful)
    number = 0
    for number, element in enumerate(array, 1):
        try:
            yield number, Sample(element, tally)
        except Damaged as damage:
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


def _agents(calls: Iterable[Call]) -> dict[str, list[Call]]:
    groups: dict[str, list[Call]] = {}
    for call in calls:
        groups.setdefault(call.owner, []).append(call)
    return groups


def _agent(id_: str, sample: Sample, calls: Sequence[Call]) -> Agent:
    said = sample.conversation(calls[-1])
    asked = (said for said in said if said.message.role == "user")
    task = next(("\n".join(block.text for block in blocks_of(each.message)) for each in asked), "")
    size = sum(len(bytes(call.event)) for call in calls)
    return Agent(id=id_, line=sample.line_of(calls[0].event), messages=len(said), bytes=size, task=task[:TASK])


def _draft(line: Line, call: Call | None, answered: Mapping[str, str]) -> Draft:
    role = ROLES[line.role]
    result = next((block.call_id for block in line.blocks if isinstance(block, ToolResult)), "")
    return Draft(
        role=role,
        blocks=line.blocks,
        at=call.at if call else answered.get(result, "") if role is Role.TOOL else "",
        line=line.said.line,
        model=(call.model if call else "") or line.said.message.model or "",
        usage=call.usage if call else None,
    )
