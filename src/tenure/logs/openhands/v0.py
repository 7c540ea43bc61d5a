"""OpenHands' events, version 0, as its `ConversationMemory` sends them.

A call carries the whole response that made it, and so do its result and the other calls of the same response. Before there were
calls (to 0.12), actions were fences in the model's text, and observations went back as text.
https://github.com/All-Hands-AI/OpenHands/blob/main/openhands/memory/conversation_memory.py
"""

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Origin, Role, Text, ToolCall, ToolResult, Usage
from tenure.logs.openhands.conversation import EventId, ModelReply, OpenHandsConversation, Printed, images, texts
from tenure.logs.parts import Tokens, text_of
from tenure.logs.salvage import DamagedJson, Shape, salvage

T = TypeVar("T")

# What moves the controller or the screen, and says nothing to the model.
SILENT_ACTIONS: Final = frozenset(
    "null recall start pause resume stop change_agent_state condensation_request loop_recovery push send_pr".split()
)
SILENT_OBSERVATIONS: Final = frozenset("null agent_state_changed loop_detection success llm_response".split())
SHOWN: Final = frozenset(
    "run run_ipython read write edit browse delegate think mcp download task_tracking error user_rejected chat message".split()
)
WORDS: Final = ("message", "finish")  # actions that are nothing but words

# Actions in the words in which the model took them before there were calls.
WRITTEN: Final = {
    "run": "<execute_bash>\n{}\n</execute_bash>",
    "run_ipython": "<execute_ipython>\n{}\n</execute_ipython>",
    "delegate": "<execute_browse>\n{}\n</execute_browse>",
    "edit": "<file_edit path={}>\n{}\n</file_edit>",
}
# Tools by the action that their calls became, for logs that lost the calls.
TOOLS: Final = {
    "run": "execute_bash",
    "run_ipython": "execute_ipython_cell",
    "read": "str_replace_editor",
    "edit": "str_replace_editor",
    "browse_interactive": "browser",
    "task_tracking": "task_tracker",
}
# Arguments that OpenHands adds.
BESIDE: Final = frozenset(
    "thought hidden blocking is_static is_confirmed confirmation_state security_risk keep_prompt action_suffix".split()
)
# What follows an observation that failed, by its kind.
ENDINGS: Final = {
    "error": "\n[Error occurred in processing last action]",
    "user_rejected": "\n[Last action has been rejected by the user]",
}
OBSERVED: Final = "OBSERVATION:\n"
CREATED: Final = "[New file {} is created with the provided content.]\n"
IMAGE: Final = "![image](data:image/png;base64,"
NO_IMAGE: Final = "![image](data:image/png;base64, ...) already displayed to user"
RUN_BY_USER: Final = "User executed the command:\n{}"
SEEN_BY_USER: Final = "\nObserved result of command executed by user:\n{}"
READ_BY_USER: Final = "User requested to read file: {}"
CUT: Final = "\n[... Observation truncated due to length ...]\n"

# What the model is told of its workspace, after OpenHands' templates `additional_info.j2` and `microagent_info.j2`, whose wording
# changed a little over the versions.
REPOSITORY: Final = "<REPOSITORY_INFO>\nAt the user's request, repository {} has been cloned to the current working directory {}.\n</REPOSITORY_INFO>"
INSTRUCTIONS: Final = "<REPOSITORY_INSTRUCTIONS>\n{}\n</REPOSITORY_INSTRUCTIONS>"
RUNTIME: Final = "<RUNTIME_INFORMATION>\n{}\n</RUNTIME_INFORMATION>"
HOSTS: Final = (
    "The user has access to the following hosts for accessing a web application, each of which has a corresponding port:\n{}"
)
SECRETS: Final = "<CUSTOM_SECRETS>\nYou have access to the following environment variables\n{}\n</CUSTOM_SECRETS>"
TODAY: Final = "Today's date is {} (UTC)."
CONVERSATION: Final = "<CONVERSATION_INSTRUCTIONS>\n{}\n</CONVERSATION_INSTRUCTIONS>"
LATER: Final = "knowledge"  # the type of a recall that a later message causes
KNOWLEDGE: Final = (
    '<EXTRA_INFO>\nThe following information has been included based on a keyword match for "{}".\n'
    "It may or may not be relevant to the user's request.\n\n{}\n</EXTRA_INFO>"
)

NOT_RECALLED: Final = "recalled context: not sent where prompt extensions are off, as they are in this benchmark"


class _V0Choice(Struct, frozen=True, gc=False):
    message: ModelReply | None = None


class _V0Response(Struct, frozen=True, gc=False):
    id: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    choices: list[_V0Choice] | None = None

    @property
    def reply(self) -> ModelReply:
        return next((choice.message for choice in self.choices or () if choice.message is not None), ModelReply())


class _Made(Struct, frozen=True, gc=False):
    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: _V0Response | None = None


class _V0Metrics(Struct, frozen=True, gc=False):
    accumulated_token_usage: Tokens | None = None


class _V0Thought(Struct, frozen=True, gc=False):
    text: str | None = None
    reasoning_content: str | None = None


class _Outputs(Struct, frozen=True, gc=False):
    content: str | None = None
    task: str | None = None


class _Args(Struct, frozen=True, gc=False):
    """Of any action; which fields are set depends on its kind."""

    content: str | None = None
    thought: str | _V0Thought | None = None
    final_thought: str | None = None
    image_urls: list[str] | None = None
    command: str | None = None
    code: str | None = None
    path: str | None = None
    agent: str | None = None
    name: str | None = None
    inputs: Raw = Raw(b"{}")
    arguments: Raw = Raw(b"null")
    tools: list[Raw] | None = None
    forgotten_event_ids: list[int] | None = None
    forgotten_events_start_id: int | None = None
    forgotten_events_end_id: int | None = None
    summary: str | None = None

    @property
    def words(self) -> str:
        return (self.thought.text if isinstance(self.thought, _V0Thought) else self.thought) or ""

    @property
    def reasoning(self) -> tuple[Block, ...]:
        text = self.thought.reasoning_content if isinstance(self.thought, _V0Thought) else None
        return ModelReply(reasoning_content=text).reasoning


class _Extras(Struct, frozen=True, gc=False):
    metadata: Printed | None = None
    exit_code: int | None = None  # this and the next two before there was `metadata`
    command_id: int | None = None
    interpreter_details: str | None = None
    image_urls: list[str] | None = None
    outputs: Raw = Raw(b"{}")
    screenshot: str | None = None
    set_of_marks: str | None = None
    path: str | None = None
    prev_exist: bool | None = None


class _Knowledge(Struct, frozen=True, gc=False):
    name: str | None = None
    trigger: str | None = None
    content: str | None = None


class _Recall(Struct, frozen=True, gc=False):
    """The extras of a `recall` observation: the workspace, and the knowledge that a keyword called up."""

    recall_type: str | None = None
    repo_name: str | None = None
    repo_directory: str | None = None
    repo_instructions: str | None = None
    runtime_hosts: dict[str, int | str | None] | None = None
    additional_agent_instructions: str | None = None
    date: str | None = None
    custom_secrets_descriptions: dict[str, str | None] | None = None
    conversation_instructions: str | None = None
    microagent_knowledge: list[_Knowledge] | None = None

    def texts(self, before: set[str]) -> Iterator[str]:
        """What the model reads; later on only knowledge, without what was called up `before`, by name."""
        later = self.recall_type == LATER
        if not later and (context := "\n".join(self._context())):
            yield context
        for one in self.microagent_knowledge or ():
            if one.content and not (later and one.name in before):
                yield KNOWLEDGE.format(one.trigger or "", one.content)

    def _context(self) -> Iterator[str]:
        runtime: list[str] = []
        if self.runtime_hosts:
            runtime.append(HOSTS.format("\n".join(f"* {host} (port {port})" for host, port in self.runtime_hosts.items())))
        if self.additional_agent_instructions:
            runtime.append(self.additional_agent_instructions)
        if secrets := self.custom_secrets_descriptions:
            runtime.append(SECRETS.format("\n".join(f"* $**{name}**: {description}" for name, description in secrets.items())))
        if self.date:
            runtime.append(TODAY.format(self.date))
        if self.repo_name or self.repo_directory:
            yield REPOSITORY.format(self.repo_name or "", self.repo_directory or "")
        if self.repo_instructions and self.repo_instructions.strip():
            yield INSTRUCTIONS.format(self.repo_instructions)
        if runtime:
            yield RUNTIME.format("\n".join(runtime))
        if self.conversation_instructions:
            yield CONVERSATION.format(self.conversation_instructions)


class EventV0(Struct, frozen=True, gc=False):
    """An event; `action` or `observation` says of which kind."""

    id: EventId | None = None
    timestamp: str | float | None = None
    source: str | None = None
    cause: EventId | None = None
    action: str | None = None
    observation: str | None = None
    content: str | None = None
    args: Raw = Raw(b"{}")
    extras: Raw = Raw(b"{}")
    tool_call_metadata: _Made | None = None
    llm_metrics: _V0Metrics | None = None

    @property
    def response(self) -> _V0Response:
        """The response of the API that it belongs to, empty when there is none."""
        made = self.tool_call_metadata
        return (made and made.model_response) or _V0Response()


def delegation(event: EventV0) -> tuple[str, str]:
    """Which agent a delegation asks, and what."""
    try:
        args: _Args = salvage(bytes(event.args), _Args).value
    except DamagedJson:
        return "", ""
    return args.agent or "", _task(args)


def _task(args: _Args) -> str:
    try:
        return salvage(bytes(args.inputs), _Outputs).value.task or text_of(args.inputs)
    except DamagedJson:
        return ""


class EventsV0:
    """Adds the events of one conversation, one after another."""

    def __init__(self, conversation: OpenHandsConversation) -> None:
        self.conversation, self.transcript = conversation, conversation.transcript
        self._with_tools = False  # whether the system prompt says that there are calls
        self._wrote = False  # whether the newest action was text
        self._open: dict[str, tuple[int, set[str]]] = {}  # of each response: its draft, and calls whose actions are still to come
        self._call_of: dict[EventId, str] = {}  # calls that had to be made up, by their action
        self._recalled: set[str] = set()
        self._spent = Usage()

    def read(self, event: EventV0) -> None:
        """Add what the event shows to the model. Raises DamagedJson."""
        if event.action is not None:
            if event.action not in SILENT_ACTIONS:
                self._action(event, self._salvaged(event.args, _Args))
        elif event.observation == "recall":
            self._recall(event, self._salvaged(event.extras, _Recall))
        elif event.observation == "condense":
            self._add(event, Role.USER, texts(event.content, Origin.HARNESS))
        elif event.observation not in SILENT_OBSERVATIONS:
            self._observation(event, self._salvaged(event.extras, _Extras))

    def _salvaged(self, raw: Raw, shape: Shape[T]) -> T:
        read = salvage(bytes(raw), shape)
        self.transcript.partly(read.left_out)
        return read.value

    def _add(self, event: EventV0, role: Role, blocks: tuple[Block, ...], usage: Usage | None = None) -> None:
        self.conversation.add(role, blocks, event.id, event.timestamp, model=event.response.model, usage=usage)

    def _action(self, event: EventV0, args: _Args) -> None:
        if event.action == "condensation":
            first, last, forgotten = args.forgotten_events_start_id, args.forgotten_events_end_id, args.forgotten_event_ids
            if forgotten is None and first is not None and last is not None:
                forgotten = self.conversation.between(first, last)
            self.conversation.condense(forgotten or (), args.summary or "", event.id, event.timestamp)
        elif event.action == "system":
            self._with_tools = bool(args.tools)
            self._add(event, Role.SYSTEM, texts(args.content, Origin.HARNESS))
        elif event.source == "user":
            self._by_human(event, args)
        elif event.source == "environment" and event.action not in WORDS:
            self.transcript.skip("action of the environment: not shown to the model")
        else:
            self._by_model(event, args)

    def _by_human(self, event: EventV0, args: _Args) -> None:
        self._wrote = False
        match event.action:
            case "message":
                blocks = (*texts(args.content, Origin.HUMAN), *images(args.image_urls, Origin.HUMAN))
            case "run":
                blocks = texts(RUN_BY_USER.format(args.command or ""), Origin.HUMAN)
            case "read":
                blocks = texts(READ_BY_USER.format(args.path), Origin.HARNESS)
            case "finish":
                blocks = texts(args.words, Origin.HUMAN)
            case kind:
                self.transcript.skip(f"user's action unknown to this version: {kind!r}")
                return
        self._add(event, Role.USER, blocks)

    def _by_model(self, event: EventV0, args: _Args) -> None:
        usage = self._usage(event)
        self._wrote = False
        if event.tool_call_metadata is not None:
            self._called(event, event.tool_call_metadata, args, usage)
        elif event.action in WORDS or (event.action in WRITTEN and not self._with_tools):
            self._wrote = event.action in WRITTEN
            words = texts(_written(event, args), Origin.MODEL)
            self._add(event, Role.ASSISTANT, (*args.reasoning, *words, *images(args.image_urls, Origin.MODEL)), usage)
        else:
            call_id = f"call-{self.transcript.count if event.id is None else event.id}"
            if event.id is not None:
                self._call_of[event.id] = call_id
            blocks = (*args.reasoning, *texts(args.words, Origin.MODEL), _call(event, args, call_id, None))
            self._add(event, Role.ASSISTANT, blocks, usage)

    def _called(self, event: EventV0, made: _Made, args: _Args, usage: Usage | None) -> None:
        """Add the response that made the call, once for all its calls."""
        response, call_id = event.response, made.tool_call_id or f"call-{event.id}"
        number, waiting = self._open.get(response.id or "", (0, set[str]()))
        if call_id in waiting:
            waiting.discard(call_id)
            self.conversation.stands_for(number, event.id)
            return
        reply = response.reply
        calls = tuple(call.block(call_id) for call in reply.tool_calls or ())
        if not any(call.call_id == call_id for call in calls):
            calls = (*calls, _call(event, args, call_id, made.function_name))
        words = texts(reply.content, Origin.MODEL) or (() if reply.tool_calls else texts(args.words, Origin.MODEL))
        self._add(event, Role.ASSISTANT, (*reply.reasoning, *words, *calls), usage)
        if response.id:
            self._open[response.id] = self.transcript.count - 1, {call.call_id for call in calls} - {call_id}

    def _usage(self, event: EventV0) -> Usage | None:
        """What the response says, or what the accumulated tokens grew by."""
        grown = None
        if event.llm_metrics is not None and (total := event.llm_metrics.accumulated_token_usage) is not None:
            grown, self._spent = _grown(self._spent, total.usage), total.usage
        response = event.response
        if response.usage is not None:
            return response.usage.usage
        return self.conversation.settings.usages.get(response.id or "", grown)

    def _observation(self, event: EventV0, extras: _Extras) -> None:
        """Add a result where its call is known, else text in the user's role."""
        if event.observation not in SHOWN:
            self.transcript.skip(f"observation unknown to this version: {event.observation!r}", 0)
        if pictures := len(extras.screenshot or "") + len(extras.set_of_marks or ""):
            self.transcript.skip("screenshot of a browser: sent only where visual browsing was on", pictures)
        made = event.tool_call_metadata
        call_id = made.tool_call_id if made is not None else None if event.cause is None else self._call_of.get(event.cause)
        text, shown = self._observed(event, extras), images(extras.image_urls, Origin.TOOL)
        if call_id is not None and call_id in self.conversation.called:
            failed = event.observation in ENDINGS
            self._add(event, Role.TOOL, (ToolResult(call_id=call_id, text=text, error=failed, media=shown),))
            return
        if self._wrote and event.observation != "user_rejected":
            text = OBSERVED + text
        elif event.observation == "run" and made is None:
            text = SEEN_BY_USER.format(text)
        origin = Origin.HARNESS if event.observation == "error" and not self._wrote else Origin.TOOL
        self._add(event, Role.USER, (*texts(text, origin), *shown))

    def _observed(self, event: EventV0, extras: _Extras) -> str:
        content = event.content or ""
        match event.observation:
            case "run" if extras.metadata is not None:
                return self._cut(extras.metadata.around(content))
            case "run":
                number = "" if extras.command_id in (None, -1) else f" {extras.command_id}"
                ending = "" if extras.exit_code is None else f"\n[Command{number} finished with exit code {extras.exit_code}]"
                return self._cut(content + (extras.interpreter_details or "")) + ending
            case "read":
                return content  # whatever its length
            case "run_ipython" if IMAGE in content:
                return self._cut("\n".join(NO_IMAGE if IMAGE in line else line for line in content.split("\n")))
            case "edit" if not content and extras.prev_exist is False:
                return CREATED.format(extras.path)
            case "delegate":
                return self._cut(salvage(bytes(extras.outputs), _Outputs).value.content or content)
            case "user_rejected":
                return OBSERVED + self._cut(content) + ENDINGS["user_rejected"]
            case kind:
                return self._cut(content) + ENDINGS.get(kind or "", "")

    def _cut(self, text: str) -> str:
        longest = self.conversation.settings.longest
        if longest is None or longest < 0 or len(text) <= longest:
            return text
        half = longest // 2
        self.transcript.skip("middle of a long observation: cut out before it was sent", len(text) - 2 * half)
        return text[:half] + CUT + text[len(text) - half :]

    def _recall(self, event: EventV0, recall: _Recall) -> None:
        blocks = tuple(Text(text=text, origin=Origin.HARNESS) for text in recall.texts(self._recalled))
        self._recalled.update(one.name or "" for one in recall.microagent_knowledge or ())
        if self.conversation.settings.recalls:
            self._add(event, Role.USER, blocks)
        elif blocks:
            self.transcript.skip(NOT_RECALLED, sum(len(block.text.encode()) for block in blocks))


def _written(event: EventV0, args: _Args) -> str:
    """What the model said, with an action in the words in which it took it."""
    match event.action:
        case "message":
            return args.content or ""
        case "finish":
            return args.words or args.final_thought or ""
        case "edit":
            action = WRITTEN["edit"].format(args.path, args.content or "")
        case "delegate":
            action = WRITTEN["delegate"].format(_task(args))
        case kind:
            action = WRITTEN[kind or ""].format(args.command or args.code or "")
    return f"{args.words}\n{action}" if args.words else action


def _call(event: EventV0, args: _Args, call_id: str, name: str | None) -> ToolCall:
    """The call that an action was, its arguments without what OpenHands added."""
    kind = event.action or ""
    if kind == "call_tool_mcp":
        return ToolCall(call_id=call_id, name=name or args.name or kind, arguments=text_of(args.arguments))
    fields: dict[str, Raw] = salvage(bytes(event.args), dict[str, Raw]).value
    given = {key: value for key, value in fields.items() if key not in BESIDE and bytes(value) != b"null"}
    return ToolCall(call_id=call_id, name=name or TOOLS.get(kind, kind), arguments=text_of(msgspec.json.encode(given)))


def _grown(before: Usage, after: Usage) -> Usage | None:
    """The difference; None where nothing was spent, or the count began anew."""
    names = Usage.__struct_fields__
    parts = {name: getattr(after, name) - getattr(before, name) for name in names}
    return Usage(**parts) if any(parts.values()) and min(parts.values()) >= 0 else None
