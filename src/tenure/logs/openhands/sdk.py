"""OpenHands' events, version 1 (the Software Agent SDK, in events of a `kind`), turned into the messages that they become.

The calls of one response are events of their own, one after another. Streams, states, pauses and logs are events too, and say
nothing to the model. What an agent behind the Agent Client Protocol called is in the log, its messages to its model are not.
https://github.com/OpenHands/software-agent-sdk/tree/main/openhands-sdk/openhands/sdk/event
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, Text, ToolCall, ToolResult
from tenure.logs.document import Element
from tenure.logs.media import from_base64
from tenure.logs.mend import Damaged
from tenure.logs.moment import utc
from tenure.logs.openhands.reply import Call, Content, ReasoningItem, Reply, ThinkingBlock, as_text, reasoned, spoken
from tenure.logs.openhands.story import Printed, Story
from tenure.logs.reader import Event, Skipped
from tenure.logs.salvage import salvage

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
OF_SUBAGENT: Final = "call of a sub-agent behind the Agent Client Protocol"


class _TextPart(Struct, frozen=True, gc=False):
    text: str | None = None


class _Observation(Struct, frozen=True, gc=False):
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
    llm_message: Reply | None = None
    extended_content: Content = None
    system_prompt: _TextPart | str | None = None
    dynamic_context: _TextPart | str | None = None
    thought: Content = None
    reasoning_content: str | None = None
    thinking_blocks: list[ThinkingBlock] | None = None
    responses_reasoning_item: ReasoningItem | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: Call | None = None
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
    def type(self) -> str:
        """The kind, without the module that the first releases put before it."""
        return self.kind.rpartition(".")[2]

    @property
    def reply(self) -> Reply:
        """The reasoning before a call."""
        return Reply(
            reasoning_content=self.reasoning_content,
            thinking_blocks=self.thinking_blocks,
            responses_reasoning_item=self.responses_reasoning_item,
        )


class _AcpPart(Struct, frozen=True, gc=False):
    text: str | None = None
    content: _TextPart | None = None


_observation: Final = msgspec.json.Decoder(_Observation)
_content: Final = msgspec.json.Decoder(Content)
_acp: Final = msgspec.json.Decoder(list[_AcpPart])


class SdkEvents:
    """Turns the events of one conversation into drafts, one after another."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._calls: list[tuple[Element, EventV1]] = []  # of one response, as far as it has been read
        self._behind: dict[str, tuple[Element, EventV1]] = {}  # calls behind the Agent Client Protocol that have not ended

    def take(self, element: Element, event: EventV1) -> Iterator[Event]:
        """What the event shows to the model, once it is certain that no other belongs to it."""
        if event.type in SILENT:
            return
        try:
            yield from self._taken(element, event)
        except Damaged as damage:
            yield Skipped(line=element.line, bytes=len(element.faithful), reason=f"damaged event: found {damage.found}")

    def end(self) -> Iterator[Event]:
        """What was held back."""
        yield from self._called()
        for element, event in self._behind.values():
            yield from self._acp(element, event)
        self._behind = {}

    def _taken(self, element: Element, event: EventV1) -> Iterator[Event]:
        if self._calls and (event.type != "ActionEvent" or event.llm_response_id != self._calls[0][1].llm_response_id):
            yield from self._called()
        match event.type:
            case "ActionEvent":
                self._calls.append((element, event))
            case "MessageEvent":
                yield from self._message(element, event)
            case "SystemPromptEvent":
                parts = (_text(event.system_prompt), _text(event.dynamic_context))
                blocks = tuple(Text(text=text, origin=Origin.HARNESS) for text in parts if text)
                yield from self._place(element, event, Role.SYSTEM, blocks)
            case "ObservationEvent":
                yield from self._observed(element, event)
            case "AgentErrorEvent":
                yield from self._result(element, event, ToolResult(call_id="", text=event.error or "", error=True))
            case "UserRejectObservation":
                text = REJECTED.format(event.rejection_reason)
                yield from self._result(element, event, ToolResult(call_id="", text=text, error=True))
            case "CondensationSummaryEvent":
                yield from self._place(element, event, Role.USER, spoken(event.summary, Origin.HARNESS))
            case "Condensation":
                forgotten, at = event.forgotten_event_ids or (), utc(event.timestamp)
                yield from self.story.condensed(forgotten, event.summary or "", element.line, at, event.id)
            case "ACPToolCallEvent":
                yield from self._acp_call(element, event)
            case kind:
                self.story.tally.add(f"event unknown to this version: {kind!r}", element.line, len(element.faithful))

    def _message(self, element: Element, event: EventV1) -> Iterator[Event]:
        message = event.llm_message or Reply()
        role = ROLES.get(message.role or ("assistant" if event.source == "agent" else "user"), Role.USER)
        extended = spoken(event.extended_content, Origin.HARNESS)
        if role is Role.ASSISTANT:
            calls = (call.block(f"call-{event.id}") for call in message.tool_calls or ())
            blocks = (*reasoned(message), *spoken(message.content, Origin.MODEL), *calls, *extended)
        else:
            human = role is Role.USER and event.source in ("user", None)
            blocks = (*spoken(message.content, Origin.HUMAN if human else Origin.HARNESS), *extended)
        yield from self._place(element, event, role, blocks)

    def _called(self) -> Iterator[Event]:
        """The response that made the calls held."""
        calls, self._calls = self._calls, []
        if not calls:
            return
        blocks: list[Block] = []
        for _, event in calls:
            blocks += (*reasoned(event.reply), *spoken(event.thought, Origin.MODEL), _call(event))
        order = sorted(blocks, key=lambda block: isinstance(block, ToolCall))  # the words stand before all calls
        yield from self._place(*calls[0], Role.ASSISTANT, tuple(order))
        for _, event in calls[1:]:
            self.story.stands_for(self.story.window.count - 1, event.id)

    def _observed(self, element: Element, event: EventV1) -> Iterator[Event]:
        read = salvage(bytes(event.observation), _observation)
        observation: _Observation = read.value
        yield from (Skipped(line=element.line, bytes=0, reason=f"observation: {reason}") for reason in read.left_out)
        found = tuple(_returned(observation, event))
        shown = tuple(block for block in found if isinstance(block, Media))
        text = "\n".join(block.text for block in found if not isinstance(block, Media))
        if observation.metadata is not None:
            text = observation.metadata.around(text)
        text = "\n".join((*filter(None, (text,)), *(block.text for block in spoken(event.extended_content, Origin.HARNESS))))
        failed = bool(observation.is_error) or bool(observation.error)
        yield from self._result(element, event, ToolResult(call_id="", text=text, error=failed, media=shown))

    def _result(self, element: Element, event: EventV1, result: ToolResult) -> Iterator[Event]:
        """A result of a call that was there, else text in the user's role."""
        if event.tool_call_id in self.story.called:
            result = replace(result, call_id=event.tool_call_id or "")
            yield from self._place(element, event, Role.TOOL, (result,))
        else:
            yield from self._place(element, event, Role.USER, (*spoken(result.text, Origin.TOOL), *result.media))

    def _acp_call(self, element: Element, event: EventV1) -> Iterator[Event]:
        if event.parent_tool_call_id is not None:
            self.story.tally.add(OF_SUBAGENT, element.line, len(element.faithful))
            return
        key = event.tool_call_id or ""
        self._behind[key] = element, event
        if event.status in ENDED:
            del self._behind[key]
            yield from self._acp(element, event)

    def _acp(self, element: Element, event: EventV1) -> Iterator[Event]:
        arguments = as_text(event.raw_input) if bytes(event.raw_input) != b"null" else "{}"
        call_id = event.tool_call_id or f"call-{self.story.window.count}"
        call = ToolCall(call_id=call_id, name=event.title or event.tool_kind or "", arguments=arguments)
        yield from self._place(element, event, Role.ASSISTANT, (call,))
        if (text := _acp_text(event)) is not None:
            result = ToolResult(call_id=call_id, text=text, error=bool(event.is_error))
            yield from self._place(element, event, Role.TOOL, (result,))

    def _place(self, element: Element, event: EventV1, role: Role, blocks: tuple[Block, ...]) -> Iterator[Draft]:
        if not blocks:
            return
        settings, model, usage = self.story.settings, "", None
        if role is Role.ASSISTANT:
            model, usage = settings.model, settings.usages.get(event.llm_response_id or "")
        draft = Draft(role=role, blocks=blocks, at=utc(event.timestamp), line=element.line, model=model, usage=usage)
        yield from self.story.place(draft, event.id)


def _text(part: _TextPart | str | None) -> str:
    return (part.text if isinstance(part, _TextPart) else part) or ""


def _call(event: EventV1) -> ToolCall:
    """The call as the model made it, or where that is missing as OpenHands took it."""
    call_id = event.tool_call_id or f"call-{event.id}"
    if event.tool_call is not None:
        call = event.tool_call.block(call_id)
        return replace(call, call_id=call_id, name=call.name or event.tool_name or "")
    return ToolCall(call_id=call_id, name=event.tool_name or "", arguments=as_text(event.action))


def _returned(observation: _Observation, event: EventV1) -> Iterator[Block]:
    """The texts and images of a result; of one that this version does not know, its JSON."""
    for raw in (observation.content, observation.output):
        if bytes(raw) not in (b"null", b'""', b"[]"):
            yield from spoken(salvage(bytes(raw), _content).value, Origin.TOOL)
            break
    else:
        if isinstance(observation.error, str) and observation.error:
            yield Text(text=observation.error, origin=Origin.TOOL)
        elif bytes(observation.content) == bytes(observation.output) == b"null" and observation.metadata is None:
            yield Text(text=as_text(event.observation), origin=Origin.TOOL)
    if data := observation.screenshot_data:
        media_type = next((found for start, found in IMAGES.items() if data.startswith(start)), "image/png")
        yield from_base64(data, media_type, Origin.TOOL)


def _acp_text(event: EventV1) -> str | None:
    """What a call behind the Agent Client Protocol returned: its raw output, or the texts of its content."""
    if bytes(event.raw_output) != b"null":
        return as_text(event.raw_output)
    try:
        parts: list[_AcpPart] = salvage(bytes(event.content), _acp).value
    except Damaged:
        parts = []
    texts = [text for part in parts if (text := part.text or _text(part.content))]
    return "\n".join(texts) if texts or event.status in ENDED else None
