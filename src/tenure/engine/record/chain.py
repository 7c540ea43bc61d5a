"""The append-only hash chain.

`id = H(parent id, canonical content)`. The canonical form leaves out what hosts vary without meaning: call ids (a call is known by its
ordinal in the conversation), cache markers, key order, origins and times. `sha256` covers the payload's bytes as they are.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, assert_never

import msgspec

from tenure.engine.record.entry import NEUTRAL, Block, Draft, Entry, Media, Opaque, Spill, Text, Thinking, ToolCall, ToolResult

_Made = tuple[int, deque[int]]  # a message, and its calls of one id that have no result yet


def genesis(tenant: str = "") -> str:
    """The parent of a first entry."""
    return sha256(b"tenure\0" + tenant.encode()).hexdigest()


def neutral_payload(blocks: tuple[Block, ...]) -> bytes:
    """The payload of an entry that comes from no provider's JSON."""
    return msgspec.json.encode(blocks)


class Pairing:
    """Which call a result answers: by position, then by call id, since some hosts use an id again.

    Of the calls of its id that have no result yet, a result answers the oldest of the newest message that made one: an id used again after a
    call was interrupted means the new call. Where every call of the id has a result, it is an orphan.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._open: dict[str, list[_Made]] = {}  # by call id: those of one message each, newest last
        self._behind: Mapping[str, list[_Made]] = {}  # what this one looks ahead of; never changed

    def ahead(self) -> "Pairing":
        """One in the same state, good for as long as this one does not change. O(1)."""
        assert not self._behind
        twin = Pairing()
        twin.calls, twin._behind = self.calls, self._open
        return twin

    def call(self, call_id: str, message: int = 0) -> int:
        """Number a call that the `message`-th message makes."""
        ordinal = self.calls
        self.calls += 1
        made = self._of(call_id)
        if not made or made[-1][0] != message:
            made.append((message, deque()))
        made[-1][1].append(ordinal)
        return ordinal

    def result(self, call_id: str) -> int | None:
        """The ordinal of the call that a result answers; None for an orphan."""
        made = self._of(call_id)
        ordinal = made[-1][1].popleft() if made else None
        if made and not made[-1][1]:
            made.pop()
        if not made and call_id not in self._behind:
            del self._open[call_id]
        return ordinal

    def _of(self, call_id: str) -> list[_Made]:
        if call_id not in self._open:
            self._open[call_id] = [(message, calls.copy()) for message, calls in self._behind.get(call_id, ())]
        return self._open[call_id]


class Chain:
    """Places drafts. Mutable, because it must know the open calls; the entries it returns never change."""

    def __init__(self, tenant: str = "") -> None:
        self.head: str = genesis(tenant)
        self.length: int = 0
        self._pairing = Pairing()

    def ahead(self) -> "Chain":
        """A chain in the same state, to place on and give up: good for as long as this one does not change. O(1)."""
        twin = Chain()
        twin.head, twin.length, twin._pairing = self.head, self.length, self._pairing.ahead()
        return twin

    def place(self, draft: Draft, tokens: tuple[int, ...]) -> Entry:
        """The entry of `draft` at the end of the chain; `tokens` line up with its blocks."""
        payload = draft.payload or neutral_payload(draft.blocks)
        entry = Entry(
            n=self.length,
            id=self._advance(draft.role, draft.blocks),
            parent=self.head,
            sha256=sha256(payload).hexdigest(),
            role=draft.role,
            blocks=draft.blocks,
            tokens=tokens,
            dialect=draft.dialect if draft.payload else NEUTRAL,
            payload=payload,
            at=draft.at,
            model=draft.model,
            source=draft.source,
            line=draft.line,
        )
        self.head, self.length = entry.id, entry.n + 1
        return entry

    def follow(self, entry: Entry) -> str | None:
        """Take in an entry that was placed before. Returns what is wrong with it, or None; a wrong entry is not taken in."""
        if entry.n != self.length:
            return f"entry {entry.n} stands where entry {self.length} should"
        if entry.parent != self.head:
            return f"entry {entry.n} has the parent {entry.parent[:12]}, expected {self.head[:12]}"
        if wrong := payload_wrong(entry):
            return wrong
        derived = self._advance(entry.role, entry.blocks)
        if derived != entry.id:
            return f"the content of entry {entry.n} gives the id {derived[:12]}, expected {entry.id[:12]}"
        self.head, self.length = entry.id, entry.n + 1
        return None

    def take(self, entry: Entry) -> None:
        """Take in an entry that was placed ahead. Raises ValueError if it does not follow."""
        if (entry.n, entry.parent) != (self.length, self.head):
            raise ValueError(f"entry {entry.n} cannot follow entry {self.length - 1}")
        for block in entry.blocks:
            if isinstance(block, ToolCall):
                self._pairing.call(block.call_id, entry.n)
            elif isinstance(block, ToolResult):
                self._pairing.result(block.call_id)
        self.head, self.length = entry.id, entry.n + 1

    def _advance(self, role: str, blocks: tuple[Block, ...]) -> str:
        content = [str(role), *(_canonical(block, self._pairing, self.length) for block in blocks)]
        return sha256(self.head.encode() + msgspec.json.encode(content)).hexdigest()


def payload_wrong(entry: Entry) -> str | None:
    """What is wrong with the bytes of an entry, or None."""
    if sha256(entry.payload).hexdigest() != entry.sha256:
        return f"the payload of entry {entry.n} does not match its hash {entry.sha256[:12]}"
    return None


def verify(entries: Iterable[Entry], tenant: str = "") -> str | None:
    """Re-derive every hash from the first entry on; what is wrong with the first bad one, or None."""
    chain = Chain(tenant)
    for entry in entries:
        if wrong := chain.follow(entry):
            return wrong
    return None


def _canonical(block: Block, pairing: Pairing, message: int) -> list[Any]:
    match block:
        case Text(text=text):
            return ["text", text]
        case Thinking(text=text, seal=seal):
            return ["thinking", text, seal]
        case ToolCall(call_id=call_id, name=name, arguments=arguments):
            return ["tool_call", pairing.call(call_id, message), name, _sorted_json(arguments)]
        case ToolResult(call_id=call_id, text=text, error=error, media=media, spill=spill):
            kept = [spill.sha256] if isinstance(spill, Spill) else []
            return ["tool_result", pairing.result(call_id), text, error, [item.sha256 for item in media], *kept]
        case Media(media_type=media_type, sha256=digest, text=text):
            return ["media", media_type, digest, text]
        case Opaque(type=type_, text=text):
            return ["opaque", type_, text]
        case _:
            assert_never(block)


def _sorted_json(text: str) -> str:
    """`text` with object keys in order, or as it is when it is no JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted").decode()
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return text
