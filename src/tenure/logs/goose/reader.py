"""goose's sessions: lines (`~/.local/share/goose/sessions/*.jsonl`), or one document (`goose session export --format json`).

Newer versions keep sessions in a database; `goose_store` writes the same document from it. A compaction takes nothing out: it
marks messages as no longer for the agent, and adds a summary that is for the agent alone. So once a message is marked, it and
all after it are held until it is known whether a compaction took it, or it was never meant for the model. Old calls may be
marked too, each beside a sentence that stands for it; when that happened is not in the log, and it is told once, after the last
of them. Parallel calls stand one after another, each with its result, as goose sends them back.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Opaque, Origin, Role, Text, Thinking, ToolCall
from tenure.errors import InputError
from tenure.logs.document import decoded, document, elements
from tenure.logs.goose.message import CONTINUATIONS, Message, Part, block_of, role_of, written_by
from tenure.logs.jsonl import records
from tenure.logs.mend import Damaged, decode
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.shape import keys, opening
from tenure.logs.tally import Tally
from tenure.logs.window import Window

NAME: Final = "goose"
ALLOWED: Final = "goose's session: an object with `conversation`, or one message per line"

# What a user types for goose and not for the model.
COMMANDS: Final = re.compile(
    r"/(compact|summarize|clear|prompts|skills|doctor|status)\b|Please compact this conversation$", re.IGNORECASE
)

FOR_USER: Final = "message for the user alone: never sent to the model"
COPIED: Final = "thinking copied to a parallel call of the same answer"
DUPLICATE: Final = "message whose id and words were there before"
UNKNOWN: Final = "line that is neither a message nor the session's own"

_COMPACTED: Final = "compaction"
_SUMMARISED: Final = "old calls and results replaced by a sentence each"

_SESSION_KEYS: Final = frozenset({"conversation", "extension_data", "session_type", "message_count", "accumulated_usage"})
_PARTS: Final = re.compile(rb'"(toolRequest|toolResponse|agentVisible)"')
_CREATED: Final = re.compile(rb'"created"\s*:\s*\d')


class _Config(Struct, frozen=True, gc=False):
    model_name: str | None = None


class _Session(Struct, frozen=True, gc=False):
    conversation: list[Raw] | None = None
    messages: list[Raw] | None = None
    parent_session_id: str | None = None
    model_config: _Config | None = None


class _Line(Message, frozen=True, gc=False):
    """A message, or in the first line what is known of the session."""

    working_dir: str | None = None
    description: str | None = None


class _Placed(Struct, frozen=True, gc=False):
    """A message and where it stands."""

    line: int
    size: int
    message: Message


_session: Final = msgspec.json.Decoder(_Session)
_message: Final = msgspec.json.Decoder(Message)
_line: Final = msgspec.json.Decoder(_Line)
_fields: Final = msgspec.json.Decoder(dict[str, Raw])


class Goose:
    """Reads goose's sessions, lines or document."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the file opens with a session of goose, or with one of its messages."""
        if opening(head) != "{":
            return False
        top = set(keys(head))
        if "working_dir" in top and (_SESSION_KEYS & top or "description" in top):
            return True
        if {"conversation", "messages"} & top and _PARTS.search(head) is not None:
            return True
        return {"role", "created", "content"} <= top and not {"type", "model"} & top and _CREATED.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order; of lines without hidden messages as they stream in."""
        head, rest = _opened(chunks)
        whole = chain((head,), rest)
        yield from _of_lines(whole) if _by_line(head) else _of_document(whole)


def _opened(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first 64 KiB or more, and what follows."""
    rest, start, size = iter(chunks), list[bytes](), 0
    while size < 64 * 2**10 and (chunk := next(rest, None)) is not None:
        start.append(chunk)
        size += len(chunk)
    return b"".join(start), rest


def _by_line(head: bytes) -> bool:
    if {"role", "content"} <= set(keys(head)):
        return True
    try:
        first = decode(head.partition(b"\n")[0], _fields)
    except Damaged:
        return False
    return not {"conversation", "messages"} & set(first)


def _of_lines(chunks: Iterable[bytes]) -> Iterator[Event]:
    reading = _Reading()
    for item in records(chunks, _line):
        if isinstance(item, Skipped):
            yield item
            continue
        record, line = item
        if line.role:
            yield from reading.take(_Placed(record.line, record.size, line), record.source)
        elif line.working_dir is None and line.description is None:
            reading.tally.add(UNKNOWN, record.line, record.size)
    yield from reading.end()


def _of_document(chunks: Iterable[bytes]) -> Iterator[Event]:
    session = document(chunks, _session, ALLOWED)
    value = session.value
    array = value.conversation if value.conversation is not None else value.messages
    if array is None:
        raise InputError("document", "found no messages", ALLOWED)
    if value.parent_session_id:
        reason = f"session of a sub-agent: what led to it is in its parent {value.parent_session_id!r}"
        yield Skipped(line=1, bytes=0, reason=reason[:200])
    reading = _Reading((value.model_config and value.model_config.model_name) or "")
    for item in decoded(elements(array, session.source, session.faithful), _message, "message"):
        if isinstance(item, Skipped):
            yield item
        else:
            element, message = item
            yield from reading.take(_Placed(element.line, len(element.faithful), message), element.source)
    yield from reading.end()
    yield from session.skipped


class _Reading:
    """Mutable while a session is read."""

    def __init__(self, model: str = "") -> None:
        self.tally = Tally()
        self._model = model
        self._window = Window()
        self._seen: set[tuple[str, int]] = set()
        self._held: list[_Placed] = []  # from the first message on that is no longer for the agent
        self._open: Draft | None = None  # the assistant's, until it is known that the next message is none of the same answer
        self._open_visible = True
        self._asked = False
        self._called: set[str] = set()
        self._thought: set[str] = set()  # since the human spoke

    def take(self, placed: _Placed, source: bytes) -> Iterator[Event]:
        """The events that one more message makes certain."""
        if placed.message.id:
            key = (placed.message.id, hash(source))
            if key in self._seen:
                self.tally.add(DUPLICATE, placed.line, placed.size)
                return
            self._seen.add(key)
        if self._held or not placed.message.visible:
            self._held.append(placed)
        else:
            yield from self._drafts(placed)[0]

    def end(self) -> Iterator[Event]:
        """What was held, and what was left out."""
        yield from self._settled()
        yield from self._flushed()
        yield from self.tally.skipped()

    def _settled(self) -> Iterator[Event]:
        held, ends = self._held, dict[int, int]()  # where each compaction starts: where its words end
        for n in range(len(held)):
            if _continues(held, n):
                ends[n - 1 if n and _is_goose(held[n - 1].message) else n] = n
        last = max(ends, default=-1)
        pairs = [n for n, placed in enumerate(held) if n > last and not placed.message.visible and placed.message.with_tools]
        known = _known(held, set(ends.values()))
        gone: list[int] = []
        for n, placed in enumerate(held):
            message = placed.message
            if n in ends:
                yield from self._compaction(placed, gone if n == last else None)
                gone = []
            aside = n > last or (message.role == "user" and COMMANDS.match(message.opening))
            if not message.visible and not message.with_tools and aside:
                self.tally.add(FOR_USER, placed.line, placed.size)
                continue
            events, number = self._drafts(placed, known.get(n))
            yield from events
            if number is not None and not message.visible:
                gone.append(number)
            if pairs and n == pairs[-1]:
                yield from self._flushed()
                yield from self._rewritten(_SUMMARISED, placed, self._window.drop(gone))

    def _compaction(self, placed: _Placed, gone: list[int] | None) -> Iterator[Event]:
        yield from self._flushed()
        yield from self._rewritten(_COMPACTED, placed, (self._window.clear(), ()) if gone is None else self._window.drop(gone))

    def _rewritten(self, reason: str, placed: _Placed, left: tuple[int, tuple[int, ...]] | None) -> Iterator[Rewritten]:
        if left is not None:
            at = utc(placed.message.created)
            yield Rewritten(reason=reason, line=placed.line, at=at, drop_before=left[0], kept=left[1])

    def _drafts(self, placed: _Placed, origin: Origin | None = None) -> tuple[list[Draft], int | None]:
        """What is certain now, and the number of the draft that the message is in; None when the model saw nothing of it."""
        origin = origin or self._origin(placed.message)
        blocks = tuple(block for part in placed.message.content if (block := self._block(placed, part, origin)) is not None)
        if not blocks:
            return [], None
        message, role = placed.message, role_of(placed.message)
        draft = Draft(role=role, blocks=blocks, at=utc(message.created), line=placed.line)
        if role is not Role.ASSISTANT:
            certain = [*self._flushed(), draft]
            return certain, self._window.add()
        if origin is Origin.MODEL:
            draft = replace(draft, model=message.model or self._model, usage=message.usage)
        if self._open is not None and self._open_visible == message.visible and _same_answer(self._open, draft):
            usage, model = self._open.usage or draft.usage, self._open.model or draft.model
            self._open = replace(self._open, blocks=(*self._open.blocks, *blocks), usage=usage, model=model)
            return [], self._window.count - 1
        certain = list(self._flushed())
        self._open, self._open_visible = draft, message.visible
        return certain, self._window.add()

    def _flushed(self) -> Iterator[Draft]:
        if self._open is not None:
            draft, self._open = self._open, None
            yield draft

    def _origin(self, message: Message) -> Origin:
        """Who wrote the texts of a message; the first of a session is the task, whoever hid it."""
        if message.role == "assistant" or message.with_tools or not message.opening:
            return written_by(message)
        first, self._asked = not self._asked, True
        return Origin.HUMAN if first else written_by(message)

    def _block(self, placed: _Placed, part: Part, origin: Origin) -> Block | None:
        block = block_of(part, origin)
        match block:
            case Thinking(text=text) if text and text in self._thought:
                self.tally.add(COPIED, placed.line, 0)
                return None
            case Thinking(text=text):
                self._thought.add(text)
            case ToolCall(call_id=call_id):
                if part.type == "frontendToolRequest" and call_id in self._called:
                    return None  # the same call, as it was handed to the user's side
                self._called.add(call_id)
            case Opaque(text="", type=kind):
                self.tally.add(f"part type unknown to this version: {kind!r}", placed.line, 0)
                return None
            case Text(origin=Origin.HUMAN):
                self._thought.clear()
            case _:
                pass
        return block


def _is_goose(message: Message) -> bool:
    """Whether a message is a text of goose's own for the agent, as a summary is."""
    return message.role == "user" and message.hidden_from_user and not message.with_tools


def _continues(held: list[_Placed], n: int) -> bool:
    """Whether this message ends a compaction, following the summary."""
    message = held[n].message
    if message.role != "assistant" or message.with_tools:
        return False
    if message.opening.startswith(CONTINUATIONS):
        return True
    return n > 0 and message.hidden_from_user and _is_goose(held[n - 1].message)


def _known(held: list[_Placed], ends: set[int]) -> dict[int, Origin]:
    """Who wrote what a compaction added: its own words, and after them what the human said last, once more and hidden."""
    known = dict.fromkeys(ends, Origin.HARNESS)
    said: set[str] = set()
    for n, placed in enumerate(held):
        message = placed.message
        if message.role == "user" and message.opening:
            if n - 1 in ends and message.opening in said:
                known[n] = Origin.HUMAN
            said.add(message.opening)
    return known


def _same_answer(first: Draft, second: Draft) -> bool:
    """Whether two neighbours are one answer, which goose may keep as its words and then each of its calls."""
    if first.usage is not None and second.usage is not None:
        return False
    spoken = (*first.blocks, *second.blocks)
    ours = any(isinstance(block, Text) and block.origin is not Origin.MODEL for block in spoken)
    return not ours and not any(isinstance(block, ToolCall) for block in first.blocks)
