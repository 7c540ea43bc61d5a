"""One simulation of tau2-bench, as the agent under test saw it.

The agent saw its policy, what the simulated user said and its own calls. The user has tools of its own: their calls and results were
not shown to the agent. Spoken simulations come in ticks, in which both may talk at once; an utterance is put together from them.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolCall, ToolResult, Usage
from tenure.logs.json_files import Element, decoded, inside
from tenure.logs.parts import Call
from tenure.logs.reader import Event, Rewritten, Skipped
from tenure.logs.tally import Tally
from tenure.logs.transcript import utc

USERS_TOOLS: Final = "the simulated user's own tools: not shown to the agent"
REASONING: Final = "reasoning in a raw response: not sent back to the model"
UNKNOWN_ROLE: Final = "message of a role unknown to this version: {!r}"


class _Details(Struct, frozen=True, gc=False):
    cached_tokens: int | None = 0


class _Usage(Struct, frozen=True, gc=False):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    prompt_tokens_details: _Details | None = None


class _RawMessage(Struct, frozen=True, gc=False):
    reasoning_content: str | None = None


class _RawData(Struct, frozen=True, gc=False):
    model: str | None = None
    message: _RawMessage | None = None
    thinking_blocks: Raw = Raw(b"null")


class _Truncation(Struct, frozen=True, gc=False):
    messages_dropped: int | None = 0


class _Message(Struct, frozen=True, gc=False):
    role: str = ""
    content: str | None = None
    id: str | None = None  # of a tool's message: the call it answers, here and below
    tool_call_id: str | None = None
    requestor: str | None = None
    error: bool | None = None
    tool_calls: list[Call] | None = None
    tool_messages: list[Raw] | None = None
    timestamp: str | float | None = None
    usage: _Usage | None = None
    raw_data: _RawData | None = None
    is_audio: bool | None = None
    audio_script_gold: str | None = None
    context_truncation: _Truncation | None = None

    @property
    def words(self) -> str:
        """What was said, also where the content is sound."""
        return (self.audio_script_gold if self.is_audio and self.audio_script_gold else self.content) or ""


class _Chunk(Struct, frozen=True, gc=False):
    content: str | None = None
    timestamp: str | float | None = None


class _Tick(Struct, frozen=True, gc=False):
    timestamp: str | float | None = None
    agent_chunk: _Chunk | None = None
    user_chunk: _Chunk | None = None
    agent_tool_calls: list[Call] | None = None
    agent_tool_results: list[_Message] | None = None
    user_tool_calls: list[Raw] | None = None
    user_tool_results: list[Raw] | None = None


_message: Final = msgspec.json.Decoder(_Message)
_tick: Final = msgspec.json.Decoder(_Tick)


class Simulation:
    """Reads one simulation; `before` drafts were yielded before it, and `policy` of them is its system prompt, if any."""

    def __init__(self, tally: Tally, model: str, before: int, policy: int | None) -> None:
        self._tally, self._model = tally, model
        self._number = before
        self._policy = policy
        self._first = before  # the number of the first message after the policy
        self._dropped = 0
        self._heard = False  # whether the user spoke
        self._made_ids = 0
        self._unanswered: deque[str] = deque()

    def messages(self, array: list[Raw], outer: Element) -> Iterator[Event]:
        """The drafts of a simulation in turns."""
        for item in self._flat(inside(array, outer)):
            yield from (item,) if isinstance(item, Skipped) else self._message(*item)

    def ticks(self, array: list[Raw], outer: Element) -> Iterator[Event]:
        """The drafts of a spoken simulation: one for each utterance."""
        self._heard = True  # a greeting is spoken by the model
        agent, user, number = _Utterance("assistant"), _Utterance("user"), 0
        for item in decoded(inside(array, outer), _tick, "tick"):
            if isinstance(item, Skipped):
                yield item
                continue
            element, tick = item
            if tick.user_tool_calls or tick.user_tool_results:
                self._tally.add(USERS_TOOLS, element.line, len(element.faithful))
            number += 1
            agent.hear(number, element, tick.agent_chunk, tick)
            user.hear(number, element, tick.user_chunk, tick)
            if tick.agent_tool_calls:
                yield from self._spoken(user)
                yield from self._spoken(agent, tick.agent_tool_calls, element)
            for result in tick.agent_tool_results or ():
                yield from self._message(element, result)
            for one, other in ((agent, user), (user, agent)):
                if one.quiet and not other.quiet:
                    yield from self._spoken(one)
        for one in sorted((agent, user), key=lambda utterance: utterance.since):
            yield from self._spoken(one)

    def _flat(self, array: Iterable[Element]) -> Iterator[tuple[Element, _Message] | Skipped]:
        """Every message, those of several tools taken apart."""
        for item in decoded(array, _message, "message"):
            if isinstance(item, Skipped) or item[1].tool_messages is None:
                yield item
            else:
                yield from decoded(inside(item[1].tool_messages, item[0]), _message, "message")

    def _message(self, element: Element, message: _Message) -> Iterator[Event]:
        at = utc(message.timestamp)
        for event in self._read(element, message):
            if isinstance(event, Draft):
                self._number += 1
                yield replace(event, at=at, line=element.line)
            else:
                yield replace(event, at=at, line=element.line)

    def _read(self, element: Element, message: _Message) -> Iterator[Draft | Rewritten]:
        match message.role:
            case "assistant":
                yield from self._truncated(message)
                yield from self._answered(element, message)
            case "user" | "tool" if message.requestor == "user" or (message.role == "user" and message.tool_calls):
                self._tally.add(USERS_TOOLS, element.line, len(element.faithful))
            case "user":
                self._heard = True
                if message.words:
                    yield Draft(role=Role.USER, blocks=(Text(text=message.words, origin=Origin.HUMAN),))
            case "tool":
                result = ToolResult(call_id=self._answers(message), text=message.content or "", error=bool(message.error))
                yield Draft(role=Role.TOOL, blocks=(result,))
            case "system":
                if message.words:
                    yield Draft(role=Role.SYSTEM, blocks=(Text(text=message.words, origin=Origin.HARNESS),))
            case role:
                self._tally.add(UNKNOWN_ROLE.format(role), element.line, len(element.faithful))

    def _answered(self, element: Element, message: _Message) -> Iterator[Draft]:
        made = message.raw_data or _RawData()
        if bytes(made.thinking_blocks) != b"null" or (made.message is not None and made.message.reasoning_content):
            self._tally.add(REASONING, element.line, 0)
        greeting = not self._heard and message.usage is None and not message.tool_calls  # written into the benchmark
        blocks: list[Block] = []
        if message.words:
            blocks.append(Text(text=message.words, origin=Origin.HARNESS if greeting else Origin.MODEL))
        blocks += [ToolCall(call_id=self._id(call), name=call.called, arguments=call.sent) for call in message.tool_calls or ()]
        if blocks:
            model = "" if greeting else made.model or self._model
            yield Draft(role=Role.ASSISTANT, blocks=tuple(blocks), model=model, usage=_usage(message.usage))

    def _truncated(self, message: _Message) -> Iterator[Rewritten]:
        """For this call the oldest messages were left out; they stay out, since the conversation only grows."""
        dropped = (message.context_truncation and message.context_truncation.messages_dropped) or 0
        if dropped > self._dropped:
            self._dropped = dropped
            kept = () if self._policy is None else (self._policy,)
            yield Rewritten(reason="oldest messages left out", drop_before=min(self._first + dropped, self._number), kept=kept)

    def _spoken(self, utterance: "_Utterance", calls: list[Call] | None = None, at: Element | None = None) -> Iterator[Event]:
        element = utterance.element or at
        if element is not None and (utterance.words or calls):
            message = _Message(role=utterance.role, content=utterance.words, tool_calls=calls, timestamp=utterance.timestamp)
            yield from self._message(element, message)
        utterance.forget()

    def _id(self, call: Call) -> str:
        if call.call_id:
            return call.call_id
        self._made_ids += 1
        self._unanswered.append(f"call-{self._number}-{self._made_ids}")  # the first number tells simulations of one file apart
        return self._unanswered[-1]

    def _answers(self, message: _Message) -> str:
        """The call that a tool's message answers; those without ids are answered in their order."""
        return message.id or message.tool_call_id or (self._unanswered.popleft() if self._unanswered else "")


class _Utterance:
    """What one side says, tick by tick, until it is quiet while the other talks."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.since = 0  # the tick it began in
        self.forget()

    def forget(self) -> None:
        self._pieces: list[str] = []
        self.element: Element | None = None
        self.timestamp: str | float | None = None
        self.quiet = True

    @property
    def words(self) -> str:
        return "".join(self._pieces)

    def hear(self, number: int, element: Element, chunk: _Chunk | None, tick: _Tick) -> None:
        said = (chunk and chunk.content) or ""
        self.quiet = not said
        if said and not self._pieces:
            self.element, self.timestamp = element, (chunk and chunk.timestamp) or tick.timestamp
            self.since = number
        if said:
            self._pieces.append(said)


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    read = (usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0
    return Usage(uncached=max(0, (usage.prompt_tokens or 0) - read), cache_read=read, output=usage.completion_tokens or 0)
