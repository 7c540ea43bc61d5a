"""The Responses API of OpenAI.

Its unit is the item. What the model made in a row - reasoning, messages, calls - is one assistant draft, whose payload is the array of
those items; every other item is a draft of its own. An edit takes out or changes exactly the items concerned.
https://platform.openai.com/docs/api-reference/responses/create#responses-create-input
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Final, NamedTuple

from tenure.apis.call_ids import CallIds
from tenure.apis.json_text import (
    Json,
    array_text,
    clean,
    dump,
    elements,
    encoded,
    load,
    members,
    object_of,
    optional_string,
    source,
    string_of,
    value_of,
    with_elements,
    with_members,
)
from tenure.apis.media import PDF, MediaSource, media_of, note, source_of, sources
from tenure.apis.memo import Memo, spelled
from tenure.apis.output import media_parts, read_output
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

NAME: Final = "openai-responses"

_ROLES: Final = {
    "user": (Role.USER, Origin.HUMAN),
    "assistant": (Role.ASSISTANT, Origin.MODEL),
    "system": (Role.SYSTEM, Origin.HARNESS),
    "developer": (Role.SYSTEM, Origin.HARNESS),
}


class _CallItem(NamedTuple):
    name: str  # of the tool, where the item has none
    arguments: str  # the key that holds them


# Items that the host answers. Hosted tools (web_search_call, mcp_call, …) answer themselves and are opaque.
_CALLS: Final = {
    "function_call": _CallItem("", "arguments"),
    "custom_tool_call": _CallItem("", "input"),
    "local_shell_call": _CallItem("local_shell", "action"),
    "shell_call": _CallItem("shell", "action"),
    "apply_patch_call": _CallItem("apply_patch", "operation"),
    "computer_call": _CallItem("computer", "action"),
}
_RESULTS: Final = {call + "_output": "output" for call in _CALLS}
_HARNESS: Final = frozenset({"additional_tools", "compaction_trigger", "configuration_update"})  # a host's, but no message
_HUMAN: Final = frozenset({"mcp_approval_response"})


class _ItemPart(NamedTuple):
    item: int
    part: int  # within the item's content; -1: the item as a whole, -2: its string content
    block: Block


def drafts_of(texts: Sequence[str]) -> tuple[Draft, ...]:
    """One draft per run of model-made items, and one per other item. Raises InputError."""
    roles = [_role(text, f"message {n}") for n, text in enumerate(texts)]
    runs = groupby(range(len(texts)), key=lambda n: -1 if roles[n] is Role.ASSISTANT else n)
    return tuple(_draft([texts[n] for n in run], run[0]) for run in (list(run) for _, run in runs))


def rendered(pieces: Sequence[Piece], memo: Memo) -> tuple[bytes, ...]:
    """The items of each piece, in order."""
    ids, custom = CallIds(), set[str]()
    return tuple(item for piece in pieces for item in _rendered(piece, ids, custom, memo))


def _role(text: str, where: str) -> Role:
    fields = object_of(load(text, where), where)
    kind = _kind(fields)
    if kind == "message":
        role = fields.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise InputError(where, f"role {role!r}", ", ".join(_ROLES))
        return _ROLES[role][0]
    if kind.endswith("_output"):
        return Role.TOOL
    return Role.SYSTEM if kind in _HARNESS else Role.USER if kind in _HUMAN else Role.ASSISTANT


def _kind(fields: Mapping[str, Json]) -> str:
    kind = optional_string(fields, "type")
    return kind or ("message" if "role" in fields else "item_reference" if "id" in fields else "message")


def _draft(items: Sequence[str], first: int) -> Draft:
    role = _role(items[0], f"message {first}")
    origin = next(origin for known, origin in (*_ROLES.values(), (Role.TOOL, Origin.TOOL)) if known is role)
    payload = array_text(items) if role is Role.ASSISTANT else items[0]
    return Draft(role=role, blocks=blocks_of(items, first, origin), dialect=NAME, payload=encoded(payload))


def blocks_of(items: Sequence[str], first: int, origin: Origin) -> tuple[Block, ...]:
    """The blocks of items, of which there is at least one."""
    return tuple(spot.block for spot in _spots(items, first)) or (Text(text="", origin=origin),)


def _spots(items: Sequence[str], first: int = 0) -> list[_ItemPart]:
    return [_ItemPart(n, part, block) for n, item in enumerate(items) for part, block in _item(item, f"message {first + n}")]


def _item(raw: str, where: str) -> list[tuple[int, Block]]:
    fields = object_of(load(raw, where), where)
    kind = _kind(fields)
    if kind == "message":
        return _message(raw, fields, where)
    if kind == "reasoning":
        return [(-1, _thinking(fields))]
    if kind in _CALLS:
        return [(-1, _call(raw, fields, where))]
    if kind in _RESULTS:
        return [(-1, _result(fields, where))]
    origin = Origin.HARNESS if kind in _HARNESS else Origin.HUMAN if kind in _HUMAN else Origin.MODEL
    return [(-1, Opaque(type=kind, text=clean(raw), origin=Origin.TOOL if kind.endswith("_output") else origin))]


def _message(raw: str, fields: Mapping[str, Json], where: str) -> list[tuple[int, Block]]:
    origin = _ROLES[string_of(fields, "role", where)][1]
    content = value_of(members(raw), "content") or "null"
    if content.startswith("["):
        found = [(n, _block(item.text, origin, f"{where}, part {n}")) for n, item in enumerate(elements(content))]
        return [(n, block) for n, block in found if block.text or not isinstance(block, Text)]
    text = load(content)
    if not isinstance(text, str):
        raise InputError(where, f"content {content[:40]}", "a string or a list of content parts")
    return [(-2, Text(text=clean(text), origin=origin))] if text else []


def _block(raw: str, origin: Origin, where: str) -> Block:
    fields = object_of(load(raw, where), where)
    kind = string_of(fields, "type", where)
    if key := _TEXT_KEYS.get(kind):
        return Text(text=string_of(fields, key, where), origin=origin)
    found = source_of(fields)
    other = Origin.MODEL if origin is Origin.MODEL else Origin.HARNESS
    return media_of(found, origin) if found else Opaque(type=kind, text=clean(raw), origin=other)


_TEXT_KEYS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def _thinking(fields: Mapping[str, Json]) -> Thinking:
    parts = [*_list(fields, "summary"), *_list(fields, "content")]
    text = "\n".join(optional_string(part, "text") for part in parts if isinstance(part, dict))
    # Without encrypted content the provider looks the item up by its id.
    seal = optional_string(fields, "encrypted_content") or optional_string(fields, "id")
    return Thinking(text=text, seal=sha256(seal.encode()).hexdigest() if seal else "")


def _call(raw: str, fields: Mapping[str, Json], where: str) -> ToolCall:
    known = _CALLS[_kind(fields)]
    spelled = value_of(members(raw), known.arguments) or value_of(members(raw), known.arguments + "s") or '""'
    value = load(spelled)
    call_id = optional_string(fields, "call_id") or string_of(fields, "id", where)
    name = known.name or string_of(fields, "name", where)
    return ToolCall(call_id=call_id, name=name, arguments=clean(value if isinstance(value, str) else spelled))


def _result(fields: Mapping[str, Json], where: str) -> ToolResult:
    call_id = optional_string(fields, "call_id") or string_of(fields, "id", where)
    text, media = read_output(fields.get(_RESULTS[_kind(fields)]))
    return ToolResult(call_id=call_id, text=text, error=fields.get("status") == "failed", media=media)


def _list(fields: Mapping[str, Json], key: str) -> list[Json]:
    value = fields.get(key)
    return value if isinstance(value, list) else []


def _rendered(piece: Piece, ids: CallIds, custom: set[str], memo: Memo) -> Sequence[bytes]:
    if piece.dialect != NAME or not piece.payload or not ids.keep(piece.blocks):
        return [memo.encoded(text) for text in _built(piece, ids, custom)]
    made, shown = memo.of(piece, _native)
    custom.update(made)
    return shown


def _native(piece: Piece) -> tuple[Sequence[str], Sequence[bytes]]:
    """The ids of custom calls in a piece of this API, and its items, as far as they are shown."""
    text = source(piece.payload, "payload")
    items = [item.text for item in elements(text, "payload")] if text.startswith("[") else [text]
    shown = _patched(items, piece) if piece.edited else items
    return _custom_ids(items), tuple([spelled(piece, item) for item in shown])


def _custom_ids(items: Sequence[str]) -> list[str]:
    found = [object_of(load(item), "item") for item in items if "custom_tool_call" in item]
    return [optional_string(fields, "call_id") for fields in found if fields.get("type") == "custom_tool_call"]


def _patched(items: Sequence[str], piece: Piece) -> list[str]:
    spots = _spots(items)
    shown = dict(zip(piece.kept, piece.blocks, strict=True))
    if not shown:
        return []
    changed: dict[int, dict[int, Block | None]] = {}
    for n, spot in enumerate(spots):
        if shown.get(n) != spot.block:
            changed.setdefault(spot.item, {})[spot.part] = shown.get(n)
    rendered = [_exchanged(item, changed.get(n, {})) for n, item in enumerate(items)]
    _drop_idle_reasoning(items, rendered)
    return [text for text in rendered if text]


def _drop_idle_reasoning(items: Sequence[str], rendered: list[str | None]) -> None:
    """Take out reasoning of which nothing is left that it led to: the API refuses it without its following item."""
    led = after = False  # whether something follows, and whether that is reasoning
    for n in range(len(items) - 1, -1, -1):
        if _kind(object_of(load(items[n]), "item")) == "reasoning":
            after, rendered[n] = True, rendered[n] if led else None
        else:
            led, after = rendered[n] is not None or (led and not after), False


def _exchanged(raw: str, changed: Mapping[int, Block | None]) -> str | None:
    """The item with other blocks in some places; None when nothing of it is left."""
    if not changed:
        return raw
    if -1 in changed:
        return _exchanged_item(raw, changed[-1])
    if -2 in changed:
        new = changed[-2]
        return with_members(raw, {"content": dump(new.text)}) if new and new.text else None
    content = value_of(members(raw), "content") or "[]"
    parts = [_exchanged_part(item.text, changed[n]) if n in changed else item.text for n, item in enumerate(elements(content))]
    return with_members(raw, {"content": with_elements(content, parts)}) if any(parts) else None


def _exchanged_part(raw: str, new: Block | None) -> str | None:
    if new is None or not new.text:
        return None
    fields = object_of(load(raw), "part")
    if key := _TEXT_KEYS.get(optional_string(fields, "type")):
        emptied = {"annotations": "[]"} if "annotations" in fields else {}  # they point into the text that was
        return with_members(raw, {key: dump(new.text), **emptied})
    return dump({"type": "input_text", "text": new.text})


def _exchanged_item(raw: str, new: Block | None) -> str | None:
    fields = object_of(load(raw), "item")
    match new:
        case ToolResult():
            return with_members(raw, {"output": _output(raw, new)})
        case ToolCall():
            key = _CALLS[_kind(fields)].arguments
            value = new.arguments if _is_object(new.arguments) and not isinstance(fields.get(key), str) else dump(new.arguments)
            return with_members(raw, {key: value} | ({"name": dump(new.name)} if "name" in fields else {}))
        case Thinking() if not optional_string(fields, "encrypted_content") and not optional_string(fields, "id"):
            return with_members(raw, {"summary": array_text([dump({"type": "summary_text", "text": new.text})]), "content": None})
        case _:
            return None  # sealed reasoning goes back whole or not at all


def _is_object(text: str) -> bool:
    try:
        return isinstance(load(text), dict)
    except InputError:
        return False


def _output(raw: str, new: ToolResult) -> str:
    old = value_of(members(raw), "output") or '""'
    match optional_string(object_of(load(raw), "item"), "type"):
        case "computer_call_output":
            return old  # a screenshot, and nothing else, is taken here
        case "shell_call_output":  # takes a list only
            return dump([{"stdout": new.text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}])
        case _:
            kept = media_parts(old, new.media)
            return array_text([dump({"type": "input_text", "text": new.text}), *kept]) if kept else dump(new.text)


def _built(piece: Piece, ids: CallIds, custom: set[str]) -> list[str]:
    known = sources(piece)
    if piece.role is Role.ASSISTANT:
        return [item for block in piece.blocks if (item := _built_item(block, ids))]
    results = [_built_result(block, ids, custom, known) for block in piece.blocks if isinstance(block, ToolResult)]
    words = [block for block in piece.blocks if isinstance(block, Text | Media | Opaque) and _words(block)]
    if not words:
        return results
    role = "developer" if piece.role is Role.SYSTEM else "user"
    parts = [_part(block, known) for block in words]
    content = parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts
    return [*results, dump({"role": role, "content": content})]


def _built_item(block: Block, ids: CallIds) -> str | None:
    match block:
        case ToolCall(name=name, arguments=arguments):
            return dump({"type": "function_call", "call_id": ids.call(block), "name": name, "arguments": arguments})
        case Thinking() | ToolResult():
            return None  # reasoning of another dialect means nothing to this one
        case Text() | Media() | Opaque():
            return dump({"role": "assistant", "content": _words(block)}) if _words(block) else None


def _built_result(result: ToolResult, ids: CallIds, custom: set[str], known: Mapping[str, MediaSource]) -> str:
    call_id = ids.result(result)
    kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
    output: object = result.text
    if result.media:
        texts: list[object] = [{"type": "input_text", "text": result.text}] if result.text else []
        output = texts + [_part(media, known) for media in result.media]
    return dump({"type": kind, "call_id": call_id, "output": output})


def _part(block: Block, known: Mapping[str, MediaSource]) -> dict[str, object]:
    found = known.get(block.sha256) if isinstance(block, Media) else None
    if found and (found.data or found.url if found.image else found.data and found.media_type == PDF):
        return medium(found)
    return {"type": "input_text", "text": _words(block)}


def medium(item: MediaSource) -> dict[str, object]:
    """The part of a message or output that holds a medium."""
    if item.image:
        return {"type": "input_image", "image_url": item.data_url}
    return {"type": "input_file", "filename": item.name or "document.pdf", "file_data": item.data_url}


def _words(block: Block) -> str:
    if isinstance(block, Media):
        return note(block)
    return block.text or (f"[{block.type}]" if isinstance(block, Opaque) else "")
