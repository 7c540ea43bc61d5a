"""Gemini CLI's recorded chats (`~/.gemini/tmp/*/chats`): one document, or in newer versions one record per line.

Calls and their results are inside the model's message; its text was said before the calls, as token counts and wording show.
A record with an id that was there before replaces it, `$rewindTo` takes back what follows an id, `$set` changes the header.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Draft
from tenure.logs.document import decoded, document, elements
from tenure.logs.gemini_cli.message import Message, answered, asked
from tenure.logs.jsonl import records
from tenure.logs.mend import Damaged, decode
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Skipped
from tenure.logs.shape import bare, opening
from tenure.logs.tally import Tally

NAME: Final = "gemini-cli"
ALLOWED: Final = "Gemini CLI's chat: an object with `sessionId`, `projectHash` and `messages`, or one record per line"

NOTICES: Final = frozenset({"info", "error", "warning"})  # shown to the user, not to the model

_HEADER: Final = re.compile(rb'"projectHash"\s*:')


class _Chat(Struct, frozen=True, gc=False):
    messages: list[Raw]


class _Change(Struct, frozen=True, gc=False):
    messages: list[Message] | None = None


_chat: Final = msgspec.json.Decoder(_Chat)
_message: Final = msgspec.json.Decoder(Message)
_change: Final = msgspec.json.Decoder(_Change)


class GeminiCli:
    """Reads Gemini CLI's chats, document or lines."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the file opens with an object that names a project by its hash."""
        return opening(head) == "{" and _HEADER.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order; for one record per line those that no later record took back."""
        raw = b"".join(chunks)  # a later record may change any message, so all of them are held in either form
        return _Reading().events(raw)


class _Placed(Struct, frozen=True, gc=False):
    """A message and where it stands."""

    line: int
    size: int
    message: Message


class _Reading:
    def __init__(self) -> None:
        self.tally = Tally()

    def events(self, raw: bytes) -> Iterator[Event]:
        found: list[_Placed] = []
        for item in self._from_lines(raw) if _by_line(raw) else self._from_document(raw):
            if isinstance(item, Skipped):
                yield item
            else:
                found.append(item)
        for placed in found:
            yield from self._drafts(placed)
        yield from self.tally.skipped()

    def _from_document(self, raw: bytes) -> Iterator[_Placed | Skipped]:
        chat = document((raw,), _chat, ALLOWED)
        for item in decoded(elements(chat.value.messages, chat.source, chat.faithful), _message, "message"):
            yield item if isinstance(item, Skipped) else _Placed(item[0].line, len(item[0].faithful), item[1])
        yield from chat.skipped

    def _from_lines(self, raw: bytes) -> Iterator[_Placed | Skipped]:
        """What the records amount to in the end, in the order in which messages first appeared."""
        kept: dict[str, _Placed] = {}
        for item in records((raw,), _message):
            if isinstance(item, Skipped):
                yield item
            else:
                self._apply(kept, _Placed(item[0].line, item[0].size, item[1]))
        yield from kept.values()

    def _apply(self, kept: dict[str, _Placed], placed: _Placed) -> None:
        message = placed.message
        if message.rewind is not None:
            for id_ in _from(kept, message.rewind):
                taken = kept.pop(id_)
                self.tally.add("abandoned branch: message taken back by a rewind", taken.line, taken.size)
        elif bytes(message.change):
            self._replace(kept, placed)
        elif message.type:
            kept[message.id or f"line {placed.line}"] = placed

    def _replace(self, kept: dict[str, _Placed], placed: _Placed) -> None:
        """Take a `$set`: of the header, which says nothing to the model, or of all messages."""
        try:
            change = decode(bytes(placed.message.change), _change)
        except Damaged:
            self.tally.add("damaged change of the messages", placed.line, placed.size)
            return
        if change.messages is not None:
            kept.clear()
            kept.update((one.id or f"{placed.line}.{n}", _Placed(placed.line, 0, one)) for n, one in enumerate(change.messages))

    def _drafts(self, placed: _Placed) -> Iterator[Draft]:
        message, at = placed.message, utc(placed.message.timestamp)
        match message.type:
            case "user":
                yield from asked(message, at, placed.line)
            case "gemini":
                yield from answered(message, at, placed.line)
            case kind:
                known = kind in NOTICES
                reason = (
                    "notice: shown to the user, not to the model" if known else f"message type unknown to this version: {kind!r}"
                )
                self.tally.add(reason, placed.line, placed.size)


def _by_line(raw: bytes) -> bool:
    first, _, rest = bare(raw).partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(rest.strip()) or "messages" not in header


def _from(kept: dict[str, _Placed], id_: str) -> list[str]:
    """`id_` and all after it; nothing when it is not there."""
    ids = list(kept)
    return ids[ids.index(id_) :] if id_ in kept else []
