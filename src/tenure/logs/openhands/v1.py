"""OpenHands' events, version 1 (the Software Agent SDK, in events of a `kind`), as the messages that they become.

The calls of one response are events of their own, one after another. Streams, states, pauses and logs are events too, and say
nothing to the model. What an agent behind the Agent Client Protocol called is in the log, its messages to its model are not.
https://github.com/OpenHands/software-agent-sdk/tree/main/openhands-sdk/openhands/sdk/event
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Origin, Role, Text, ToolCall, ToolResult
from tenure.logs.openhands.conversation import (
    Content,
    MadeCall,
    ModelReply,
    OpenHandsConversation,
    Printed,
    ReasoningItem,
    ThinkingBlock,
    texts,
)
from tenure.logs.parts import from_base64, result_of, text_of
from tenure.logs.salvage import DamagedJson, salvage

# Events that say nothing to the model.
SILENT: Final = frozenset(
    "CondensationRequest ConversationStateUpdateEvent PauseEvent InterruptEvent TokenEvent LLMCompletionLogEvent StreamingDeltaEvent "
    "HookExecutionEvent ConversationErrorEvent ConversationIterationLimitEvent SecurityAnalyzerConfigurationEvent AskUserRequestEvent "
    "AskUserResponseEvent WarningEvent".split()
)
ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
REJECTED: Final = "Action rejected: {}"
IMAGES: Final = {"/9j/": "image/jpeg", "R0lGODlh": "image/gif", "UklGR": "image/webp"}  # by how their base64 starts
ENDED: Final = ("completed", "failed")


class _TextPart(Struct, frozen=True, gc=False):
    text: str | None = None


class _V1Observation(Struct, frozen=True, gc=False):
    """What a tool returned; in the first releases in `output`, and an error as text."""

    content: Raw = Raw(b"null")
    output: Raw = Raw(b"null")
    error: str | bool | None = None
    is_error: bool | None = None
    metadata: Printed | None = None
    screenshot_data: str | None = None


class EventV1(Struct, frozen=True, gc=False):
    """An event; which fields are set depends on `kind`."""

    kind: str = ""
    id: str | None = None
    timestamp: str | float | None = None
    source: str | None = None
    llm_message: ModelReply | None = None
    extended_content: Content = None
    system_prompt: _TextPart | str | None = None
    dynamic_context: _TextPart | str | None = None
    thought: Content = None
    reasoning_content: str | None = None
    thinking_blocks: list[ThinkingBlock] | None = None
    responses_reasoning_item: ReasoningItem | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: MadeCall | None = None
    llm_response_id: str | None = None
    action: Raw = Raw(b"null")
    observation: Raw = Raw(b"null")
    error: str | None = None
    rejection_reason: str | None = None
    forgotten_event_ids: list[str] | None = None
    summary: str | None = None
    title: str | None = None
    status: str | None = None
    tool_kind: str | None = None
    raw_input: Raw = Raw(b"null")
    raw_output: Raw = Raw(b"null")
    content: Raw = Raw(b"null")
    is_error: bool | None = None
    parent_tool_call_id: str | None = None

    @property
    def reply(self) -> ModelReply:
        """The reasoning before a call."""
        return ModelReply(
            reasoning_content=self.reasoning_content,
            thinking_blocks=self.thinking_blocks,
            responses_reasoning_item=self.responses_reasoning_item,
        )


class _AcpPart(Struct, frozen=True, gc=False):
    text: str | None = None
    content: _TextPart | None = None


_content: Final = msgspec.json.Decoder(Content)


class EventsV1:
    """Adds the events of one conversation, one after another."""

    def __init__(self, conversation: OpenHandsConversation) -> None:
        self.conversation, self.transcript = conversation, conversation.transcript
        self._calls: list[tuple[int, EventV1]] = []  # of one response, as far as it has been read, with their lines
        self._behind: dict[str, tuple[int, EventV1]] = {}  # calls behind the Agent Client Protocol that have not ended

    def end(self) -> None:
        """Add what was held back."""
        self._called()
        for line, event in self._behind.values():
            self._acp(line, event)
        self._behind = {}

    def read(self, event: EventV1) -> None:
        """Add what the event shows to the model, once it is certain that no other belongs to it. Raises DamagedJson."""
        kind = event.kind.rpartition(".")[2]  # the first releases put the module before it
        if kind in SILENT:
            return
        if self._calls and (kind != "ActionEvent" or event.llm_response_id != self._calls[0][1].llm_response_id):
            self._called()
        match kind:
            case "ActionEvent":
                self._calls.append((self.transcript.line, event))
            case "MessageEvent":
                self._message(event)
            case "SystemPromptEvent":
                parts = (_text(event.system_prompt), _text(event.dynamic_context))
                self._add(event, Role.SYSTEM, tuple(Text(text=text, origin=Origin.HARNESS) for text in parts if text))
            case "ObservationEvent":
                self._observed(event)
            case "AgentErrorEvent":
                self._result(event, ToolResult(call_id="", text=event.error or "", error=True))
            case "UserRejectObservation":
                self._result(event, ToolResult(call_id="", text=REJECTED.format(event.rejection_reason), error=True))
            case "CondensationSummaryEvent":
                self._add(event, Role.USER, texts(event.summary, Origin.HARNESS))
            case "Condensation":
                self.conversation.condense(event.forgotten_event_ids or (), event.summary or "", event.id, event.timestamp)
            case "ACPToolCallEvent":
                self._acp_call(event)
            case _:
                self.transcript.skip(f"event unknown to this version: {kind!r}")

    def _add(self, event: EventV1, role: Role, blocks: tuple[Block, ...], line: int | None = None) -> None:
        usage = self.conversation.settings.usages.get(event.llm_response_id or "") if role is Role.ASSISTANT else None
        self.conversation.add(role, blocks, event.id, event.timestamp, usage=usage, line=line)

    def _message(self, event: EventV1) -> None:
        message = event.llm_message or ModelReply()
        role = ROLES.get(message.role or ("assistant" if event.source == "agent" else "user"), Role.USER)
        extended = texts(event.extended_content, Origin.HARNESS)
        if role is Role.ASSISTANT:
            calls = (call.block(f"call-{event.id}") for call in message.tool_calls or ())
            blocks = (*message.reasoning, *texts(message.content, Origin.MODEL), *calls, *extended)
        else:
            human = role is Role.USER and event.source in ("user", None)
            blocks = (*texts(message.content, Origin.HUMAN if human else Origin.HARNESS), *extended)
        self._add(event, role, blocks)

    def _called(self) -> None:
        calls, self._calls = self._calls, []
        if not calls:
            return
        blocks: list[Block] = []
        for _, event in calls:
            blocks += (*event.reply.reasoning, *texts(event.thought, Origin.MODEL), _call(event))
        order = sorted(blocks, key=lambda block: isinstance(block, ToolCall))  # the words stand before all calls
        self._add(calls[0][1], Role.ASSISTANT, tuple(order), calls[0][0])
        for _, event in calls[1:]:
            self.conversation.stands_for(self.transcript.count - 1, event.id)

    def _observed(self, event: EventV1) -> None:
        read = salvage(bytes(event.observation), _V1Observation)
        observation: _V1Observation = read.value
        self.transcript.partly(f"observation: {reason}" for reason in read.left_out)
        result = result_of("", tuple(_returned(observation, event)), error=bool(observation.is_error or observation.error))
        text = result.text if observation.metadata is None else observation.metadata.around(result.text)
        extended = (block.text for block in texts(event.extended_content, Origin.HARNESS))
        self._result(event, replace(result, text="\n".join((*filter(None, (text,)), *extended))))

    def _result(self, event: EventV1, result: ToolResult) -> None:
        """Add a result of a call that was there, else text in the user's role."""
        if event.tool_call_id in self.conversation.called:
            self._add(event, Role.TOOL, (replace(result, call_id=event.tool_call_id or ""),))
        else:
            self._add(event, Role.USER, (*texts(result.text, Origin.TOOL), *result.media))

    def _acp_call(self, event: EventV1) -> None:
        if event.parent_tool_call_id is not None:
            self.transcript.skip("call of a sub-agent behind the Agent Client Protocol")
            return
        key = event.tool_call_id or ""
        self._behind[key] = self.transcript.line, event
        if event.status in ENDED:
            del self._behind[key]
            self._acp(self.transcript.line, event)

    def _acp(self, line: int, event: EventV1) -> None:
        arguments = text_of(event.raw_input) if bytes(event.raw_input) != b"null" else "{}"
        call_id = event.tool_call_id or f"call-{self.transcript.count}"
        call = ToolCall(call_id=call_id, name=event.title or event.tool_kind or "", arguments=arguments)
        self._add(event, Role.ASSISTANT, (call,), line)
        if (text := _acp_text(event)) is not None:
            self._add(event, Role.TOOL, (ToolResult(call_id=call_id, text=text, error=bool(event.is_error)),), line)


def _text(part: _TextPart | str | None) -> str:
    return (part.text if isinstance(part, _TextPart) else part) or ""


def _call(event: EventV1) -> ToolCall:
    """The call as the model made it, or where that is missing as OpenHands took it."""
    call_id = event.tool_call_id or f"call-{event.id}"
    if event.tool_call is not None:
        call = event.tool_call.block(call_id)
        return replace(call, call_id=call_id, name=call.name or event.tool_name or "")
    return ToolCall(call_id=call_id, name=event.tool_name or "", arguments=text_of(event.action))


def _returned(observation: _V1Observation, event: EventV1) -> Iterator[Block]:
    """The texts and images of a result; of one that this version does not know, its JSON."""
    for raw in (observation.content, observation.output):
        if bytes(raw) not in (b"null", b'""', b"[]"):
            yield from texts(salvage(bytes(raw), _content).value, Origin.TOOL)
            break
    else:
        if isinstance(observation.error, str) and observation.error:
            yield Text(text=observation.error, origin=Origin.TOOL)
        elif bytes(observation.content) == bytes(observation.output) == b"null" and observation.metadata is None:
            yield Text(text=text_of(event.observation), origin=Origin.TOOL)
    if data := observation.screenshot_data:
        media_type = next((kind for start, kind in IMAGES.items() if data.startswith(start)), "image/png")
        yield from_base64(data, media_type, Origin.TOOL)


def _acp_text(event: EventV1) -> str | None:
    """What a call behind the Agent Client Protocol returned: its raw output, or the texts of its content."""
    if bytes(event.raw_output) != b"null":
        return text_of(event.raw_output)
    try:
        parts: list[_AcpPart] = salvage(bytes(event.content), list[_AcpPart]).value
    except DamagedJson:
        parts = []
    found = [text for part in parts if (text := part.text or _text(part.content))]
    return "\n".join(found) if found or event.status in ENDED else None
