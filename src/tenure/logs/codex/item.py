"""One item of a Codex rollout as blocks.

Items are the Responses API's, so a block stands for what the dialect would read in its place and the item itself is the payload; the
plain kinds are read here, which is faster, and all others by the dialect. What never goes to that API as it was logged is neutral.
"""

from collections.abc import Iterator
from hashlib import sha256
from itertools import chain, repeat
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.apis.json_text import clean, load
from tenure.apis.openai_responses import NAME as DIALECT
from tenure.apis.openai_responses import OpenAIResponses
from tenure.apis.output import read_output
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.logs.codex.origin import is_label, written_by
from tenure.logs.codex.window import Place
from tenure.logs.media import from_base64
from tenure.logs.mend import Damaged, decode

# Items that Codex keeps for itself.
BESIDE: Final = frozenset({"ghost_snapshot", "compaction_trigger", "configuration_update", "other"})

SEALED: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})  # a summary that only the provider can read

_ROLES: Final = {
    "user": (Role.USER, Origin.HUMAN),  # or the harness's, by its text
    "assistant": (Role.ASSISTANT, Origin.MODEL),
    "developer": (Role.SYSTEM, Origin.HARNESS),
    "system": (Role.SYSTEM, Origin.HARNESS),
}
_CALLS: Final = {"function_call": "function", "custom_tool_call": "custom", "local_shell_call": "local_shell"}
_TEXTS: Final = frozenset({"input_text", "output_text", "text"})

_dialect: Final = OpenAIResponses()
_string: Final = msgspec.json.Decoder(str)


class Part(Struct, frozen=True, gc=False):
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
    content: str | list[Part] | None = None
    summary: list[Part] | None = None
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


class Said(Struct, frozen=True, gc=False):
    """An item that was read."""

    role: Role
    blocks: tuple[Block, ...]
    payload: bytes  # the item's JSON; empty when the blocks do not line up with it
    key: int  # equal for items that say the same

    def draft(self, at: str, line: int) -> Draft:
        """The item as a draft of its own."""
        if not self.payload:
            return Draft(role=self.role, blocks=self.blocks, at=at, line=line)
        return Draft(role=self.role, blocks=self.blocks, dialect=DIALECT, payload=self.payload, at=at, line=line)

    def place(self) -> Place:
        """What the window has to know of that draft."""
        human = [block for block in self.blocks if block.origin is Origin.HUMAN]
        letter = self.role is Role.USER and not self.payload
        size = sum(len(block.text.encode()) for block in human if isinstance(block, Text))
        context = self.role in (Role.USER, Role.SYSTEM) and not human and not letter
        return Place(keys=(self.key,), asks=bool(human) or letter, context=context, size=size)


def of_model(said: list[Said], at: str, line: int) -> Draft:
    """The items of one reply as one draft."""
    blocks = tuple(block for one in said for block in one.blocks)
    if not all(one.payload for one in said):
        return Draft(role=Role.ASSISTANT, blocks=blocks, at=at, line=line)
    payload = b"[" + b",".join(one.payload for one in said) + b"]"
    return Draft(role=Role.ASSISTANT, blocks=blocks, dialect=DIALECT, payload=payload, at=at, line=line)


def read_item(item: Item, payload: bytes, line: int) -> Said:
    """What the item says; no blocks when that is nothing. Raises InputError when it cannot be read."""
    kind = item.kind
    if kind == "message":
        return _message(item, payload)
    if (block := _plain(item)) is not None:
        role = Role.TOOL if isinstance(block, ToolResult) else Role.ASSISTANT
        return Said(role, (block,), payload, _key(kind, block))
    if (neutral := _neutral(item, line)) is not None:
        return Said(neutral.role, neutral.blocks, b"", hash((kind, tuple(_key(kind, block) for block in neutral.blocks))))
    draft = _dialect.parse([payload])[0]
    block = draft.blocks[0]
    return Said(draft.role, draft.blocks, payload, _key(kind, block))


def _plain(item: Item) -> Block | None:
    """The block of the kinds that a session is full of; None of any other."""
    match item.kind:
        case "reasoning" if not isinstance(item.content, str):
            parts = (*(item.summary or ()), *(item.content or ()))
            seal = item.encrypted_content or item.id or ""
            return Thinking(text="\n".join(part.text or "" for part in parts), seal=_seal(seal))
        case "function_call" | "custom_tool_call" as kind if item.call_id and item.name:
            given = item.arguments if kind == "function_call" else item.input
            arguments = _text(given)
            return None if arguments is None else ToolCall(call_id=item.call_id, name=item.name, arguments=arguments)
        case "function_call_output" | "custom_tool_call_output" if item.call_id and (text := _text(item.output)) is not None:
            return ToolResult(call_id=item.call_id, text=text, error=item.status == "failed")
        case _:
            return None


def _neutral(item: Item, line: int) -> Draft | None:
    """A draft of what the API does not take as it was logged."""
    match item.kind:
        case "agent_message":
            return Draft(role=Role.USER, blocks=tuple(_letter(item)))
        case "image_generation_call":
            return Draft(role=Role.ASSISTANT, blocks=tuple(_picture(item)))
        case kind if kind.endswith("_call_output") and (bytes(item.output)[:1] == b"{" or not (item.call_id or item.id)):
            return Draft(role=Role.TOOL, blocks=(_wrapped(item, line),))
        case kind if kind in _CALLS and not (item.call_id or item.id):
            given = next(raw for raw in (item.arguments, item.input, item.action) if bytes(raw) != b"null" or raw is item.action)
            arguments = _text(given)
            spelled = clean(bytes(given).decode()) if arguments is None else arguments
            call = ToolCall(call_id=f"call-{line}", name=item.name or _CALLS[kind], arguments=spelled)
            return Draft(role=Role.ASSISTANT, blocks=(call,))
        case _:
            return None


def _letter(item: Item) -> Iterator[Block]:
    """Another agent's words: neither this model's nor a human's."""
    for part in item.content if isinstance(item.content, list) else ():
        if part.encrypted_content:
            yield Opaque(type=part.type, text=part.encrypted_content)
        elif part.text:
            yield Text(text=part.text, origin=Origin.HARNESS)
    if isinstance(item.content, str) and item.content:
        yield Text(text=item.content, origin=Origin.HARNESS)


def _picture(item: Item) -> Iterator[Block]:
    if item.revised_prompt:
        yield Text(text=item.revised_prompt, origin=Origin.MODEL)
    if data := _text(item.result):
        yield from_base64(data, "image/png", Origin.MODEL)


def _wrapped(item: Item, line: int) -> ToolResult:
    """A result as a bare object, as the oldest versions wrote failures, or one without the id of its call."""
    output = load(bytes(item.output).decode())
    success: object = None
    if isinstance(output, dict) and isinstance(output.get("content"), str | list):
        output, success = output["content"], output.get("success")
    text, media = read_output(output)
    return ToolResult(call_id=item.call_id or item.id or f"call-{line}", text=text, error=success is False, media=media)


def _message(item: Item, payload: bytes) -> Said:
    role, origin = _ROLES.get(item.role or "", (Role.USER, Origin.HUMAN))
    blocks = _texts(item, role, origin)
    if blocks is None:
        draft = _dialect.parse([payload])[0]
        blocks = tuple(block for block in draft.blocks if block.text or not isinstance(block, Text))
        if role is Role.USER:
            blocks = tuple(
                replace(block, origin=_by(block, kind))
                for block, kind in zip(blocks, chain(_kinds_of(item), repeat("")), strict=False)
            )
    words = "".join(block.text for block in blocks if isinstance(block, Text) and not is_label(block.text))
    pictures = tuple(block.sha256 for block in blocks if isinstance(block, Media)) if not words else ()
    return Said(role, blocks, payload, hash(("message", role, words, pictures)))


def _texts(item: Item, role: Role, origin: Origin) -> tuple[Block, ...] | None:
    """The blocks of a content that is text only; None of any other, and where the role is none the API knows."""
    if item.role not in _ROLES or item.content is None:
        return None
    parts = [Part(type="text", text=item.content)] if isinstance(item.content, str) else item.content
    if any(part.type not in _TEXTS or part.text is None for part in parts):
        return None
    if role is not Role.USER:
        return tuple(Text(text=part.text, origin=origin) for part in parts if part.text)
    kinds = _kinds(item, len(parts))
    return tuple(
        Text(text=part.text, origin=written_by(part.text, kind)) for part, kind in zip(parts, kinds, strict=True) if part.text
    )


def _kinds_of(item: Item) -> Iterator[str]:
    """The kinds of those parts that become blocks."""
    parts = item.content if isinstance(item.content, list) else []
    for part, kind in zip(parts, _kinds(item, len(parts)), strict=True):
        if part.text or part.type not in _TEXTS:
            yield kind


def _kinds(item: Item, parts: int) -> list[str]:
    passed = item.internal_chat_message_metadata_passthrough
    kinds = (passed and passed.content_item_kinds) or []
    return kinds if len(kinds) == parts else [""] * parts


def _by(block: Block, kind: str) -> Origin:
    return written_by(block.text, kind) if isinstance(block, Text) else block.origin


def _key(kind: str, block: Block) -> int:
    match block:
        case ToolCall(call_id=call_id) | ToolResult(call_id=call_id):
            return hash((kind, call_id, block.text))
        case Thinking(seal=seal) if seal:
            return hash((kind, seal))
        case _:
            return hash((kind, block.text))


def _text(raw: Raw) -> str | None:
    """The string in `raw`; None when it holds anything else."""
    given = bytes(raw)
    if given[:1] != b'"':
        return None
    try:
        return decode(given, _string)
    except Damaged:
        return None


def _seal(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest() if secret else ""
