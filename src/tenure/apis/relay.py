"""A client's reply, made of the replies to one or more requests upstream, without the calls of tools that the client does not know.

The replies are taken as they come. Events that say nothing of a hidden call go on at once and as they came; those of a hidden call go nowhere; only how a
reply ends is held where it called hidden tools and no other, since it may not be the end. How each API spells that is in its `relay.py`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from tenure.apis.json_text import load
from tenure.apis.reply import ReplyStream, UsageParser, WholeReply, fields_of
from tenure.apis.sse import EventSplitter, StreamEvent


class ReplyRelay:
    """One reply to a client, streamed. Mutable; sans-IO: bytes of an upstream's stream in, bytes for the client out."""

    def __init__(self, stream: Callable[[UsageParser], ReplyStream], parse_usage: UsageParser, hidden: Collection[str]) -> None:
        self.rounds = 0  # replies that were taken whole before this one
        self.is_over = False  # the round's reply has ended, whatever the stream may still bring
        self._stream, self._parse_usage, self._hidden = stream, parse_usage, hidden
        self._splitter = EventSplitter()
        self._reply = stream(parse_usage)  # of this round
        self._client = stream(parse_usage) if hidden else self._reply  # what the client sees, of all rounds
        self._held: list[StreamEvent] = []
        self._tail = b""  # the reply's last event, and what comes behind it
        self._has_hidden = self._has_own = False  # calls in this round's reply: hidden ones, and others
        self._output = 0  # tokens of the replies before
        self._turn()

    def take(self, piece: bytes) -> bytes:
        """What the client gets for a piece of the stream, but for the reply's last event, which `finish` gives."""
        if self._hidden:
            return b"".join([self._passed(event) for event in self._splitter.take(piece)])
        last = 0
        for event in self._splitter.take(piece):
            self._put(self._reply, event.data)
            self._look(event)
            last += len(event.raw) if self.is_over else 0
        sent = max(0, len(piece) - last - self._splitter.waiting) if self.is_over else len(piece)
        self._tail += piece[sent:]
        return piece[:sent]

    def whole(self) -> WholeReply | None:
        """The reply of the round as it came, once it has ended; None before."""
        return self._reply.whole()

    def seen(self) -> WholeReply | None:
        """The reply as the client has it, once it has ended."""
        return self._client.whole()

    @property
    def is_held(self) -> bool:
        """Whether the reply called hidden tools and no other, so that its end is not the client's."""
        return self._has_hidden and not self._has_own

    def again(self) -> None:
        """Go on with the reply to another request."""
        usage = self._reply.usage
        self._output += usage.output if usage is not None else 0
        self.rounds, self.is_over = self.rounds + 1, False
        self._turn()
        self._splitter, self._reply = EventSplitter(), self._stream(self._parse_usage)
        self._held, self._has_hidden, self._has_own = [], False, False

    def finish(self) -> bytes:
        """What the client still has to get, when no other request follows."""
        held, self._held = self._held, []
        alone = self.is_held
        self._has_own = True  # nothing is held from now on
        out = [self._sent(event, self._ended(fields_of(event.data), alone=alone)) for event in held]
        tail, self._tail = self._tail, b""
        return b"".join(out) + (self._splitter.rest() if self._hidden else tail)

    def _ended(self, event: dict[str, Any], *, alone: bool = False) -> Mapping[str, Any]:
        return self._ending(event, alone=alone) if self._is_ending(event) else event

    def _look(self, event: StreamEvent) -> None:
        self.is_over = self.is_over or self._is_last(event)

    def _passed(self, event: StreamEvent) -> bytes:
        self._look(event)
        fields = fields_of(event.data)
        if not fields:
            if self._held or self.is_over:
                self._held.append(event)
                return b""
            return event.raw
        self._put(self._reply, fields)
        out: list[bytes] = []
        for each in self._shown(fields):
            if self._held or self.is_over or (self.is_held and self._is_ending(each)):
                self._held.append(event if each is fields else StreamEvent(event.raw, each))
            else:
                out.append(self._sent(event, self._ended(each)))
        return b"".join(out)

    def _sent(self, event: StreamEvent, fields: Mapping[str, Any]) -> bytes:
        if not fields:
            return event.raw
        self._put(self._client, fields)
        return event.raw if fields is event.data else event.carrying(dict(fields))

    def _put(self, stream: ReplyStream, data: object) -> None:
        for _ in stream.take(data):
            pass

    # --- What each API says

    def _turn(self) -> None:
        """Another round begins."""

    def _shown(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What the client gets for an event: the event itself, another one, or none."""
        raise NotImplementedError

    def _is_last(self, event: StreamEvent) -> bool:
        """Whether nothing of the reply comes behind an event."""
        return self._is_ending(fields_of(event.data))

    def _is_ending(self, event: Mapping[str, Any]) -> bool:
        """Whether an event says how the reply ends."""
        raise NotImplementedError

    def _ending(self, event: dict[str, Any], *, alone: bool) -> Mapping[str, Any]:
        """An ending for the client. `alone`: all calls of the reply are hidden, so that it ended without any."""
        raise NotImplementedError


def with_output(usage: object, key: str, more: int) -> object:
    """Reported usage with the output of earlier rounds."""
    fields = fields_of(usage)
    return fields | {key: fields[key] + more} if more and isinstance(fields.get(key), int) else usage


def replies_of(replies: Sequence[bytes]) -> list[dict[str, Any]]:
    """The replies of several rounds as values, in order."""
    return [dict(fields_of(load(reply.decode("utf-8", "surrogatepass"), "reply"))) for reply in replies]
