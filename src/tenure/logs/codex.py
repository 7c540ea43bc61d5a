"""Codex CLI's rollouts (`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`), of all generations.

Today every line is an envelope of time, type and payload. Before, lines were bare items below a header, and the first versions wrote
one document. The conversation is in the response items alone: events repeat it for the screen, and name what each call used. Names of
models are in the turn's context, the system prompt is in the header. What Codex took out of the window is still in the file.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, Usage
from tenure.errors import InputError
from tenure.logs.codex_items import BESIDE, SEALED, CodexItem, CodexPart, CodexPlace, Item, of_model, read_item
from tenure.logs.json_files import HEAD, Element, document, elements, opened, records
from tenure.logs.parts import prompt_usage
from tenure.logs.reader import Event
from tenure.logs.salvage import DamagedJson, Shape, cut, salvage
from tenure.logs.shape import keys
from tenure.logs.transcript import TranscriptBuilder, utc

T = TypeVar("T")

ALLOWED: Final = "a Codex rollout: an object with `session` and `items`"

# Lines that never were conversation.
NOTES: Final = frozenset(
    "world_state retained_context security_risk_score realtime_item session_state inter_agent_communication_metadata".split()
)

# Events: what the screen showed, and how the run went.
EVENTS: Final = frozenset(
    "user_message agent_message agent_message_delta agent_message_content_delta agent_reasoning agent_reasoning_delta "
    "agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break reasoning_content_delta "
    "reasoning_raw_content_delta raw_response_item session_configured thread_name_updated thread_goal_updated task_complete "
    "turn_complete error warning guardian_warning stream_error background_event deprecation_notice shutdown_complete "
    "exec_command_begin exec_command_end exec_command_output_delta terminal_interaction exec_approval_request "
    "apply_patch_approval_request request_user_input request_permissions elicitation_request dynamic_tool_call_request "
    "dynamic_tool_call_response patch_apply_begin patch_apply_updated patch_apply_end turn_diff mcp_tool_call_begin "
    "mcp_tool_call_end mcp_startup_update mcp_startup_complete mcp_list_tools_response web_search_begin web_search_end "
    "image_generation_begin image_generation_end view_image_tool_call plan_update plan_delta item_started item_completed "
    "context_compacted entered_review_mode exited_review_mode undo_started undo_completed hook_started hook_completed "
    "guardian_assessment sub_agent_activity collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin "
    "collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end "
    "collab_resume_begin collab_resume_end model_reroute model_verification safety_buffering turn_moderation_metadata "
    "get_history_entry_response list_custom_prompts_response conversation_path skills_update_available".split()
)

# Of the items, those that stand on a line of their own in the older generations.
BARE: Final = frozenset({"message", "reasoning", "web_search_call", "compaction", "agent_message", "ghost_snapshot"})

USER_TOKENS: Final = 20_000  # of user messages that a compaction without a written-out history keeps, newest first
BYTES_A_TOKEN: Final = 4  # as Codex estimates

_STAMP: Final = re.compile(rb'\s*\{\s*"timestamp"\s*:\s*"[^"\\]*"\s*,')
_LINE_TYPES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_LINE_TYPE: Final = re.compile(rf'"type"\s*:\s*"({"|".join(_LINE_TYPES)})"'.encode())
_OF_META: Final = (b'"cli_version"', b'"originator"', b'"base_instructions"')
_PARENT: Final = re.compile(rb'"parent_thread_id"\s*:\s*"([^"\\]*)"')
_FIRST_LINES: Final = 20
_LONGEST_LEAD: Final = 16  # drafts before the first human's that may hold the instructions
_MOST_KEPT: Final = 2**22  # drafts named by all changes of one file together; only a file made to hurt has more


class _CodexTokens(Struct, frozen=True, gc=False):
    """What a call used, or all calls so far. Input contains what was read from the cache and what was written to it."""

    input_tokens: int | None = 0
    cached_input_tokens: int | None = 0
    cache_write_input_tokens: int | None = 0
    output_tokens: int | None = 0  # reasoning included

    def since(self, before: "_CodexTokens") -> "_CodexTokens":
        """The difference; all of it when the running total started anew."""
        if (self.input_tokens or 0) < (before.input_tokens or 0):
            return self
        names = self.__struct_fields__
        return _CodexTokens(*(max(0, (getattr(self, name) or 0) - (getattr(before, name) or 0)) for name in names))


class _Words(Struct, frozen=True, gc=False):
    text: str | None = None


class _Meta(Struct, frozen=True, gc=False):
    """The header; in the oldest generations a line without a type, or a member of the document."""

    id: str | None = None
    timestamp: str | int | float | None = None
    instructions: str | None = None  # the user's; versions that sent them as a message have them there too
    base_instructions: _Words | str | None = None
    model: str | None = None
    parent_thread_id: str | None = None
    thread_source: Raw = Raw(b"null")
    source: Raw = Raw(b"null")
    history_base: Raw = Raw(b"null")


class _Settings(Struct, frozen=True, gc=False):
    model: str | None = None


class _CodexInfo(Struct, frozen=True, gc=False):
    """What a `token_count` says; both are missing when only the rate limits changed."""

    last_token_usage: _CodexTokens | None = None
    total_token_usage: _CodexTokens | None = None


class _RolloutEvent(Struct, frozen=True, gc=False):
    type: str = ""
    info: _CodexInfo | None = None
    num_turns: int | None = None
    thread_settings: _Settings | None = None


class _Counted(Struct, frozen=True, gc=False):
    """A `token_usage_record`, which newer versions write beside `token_count`."""

    usage: _CodexTokens | None = None
    thread_token_usage: _CodexTokens | None = None


class _Compacted(Struct, frozen=True, gc=False):
    """A compaction: the summary, and since 0.6x the whole window as it was afterwards."""

    message: str | None = None
    replacement_history: list[Raw] | None = None


class _Letter(Struct, frozen=True, gc=False):
    author: str = ""
    recipient: str = ""
    content: str | None = None
    encrypted_content: str | None = None
    trigger_turn: bool | None = False


class _CodexLine(Struct, frozen=True, gc=False):
    timestamp: str | int | float | None = None
    type: str = ""
    payload: Raw = Raw(b"")
    metadata: Raw = Raw(b"")
    record_type: str | None = None  # "state" in the oldest generation: says nothing
    role: str | None = None
    id: str | None = None


class _RolloutDocument(Struct, frozen=True, gc=False):
    items: list[Raw]
    session: _Meta = _Meta()


class _CodexProbe(Struct, frozen=True, gc=False):
    type: str = ""
    payload: Raw = Raw(b"")
    record_type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    instructions: Raw = Raw(b"")
    cli_version: str | None = None
    originator: str | None = None

    @property
    def fits(self) -> bool:
        if bytes(self.payload):
            return self.type in _LINE_TYPES
        if self.type:
            return self.type == "session_meta" and (self.cli_version is not None or self.originator is not None)
        return self.record_type == "state" or bool(self.id and self.timestamp and bytes(self.instructions))


class Codex:
    """Reads Codex CLI's rollouts."""

    name = "codex"

    def recognises(self, head: bytes) -> bool:
        """Whether the head is one of the document of the first versions, or one of the first lines is a rollout's."""
        return _is_document(head) or any(_is_line(line) for line in head.split(b"\n")[:_FIRST_LINES])

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file; what left the window where it left."""
        head, whole = opened(chunks)
        return _CodexReading().of_document(whole) if _is_document(head[:HEAD]) else _CodexReading().of_lines(whole)


def _is_document(head: bytes) -> bool:
    top = keys(head)
    if not top or not set(top) <= {"session", "items"}:
        return False
    return (b'"instructions"' in head and b'"timestamp"' in head) if "session" in top else b'put_text"' in head


def _is_line(line: bytes) -> bool:
    """Whether this is one of the lines that only rollouts have; it may be cut off."""
    try:
        return msgspec.json.decode(line, type=_CodexProbe).fits
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        named = {"type", "payload"} <= set(keys(line))
        return named and (_LINE_TYPE.search(line) is not None or any(mark in line for mark in _OF_META))


def _unstamped(line: bytes) -> bytes:
    """An item that stands on a line of its own, without the time that some versions wrote before it."""
    stamp = _STAMP.match(line)
    return b"{" + line[stamp.end() :] if stamp else line


class _Reply:
    """What one call of the model made, with the results that came before it is known what the call used."""

    def __init__(self, model: str, line: int, at: str, usage: Usage | None) -> None:
        self.model, self.line, self.at, self.usage = model, line, at, usage
        self.items: list[CodexItem] = []
        self.results: list[tuple[Draft, CodexPlace]] = []
        self.open = True  # whether what the model says next is of the same call
        self.early = usage is not None  # whether the count stood before what the call made

    def drafts(self) -> Iterator[tuple[Draft, CodexPlace]]:
        if any(item.blocks for item in self.items):
            draft = of_model(self.items, self.at, self.line)
            calls = frozenset(item.key for item in self.items if any(isinstance(block, ToolCall) for block in item.blocks))
            yield (
                replace(draft, model=self.model, usage=self.usage),
                CodexPlace(keys=tuple(item.key for item in self.items), calls=calls),
            )
        yield from self.results


class _CodexReading:
    """One pass over one file. Kept: the newest reply, and of each draft in the window a few numbers."""

    def __init__(self) -> None:
        self.transcript = TranscriptBuilder()
        self.window = _Window()
        self.counts = _Counts()
        self.model = ""
        self.reply: _Reply | None = None
        # Versions up to 0.5x count a call before they write down what it made, and each of its calls with the result.
        self.early: Usage | None = None
        self.first = False  # whether this file does so
        self.headed = False
        self.prompts: list[Draft] = []  # not yet known not to be in the messages that follow
        self.lead: list[tuple[Draft, CodexPlace]] = []  # those messages
        self.before = b""  # the last line

    def of_lines(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        yield from self.transcript.each(records(chunks, _CodexLine), self._line)
        yield from self._end()

    def of_document(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        read = document(chunks, _RolloutDocument, ALLOWED)
        self.transcript.here(1, 0)
        self._head(read.value.session)
        items = elements(read.value.items, read.source, read.faithful)
        yield from self.transcript.each(((element, element) for element in items), self._element)
        yield from self._end()
        yield from read.skipped

    def _end(self) -> Iterator[Event]:
        self._flush()
        self._settle()
        yield from self.transcript.end()

    def _element(self, element: Element, _: Element) -> None:
        try:
            item = self._read(element.source, Item)
            if item.role == "system":
                self.transcript.skip("notice: shown to the user, never sent to the model")
            else:
                self._item(item, element.faithful)
        except (DamagedJson, InputError, RecursionError) as error:
            self.transcript.lost(f"damaged item: {str(error)[:200]}, expected an item of the Responses API")

    def _line(self, element: Element, line: _CodexLine) -> None:
        self.transcript.here(element.line, element.size, line.timestamp)
        if element.faithful == self.before:
            if line.record_type is None:
                self.transcript.skip("line written twice in a row")
            return
        self.before = element.faithful
        try:
            self._typed_line(element, line)
        except (DamagedJson, InputError, RecursionError) as error:
            self.transcript.lost(f"damaged line: {str(error)[:200]}, expected what Codex writes as {line.type!r:.40}")

    def _typed_line(self, element: Element, line: _CodexLine) -> None:
        wrapped = bytes(line.payload)
        body = cut(wrapped, element.source, element.faithful) if wrapped else element.faithful
        match line.type:
            case "response_item":
                if b'"delivered_assistant_message"' not in bytes(line.metadata):  # words passed on through a tool, noted again
                    self._item(self._read(body, Item), body)
            case "event_msg":
                self._event(self._read(body, _RolloutEvent))
            case "turn_context":
                self.model = self._read(body, _Settings).model or self.model
            case "session_meta":
                self._head(self._read(body, _Meta))
            case "compacted":
                self._compaction(body)
            case "token_usage_record":
                counted = self._read(body, _Counted)
                self._count(counted.usage, counted.thread_token_usage)
            case "inter_agent_communication":
                self._letter(self._read(body, _Letter))
            case "rollout_reference":
                self.transcript.lost("what came before is in another rollout", 0)
            case kind if not wrapped and (kind in BARE or kind.endswith(("_call", "_output")) or (not kind and line.role)):
                self._item(self._read(body, Item), _unstamped(body))
            case "" if not wrapped and line.id is not None:
                self._head(self._read(body, _Meta))
            case kind:
                if kind not in NOTES and line.record_type is None:
                    self.transcript.skip(f"line type unknown to this version: {kind!r}")

    def _read(self, raw: bytes, shape: Shape[T]) -> T:
        read = salvage(raw, shape)
        for reason in read.left_out:
            self.transcript.skip(reason, 0)
        return read.value

    def _head(self, meta: _Meta) -> None:
        """Take the header. A fork repeats that of its parent below its own, with the same or with another system prompt."""
        if self.headed:
            return
        self.headed = True
        self.model = meta.model or self.model
        base = meta.base_instructions.text if isinstance(meta.base_instructions, _Words) else meta.base_instructions
        at, line = utc(meta.timestamp), self.transcript.line
        self.prompts = [
            Draft(role=Role.SYSTEM, blocks=(Text(text=text, origin=Origin.HARNESS),), at=at, line=line)
            for text in (base, meta.instructions)
            if text and text.strip()
        ]
        source = bytes(meta.source)
        if b'"subagent"' in source or b'"subagent"' in bytes(meta.thread_source):
            named = _PARENT.search(source)
            parent = named[1].decode("utf-8", "replace") if named else meta.parent_thread_id or "unknown"
            self.transcript.of_parent(parent[:80])
        if bytes(meta.history_base) != b"null":
            self.transcript.lost("what came before is in the rollout this one continues", 0)

    def _item(self, item: Item, payload: bytes) -> None:
        if item.kind in BESIDE:
            return
        read = read_item(item, payload, self.transcript.line)
        if not read.blocks:
            self.transcript.skip("message without content", len(payload))
        elif read.role is Role.ASSISTANT:
            self._answered(read)
        elif read.role is Role.TOOL and self.reply is not None:
            self.reply.open = False
            self.reply.results.append((read.draft(self.transcript.at, self.transcript.line), read.place()))
        else:
            self._flush()
            self._place(read.draft(self.transcript.at, self.transcript.line), read.place())

    def _answered(self, item: CodexItem) -> None:
        if self.reply is None or not (self.reply.open or (self.reply.early and isinstance(item.blocks[0], ToolCall))):
            self._flush()
            self.reply = _Reply(self.model, self.transcript.line, self.transcript.at, self.early)
            self.early = None
        self.reply.items.append(item)
        self.counts.answered = True

    def _event(self, event: _RolloutEvent) -> None:
        match event.type:
            case "token_count":
                info = event.info or _CodexInfo()
                self._count(info.last_token_usage, info.total_token_usage)
            case "thread_rolled_back":
                self._rollback(event.num_turns or 0)
            case "task_started" | "turn_started" | "turn_aborted":
                self._flush()
                self.early = None
            case "thread_settings_applied":
                self.model = (event.thread_settings and event.thread_settings.model) or self.model
            case kind:
                if kind not in EVENTS:
                    self.transcript.skip(f"event unknown to this version: {kind!r}")

    def _count(self, last: _CodexTokens | None, total: _CodexTokens | None) -> None:
        """Give a count to the call it is of: the one just written down, or else the one that comes next."""
        usage = self.counts.new(last, total)
        if usage is None:
            return
        reply = self.reply
        if reply is not None and (reply.open or (reply.usage is None and not self.first)):
            reply.usage, reply.open, reply.early = usage, False, False
        else:
            self.early = usage

    def _letter(self, letter: _Letter) -> None:
        text = letter.content or ""
        if letter.encrypted_content:
            kind = "NEW_TASK" if letter.trigger_turn else "MESSAGE"
            text = f"Message Type: {kind}\nTask name: {letter.recipient}\nSender: {letter.author}\nPayload:\n"
        parts = [
            CodexPart(type="input_text", text=text),
            CodexPart(type="encrypted_content", encrypted_content=letter.encrypted_content),
        ]
        self._item(Item(type="agent_message", content=parts), b"")

    def _compaction(self, body: bytes) -> None:
        self._flush()
        self._settle()
        self.early = None
        read = salvage(body, _Compacted)
        compacted: _Compacted = read.value
        history = elements(compacted.replacement_history or [], read.source, read.faithful)
        items = list(self._history(history, compacted.message))
        if not items:
            self._rewritten("compaction", self.window.shrink())
            if compacted.message:
                blocks = (Text(text=compacted.message, origin=Origin.HARNESS),)
                draft = Draft(role=Role.USER, blocks=blocks, at=self.transcript.at, line=self.transcript.line)
                self._place(draft, CodexPlace(context=True))
            return
        if compacted.message and not any(compacted.message in block.text for item in items for block in item.blocks):
            self.transcript.skip("summary that did not go into the window", len(compacted.message))
        kept, new = self.window.replace([item.key for item in items]) or (None, [])
        self._rewritten("compaction", kept)
        for item in (items[n] for n in new if items[n].blocks):
            if item.role is Role.ASSISTANT:
                self._answered(item)
            else:
                self._flush()
                self._place(item.draft(self.transcript.at, self.transcript.line), item.place())
        self._flush()

    def _history(self, window: Iterable[Element], summary: str | None) -> Iterator[CodexItem]:
        """The items of the window as the compaction left it."""
        for element in window:
            try:
                item = self._read(element.source, Item)
                if item.kind not in BESIDE:
                    yield _attributed(item, read_item(item, element.faithful, self.transcript.line), summary)
            except (DamagedJson, InputError, RecursionError) as error:
                self.transcript.skip(f"damaged item of a compaction: {str(error)[:120]}", len(element.faithful))

    def _rollback(self, turns: int) -> None:
        self._flush()
        self._settle()
        self.early = None
        before = len(self.window.places)
        kept = self.window.roll_back(turns)
        if len(self.window.places) < before:
            self._rewritten("turns rolled back", kept)

    def _rewritten(self, reason: str, kept: tuple[int, ...] | None) -> None:
        if kept is None:
            self.transcript.skip(f"{reason}: not told, this file changes its window beyond measure")
        else:
            self.transcript.rewrite(reason, self.transcript.count, kept)

    def _flush(self) -> None:
        reply, self.reply = self.reply, None
        if reply is not None:
            self.first = reply.early if reply.usage is not None else self.first
            for draft, place in reply.drafts():
                self._place(draft, place)

    def _place(self, draft: Draft, place: CodexPlace) -> None:
        if not self.prompts:
            self._add(draft, place)
            return
        self.lead.append((draft, place))
        if not place.context or len(self.lead) >= _LONGEST_LEAD:
            self._settle()

    def _settle(self) -> None:
        """Add the system prompts, but for those that are in the messages that follow, and those messages."""
        prompts, self.prompts = self.prompts, []
        lead, self.lead = self.lead, []
        texts = [block.text for draft, _ in lead for block in draft.blocks]
        for prompt in prompts:
            if not any(prompt.blocks[0].text.strip() in text for text in texts):
                self._add(prompt, CodexPlace(fixed=True))
        for draft, place in lead:
            self._add(draft, place)

    def _add(self, draft: Draft, place: CodexPlace) -> None:
        self.window.add(replace(place, number=self.transcript.draft(draft)))


def _attributed(item: Item, read: CodexItem, summary: str | None) -> CodexItem:
    """The summary is the harness's, whatever words a custom prompt gave it, and no call of the model's when it is sealed."""
    plain = read.role is Role.USER and summary and [block.text for block in read.blocks] == [summary]
    if not plain and item.kind not in SEALED:
        return read
    return replace(read, role=Role.USER, blocks=tuple(replace(block, origin=Origin.HARNESS) for block in read.blocks))


class _Counts:
    """Which token counts are of an API call that was not counted yet.

    Counts are written again on every change of the rate limits, after a resume and in forks; only one whose running total moved is new.
    """

    def __init__(self) -> None:
        self._total: _CodexTokens | None = None
        self._last: _CodexTokens | None = None
        self.answered = False  # whether the model said anything since the last count that was new

    def new(self, last: _CodexTokens | None, total: _CodexTokens | None) -> Usage | None:
        """The usage of one more call; None when it was counted before, or nothing was used."""
        if total is not None and total == self._total:
            return None
        if last is None and total is not None:
            last = total if self._total is None else total.since(self._total)
        self._total = total or self._total
        if last is None or not (last.input_tokens or last.output_tokens) or (last == self._last and not self.answered):
            return None
        self._last, self.answered = last, False
        return prompt_usage(last.input_tokens, last.output_tokens, last.cached_input_tokens, last.cache_write_input_tokens)


class _Window:
    """What Codex's model had in its window: the drafts so far, less what compactions and rollbacks took out. Mutable."""

    def __init__(self) -> None:
        self.places: list[CodexPlace] = []
        self._turns: list[int] = []  # where in `places` a turn starts
        self._named = 0

    def add(self, place: CodexPlace) -> None:
        if place.asks:
            self._turns.append(len(self.places))
        self.places.append(place)

    def replace(self, item_keys: Sequence[int]) -> tuple[tuple[int, ...], list[int]] | None:
        """Let only items with these keys stay: the drafts that hold one, and which of the keys are of no draft.

        The newest of equal drafts stays. None when the file changes its window beyond measure.
        """
        if self._named > _MOST_KEPT:
            return None
        holders: dict[int, list[int]] = {}
        for at, place in enumerate(self.places):
            for key in place.keys:
                holders.setdefault(key, []).append(at)
        stayed: dict[int, list[int]] = {at: [] for at, place in enumerate(self.places) if place.fixed}
        new: list[int] = []
        for n in range(len(item_keys) - 1, -1, -1):
            if at := holders.get(item_keys[n]):
                stayed.setdefault(at.pop(), []).append(n)
            else:
                new.append(n)
        # Words that stayed without the calls beside them: the draft cannot stay, its calls would be open.
        for at in [at for at in stayed if not self.places[at].calls <= {item_keys[n] for n in stayed[at]}]:
            new += stayed.pop(at)
        return self._keep(set(stayed)), sorted(new)

    def shrink(self) -> tuple[int, ...] | None:
        """Let only what every request starts with and the newest user messages stay, as Codex does beside its summary."""
        if self._named > _MOST_KEPT:
            return None
        first = self._turns[0] if self._turns else len(self.places)
        kept = {at for at, place in enumerate(self.places) if place.fixed or (at < first and place.context)}
        left = USER_TOKENS
        for at in reversed(self._turns):
            left -= -(-self.places[at].size // BYTES_A_TOKEN)
            if left < 0:  # Codex keeps the two ends of this one; which, only its own code could tell
                break
            kept.add(at)
        return self._keep(kept)

    def roll_back(self, turns: int) -> tuple[int, ...] | None:
        """Take the newest turns out, with the context written for the oldest of them; the drafts that stay. None like `replace`."""
        if turns <= 0 or not self._turns:
            return tuple(place.number for place in self.places)
        first = self._turns[0]
        end = self._turns[-turns] if turns <= len(self._turns) else first
        while end > first and self.places[end - 1].context:
            end -= 1
        kept = self._keep(set(range(end)))
        return None if self._named > _MOST_KEPT else kept

    def _keep(self, kept: set[int]) -> tuple[int, ...]:
        places = [self.places[at] for at in sorted(kept)]
        self.places, self._turns = [], []
        for place in places:
            self.add(place)
        self._named += len(places)
        return tuple(place.number for place in places)
