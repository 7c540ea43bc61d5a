"""Codex CLI's rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), of all generations.

Today every line is an envelope of time, type and payload. Before, lines were bare items below a header, and the first versions wrote
one document. The conversation is in the response items alone: events repeat it for the screen, and tell what each call used. Names of
models are in the turn's context, the system prompt is in the header. What Codex took out of the window is still in the file.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, Usage
from tenure.errors import InputError
from tenure.logs.codex.item import BESIDE, SEALED, Item, Part, Said, of_model, read_item
from tenure.logs.codex.line import (
    BARE,
    COMPACTED,
    COUNTED,
    EVENT,
    EVENTS,
    ITEM,
    LETTER,
    LINE,
    META,
    NOTES,
    SETTINGS,
    Compacted,
    Info,
    Letter,
    Line,
    Meta,
    RolloutEvent,
    Words,
    is_document,
    is_line,
    unstamped,
)
from tenure.logs.codex.usage import Counts, Tokens
from tenure.logs.codex.window import Place, Window
from tenure.logs.document import Element, document, elements
from tenure.logs.jsonl import Record, records
from tenure.logs.mend import Damaged, cut
from tenure.logs.moment import utc
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.salvage import salvage
from tenure.logs.tally import Tally

T = TypeVar("T")

NAME: Final = "codex"
ALLOWED: Final = "a Codex rollout: an object with `session` and `items`"

_PARENT: Final = re.compile(rb'"parent_thread_id"\s*:\s*"([^"\\]*)"')
_HEAD: Final = 64 * 2**10  # bytes
_FIRST_LINES: Final = 20
_LONGEST_LEAD: Final = 16  # drafts before the first human's that may hold the instructions


class _Document(Struct, frozen=True, gc=False):
    items: list[Raw]
    session: Meta = Meta()


_document: Final = msgspec.json.Decoder(_Document)


class Codex:
    """Reads Codex CLI's rollouts."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the head is one of the document of the first versions, or one of the first lines is a rollout's."""
        return is_document(head) or any(is_line(line) for line in head.split(b"\n")[:_FIRST_LINES])

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file; what left the window where it left."""
        rest = iter(chunks)
        start, size = list[bytes](), 0
        while size < _HEAD and (chunk := next(rest, None)) is not None:
            start.append(chunk)
            size += len(chunk)
        head = b"".join(start)
        whole = chain((head,), rest)
        return _Reading().of_document(whole) if is_document(head[:_HEAD]) else _Reading().of_lines(whole)


class _Reply:
    """What one call of the model made, with the results that came before it is known what the call used."""

    def __init__(self, model: str, line: int, at: str, usage: Usage | None) -> None:
        self.model, self.line, self.at, self.usage = model, line, at, usage
        self.said: list[Said] = []
        self.results: list[tuple[Draft, Place]] = []
        self.open = True  # whether what the model says next is of the same call
        self.early = usage is not None  # whether the count stood before what the call made

    def drafts(self) -> Iterator[tuple[Draft, Place]]:
        """The reply and the results."""
        if any(one.blocks for one in self.said):
            draft = of_model(self.said, self.at, self.line)
            calls = frozenset(one.key for one in self.said if any(isinstance(block, ToolCall) for block in one.blocks))
            place = Place(keys=tuple(one.key for one in self.said), calls=calls)
            yield replace(draft, model=self.model, usage=self.usage), place
        yield from self.results


class _Reading:
    """One pass over one file. Kept: the newest reply, and of each draft in the window a few numbers."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.window = Window()
        self.counts = Counts()
        self.model = ""
        self.reply: _Reply | None = None
        # Versions up to 0.5x count a call before they write down what it made, and each of its calls with the result.
        self.early: Usage | None = None
        self.first = False  # whether this file does so
        self.yielded = 0
        self.headed = False
        self.prompts: list[Draft] = []  # not yet known not to be in the messages that follow
        self.lead: list[tuple[Draft, Place]] = []  # those messages

    def of_lines(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        before = b""
        for found in records(chunks, LINE):
            if isinstance(found, Skipped):
                yield found
                continue
            record, line = found
            if record.faithful == before:
                if line.record_type is None:
                    self.tally.add("line written twice in a row", record.line, record.size)
                continue
            before = record.faithful
            try:
                yield from self._line(record, line)
            except (Damaged, InputError, RecursionError) as error:
                reason = f"damaged line: {str(error)[:200]}, expected what Codex writes as {line.type!r:.40}"
                yield Skipped(line=record.line, bytes=record.size, reason=reason)
        yield from self._end()

    def of_document(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        read = document(chunks, _document, ALLOWED)
        yield from self._head(read.value.session, 1)
        for element in elements(read.value.items, read.source, read.faithful):
            try:
                item = self._read(element.source, ITEM, element.line)
                if item.role == "system":
                    self.tally.add("notice: shown to the user, never sent to the model", element.line, len(element.source))
                else:
                    yield from self._item(item, element.faithful, element.line, "")
            except (Damaged, InputError, RecursionError) as error:
                reason = f"damaged item: {str(error)[:200]}, expected an item of the Responses API"
                yield Skipped(line=element.line, bytes=len(element.faithful), reason=reason)
        yield from self._end()
        yield from read.skipped

    def _end(self) -> Iterator[Event]:
        yield from self._flush()
        yield from self._settle()
        yield from self.tally.skipped()

    def _line(self, record: Record, line: Line) -> Iterator[Event]:
        wrapped = bytes(line.payload)
        body = cut(wrapped, record.source, record.faithful) if wrapped else record.faithful
        match line.type:
            case "response_item":
                if b'"delivered_assistant_message"' in bytes(line.metadata):
                    return  # words the model passed on through a tool, noted again
                yield from self._item(self._read(body, ITEM, record.line), body, record.line, utc(line.timestamp))
            case "event_msg":
                yield from self._event(self._read(body, EVENT, record.line), record, utc(line.timestamp))
            case "turn_context":
                self.model = self._read(body, SETTINGS, record.line).model or self.model
            case "session_meta":
                yield from self._head(self._read(body, META, record.line), record.line)
            case "compacted":
                yield from self._compaction(body, record, utc(line.timestamp))
            case "token_usage_record":
                counted = self._read(body, COUNTED, record.line)
                self._count(counted.usage, counted.thread_token_usage)
            case "inter_agent_communication":
                yield from self._letter(self._read(body, LETTER, record.line), record.line, utc(line.timestamp))
            case "rollout_reference":
                yield Skipped(line=record.line, bytes=0, reason="what came before is in another rollout")
            case kind if not wrapped and (kind in BARE or kind.endswith(("_call", "_output")) or (not kind and line.role)):
                yield from self._item(self._read(body, ITEM, record.line), unstamped(body), record.line, utc(line.timestamp))
            case "" if not wrapped and line.id is not None:
                yield from self._head(self._read(body, META, record.line), record.line)
            case kind:
                if kind not in NOTES and line.record_type is None:
                    self.tally.add(f"line type unknown to this version: {kind!r}", record.line, record.size)

    def _read(self, raw: bytes, decoder: "msgspec.json.Decoder[T]", line: int) -> T:
        """The value, less the fields whose shape a newer version changed."""
        found = salvage(raw, decoder)
        for reason in found.left_out:
            self.tally.add(reason, line, 0)
        return found.value

    def _head(self, meta: Meta, line: int) -> Iterator[Event]:
        """Take the header. A fork repeats that of its parent below its own, with the same or with another system prompt."""
        if self.headed:
            return
        self.headed = True
        self.model = meta.model or self.model
        base = meta.base_instructions.text if isinstance(meta.base_instructions, Words) else meta.base_instructions
        texts = [text for text in (base, meta.instructions) if text and text.strip()]
        at = utc(meta.timestamp)
        self.prompts = [
            Draft(role=Role.SYSTEM, blocks=(Text(text=text, origin=Origin.HARNESS),), at=at, line=line) for text in texts
        ]
        source = bytes(meta.source)
        if b'"subagent"' in source or b'"subagent"' in bytes(meta.thread_source):
            named = _PARENT.search(source)
            parent = named[1].decode("utf-8", "replace") if named else meta.parent_thread_id or "unknown"
            reason = f"session of a sub-agent: what led to it is in its parent {parent!r:.80}"
            yield Skipped(line=line, bytes=0, reason=reason)
        if bytes(meta.history_base) != b"null":
            yield Skipped(line=line, bytes=0, reason="what came before is in the rollout this one continues")

    def _item(self, item: Item, payload: bytes, line: int, at: str) -> Iterator[Event]:
        if item.kind in BESIDE:
            return
        said = read_item(item, payload, line)
        if not said.blocks:
            self.tally.add("message without content", line, len(payload))
        elif said.role is Role.ASSISTANT:
            yield from self._spoken(said, line, at)
        elif said.role is Role.TOOL and self.reply is not None:
            self.reply.open = False
            self.reply.results.append((said.draft(at, line), said.place()))
        else:
            yield from self._flush()
            yield from self._place(said.draft(at, line), said.place())

    def _spoken(self, said: Said, line: int, at: str) -> Iterator[Event]:
        if self.reply is None or not (self.reply.open or (self.reply.early and isinstance(said.blocks[0], ToolCall))):
            yield from self._flush()
            self.reply = _Reply(self.model, line, at, self.early)
            self.early = None
        self.reply.said.append(said)
        self.counts.spoke()

    def _event(self, event: RolloutEvent, record: Record, at: str) -> Iterator[Event]:
        match event.type:
            case "token_count":
                info = event.info or Info()
                self._count(info.last_token_usage, info.total_token_usage)
            case "thread_rolled_back":
                yield from self._rollback(event.num_turns or 0, record, at)
            case "task_started" | "turn_started" | "turn_aborted":
                yield from self._flush()
                self.early = None
            case "thread_settings_applied":
                self.model = (event.thread_settings and event.thread_settings.model) or self.model
            case kind:
                if kind not in EVENTS:
                    self.tally.add(f"event unknown to this version: {kind!r}", record.line, record.size)

    def _count(self, last: Tokens | None, total: Tokens | None) -> None:
        """Give a count to the call it is of: the one just written down, or else the one that comes next."""
        usage = self.counts.new(last, total)
        if usage is None:
            return
        reply = self.reply
        if reply is not None and (reply.open or (reply.usage is None and not self.first)):
            reply.usage, reply.open, reply.early = usage, False, False
        else:
            self.early = usage

    def _letter(self, letter: Letter, line: int, at: str) -> Iterator[Event]:
        text = letter.content or ""
        if letter.encrypted_content:
            kind = "NEW_TASK" if letter.trigger_turn else "MESSAGE"
            text = f"Message Type: {kind}\nTask name: {letter.recipient}\nSender: {letter.author}\nPayload:\n"
        parts = [Part(type="input_text", text=text), Part(type="encrypted_content", encrypted_content=letter.encrypted_content)]
        yield from self._item(Item(type="agent_message", content=parts), b"", line, at)

    def _compaction(self, body: bytes, record: Record, at: str) -> Iterator[Event]:
        yield from self._flush()
        yield from self._settle()
        self.early = None
        read = salvage(body, COMPACTED)
        compacted: Compacted = read.value
        history = elements(compacted.replacement_history or [], read.source, read.faithful)
        said = list(self._history(history, compacted.message, record))
        if not said:
            yield from self._rewritten("compaction", self.window.shrink(), record, at)
            yield from self._summary(compacted.message or "", record.line, at)
            return
        if compacted.message and not any(compacted.message in block.text for one in said for block in one.blocks):
            self.tally.add("summary that did not go into the window", record.line, len(compacted.message))
        replaced = self.window.replace([one.key for one in said])
        kept, new = replaced or (None, [])
        yield from self._rewritten("compaction", kept, record, at)
        for one in (said[n] for n in new if said[n].blocks):
            if one.role is Role.ASSISTANT:
                yield from self._spoken(one, record.line, at)
            else:
                yield from self._flush()
                yield from self._place(one.draft(at, record.line), one.place())
        yield from self._flush()

    def _history(self, window: Iterable[Element], summary: str | None, record: Record) -> Iterator[Said]:
        """The items of the window as the compaction left it."""
        for element in window:
            try:
                item = self._read(element.source, ITEM, record.line)
                if item.kind not in BESIDE:
                    yield self._summed_up(item, read_item(item, element.faithful, record.line), summary)
            except (Damaged, InputError, RecursionError) as error:
                self.tally.add(f"damaged item of a compaction: {str(error)[:120]}", record.line, len(element.faithful))

    def _summed_up(self, item: Item, said: Said, summary: str | None) -> Said:
        """The summary is the harness's, whatever words a custom prompt gave it, and no call of the model's when it is sealed."""
        plain = said.role is Role.USER and summary and [block.text for block in said.blocks] == [summary]
        if not plain and item.kind not in SEALED:
            return said
        return replace(said, role=Role.USER, blocks=tuple(replace(block, origin=Origin.HARNESS) for block in said.blocks))

    def _summary(self, text: str, line: int, at: str) -> Iterator[Event]:
        if text:
            blocks = (Text(text=text, origin=Origin.HARNESS),)
            yield from self._place(Draft(role=Role.USER, blocks=blocks, at=at, line=line), Place(context=True))

    def _rollback(self, turns: int, record: Record, at: str) -> Iterator[Event]:
        yield from self._flush()
        yield from self._settle()
        self.early = None
        before = len(self.window)
        kept = self.window.roll_back(turns)
        if len(self.window) < before:
            yield from self._rewritten("turns rolled back", kept, record, at)

    def _rewritten(self, reason: str, kept: tuple[int, ...] | None, record: Record, at: str) -> Iterator[Event]:
        if kept is None:
            self.tally.add(f"{reason}: not told, this file changes its window beyond measure", record.line, record.size)
        else:
            yield Rewritten(reason=reason, line=record.line, at=at, drop_before=self.yielded, kept=kept)

    def _flush(self) -> Iterator[Event]:
        reply, self.reply = self.reply, None
        if reply is not None:
            self.first = reply.early if reply.usage is not None else self.first
            for draft, place in reply.drafts():
                yield from self._place(draft, place)

    def _place(self, draft: Draft, place: Place) -> Iterator[Event]:
        if not self.prompts:
            yield self._counted(draft, place)
            return
        self.lead.append((draft, place))
        if not place.context or len(self.lead) >= _LONGEST_LEAD:
            yield from self._settle()

    def _settle(self) -> Iterator[Event]:
        """Tell the system prompts, but for those that are in the messages that follow, and those messages."""
        prompts, self.prompts = self.prompts, []
        lead, self.lead = self.lead, []
        told = [block.text for draft, _ in lead for block in draft.blocks]
        for prompt in prompts:
            if not any(prompt.blocks[0].text.strip() in text for text in told):
                yield self._counted(prompt, Place(fixed=True))
        for draft, place in lead:
            yield self._counted(draft, place)

    def _counted(self, draft: Draft, place: Place) -> Draft:
        self.window.add(replace(place, number=self.yielded))
        self.yielded += 1
        return draft
