"""One event of OpenHands, version 0: what it holds, and the words in which it goes to the model."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, ToolCall
from tenure.logs.mend import Damaged
from tenure.logs.openhands.reply import Reply, Tokens, as_text, reasoned
from tenure.logs.openhands.story import EventId, Printed
from tenure.logs.salvage import salvage

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
BESIDE: Final = frozenset(
    "thought hidden blocking is_static is_confirmed confirmation_state security_risk keep_prompt action_suffix".split()
)
# What follows an observation, by its kind.
ENDINGS: Final = {
    "error": "\n[Error occurred in processing last action]",
    "user_rejected": "\n[Last action has been rejected by the user]",
}
OBSERVED: Final = "OBSERVATION:\n"
CREATED: Final = "[New file {} is created with the provided content.]\n"
IMAGE: Final = "![image](data:image/png;base64,"
NO_IMAGE: Final = "![image](data:image/png;base64, ...) already displayed to user"


class _Choice(Struct, frozen=True, gc=False):
    message: Reply | None = None


class Response(Struct, frozen=True, gc=False):
    """The whole response of the API that made a call."""

    id: str | None = None
    model: str | None = None
    usage: Tokens | None = None
    choices: list[_Choice] | None = None

    @property
    def reply(self) -> Reply:
        """The message in it."""
        return next((choice.message for choice in self.choices or () if choice.message is not None), Reply())


class Made(Struct, frozen=True, gc=False):
    """The call that an event belongs to."""

    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: Response | None = None


class Metrics(Struct, frozen=True, gc=False):
    """What all calls so far cost."""

    accumulated_token_usage: Tokens | None = None


class _Thought(Struct, frozen=True, gc=False):
    text: str | None = None
    reasoning_content: str | None = None


class Args(Struct, frozen=True, gc=False):
    """Of any action; which fields are set depends on its kind."""

    content: str | None = None
    thought: str | _Thought | None = None
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
    def thinks(self) -> str:
        """The words beside the action."""
        return (self.thought.text if isinstance(self.thought, _Thought) else self.thought) or ""

    @property
    def reasons(self) -> tuple[Block, ...]:
        """The reasoning before it."""
        return reasoned(Reply(reasoning_content=self.thought.reasoning_content if isinstance(self.thought, _Thought) else None))

    @property
    def task(self) -> str:
        """What a sub-agent is asked."""
        try:
            return salvage(bytes(self.inputs), _outputs).value.task or as_text(self.inputs)
        except Damaged:
            return ""


class Extras(Struct, frozen=True, gc=False):
    """Of any observation."""

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


class _Outputs(Struct, frozen=True, gc=False):
    content: str | None = None
    task: str | None = None


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
    tool_call_metadata: Made | None = None
    llm_metrics: Metrics | None = None

    @property
    def response(self) -> Response:
        """The response of the API that it belongs to, empty when there is none."""
        made = self.tool_call_metadata
        return (made and made.model_response) or Response()


_outputs: Final = msgspec.json.Decoder(_Outputs)
_fields: Final = msgspec.json.Decoder(dict[str, Raw])


def written(event: EventV0, args: Args) -> str:
    """What the model said, with an action in the words in which it took it."""
    match event.action:
        case "message":
            return args.content or ""
        case "finish":
            return args.thinks or args.final_thought or ""
        case "edit":
            done = WRITTEN["edit"].format(args.path, args.content or "")
        case "delegate":
            done = WRITTEN["delegate"].format(args.task)
        case kind:
            done = WRITTEN[kind or ""].format(args.command or args.code or "")
    return f"{args.thinks}\n{done}" if args.thinks else done


def called(event: EventV0, args: Args, call_id: str, name: str | None) -> ToolCall:
    """The call that an action was, its arguments without what OpenHands added."""
    kind = event.action or ""
    if kind == "call_tool_mcp":
        return ToolCall(call_id=call_id, name=name or args.name or kind, arguments=as_text(args.arguments))
    fields: dict[str, Raw] = salvage(bytes(event.args), _fields).value
    said = {key: value for key, value in fields.items() if key not in BESIDE and bytes(value) != b"null"}
    arguments = as_text(Raw(msgspec.json.encode(said)))
    return ToolCall(call_id=call_id, name=name or TOOLS.get(kind, kind), arguments=arguments)


def observed(event: EventV0, extras: Extras, cut: Callable[[str], str]) -> str:
    """The text of an observation as the model reads it; `cut` takes the middle out of a long one."""
    content = event.content or ""
    match event.observation:
        case "run":
            return _printed(content, extras, cut)
        case "read":
            return content  # whatever its length
        case "run_ipython" if IMAGE in content:
            return cut("\n".join(NO_IMAGE if IMAGE in line else line for line in content.split("\n")))
        case "edit" if not content and extras.prev_exist is False:
            return CREATED.format(extras.path)
        case "delegate":
            return cut(salvage(bytes(extras.outputs), _outputs).value.content or content)
        case "user_rejected":
            return OBSERVED + cut(content) + ENDINGS["user_rejected"]
        case kind:
            return cut(content) + ENDINGS.get(kind or "", "")


def _printed(content: str, extras: Extras, cut: Callable[[str], str]) -> str:
    if extras.metadata is not None:
        return cut(extras.metadata.around(content))
    number = "" if extras.command_id in (None, -1) else f" {extras.command_id}"
    ending = "" if extras.exit_code is None else f"\n[Command{number} finished with exit code {extras.exit_code}]"
    return cut(content + (extras.interpreter_details or "")) + ending
