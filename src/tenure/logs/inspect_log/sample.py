"""One sample of an Inspect log: its messages, with what was moved to its attachments put back where it was.

The same text can be referred to any number of times, so what is put back is bounded by the sample's own size.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from tenure.logs.inspect_log.calls import Call, call_of, input_of, transcript
from tenure.logs.inspect_log.message import Message
from tenure.logs.json_files import Element, elements
from tenure.logs.salvage import Damaged, salvage
from tenure.logs.tally import Tally

T = TypeVar("T")

_REFERENCE: Final = re.compile(rb'(?<!\\)"(?:attachment|tc)://([0-9A-Za-z]{1,64})"')  # a whole string; "tc" in 2024
_MARKS: Final = (b'"attachment://', b'"tc://')

# What may be put back, and looked at again: a real log shows an attachment about once in its messages, and again where we compare.
_ALWAYS: Final = 64 * 2**20  # bytes
_TIMES: Final = 4  # the size of the sample
_EACH: Final = 2**10  # bytes that a message counts for at least


class _Pools(Struct, frozen=True, gc=False):
    messages: Raw = Raw(b"[]")


class _Events(Struct, frozen=True, gc=False):
    events: Raw = Raw(b"[]")
    content: Raw = Raw(b"{}")


class _Sample(Struct, frozen=True, gc=False):
    messages: Raw = Raw(b"[]")
    events: Raw = Raw(b"[]")
    events_data: Raw = Raw(b"null")
    attachments: Raw = Raw(b"{}")
    transcript: Raw = Raw(b"null")  # events and attachments in 2024
    error_retries: Raw = Raw(b"null")
    input: Raw = Raw(b"null")
    output: Raw = Raw(b"null")


class Said(Struct, frozen=True):
    """A message, where it stands and how long it is there."""

    line: int
    size: int
    message: Message


_sample: Final = msgspec.json.Decoder(_Sample)
_pools: Final = msgspec.json.Decoder(_Pools | None)
_events: Final = msgspec.json.Decoder(_Events)
_list: Final = msgspec.json.Decoder(list[Raw] | None)
_texts: Final = msgspec.json.Decoder(dict[str, Raw] | None)
_message: Final = msgspec.json.Decoder(Message)


class Sample:
    """A sample that is being read. Raises Damaged when it is no object."""

    def __init__(self, element: Element, tally: Tally) -> None:
        self.element, self.tally = element, tally
        self._at, self._line = 0, element.line
        self._left = _ALWAYS + _TIMES * len(element.source)
        self._parts = salvage(element.source, _sample).value
        old = self._old()
        texts = self._decoded(old.content if old else self._parts.attachments, _texts, "attachments")
        self._attached: dict[str, Raw] = texts or {}
        pools = self._decoded(self._parts.events_data, _pools, "pools")
        self.pool: list[Raw] = (self._decoded(pools.messages, _list, "message pool") or []) if pools else []
        self.transcript = transcript(old.events if old else self._parts.events, tally, element.line)
        self.calls = self.transcript.calls or self._lone_call()
        retries = bytes(self._parts.error_retries)
        if b'"choices"' in retries:
            tally.add("attempts that failed and were run again: no part of this one", element.line, len(retries))

    def messages(self) -> list[Said]:
        """The sample's conversation as it was in the end; where the log has none, what the last call tells of it."""
        own = [call for call in self.calls if not call.scoring]
        if (said := list(self._messages())) or not own:
            return said
        last = next(call for call in reversed(own) if call.owner == own[0].owner)
        return self.conversation(last) if self.transcript.calls else [*self._asked(), *self._all((last.answer,))]

    def conversation(self, call: Call) -> list[Said]:
        """What a call was sent, and its answer."""
        return [*self.sent(call), *self._all((call.answer,))]

    def _messages(self) -> Iterator[Said]:
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

    def _asked(self) -> Iterator[Said]:
        asked = bytes(self._parts.input)
        if asked.startswith(b'"'):
            yield from self._said(b'{"role":"user","source":"input","content":' + asked + b"}", self.element.line)
        else:
            yield from self._all(self._decoded(self._parts.input, _list, "input") or ())

    def sent(self, call: Call) -> Iterator[Said]:
        """The messages that a call was sent."""
        yield from self._all(input_of(call, self.pool))

    def answer(self, call: Call) -> Message | None:
        """What a call was answered."""
        return next((said.message for said in self._all((call.answer,))), None)

    def _all(self, raws: Iterable[Raw]) -> Iterator[Said]:
        for raw in raws:
            part = bytes(raw)
            self._left -= max(_EACH, len(part))
            if self._left < 0:
                self.tally.add("inputs of calls, too long to look at all of them", self.element.line, 0)
                return
            yield from self._said(part, self.element.line)

    def _said(self, raw: bytes, line: int) -> Iterator[Said]:
        try:
            read = salvage(self._whole(raw), _message)
        except Damaged as damage:
            self.tally.add(f"damaged message: found {damage.found}", line, len(raw))
            return
        for reason in read.left_out:
            self.tally.add(reason, line, 0)
        yield Said(line, len(raw), read.value)

    def _whole(self, raw: bytes) -> bytes:
        return _REFERENCE.sub(self._attachment, raw) if any(mark in raw for mark in _MARKS) else raw

    def _attachment(self, reference: re.Match[bytes]) -> bytes:
        found = bytes(self._attached.get(reference[1].decode("ascii"), b""))
        if not found.startswith(b'"'):
            self.tally.add("reference to an attachment that is not in the log", self.element.line, len(reference[0]))
            return reference[0]
        self._left -= len(found)
        if self._left < 0:
            self.tally.add("reference to an attachment, too often to put it back each time", self.element.line, len(reference[0]))
            return reference[0]
        return found

    def _lone_call(self) -> tuple[Call, ...]:
        """The last call, of logs without events."""
        try:
            call = call_of(self._parts.output)
        except Damaged:
            call = None
        return (call,) if call is not None else ()

    def _old(self) -> _Events | None:
        if bytes(self._parts.transcript) == b"null":
            return None
        return self._decoded(self._parts.transcript, _events, "transcript")

    def _decoded(self, raw: Raw, decoder: "msgspec.json.Decoder[T]", what: str) -> "T | None":
        try:
            return salvage(bytes(raw), decoder).value
        except Damaged as damage:
            self.tally.add(f"damaged {what}: found {damage.found}", self.element.line, len(bytes(raw)))
            return None
