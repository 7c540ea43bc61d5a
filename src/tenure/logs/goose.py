"""goose's sessions: lines (`~/.local/share/goose/sessions/*.jsonl`), or one document (`goose session export --format json`).

Newer versions keep sessions in a database; `places.goose_store` writes the same document from it. A compaction takes nothing out: it
marks messages as no longer for the agent, and adds a summary that is for the agent alone. So once a message is marked, it and
all after it are held until it is known whether a compaction took it, or it was never meant for the model. Old calls may be
marked too, each beside a sentence that stands for it; when that happened is not in the log, and it is reported once, after the last
of them. Parallel calls stand one after another, each with its result, as goose sends them back.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct, field

from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.errors import InputError
from tenure.logs.json_files import Element, decoded, document, elements, opened, records
from tenure.logs.parts import from_base64, from_url, plain, prompt_usage, seal
from tenure.logs.reader import Event
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.shape import keys, opening
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "goose's session: an object with `conversation`, or one message per line"

# What a user types for goose and not for the model.
COMMANDS: Final = re.compile(
    r"/(compact|summarize|clear|prompts|skills|doctor|status)\b|Please compact this conversation$", re.IGNORECASE
)

# Parts that goose shows to the user and never sends.
NOTICES: Final = frozenset(
    "toolConfirmationRequest actionRequired systemNotification contextLengthExceeded summarizationRequested "
    "conversationCompacted jsonRenderSpec error".split()
)

# The words after a summary, in the assistant's role: how a compaction ends.
CONTINUATIONS: Final = (
    "The previous message contains a summary",
    "The previous message is a structured summary",
    "The message above is a summary",
    "Your context was compacted",
)

# What goose itself says in the assistant's role.
SAID_FOR_MODEL: Final = (
    *CONTINUATIONS,
    "Ran into this error",
    "I've reached the maximum number of actions I can do without user input",
    "The existing call to ",
    "The tool calling loop was interrupted",
)

# What goose itself says in the user's role, where it does not hide it from the user anyway.
SAID_FOR_USER: Final = ("You MUST call the `", "<info-msg>", "<turn-context>", "[Message too large to load")

KICKOFF: Final = "Start working toward this goal now:"  # hidden from the user, yet the goal in it is theirs


_SESSION_KEYS: Final = frozenset({"conversation", "extension_data", "session_type", "message_count", "accumulated_usage"})
_PARTS: Final = re.compile(rb'"(toolRequest|toolResponse|agentVisible)"')
_CREATED: Final = re.compile(rb'"created"\s*:\s*\d')


class _Annotations(Struct, frozen=True, gc=False):
    audience: list[str] | None = None


class _Resource(Struct, frozen=True, gc=False):
    uri: str = ""
    mimeType: str | None = None  # noqa: N815 - the log's own names, here and below
    text: str | None = None
    blob: str | None = None


class _GooseContent(Struct, frozen=True, gc=False):
    type: str = ""
    text: str | None = None
    data: str = ""
    mimeType: str = ""  # noqa: N815
    uri: str | None = None
    resource: _Resource | None = None
    annotations: _Annotations | None = None


class _Returned(Struct, frozen=True, gc=False):
    """A result as newer versions write it."""

    content: list[_GooseContent] | None = None
    isError: bool | None = False  # noqa: N815


class _GooseResult(Struct, frozen=True, gc=False):
    status: str = ""
    value: list[_GooseContent] | _Returned | None = None
    error: str | None = None


class _Params(Struct, frozen=True, gc=False):
    name: str = ""
    arguments: Raw = Raw(b"{}")


class _GooseCall(Struct, frozen=True, gc=False):
    status: str = ""
    value: _Params | None = None
    error: str | None = None


class _GoosePart(Struct, frozen=True, gc=False):
    """A part of a message; which fields are set depends on `type`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = ""
    mimeType: str | None = ""  # noqa: N815
    id: str | None = ""
    toolCall: _GooseCall | None = None  # noqa: N815
    toolResult: _GooseResult | None = None  # noqa: N815
    annotations: _Annotations | None = None


class _Inference(Struct, frozen=True, gc=False):
    requestedModel: str | None = None  # noqa: N815
    resolvedModel: str | None = None  # noqa: N815


class _GooseUsage(Struct, frozen=True, gc=False):
    inputTokens: int | None = None  # noqa: N815
    outputTokens: int | None = None  # noqa: N815
    cacheReadTokens: int | None = None  # noqa: N815
    cacheWriteTokens: int | None = None  # noqa: N815


class _GooseMetadata(Struct, frozen=True, gc=False):
    """Who is shown a message, and which call made it."""

    userVisible: bool | None = True  # noqa: N815
    agentVisible: bool | None = True  # noqa: N815
    inference: _Inference | None = None
    usage: _GooseUsage | None = None


class _GooseMessage(Struct, frozen=True, gc=False):
    role: str = ""
    content: list[_GoosePart] = field(default_factory=list[_GoosePart])
    id: str | None = None
    created: int | float | str | None = None
    metadata: _GooseMetadata | None = None

    @property
    def visible(self) -> bool:
        return self.metadata is None or self.metadata.agentVisible is not False

    @property
    def hidden_from_user(self) -> bool:
        """Whether it is goose's own: a summary, a nudge, a template filled in."""
        return self.metadata is not None and self.metadata.userVisible is False

    @property
    def with_tools(self) -> bool:
        return any(part.type in ("toolRequest", "toolResponse") for part in self.content)

    @property
    def is_goose(self) -> bool:
        """Whether it is a text of goose's own for the agent, as a summary is."""
        return self.role == "user" and self.hidden_from_user and not self.with_tools

    @property
    def opening(self) -> str:
        return next((part.text.lstrip()[:200] for part in self.content if part.type == "text" and part.text), "")

    @property
    def speaker(self) -> Role:
        """Whose message it is; results come in the user's role, with nothing of the user's beside them."""
        if self.role == "assistant":
            return Role.ASSISTANT
        types = {part.type for part in self.content}
        return Role.TOOL if "toolResponse" in types and not types & {"text", "image", "document"} else Role.USER

    @property
    def writer(self) -> Origin:
        """Who wrote its texts, but for the first of a session, which is the task."""
        if self.role == "assistant":
            return Origin.HARNESS if self.opening.startswith(SAID_FOR_MODEL) else Origin.MODEL
        if self.opening.startswith(KICKOFF):
            return Origin.HUMAN
        return Origin.HARNESS if self.hidden_from_user or self.opening.startswith(SAID_FOR_USER) else Origin.HUMAN

    @property
    def model(self) -> str:
        inference = (self.metadata and self.metadata.inference) or _Inference()
        return inference.resolvedModel or inference.requestedModel or ""

    @property
    def usage(self) -> Usage | None:
        """Goose counts cached tokens inside the input, whatever the provider does."""
        usage = self.metadata and self.metadata.usage
        return (
            prompt_usage(usage.inputTokens, usage.outputTokens, usage.cacheReadTokens, usage.cacheWriteTokens) if usage else None
        )


class _GooseConfig(Struct, frozen=True, gc=False):
    model_name: str | None = None


class _GooseSession(Struct, frozen=True, gc=False):
    conversation: list[Raw] | None = None
    messages: list[Raw] | None = None
    parent_session_id: str | None = None
    model_config: _GooseConfig | None = None


class _GooseLine(_GooseMessage, frozen=True, gc=False):
    """A message, or in the first line what is known of the session."""

    working_dir: str | None = None
    description: str | None = None


class Goose:
    """Reads goose's sessions, lines or document."""

    name = "goose"

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
        head, whole = opened(chunks)
        yield from _GooseReading().of_lines(whole) if _is_by_line(head) else _of_document(whole)


def _is_by_line(head: bytes) -> bool:
    if {"role", "content"} <= set(keys(head)):
        return True
    try:
        return not {"conversation", "messages"} & set(decode(head.partition(b"\n")[0], dict[str, Raw]))
    except DamagedJson:
        return False


def _of_document(chunks: Iterable[bytes]) -> Iterator[Event]:
    session = document(chunks, _GooseSession, ALLOWED)
    value = session.value
    array = value.conversation if value.conversation is not None else value.messages
    if array is None:
        raise InputError("document", "found no messages", ALLOWED)
    reading = _GooseReading((value.model_config and value.model_config.model_name) or "")
    if value.parent_session_id:
        reading.transcript.here(1, 0)
        reading.transcript.of_parent(value.parent_session_id)
        yield from reading.transcript.take()
    items = decoded(elements(array, session.source, session.faithful), _GooseMessage, "message")
    yield from reading.transcript.each(items, reading.message)
    yield from reading.end()
    yield from session.skipped


class _GooseReading:
    def __init__(self, model: str = "") -> None:
        self.transcript = TranscriptBuilder(model)
        self.held: list[tuple[Element, _GooseMessage]] = []  # from the first message on that is no longer for the agent
        self.reply_visible = True
        self.asked = False
        self.thoughts: set[str] = set()  # since the human spoke

    def of_lines(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        yield from self.transcript.each(records(chunks, _GooseLine), self._line)
        yield from self.end()

    def _line(self, element: Element, line: _GooseLine) -> None:
        if line.role:
            self.message(element, line)
        elif line.working_dir is None and line.description is None:
            self.transcript.skip("line that is neither a message nor the session's own")

    def message(self, element: Element, message: _GooseMessage) -> None:
        if message.id and self.transcript.repeats(
            (message.id, hash(element.source)), reason="message whose id and words were there before"
        ):
            return
        if self.held or not message.visible:
            self.held.append((Element(element.line, b"", b"", element.size), message))
        else:
            self._add(element, message)

    def end(self) -> Iterator[Event]:
        messages, ends = (
            [message for _, message in self.held],
            dict[int, int](),
        )  # where each compaction starts: where its words end
        for n in range(len(messages)):
            if _continues(messages, n):
                ends[n - 1 if n and messages[n - 1].is_goose else n] = n
        last = max(ends, default=-1)
        pairs = [n for n, message in enumerate(messages) if n > last and not message.visible and message.with_tools]
        known = _known(messages, set(ends.values()))
        gone: list[int] = []
        for n, (element, message) in enumerate(self.held):
            self.transcript.here(element.line, element.size, message.created)
            if n in ends:
                self.transcript.close()
                self.transcript.drop("compaction", gone) if n == last else self.transcript.clear("compaction")
                gone = []
            aside = n > last or (message.role == "user" and COMMANDS.match(message.opening))
            if not message.visible and not message.with_tools and aside:
                self.transcript.skip("message for the user alone: never sent to the model")
                continue
            number = self._add(element, message, known.get(n))
            if number >= 0 and not message.visible:
                gone.append(number)
            if pairs and n == pairs[-1]:
                self.transcript.close()
                self.transcript.drop("old calls and results replaced by a sentence each", gone)
            yield from self.transcript.take()
        yield from self.transcript.end()

    def _add(self, element: Element, message: _GooseMessage, origin: Origin | None = None) -> int:
        """The number of the draft that the message is in; -1 when the model saw nothing of it."""
        role = message.speaker
        self.transcript.here(element.line, element.size, message.created)
        origin = origin or self._origin(message)
        blocks = [block for part in message.content if (block := self._block(part, origin)) is not None]
        if not blocks:
            return -1
        if role is not Role.ASSISTANT:
            self.transcript.close()
            return self.transcript.add(role, blocks)
        usage = message.usage if origin is Origin.MODEL else None
        model = (message.model or self.transcript.model) if origin is Origin.MODEL else ""
        reply = self.transcript.reply
        if reply is not None and self.reply_visible == message.visible and _is_same_answer(reply, blocks, usage):
            self.transcript.amend(*blocks, usage=reply.usage or usage, model=reply.model or model)
            return self.transcript.count - 1
        self.reply_visible = message.visible
        return self.transcript.open(role, blocks, model=model, usage=usage)

    def _origin(self, message: _GooseMessage) -> Origin:
        """Who wrote the texts of a message; the first of a session is the task, whoever hid it."""
        if message.role == "assistant" or message.with_tools or not message.opening:
            return message.writer
        first, self.asked = not self.asked, True
        return Origin.HUMAN if first else message.writer

    def _block(self, part: _GoosePart, origin: Origin) -> Block | None:
        block = _block(part, origin)
        match block:
            case Thinking(text=text) if text and text in self.thoughts:
                self.transcript.skip("thinking copied to a parallel call of the same answer", 0)
                return None
            case Thinking(text=text):
                self.thoughts.add(text)
            case ToolCall(call_id=call_id):
                if part.type == "frontendToolRequest" and self.transcript.repeats(("call", call_id)):
                    return None  # the same call, as it was handed to the user's side
                self.transcript.repeats(("call", call_id))
            case Opaque(text="", type=kind):
                self.transcript.skip(f"part type unknown to this version: {kind!r}", 0)
                return None
            case Text(origin=Origin.HUMAN):
                self.thoughts.clear()
            case _:
                pass
        return block


def _continues(held: list[_GooseMessage], n: int) -> bool:
    """Whether this message ends a compaction, following the summary."""
    message = held[n]
    if message.role != "assistant" or message.with_tools:
        return False
    return message.opening.startswith(CONTINUATIONS) or (n > 0 and message.hidden_from_user and held[n - 1].is_goose)


def _known(held: list[_GooseMessage], ends: set[int]) -> dict[int, Origin]:
    """Who wrote what a compaction added: its own words, and after them what the human said last, once more and hidden."""
    known = dict.fromkeys(ends, Origin.HARNESS)
    openings: set[str] = set()
    for n, message in enumerate(held):
        if message.role == "user" and message.opening:
            if n - 1 in ends and message.opening in openings:
                known[n] = Origin.HUMAN
            openings.add(message.opening)
    return known


def _is_same_answer(reply: Draft, blocks: list[Block], usage: Usage | None) -> bool:
    """Whether a message goes on with the open reply, which goose may keep as its words and then each of its calls."""
    if reply.usage is not None and usage is not None:
        return False
    ours = any(isinstance(block, Text) and block.origin is not Origin.MODEL for block in (*reply.blocks, *blocks))
    return not ours and not any(isinstance(block, ToolCall) for block in reply.blocks)


def _is_for_model(annotations: _Annotations | None) -> bool:
    """Whether a part is for the model; a tool may mark some for the user's eyes."""
    return annotations is None or annotations.audience is None or "assistant" in annotations.audience


def _block(part: _GoosePart, origin: Origin) -> Block | None:
    """The block of a part; None for what the model does not see of it."""
    match part.type:
        case "text" | "image" | "document" if not _is_for_model(part.annotations):
            return None
        case "text":
            return Text(text=part.text, origin=origin) if part.text else None
        case "image" | "document":
            return from_base64(part.data or "", part.mimeType or "", origin)
        case "thinking":
            return Thinking(text=part.thinking or "", seal=seal(part.signature)) if part.thinking or part.signature else None
        case "reasoning":
            return Thinking(text=part.text) if part.text else None
        case "redactedThinking":
            return Thinking(text="", seal=seal(part.data))
        case "toolRequest" | "frontendToolRequest":
            return _call(part.id or "", part.toolCall or _GooseCall())
        case "toolResponse":
            return _result(part.id or "", part.toolResult or _GooseResult())
        case kind:
            return None if kind in NOTICES else Opaque(type=kind, text=part.text or "")


def _call(call_id: str, call: _GooseCall) -> ToolCall:
    if call.value is None:  # what the model wrote could not be read as a call: all that is left of it is why
        return ToolCall(call_id=call_id, name="unparseable_tool_call", arguments=call.error or "{}")
    arguments = plain(call.value.arguments)
    return ToolCall(call_id=call_id, name=call.value.name, arguments="{}" if arguments == "null" else arguments)


def _result(call_id: str, result: _GooseResult) -> ToolResult:
    if result.value is None:
        return ToolResult(call_id=call_id, text=result.error or "", error=result.error is not None)
    returned = result.value if isinstance(result.value, _Returned) else _Returned(content=result.value)
    parts = [part for part in returned.content or () if _is_for_model(part.annotations)]
    media = tuple(image for part in parts if (image := _media(part)) is not None)
    text = "\n".join(text for part in parts if (text := part.text or (part.resource and part.resource.text)))
    return ToolResult(call_id=call_id, text=text, error=bool(returned.isError), media=media)


def _media(part: _GooseContent) -> Media | None:
    if part.data:
        return from_base64(part.data, part.mimeType, Origin.TOOL)
    if part.resource is not None and part.resource.blob:
        return from_base64(part.resource.blob, part.resource.mimeType or "", Origin.TOOL)
    if part.type == "image" and part.uri:
        return from_url(part.uri, part.mimeType, Origin.TOOL)
    return None
