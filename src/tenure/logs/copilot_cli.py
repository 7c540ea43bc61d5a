"""GitHub Copilot CLI's events (`~/.copilot/session-state/ID/events.jsonl`): one per line, with a `type` and its `data`.

What streams is repeated by a whole event. A sub-agent's events name it, or the call that started it: they are a conversation of its own.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Origin, Role, Thinking, ToolCall, ToolResult
from tenure.logs.json_files import Element, records
from tenure.logs.parts import prompt_usage, seal, text_of, texts
from tenure.logs.reader import Event
from tenure.logs.shape import keys
from tenure.logs.transcript import TranscriptBuilder

# Groups of events of which those that are not read say nothing to the model.
SILENT: Final = tuple(
    "abort assistant. command. elicitation. hook. mcp. model. permission. session. skill. subagent. system. tool. user_input.".split()
)
TALK: Final = frozenset({"user.message", "assistant.message", "tool.execution_complete"})

_TYPE: Final = re.compile(rb'"type"\s*:\s*"(session|user|assistant|system)\.\w+"')


class _CopilotRequest(Struct, frozen=True, gc=False, rename="camel"):
    tool_call_id: str = ""
    name: str = ""
    arguments: Raw = Raw(b"{}")


class _CopilotOutcome(Struct, frozen=True, gc=False, rename="camel"):
    content: str | None = None  # of a result
    message: str | None = None  # of an error


class _Data(Struct, frozen=True, gc=False, rename="camel"):
    """Of any event; which fields are set depends on its type."""

    content: str | None = None
    transformed_content: str | None = None  # what was sent for a user's words
    source: str | None = None
    reasoning_text: str | None = None
    reasoning_opaque: str | None = None
    tool_requests: list[_CopilotRequest] | None = None
    tool_call_id: str | None = None
    parent_tool_call_id: str | None = None
    result: _CopilotOutcome | str | None = None
    error: _CopilotOutcome | str | None = None
    success: bool | None = True
    model: str | None = None
    selected_model: str | None = None
    new_model: str | None = None
    chosen_model: str | None = None
    api_call_id: str | None = None  # one call's answer may come in several messages
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    summary_content: str | None = None
    messages_removed_during_truncation: int | None = None


class _CopilotLine(Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    id: str | None = None
    timestamp: str | float | None = None
    agent_id: str | None = None
    ephemeral: bool | None = None
    data: _Data | None = None


class CopilotCli:
    """Reads GitHub Copilot CLI's events."""

    name = "copilot-cli"

    def recognises(self, head: bytes) -> bool:
        """Whether the first line is an event of a session, a user or the assistant, with its data."""
        return set(keys(head)) >= {"type", "data"} and _TYPE.search(head) is not None

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in the order of the file, then the sub-agents."""
        return self.read_agent(chunks, "")

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """Drafts of a sub-agent, by its id or that of the call that started it."""
        reading = _CopilotReading(agent)
        return reading.transcript.run(records(chunks, _CopilotLine), reading.line, agent=agent)


class _CopilotReading:
    def __init__(self, agent: str) -> None:
        self.transcript, self.agent = TranscriptBuilder(), agent
        self.call: str | None = None  # that the open reply answers

    def line(self, element: Element, line: _CopilotLine) -> None:
        transcript, data = self.transcript, line.data or _Data()
        transcript.here(element.line, element.size, line.timestamp)
        agent = line.agent_id or data.parent_tool_call_id or ""
        if line.id and transcript.repeats(line.id, hash(element.source), "event that was there before"):
            return
        if agent == self.agent:
            self._read(line, data)
        elif agent and line.type in TALK:
            transcript.agent(agent)

    def _read(self, line: _CopilotLine, data: _Data) -> None:
        transcript = self.transcript
        match line.type:
            case "session.start" | "session.resume" | "session.model_change" | "session.auto_mode_resolved":
                transcript.model = data.chosen_model or data.new_model or data.selected_model or data.model or transcript.model
            case "system.message" if not transcript.repeats("system", data.content):
                transcript.text(Role.SYSTEM, data.content)
            case "user.message":
                transcript.add(Role.USER, _asked(data))
            case "assistant.message" if data.api_call_id and data.api_call_id == self.call and transcript.is_open:
                transcript.amend(*_answered(data))
            case "assistant.message":
                self.call = data.api_call_id
                transcript.open(Role.ASSISTANT, _answered(data), model=data.model or transcript.model)
            case "assistant.usage":
                counts = data.input_tokens, data.output_tokens, data.cache_read_tokens, data.cache_write_tokens
                transcript.amend(usage=prompt_usage(*counts))
            case "tool.execution_complete":
                transcript.add(Role.TOOL, (_returned(data),))
            case "session.compaction_complete" if data.success:
                transcript.close()
                transcript.clear("compaction")
                transcript.text(Role.USER, data.summary_content)
            case "session.truncation" if data.messages_removed_during_truncation:
                transcript.close()
                transcript.drop("truncation", transcript.oldest(data.messages_removed_during_truncation))
            case kind:
                if not kind.startswith(SILENT) and not line.ephemeral:
                    transcript.skip(f"event unknown to this version: {kind!r}")


def _asked(data: _Data) -> tuple[Block, ...]:
    """A user's words, between what was sent around them."""
    words, origin = data.content or "", Origin.HUMAN if data.source in (None, "", "user") else Origin.HARNESS
    before, same, after = (data.transformed_content or "").partition(words) if words else ("", "", "")
    around = (before.strip(), words, after.strip()) if same else ("", words, "")
    return texts(*zip(around, (Origin.HARNESS, origin, Origin.HARNESS), strict=True))


def _answered(data: _Data) -> tuple[Block, ...]:
    thought = Thinking(text=data.reasoning_text or "", seal=seal(data.reasoning_opaque))
    calls = (
        ToolCall(call_id=one.tool_call_id, name=one.name, arguments=text_of(one.arguments)) for one in data.tool_requests or ()
    )
    return (*((thought,) if thought.text or thought.seal else ()), *texts((data.content, Origin.MODEL)), *calls)


def _returned(data: _Data) -> ToolResult:
    text = data.result.content if isinstance(data.result, _CopilotOutcome) else data.result
    error = data.error.message if isinstance(data.error, _CopilotOutcome) else data.error
    return ToolResult(call_id=data.tool_call_id or "", text=text or error or "", error=data.success is False)
