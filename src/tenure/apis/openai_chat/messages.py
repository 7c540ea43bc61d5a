"""The Chat Completions API of OpenAI and of everything compatible with it.

A message spreads its blocks over several keys, so each block knows its spot: a key, and a place where the key holds a list. An edit
touches the spots of the blocks concerned and nothing else.
https://platform.openai.com/docs/api-reference/chat/create
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

NAME: Final = "openai-chat"

_ROLES: Final = {
    "system": (Role.SYSTEM, Origin.HARNESS),
    "developer": (Role.SYSTEM, Origin.HARNESS),
    "user": (Role.USER, Origin.HUMAN),
    "assistant": (Role.ASSISTANT, Origin.MODEL),
    "tool": (Role.TOOL, Origin.TOOL),
    "function": (Role.TOOL, Origin.TOOL),  # legacy: answers `function_call`, by name
}

# Reasoning has no place in OpenAI's own messages; these are DeepSeek's and vLLM's, vLLM's and OpenRouter's, and OpenRouter's keys.
# https://api-docs.deepseek.com/guides/thinking_mode https://openrouter.ai/docs/use-cases/reasoning-tokens
_REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details")


class _ChatPart(NamedTuple):
    key: str
    place: int  # -1: the whole value
    raw: str
    block: Block


class _ChatMessage(NamedTuple):
    role: Role
    message: bytes
    loose: bool  # ours or edited, so its place among its neighbours may be put right


def rendered(pieces: Sequence[Piece], memo: Memo) -> tuple[bytes, ...]:
    """One message per piece that shows something; results and words that another API keeps in one message come apart."""
    ids = CallIds()
    shown = [out for piece in pieces for out in _rendered(piece, ids, memo)]
    runs = [list(run) for _, run in groupby(shown, key=lambda out: out.role is Role.ASSISTANT)]
    return tuple(out.message for run in runs for out in _results_first(run))


def draft_of(text: str, where: str) -> Draft:
    """The draft of a message. Raises InputError."""
    role, origin = _role(text, where)
    spots = _spots(text, where)
    blocks = tuple(spot.block for spot in spots) or (Text(text="", origin=origin),)
    return Draft(role=role, blocks=blocks, dialect=NAME, payload=encoded(text))


def _role(text: str, where: str) -> tuple[Role, Origin]:
    role = load(value_of(members(text, where), "role") or "null", where)
    if not isinstance(role, str) or role not in _ROLES:
        raise InputError(where, f"role {role!r}", ", ".join(_ROLES))
    return _ROLES[role]


def _spots(text: str, where: str) -> list[_ChatPart]:
    role, origin = _role(text, where)
    fields = object_of(load(text, where), where)
    if role is Role.TOOL:
        return [_ChatPart("content", -1, value_of(members(text), "content") or "null", _result(fields, where))]
    raw = {item.key: item.text for item in members(text)}
    spots = [*_thinking(fields), *_content(raw.get("content", "null"), origin, where)]
    if refusal := optional_string(fields, "refusal"):
        spots.append(_ChatPart("refusal", -1, raw["refusal"], Text(text=refusal, origin=origin)))
    if isinstance(fields.get("audio"), dict):
        spots.append(_ChatPart("audio", -1, raw["audio"], Opaque(type="audio", text=clean(raw["audio"]), origin=origin)))
    if isinstance(fields.get("tool_calls"), list):
        calls = enumerate(elements(raw["tool_calls"], where))
        spots += [_ChatPart("tool_calls", n, item.text, _call(item.text, f"{where}, tool call {n}")) for n, item in calls]
    if isinstance(fields.get("function_call"), dict):
        spots.append(_ChatPart("function_call", -1, raw["function_call"], _legacy_call(fields["function_call"], where)))
    return spots


def _thinking(fields: Mapping[str, Json]) -> list[_ChatPart]:
    details = fields.get("reasoning_details")
    parts = [part for part in details if isinstance(part, dict)] if isinstance(details, list) else []
    sealed = [optional_string(part, key) for part in parts for key in ("signature", "data") if optional_string(part, key)]
    seal = sha256("\n".join(sealed).encode()).hexdigest() if sealed else ""
    inner = "".join(optional_string(part, "text") or optional_string(part, "summary") for part in parts)
    text = optional_string(fields, "reasoning_content") or optional_string(fields, "reasoning") or inner
    return [_ChatPart("reasoning", -1, "", Thinking(text=text, seal=seal))] if text or seal else []


def _content(raw: str, origin: Origin, where: str) -> list[_ChatPart]:
    if raw.startswith("["):
        slices = enumerate(elements(raw, where))
        found = [_ChatPart("content", n, item.text, _block(item.text, origin, f"{where}, part {n}")) for n, item in slices]
        return [spot for spot in found if spot.block.text or not isinstance(spot.block, Text)]
    value = load(raw, where)
    if value is not None and not isinstance(value, str):
        raise InputError(where, f"content {raw[:40]}", "a string, null or a list of content parts")
    return [_ChatPart("content", -1, raw, Text(text=clean(value), origin=origin))] if value else []


def _block(raw: str, origin: Origin, where: str) -> Block:
    fields = object_of(load(raw, where), where)
    kind = string_of(fields, "type", where)
    if kind in ("text", "refusal"):
        return Text(text=string_of(fields, kind, where), origin=origin)
    found = source_of(fields)
    other = Origin.MODEL if origin is Origin.MODEL else Origin.HARNESS
    return media_of(found, origin) if found else Opaque(type=kind, text=clean(raw), origin=other)


def _call(raw: str, where: str) -> ToolCall:
    fields = object_of(load(raw, where), where)
    kind = "custom" if "custom" in fields else "function"
    inner = object_of(fields.get(kind), f"{where}, {kind}")
    arguments = inner.get("arguments", inner.get("input", ""))
    text = clean(arguments) if isinstance(arguments, str) else dump(arguments)  # some hosts write an object here
    return ToolCall(call_id=optional_string(fields, "id"), name=string_of(inner, "name", where), arguments=text)


def _legacy_call(value: Json, where: str) -> ToolCall:
    fields = object_of(value, where)
    name = string_of(fields, "name", where)
    return ToolCall(call_id=name, name=name, arguments=optional_string(fields, "arguments"))


def _result(fields: Mapping[str, Json], where: str) -> ToolResult:
    call_id = string_of(fields, "name" if fields.get("role") == "function" else "tool_call_id", where)
    text, media = read_output(fields.get("content"))
    return ToolResult(call_id=call_id, text=text, media=media)


def _rendered(piece: Piece, ids: CallIds, memo: Memo) -> list[_ChatMessage]:
    if piece.dialect != NAME or not piece.payload or not ids.keep(piece.blocks):
        return _built(piece, ids, memo)
    return memo.of(piece, _native)


def _native(piece: Piece) -> list[_ChatMessage]:
    """A message of this API, as far as it is shown."""
    text = source(piece.payload, "payload")
    shown = _patched(text, piece) if piece.edited else text if _says_anything(text, piece) else None
    return [_ChatMessage(piece.role, spelled(piece, shown), loose=piece.edited)] if shown else []


def _says_anything(text: str, piece: Piece) -> bool:
    """Whether a message has content or calls: a model that says nothing at all leaves neither, and no API takes that back."""
    if any(block.text or not isinstance(block, Text) for block in piece.blocks if not isinstance(block, Thinking)):
        return True
    return load(value_of(members(text), "content") or "null") not in (None, [])


def _results_first(run: list[_ChatMessage]) -> list[_ChatMessage]:
    """The messages between two of the model's: results stand before anything that was put among them."""
    return sorted(run, key=lambda out: out.role is not Role.TOOL) if any(out.loose for out in run) else run


def _patched(text: str, piece: Piece) -> str | None:
    spots = _spots(text, "payload")
    shown = dict(zip(piece.kept, piece.blocks, strict=True))
    changed = {n: _exchanged(spot, shown[n]) if n in shown else None for n, spot in enumerate(spots)}
    if all(changed[n] is None or isinstance(spot.block, Thinking) for n, spot in enumerate(spots)):
        return None  # reasoning alone is no message
    values: dict[str, str | None] = {}
    for key in dict.fromkeys(spot.key for spot in spots):
        at = {spot.place: changed[n] for n, spot in enumerate(spots) if spot.key == key}
        values |= _reasoning(text, shown, spots) if key == "reasoning" else _value(text, key, at)
    return with_members(text, values)


def _value(text: str, key: str, at: Mapping[int, str | None]) -> dict[str, str | None]:
    empty = '""' if key == "content" else None  # an empty list of calls is refused, a missing content by some hosts
    if -1 in at:
        return {key: at[-1] or empty}
    old = value_of(members(text), key) or "[]"
    new = [at.get(n, item.text) for n, item in enumerate(elements(old))]
    if all(at.get(n) is None for n in range(len(new))):
        return {key: empty}
    return {key: with_elements(old, new)}


def _reasoning(text: str, shown: Mapping[int, Block], spots: Sequence[_ChatPart]) -> dict[str, str | None]:
    n = next(n for n, spot in enumerate(spots) if spot.key == "reasoning")
    new, old = shown.get(n), spots[n].block
    if new == old:
        return {}
    gone: dict[str, str | None] = dict.fromkeys(_REASONING)
    present = next((item.key for item in members(text) if item.key in _REASONING[:2]), _REASONING[0])
    return (
        gone | {present: dump(new.text)} if isinstance(new, Thinking) and not (isinstance(old, Thinking) and old.signed) else gone
    )


def _exchanged(spot: _ChatPart, new: Block) -> str | None:
    old = spot.block
    if new == old:
        return spot.raw
    match new:
        case Text() if isinstance(old, Text) and new.text:
            if spot.raw.startswith('"'):
                return dump(new.text)
            return with_members(spot.raw, {str(object_of(load(spot.raw), "part")["type"]): dump(new.text)})
        case ToolResult() if isinstance(old, ToolResult):
            return _result_content(spot.raw, new)
        case ToolCall() if isinstance(old, ToolCall):
            return _call_text(spot.raw, new)
        case Text() | Media() | Opaque() if spot.place >= 0 and spot.key == "content":
            return dump(_part(new, {}))
        case _:
            return dump(new.text) if spot.raw.startswith('"') and new.text else None


def _call_text(raw: str, new: ToolCall) -> str:
    fields = {item.key: item.text for item in members(raw)}
    if "arguments" in fields:  # legacy
        return with_members(raw, {"arguments": dump(new.arguments), "name": dump(new.name)})
    kind, key = ("custom", "input") if "custom" in fields else ("function", "arguments")
    return with_members(raw, {kind: with_members(fields[kind], {key: dump(new.arguments), "name": dump(new.name)})})


def _result_content(raw: str, new: ToolResult) -> str:
    kept = media_parts(raw, new.media)
    return array_text([dump({"type": "text", "text": new.text}), *kept]) if kept else dump(new.text)


def _built(piece: Piece, ids: CallIds, memo: Memo) -> list[_ChatMessage]:
    if piece.role is Role.ASSISTANT:
        return [_ChatMessage(Role.ASSISTANT, memo.encoded(text), loose=True) for text in _built_assistant(piece, ids)]
    known = sources(piece)
    results = [_built_result(block, ids) for block in piece.blocks if isinstance(block, ToolResult)]
    outs = [_ChatMessage(Role.TOOL, memo.encoded(text), loose=True) for text in results]
    parts = [_part(block, known) for block in piece.blocks if isinstance(block, Text | Media | Opaque) and _words(block)]
    if parts:
        role = Role.SYSTEM if piece.role is Role.SYSTEM else Role.USER
        content = parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else parts
        outs.append(_ChatMessage(role, memo.encoded(dump({"role": role, "content": content})), loose=True))
    return outs


def _built_assistant(piece: Piece, ids: CallIds) -> list[str]:
    # Reasoning of another API is left out: OpenAI refuses unknown keys, and others refuse reasoning they did not write.
    texts = [_words(block) for block in piece.blocks if isinstance(block, Text | Media | Opaque) and _words(block)]
    calls = [_built_call(block, ids) for block in piece.blocks if isinstance(block, ToolCall)]
    message = {"role": "assistant", "content": "\n\n".join(texts) or None, **({"tool_calls": calls} if calls else {})}
    return [dump(message)] if texts or calls else []


def _built_call(call: ToolCall, ids: CallIds) -> dict[str, object]:
    return {"id": ids.call(call), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _built_result(result: ToolResult, ids: CallIds) -> str:
    words = [result.text, *(note(media) for media in result.media)]  # a tool message takes text only
    return dump({"role": "tool", "tool_call_id": ids.result(result), "content": "\n".join(filter(None, words))})


def _part(block: Block, known: Mapping[str, MediaSource]) -> dict[str, object]:
    found = known.get(block.sha256) if isinstance(block, Media) else None
    if found and (found.data or found.url if found.image else found.data and found.media_type == PDF):
        return medium(found)
    return {"type": "text", "text": _words(block)}


def medium(item: MediaSource) -> dict[str, object]:
    """The part of a message that holds a medium."""
    if item.image:
        return {"type": "image_url", "image_url": {"url": item.data_url}}
    return {"type": "file", "file": {"filename": item.name or "document.pdf", "file_data": item.data_url}}


def _words(block: Block) -> str:
    if isinstance(block, Media):
        return note(block)
    return block.text or (f"[{block.type}]" if isinstance(block, Opaque) else "")
