"""One item of a Codex rollout as blocks, and who wrote a text that Codex filed under the user's role.

Items are the Responses API's, so a block stands for what the dialect would read in its place and the item itself is the payload; the
plain kinds are read here, which is faster, and all others by the dialect. What never goes to that API as it was logged is neutral.
"""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis.json_text import clean, load
from tenure.apis.output import read_output
from tenure.engine.record.entry import NEUTRAL, Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.parts import RESPONSES_API, from_base64, seal, string

# Items that Codex keeps for itself.
BESIDE: Final = frozenset({"ghost_snapshot", "compaction_trigger", "configuration_update", "other"})

SEALED: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})  # a summary that only the provider can read

# Elements that stand alone in a text of the harness. Codex itself tells its own fragments by their first and last words.
ELEMENTS: Final = frozenset(
    "user_instructions environment_context instructions user_shell_command user_action turn_aborted subagent_notification skill "
    "hook_prompt codex_internal_context goal_context extension_context internal_context recommended_plugins permissions model_switch "
    "collaboration_mode multi_agent_mode realtime_conversation apps_instructions skills_instructions plugins_instructions "
    "personality_spec token_budget token_budget_reminder context_window context_window_guidance rollout_budget "
    "agent_message_board_notification current_time user_goal_update".split()
)
EXTERNAL: Final = "external_"  # an element named after whoever added the context

OPENINGS: Final = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem and produced a summary of its thinking process.",
    "You were originally given instructions from a user over one or more turns. Here were the user messages:",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
    "Here is a list of plugins that are available but not installed.",
)

LABELS: Final = ("<image", "</image>", "<local_image", "</local_image>", "<local_audio", "</local_audio>")  # around an attachment

# What newer versions note beside a part about its kind; where they are not sure, the text decides.
HARNESS_KINDS: Final = frozenset({"user.heartbeat"})
UNSURE_KINDS: Final = frozenset({"", "unknown"})

_LONGEST_NAME: Final = 64  # characters
_ROLES: Final = {
    "user": (Role.USER, Origin.HUMAN),  # or the harness's, by its text
    "assistant": (Role.ASSISTANT, Origin.MODEL),
    "developer": (Role.SYSTEM, Origin.HARNESS),
    "system": (Role.SYSTEM, Origin.HARNESS),
}
_CALLS: Final = {"function_call": "function", "custom_tool_call": "custom", "local_shell_call": "local_shell"}
_TEXTS: Final = frozenset({"input_text", "output_text", "text"})


class CodexPart(Struct, frozen=True, gc=False):
    """A part of a content or of a summary."""

    type: str = ""
    text: str | None = None
    encrypted_content: str | None = None


class _Passed(Struct, frozen=True, gc=False):
    content_item_kinds: list[str] | None = None  # one per part of the content


class Item(Struct, frozen=True, gc=False):
    """An item; which fields are set depends on `type`."""

    type: str = ""
    role: str | None = None
    content: str | list[CodexPart] | None = None
    summary: list[CodexPart] | None = None
    encrypted_content: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    status: str | None = None
    arguments: Raw = Raw(b"null")
    input: Raw = Raw(b"null")
    action: Raw = Raw(b"null")
    output: Raw = Raw(b"null")
    result: Raw = Raw(b"null")
    revised_prompt: str | None = None
    author: str | None = None
    internal_chat_message_metadata_passthrough: _Passed | None = None

    @property
    def kind(self) -> str:
        """The type, which a message may leave out."""
        return self.type or ("message" if self.role else "")

    @property
    def parts(self) -> list[CodexPart]:
        """The parts of a content that is no text."""
        return self.content if isinstance(self.content, list) else []


class CodexPlace(Struct, frozen=True, kw_only=True, gc=False):
    """A draft, as far as changes of the window ask about it."""

    keys: tuple[int, ...] = ()  # one per item that the draft is made of
    calls: frozenset[int] = frozenset()  # those of them that call a tool
    asks: bool = False  # a human's message, or another agent's: a turn starts here
    context: bool = False  # the harness's words
    fixed: bool = False  # the system prompt, which no change of the history touches
    size: int = 0  # bytes of text, of what a human wrote
    number: int = 0  # in the order of all drafts


class CodexItem(Struct, frozen=True, gc=False):
    """An item that was read."""

    role: Role
    blocks: tuple[Block, ...]
    payload: bytes  # the item's JSON; empty when the blocks do not line up with it
    key: int  # equal for items that say the same

    def draft(self, at: str, line: int) -> Draft:
        """The item as a draft of its own."""
        dialect = RESPONSES_API.name if self.payload else NEUTRAL
        return Draft(role=self.role, blocks=self.blocks, dialect=dialect, payload=self.payload, at=at, line=line)

    def place(self) -> CodexPlace:
        """What the window has to know of that draft."""
        human = [block for block in self.blocks if block.origin is Origin.HUMAN]
        letter = self.role is Role.USER and not self.payload
        size = sum(len(block.text.encode()) for block in human if isinstance(block, Text))
        context = self.role in (Role.USER, Role.SYSTEM) and not human and not letter
        return CodexPlace(keys=(self.key,), asks=bool(human) or letter, context=context, size=size)


def of_model(items: list[CodexItem], at: str, line: int) -> Draft:
    """The items of one reply as one draft."""
    whole = all(item.payload for item in items)
    payload = b"[" + b",".join(item.payload for item in items) + b"]" if whole else b""
    blocks = tuple(block for item in items for block in item.blocks)
    return CodexItem(Role.ASSISTANT, blocks, payload, 0).draft(at, line)


def read_item(item: Item, payload: bytes, line: int) -> CodexItem:
    """What the item says; no blocks when that is nothing. Raises InputError when it cannot be read."""
    kind = item.kind
    if kind == "message":
        return _message(item, payload)
    if (block := _plain(item)) is not None:
        role = Role.TOOL if isinstance(block, ToolResult) else Role.ASSISTANT
        return CodexItem(role, (block,), payload, _key(kind, block))
    if (neutral := _neutral(item, line)) is not None:
        role, blocks = neutral
        return CodexItem(role, blocks, b"", hash((kind, tuple(_key(kind, block) for block in blocks))))
    draft = RESPONSES_API.parse([payload])[0]
    return CodexItem(draft.role, draft.blocks, payload, _key(kind, draft.blocks[0]))


def _plain(item: Item) -> Block | None:
    """The block of the kinds that a session is full of; None of any other."""
    match item.kind:
        case "reasoning" if not isinstance(item.content, str):
            parts = (*(item.summary or ()), *(item.content or ()))
            secret = item.encrypted_content or item.id or ""
            return Thinking(text="\n".join(part.text or "" for part in parts), seal=seal(secret))
        case "function_call" | "custom_tool_call" as kind if item.call_id and item.name:
            arguments = string(item.arguments if kind == "function_call" else item.input)
            return None if arguments is None else ToolCall(call_id=item.call_id, name=item.name, arguments=arguments)
        case "function_call_output" | "custom_tool_call_output" if item.call_id and (text := string(item.output)) is not None:
            return ToolResult(call_id=item.call_id, text=text, error=item.status == "failed")
        case _:
            return None


def _neutral(item: Item, line: int) -> tuple[Role, tuple[Block, ...]] | None:
    """What the API does not take as it was logged."""
    match item.kind:
        case "agent_message":
            return Role.USER, tuple(_letter(item))
        case "image_generation_call":
            return Role.ASSISTANT, tuple(_picture(item))
        case kind if kind.endswith("_call_output") and (bytes(item.output)[:1] == b"{" or not (item.call_id or item.id)):
            return Role.TOOL, (_wrapped(item, line),)
        case kind if kind in _CALLS and not (item.call_id or item.id):
            given = next(raw for raw in (item.arguments, item.input, item.action) if bytes(raw) != b"null" or raw is item.action)
            arguments = string(given)
            spelled = clean(bytes(given).decode()) if arguments is None else arguments
            return Role.ASSISTANT, (ToolCall(call_id=f"call-{line}", name=item.name or _CALLS[kind], arguments=spelled),)
        case _:
            return None


def _letter(item: Item) -> Iterator[Block]:
    """Another agent's words: neither this model's nor a human's."""
    for part in item.parts:
        if part.encrypted_content:
            yield Opaque(type=part.type, text=part.encrypted_content)
        elif part.text:
            yield Text(text=part.text, origin=Origin.HARNESS)
    if isinstance(item.content, str) and item.content:
        yield Text(text=item.content, origin=Origin.HARNESS)


def _picture(item: Item) -> Iterator[Block]:
    if item.revised_prompt:
        yield Text(text=item.revised_prompt, origin=Origin.MODEL)
    if data := string(item.result):
        yield from_base64(data, "image/png", Origin.MODEL)


def _wrapped(item: Item, line: int) -> ToolResult:
    """A result as a bare object, as the oldest versions wrote failures, or one without the id of its call."""
    output = load(bytes(item.output).decode())
    success: object = None
    if isinstance(output, dict) and isinstance(output.get("content"), str | list):
        output, success = output["content"], output.get("success")
    text, media = read_output(output)
    return ToolResult(call_id=item.call_id or item.id or f"call-{line}", text=text, error=success is False, media=media)


def _message(item: Item, payload: bytes) -> CodexItem:
    role, origin = _ROLES.get(item.role or "", (Role.USER, Origin.HUMAN))
    blocks = _texts(item, role, origin)
    if blocks is None:
        draft = RESPONSES_API.parse([payload])[0]
        blocks = tuple(block for block in draft.blocks if block.text or not isinstance(block, Text))
        if role is Role.USER:
            shown = (kind for part, kind in zip(item.parts, _kinds(item), strict=True) if part.text or part.type not in _TEXTS)
            kinds = zip(blocks, chain(shown, repeat("")), strict=False)
            blocks = tuple(
                replace(block, origin=written_by(block.text, kind)) if isinstance(block, Text) else block for block, kind in kinds
            )
    words = "".join(block.text for block in blocks if isinstance(block, Text) and not is_label(block.text))
    pictures = tuple(block.sha256 for block in blocks if isinstance(block, Media)) if not words else ()
    return CodexItem(role, blocks, payload, hash(("message", role, words, pictures)))


def _texts(item: Item, role: Role, origin: Origin) -> tuple[Block, ...] | None:
    """The blocks of a content that is text only; None of any other, and where the role is none the API knows."""
    if item.role not in _ROLES or item.content is None:
        return None
    parts = [CodexPart(type="text", text=item.content)] if isinstance(item.content, str) else item.content
    if any(part.type not in _TEXTS or part.text is None for part in parts):
        return None
    kinds = _kinds(item) if len(item.parts) == len(parts) else [""]
    return tuple(
        Text(text=part.text, origin=written_by(part.text, kind) if role is Role.USER else origin)
        for part, kind in zip(parts, kinds, strict=True)
        if part.text
    )


def _kinds(item: Item) -> list[str]:
    passed = item.internal_chat_message_metadata_passthrough
    kinds = (passed and passed.content_item_kinds) or []
    return kinds if len(kinds) == len(item.parts) else [""] * len(item.parts)


def _key(kind: str, block: Block) -> int:
    match block:
        case ToolCall(call_id=call_id) | ToolResult(call_id=call_id):
            return hash((kind, call_id, block.text))
        case Thinking(seal=known) if known:
            return hash((kind, known))
        case _:
            return hash((kind, block.text))


def written_by(text: str, kind: str = "") -> Origin:
    """Human as soon as anything stands beside the harness's elements, since human text is what must not be lost."""
    if kind not in UNSURE_KINDS:
        return Origin.HUMAN if kind.startswith("user.") and kind not in HARNESS_KINDS else Origin.HARNESS
    start = text[: _LONGEST_NAME * 2].lstrip()
    if start.startswith(OPENINGS) or is_label(text):
        return Origin.HARNESS
    return Origin.HARNESS if start.startswith("<") and _is_element(text.strip()) else Origin.HUMAN


def is_label(text: str) -> bool:
    """Whether the text only names the attachment it stands beside."""
    return text.startswith(LABELS) and len(text) <= _LONGEST_NAME * 4 and text.rstrip().endswith(">") and text.count("<") == 1


def _is_element(text: str) -> bool:
    """Whether the text starts with the opening of an element of the harness and ends with its closing."""
    opening = text[1:_LONGEST_NAME].split(">", 1)[0].split("\n", 1)[0].lower()
    name = opening.split(" ", 1)[0]
    known = name in ELEMENTS or name.startswith(EXTERNAL)
    return known and text[-_LONGEST_NAME - 3 :].lower().endswith((f"</{name}>", f"</{opening}>"))
