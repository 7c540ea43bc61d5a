"""One step of an ATIF trajectory, parsed into what the model saw of it.

Steps say more than was sent: converters write a message where the model only made a call, and describe what happened to the window.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Opaque, Origin, Role, Text, Thinking, ToolCall, Usage
from tenure.logs.claude_code import written_by
from tenure.logs.parts import LoggedCall, from_base64, from_url, plain, string
from tenure.logs.salvage import DamagedJson, decode

# Messages that a converter wrote for a call without words. https://github.com/harbor-framework/harbor (harbor/agents/installed)
MADE_UP: Final = (
    "Executed {name}",
    "Executed {name} {id}",
    "Executed {name} (no result)",
    "[tool call: {name}]",
    "{name} result",
)
MADE_UP_PROMPTS: Final = ("(empty user message)", "(instruction unavailable)")
MADE_UP_FOR_ANY: Final = ("[tool call]", "(tool calls)", "[tool call: {names}]")
# How all of them begin or end in the file.
MADE_UP_SIGNS: Final = (b'"Executed ', b'"[tool call', b'"(', b'"Tool result for ')
MADE_UP_END: Final = b' result"'
LONGEST_MADE_UP: Final = 2**10  # bytes

# What an agent's own interface shows for its events, in place of what the model said, by the agent's name.
LABELS: Final = {
    "openhands": (
        "Running command: ",
        "Running Python code interactively: ",
        "Reading file: ",
        "Writing file: ",
        "I am thinking...: ",
        "I am browsing the URL: ",
        "I am interacting with the browser:",
        "I am interacting with the MCP server with name:",
        "I edited the file ",
        "I read the file ",
        "I wrote to the file ",
        "Command `",
        "Code executed in IPython cell.",
        "Visited ",
        "Managing ",
        "Retrieving content for:",
        "Added workspace context",
        "Added microagent knowledge",
        "All done! What's next on the agenda?",
    )
}

# Steps that tell the reader of the file that the window was rewritten, in versions before `context_management` and since.
NOTICES: Final = (
    "Performed context summarization and handoff",  # terminus-2
    "Compacted the context and continued in a new session",  # vibe
    "Context compaction #",  # computer-1
    "Context compact",  # "Context compacted", "Context compaction performed"
)

# User steps whose words no human typed, beside those that `claude_origin` knows.
HARNESS_OPENINGS: Final = (
    "Here are the answers the other agent provided.",  # terminus-2, after a summary
    "<environment_context>",  # codex, here and below
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
)

CONTINUED: Final = "This session is being continued from a previous conversation"  # claude-code, at a compaction

# Whose turn a step is. The schema knows the first three.
ROLES: Final = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "agent": Role.ASSISTANT,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "environment": Role.TOOL,
}

_WRITERS: Final = {Role.USER: Origin.HUMAN, Role.TOOL: Origin.TOOL, Role.SYSTEM: Origin.HARNESS, Role.ASSISTANT: Origin.HARNESS}

REPLACES: Final = "replace"  # the boundary after which only the step's own content and what follows is in the window

# Cache writes are not in the schema; these are the names that converters give them. `prompt_tokens` holds them too.
CACHE_WRITES: Final = ("cache_creation_input_tokens", "cache_write_tokens", "cache_write_input_tokens")

_RESULT_OF: Final = re.compile(r"Tool result for (\S+)")


class _Source(Struct, frozen=True, gc=False):
    media_type: str | None = None
    path: str | None = None
    url: str | None = None
    data: str | None = None


class _AtifStepPart(Struct, frozen=True, gc=False):
    type: str = ""
    text: str | None = None
    source: _Source | None = None


class Ref(Struct, frozen=True, gc=False):
    """Where the conversation of a sub-agent is; `session_id` was its key before version 1.7."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: Raw = Raw(b"null")


class _ResultExtra(Struct, frozen=True, gc=False):
    is_error: bool | None = None
    tool_result_is_error: bool | None = None


class Result(Struct, frozen=True, gc=False):
    """What came back from one call, or from none in particular."""

    source_call_id: str | None = None
    content: Raw = Raw(b"null")
    subagent_trajectory_ref: list[Ref] | Ref | None = None
    extra: _ResultExtra | None = None

    @property
    def error(self) -> bool:
        """Whether the call is said to have failed."""
        return self.extra is not None and bool(self.extra.is_error or self.extra.tool_result_is_error)

    @property
    def refs(self) -> list[Ref]:
        """The sub-agents that worked on the call."""
        found = self.subagent_trajectory_ref
        return [found] if isinstance(found, Ref) else found or []


class _AtifStepOutcome(Struct, frozen=True, gc=False):
    success: bool | None = None


class _AtifStepObservation(Struct, frozen=True, gc=False):
    results: list[Result] | None = None
    content: Raw = Raw(b"null")  # OpenAgents', here and below: one result, in a step of its own
    result: _AtifStepOutcome | None = None


class _AtifStepMetrics(Struct, frozen=True, gc=False):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    cached_tokens: int | None = 0
    extra: Raw = Raw(b"null")


class _ContextManagement(Struct, frozen=True, gc=False):
    type: str | None = None
    boundary: str | None = None


class _AtifStepExtra(Struct, frozen=True, gc=False):
    context_management: _ContextManagement | None = None
    muse_compaction: Raw = Raw(b"null")
    pi_event_type: str | None = None


class AtifStep(Struct, frozen=True, gc=False):
    """One turn. Other fields say nothing about the conversation."""

    step_id: int | str | None = None
    source: str = ""
    timestamp: str | float | None = None
    model_name: str | None = None
    message: Raw = Raw(b'""')
    reasoning_content: str | None = None
    tool_calls: list[LoggedCall] | None = None
    observation: _AtifStepObservation | list[Result] | str | None = None
    metrics: _AtifStepMetrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = None
    extra: _AtifStepExtra | None = None

    @property
    def words(self) -> str:
        """The message, when it is one text."""
        return string(self.message) or ""

    @property
    def role(self) -> Role:
        """Whose turn it is; of an unknown source, the agent's where it holds what only an agent's may."""
        agents = self.tool_calls or self.reasoning_content or self.metrics
        return ROLES.get(self.source, Role.ASSISTANT if agents else Role.SYSTEM)


_content: Final = msgspec.json.Decoder(str | list[Raw] | None)
_part: Final = msgspec.json.Decoder(_AtifStepPart | str)


def compaction(step: AtifStep) -> str:
    """How the window was rewritten at this step; empty when it was not."""
    extra = step.extra or _AtifStepExtra()
    managed = extra.context_management
    if managed is not None and (managed.boundary == REPLACES or (not managed.boundary and managed.type == "compaction")):
        return managed.type or "compaction"
    openings = {Role.SYSTEM: NOTICES, Role.USER: (CONTINUED,)}.get(step.role, ())
    named = step.words.startswith(openings)
    recorded = extra.pi_event_type == "compaction" or bytes(extra.muse_compaction) != b"null"
    return "compaction" if named or recorded else ""


def is_notice(step: AtifStep) -> bool:
    """Whether the message of a rewriting step describes it: then the observation or what follows is what the model saw."""
    return step.role is Role.SYSTEM and (
        step.words.startswith(NOTICES) or any(True for result in results(step) for _ in shown(result.content, Origin.HARNESS))
    )


def is_made_up(step: AtifStep, agent: str) -> bool:
    """Whether the message only names the calls, or is a label of the agent's interface."""
    calls, labels = step.tool_calls or [], LABELS.get(agent, ())
    if labels and (calls or step.role is Role.SYSTEM) and step.words.startswith(labels):
        return True
    raw = bytes(step.message)
    if len(raw) > LONGEST_MADE_UP or not (raw.startswith(MADE_UP_SIGNS) or raw.endswith(MADE_UP_END)):
        return False
    said = step.words
    if not calls:
        return said in MADE_UP_PROMPTS or (_RESULT_OF.fullmatch(said) is not None and step.observation is not None)
    names = ", ".join(call.tool for call in calls)
    spelled = {form.format(name=calls[0].tool, id=calls[0].call_id) for form in MADE_UP}
    return said in spelled or said in {form.format(names=names) for form in MADE_UP_FOR_ANY}


def results(step: AtifStep) -> list[Result]:
    """What the step observed."""
    observed = step.observation
    if observed is None:
        return []
    if isinstance(observed, str):
        return [Result(content=Raw(msgspec.json.encode(observed)))]
    if isinstance(observed, list):
        return observed
    if observed.results is not None:
        return observed.results
    answered = _RESULT_OF.fullmatch(step.words)
    failed = observed.result is not None and observed.result.success is False
    return [Result(source_call_id=answered and answered[1], content=observed.content, extra=_ResultExtra(is_error=failed))]


def message(step: AtifStep) -> Iterator[Block]:
    """The message of a step that is not the agent's."""
    for block in shown(step.message, _WRITERS[step.role]):
        if step.role is Role.USER and isinstance(block, Text):
            by_harness = block.text.lstrip().startswith(HARNESS_OPENINGS)
            yield replace(block, origin=Origin.HARNESS if by_harness else written_by(block.text))
        else:
            yield block


def answered(step: AtifStep, call_ids: Iterable[str], *, noted: bool) -> Iterator[Block]:
    """What the agent thought, said and called; without the message where it is `noted` as a converter's."""
    by = Origin.HARNESS if step.llm_call_count == 0 else Origin.MODEL  # no call: the harness dispatched it
    if step.reasoning_content:
        yield Thinking(text=step.reasoning_content)
    if not noted:
        yield from shown(step.message, by)
    for call, call_id in zip(step.tool_calls or (), call_ids, strict=True):
        yield ToolCall(call_id=call_id, name=call.tool, arguments=call.sent, origin=by)


def shown(content: Raw, origin: Origin) -> Iterator[Block]:
    """A message or the content of a result: a text, or parts of text, images and sound."""
    raw = bytes(content)
    try:
        found = decode(raw, _content)
    except DamagedJson:
        found = plain(raw)  # a value, which a tool returned as it was
    if isinstance(found, str):
        if found:
            yield Text(text=found, origin=origin)
        return
    for part in found or ():
        yield from _block(bytes(part), origin)


def usage(step: AtifStep) -> Usage | None:
    """What the step's call cost; `prompt_tokens` includes what was cached."""
    metrics = step.metrics
    if metrics is None:
        return None
    read, written = metrics.cached_tokens or 0, _written(metrics)
    rest = max(0, (metrics.prompt_tokens or 0) - read)
    uncached = rest - written if written <= rest else rest  # more than that: a converter that counts them apart
    return Usage(uncached=uncached, cache_write=written, cache_read=read, output=metrics.completion_tokens or 0)


def _written(metrics: _AtifStepMetrics) -> int:
    try:
        counts = decode(bytes(metrics.extra), dict[str, Raw])
        return next((max(0, decode(bytes(counts[name]), int)) for name in CACHE_WRITES if name in counts), 0)
    except DamagedJson:
        return 0


def _block(raw: bytes, origin: Origin) -> Iterator[Block]:
    try:
        part = decode(raw, _part)
    except DamagedJson:
        yield Opaque(type="content", text=plain(raw), origin=origin)
        return
    if isinstance(part, str) or part.type in ("text", ""):
        text = part if isinstance(part, str) else part.text or ""
        if text:
            yield Text(text=text, origin=origin)
    elif part.source is not None:
        source = part.source
        kind = source.media_type or ""
        yield from_base64(source.data, kind, origin) if source.data else from_url(source.path or source.url or "", kind, origin)
    else:
        yield Opaque(type=part.type, text=plain(raw), origin=origin)
