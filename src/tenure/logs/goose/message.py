"""One message of goose's sessions: its parts as the model reads them, and who wrote them."""

from hashlib import sha256
from typing import Final

from msgspec import Raw, Struct, field

from tenure.engine.record.entry import Block, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.media import from_base64, from_url

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


class _Annotations(Struct, frozen=True, gc=False):
    audience: list[str] | None = None


class _Resource(Struct, frozen=True, gc=False):
    uri: str = ""
    mimeType: str | None = None  # noqa: N815 - the log's own names, here and below
    text: str | None = None
    blob: str | None = None


class _Content(Struct, frozen=True, gc=False):
    """A part of a tool's result."""

    type: str = ""
    text: str | None = None
    data: str = ""
    mimeType: str = ""  # noqa: N815
    uri: str | None = None
    resource: _Resource | None = None
    annotations: _Annotations | None = None

    @property
    def for_model(self) -> bool:
        return shown_to_model(self.annotations)


class _Returned(Struct, frozen=True, gc=False):
    """A result as newer versions write it."""

    content: list[_Content] | None = None
    isError: bool | None = False  # noqa: N815


class _Result(Struct, frozen=True, gc=False):
    status: str = ""
    value: list[_Content] | _Returned | None = None
    error: str | None = None


class _Params(Struct, frozen=True, gc=False):
    name: str = ""
    arguments: Raw = Raw(b"{}")


class _Call(Struct, frozen=True, gc=False):
    status: str = ""
    value: _Params | None = None
    error: str | None = None


class Part(Struct, frozen=True, gc=False):
    """A part of a message; which fields are set depends on `type`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = ""
    mimeType: str | None = ""  # noqa: N815
    id: str | None = ""
    toolCall: _Call | None = None  # noqa: N815
    toolResult: _Result | None = None  # noqa: N815
    annotations: _Annotations | None = None


class _Inference(Struct, frozen=True, gc=False):
    requestedModel: str | None = None  # noqa: N815
    resolvedModel: str | None = None  # noqa: N815


class _Usage(Struct, frozen=True, gc=False):
    inputTokens: int | None = None  # noqa: N815
    outputTokens: int | None = None  # noqa: N815
    cacheReadTokens: int | None = None  # noqa: N815
    cacheWriteTokens: int | None = None  # noqa: N815


class Metadata(Struct, frozen=True, gc=False):
    """Who is shown a message, and which call made it."""

    userVisible: bool | None = True  # noqa: N815
    agentVisible: bool | None = True  # noqa: N815
    inference: _Inference | None = None
    usage: _Usage | None = None


class Message(Struct, frozen=True, gc=False):
    """A message as goose keeps it."""

    role: str = ""
    content: list[Part] = field(default_factory=list[Part])
    id: str | None = None
    created: int | float | str | None = None
    metadata: Metadata | None = None

    @property
    def visible(self) -> bool:
        """Whether the model is shown it now."""
        return self.metadata is None or self.metadata.agentVisible is not False

    @property
    def hidden_from_user(self) -> bool:
        """Whether it is goose's own: a summary, a nudge, a template filled in."""
        return self.metadata is not None and self.metadata.userVisible is False

    @property
    def with_tools(self) -> bool:
        """Whether a call or a result is in it."""
        return any(part.type in ("toolRequest", "toolResponse") for part in self.content)

    @property
    def opening(self) -> str:
        """How its first text starts."""
        return next((part.text.lstrip()[:200] for part in self.content if part.type == "text" and part.text), "")

    @property
    def model(self) -> str:
        """The model that answered, where the message says it."""
        inference = (self.metadata and self.metadata.inference) or _Inference()
        return inference.resolvedModel or inference.requestedModel or ""

    @property
    def usage(self) -> Usage | None:
        """Goose counts cached tokens inside the input, whatever the provider does."""
        found = self.metadata and self.metadata.usage
        if not found:
            return None
        read, write = found.cacheReadTokens or 0, found.cacheWriteTokens or 0
        uncached = max(0, (found.inputTokens or 0) - read - write)
        return Usage(uncached=uncached, cache_write=write, cache_read=read, output=found.outputTokens or 0)


def shown_to_model(annotations: _Annotations | None) -> bool:
    """Whether a part is for the model; a tool may mark some for the user's eyes."""
    return annotations is None or annotations.audience is None or "assistant" in annotations.audience


def written_by(message: Message) -> Origin:
    """Who wrote the texts of a message, but for the first of a session, which is the task."""
    if message.role == "assistant":
        return Origin.HARNESS if message.opening.startswith(SAID_FOR_MODEL) else Origin.MODEL
    if message.opening.startswith(KICKOFF):
        return Origin.HUMAN
    return Origin.HARNESS if message.hidden_from_user or message.opening.startswith(SAID_FOR_USER) else Origin.HUMAN


def role_of(message: Message) -> Role:
    """Results come in the user's role, with nothing of the user's beside them."""
    if message.role == "assistant":
        return Role.ASSISTANT
    results = any(part.type == "toolResponse" for part in message.content)
    others = any(part.type in ("text", "image", "document") for part in message.content)
    return Role.TOOL if results and not others else Role.USER


def block_of(part: Part, origin: Origin) -> Block | None:
    """The block of a part; None for what the model does not see of it."""
    match part.type:
        case "text" | "image" | "document" if not shown_to_model(part.annotations):
            return None
        case "text":
            return Text(text=part.text, origin=origin) if part.text else None
        case "image" | "document":
            return from_base64(part.data or "", part.mimeType or "", origin)
        case "thinking":
            return Thinking(text=part.thinking or "", seal=_seal(part.signature)) if part.thinking or part.signature else None
        case "reasoning":
            return Thinking(text=part.text) if part.text else None
        case "redactedThinking":
            return Thinking(text="", seal=_seal(part.data))
        case "toolRequest" | "frontendToolRequest":
            return _call(part.id or "", part.toolCall or _Call())
        case "toolResponse":
            return _result(part.id or "", part.toolResult or _Result())
        case kind:
            return None if kind in NOTICES else Opaque(type=kind, text=part.text or "")


def _call(call_id: str, call: _Call) -> ToolCall:
    if call.value is None:  # what the model wrote could not be read as a call: all that is left of it is why
        return ToolCall(call_id=call_id, name="unparseable_tool_call", arguments=call.error or "{}")
    arguments = bytes(call.value.arguments)
    return ToolCall(
        call_id=call_id, name=call.value.name, arguments="{}" if arguments == b"null" else arguments.decode("utf-8", "replace")
    )


def _result(call_id: str, result: _Result) -> ToolResult:
    if result.value is None:
        return ToolResult(call_id=call_id, text=result.error or "", error=result.error is not None)
    returned = result.value if isinstance(result.value, _Returned) else _Returned(content=result.value)
    parts = [part for part in returned.content or () if part.for_model]
    media = tuple(found for part in parts if (found := _media(part)) is not None)
    text = "\n".join(text for part in parts if (text := _text(part)))
    return ToolResult(call_id=call_id, text=text, error=bool(returned.isError), media=media)


def _text(part: _Content) -> str:
    return part.text or (part.resource and part.resource.text) or ""


def _media(part: _Content) -> Media | None:
    if part.data:
        return from_base64(part.data, part.mimeType, Origin.TOOL)
    if part.resource is not None and part.resource.blob:
        return from_base64(part.resource.blob, part.resource.mimeType or "", Origin.TOOL)
    if part.type == "image" and part.uri:
        return from_url(part.uri, part.mimeType, Origin.TOOL)
    return None


def _seal(secret: str | None) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""
