"""The Messages API of Anthropic.

A message's content parts and the blocks of its entry line up one to one, so an edit exchanges or takes out exactly one slice.
https://platform.claude.com/docs/en/api/messages
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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
from tenure.apis.media import PDF, PLAIN, MediaSource, media_of, note, source_of, sources
from tenure.apis.memo import Memo, spelled
from tenure.apis.output import media_parts, read_output
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

NAME: Final = "anthropic"

# role: who speaks, and who wrote its text. `system` messages between the others are instructions of the host.
_ROLES: Final = {
    "user": (Role.USER, Origin.HUMAN),
    "assistant": (Role.ASSISTANT, Origin.MODEL),
    "system": (Role.SYSTEM, Origin.HARNESS),
}


_BLANK: Final = re.compile(r'"(?:text|content)"\s*:\s*(?:"(?:\s|\\[nrt]|\\u)*"|\[\s*\])')  # perhaps a text of nothing but blanks
_RESULT_FIRST: Final = b'{"role":"user","content":[{"type":"tool_result"'


class _RawBlock(NamedTuple):
    raw: str  # JSON
    block: Block


class _Read(NamedTuple):
    role: Role
    parts: tuple[_RawBlock, ...]
    listed: bool  # content is a list, not a string


class _RenderedMessage(NamedTuple):
    role: str
    message: bytes
    results: tuple[bool, ...]  # of each block whether it is a result; one that says nothing has no part
    loose: bool  # ours or edited, so its place among its neighbours may be put right


def rendered(pieces: Sequence[Piece], memo: Memo) -> tuple[bytes, ...]:
    """One message per piece that shows something; neighbours share one where tool results would not come first otherwise."""
    ids = CallIds()
    shown = [out for piece in pieces if (out := _rendered(piece, ids, memo))]
    runs = [list(run) for _, run in groupby(shown, key=lambda out: out.role)]
    return tuple(message for run in runs for message in _results_first(run, memo))


def draft_of(text: str, where: str) -> Draft:
    """The draft of a message. Raises InputError."""
    message = _read(text, where)
    blocks = tuple(part.block for part in message.parts) or (Text(text="", origin=_origin(message.role)),)
    return Draft(role=message.role, blocks=blocks, dialect=NAME, payload=encoded(text))


def system_draft(system: str) -> Draft:
    """The draft of a top-level `system`."""
    parts = _parts(system, "system", Origin.HARNESS)
    return Draft(role=Role.SYSTEM, blocks=tuple(part.block for part in parts), dialect=NAME, payload=encoded(system))


def _read(text: str, where: str) -> _Read:
    items = members(text, where)
    role = load(value_of(items, "role") or "null", where)
    if not isinstance(role, str) or role not in _ROLES:
        raise InputError(where, f"role {role!r}", ", ".join(_ROLES))
    content = value_of(items, "content")
    if content is None:
        raise InputError(where, "no content", "a string or a list of content parts")
    return _Read(_ROLES[role][0], _parts(content, where, _ROLES[role][1]), listed=content.startswith("["))


def _parts(content: str, where: str, origin: Origin) -> tuple[_RawBlock, ...]:
    if content.startswith("["):
        slices = enumerate(elements(content, where))
        return tuple(_RawBlock(item.text, _block(item.text, f"{where}, part {n}", origin)) for n, item in slices)
    value = load(content, where)
    if not isinstance(value, str):
        raise InputError(where, f"content {content[:40]}", "a string or a list of content parts")
    return (_RawBlock(content, Text(text=clean(value), origin=origin)),)


def _block(raw: str, where: str, origin: Origin) -> Block:
    fields = object_of(load(raw, where), where)
    match kind := string_of(fields, "type", where):
        case "text":
            return Text(text=string_of(fields, "text", where), origin=origin)
        case "thinking":
            return Thinking(text=optional_string(fields, "thinking"), seal=_seal(optional_string(fields, "signature")))
        case "redacted_thinking":
            return Thinking(text="", seal=_seal(string_of(fields, "data", where)))
        case "tool_use":
            arguments = clean(value_of(members(raw), "input") or "{}")
            return ToolCall(call_id=string_of(fields, "id", where), name=string_of(fields, "name", where), arguments=arguments)
        case "tool_result":
            return _result(fields, where)
        case _:
            found = source_of(fields)
            other = Origin.MODEL if origin is Origin.MODEL else Origin.HARNESS
            return media_of(found, origin) if found else Opaque(type=kind, text=clean(raw), origin=other)


def _result(fields: Mapping[str, Json], where: str) -> ToolResult:
    call_id, error = string_of(fields, "tool_use_id", where), fields.get("is_error") is True
    text, media = read_output(fields.get("content"))
    return ToolResult(call_id=call_id, text=text, error=error, media=media)


def _rendered(piece: Piece, ids: CallIds, memo: Memo) -> _RenderedMessage | None:
    if piece.dialect != NAME or not piece.payload or not ids.keep(piece.blocks):
        return _built(piece, ids, memo)
    return memo.of(piece, _native)


def _native(piece: Piece) -> _RenderedMessage | None:
    """A message of this API, as far as it is shown."""
    text = source(piece.payload, "payload")
    is_whole = not piece.edited and (
        piece.role is Role.SYSTEM or not _BLANK.search(text)
    )  # a system's without words carries settings
    shown = text if is_whole else _without_blanks(_patched(text, piece) if piece.edited else text)
    results = tuple([isinstance(block, ToolResult) for block in piece.blocks])
    return _RenderedMessage(_role_name(piece.role), spelled(piece, shown), results, loose=not is_whole) if shown else None


def _without_blanks(text: str | None) -> str | None:
    """A message without its blank texts, those of results too; None when it says nothing. The API takes none, be they the host's own."""
    if text is None or not _BLANK.search(text):
        return text
    content = value_of(members(text), "content") or "[]"
    if not content.startswith("["):
        return None if _is_blank(content) else text
    parts = [_part_without_blanks(item.text) for item in elements(content)]
    return with_members(text, {"content": with_elements(content, parts)}) if any(parts) else None


def _part_without_blanks(part: str) -> str | None:
    items = members(part)
    if _type_of(part) == "text":
        return None if _is_blank(value_of(items, "text") or '""') else part
    content = value_of(items, "content") or ""
    if _type_of(part) != "tool_result" or not content.startswith("["):
        return part
    inner = [_part_without_blanks(item.text) for item in elements(content)]
    return part if all(inner) else with_members(part, {"content": with_elements(content, inner)})


def _is_blank(text: str) -> bool:
    value = load(text)
    return isinstance(value, str) and not value.strip()


def _patched(text: str, piece: Piece) -> str | None:
    message = _read(text, "payload")
    shown = dict(zip(piece.kept, piece.blocks, strict=True))
    parts = [_exchanged(part, shown[n]) if n in shown else None for n, part in enumerate(message.parts)]
    if message.role is Role.ASSISTANT:
        _drop_trailing_thinking(parts, message)
    if not any(parts):
        return None
    if not message.listed:
        block = shown[0]
        value = dump(block.text) if isinstance(block, Text) else array_text(filter(None, parts))
        return with_members(text, {"content": value})
    content = value_of(members(text), "content") or "[]"
    return with_members(text, {"content": with_elements(content, parts)})


def _drop_trailing_thinking(parts: list[str | None], message: _Read) -> None:
    # The final part of an assistant message cannot be thinking: what it led to is gone, so it goes too.
    for n in range(len(parts) - 1, -1, -1):
        if parts[n] is not None and not isinstance(message.parts[n].block, Thinking):
            return
        parts[n] = None


def _exchanged(part: _RawBlock, new: Block) -> str | None:
    old = part.block
    if new == old:
        return part.raw
    match new:
        case Text() if isinstance(old, Text) and new.text.strip():
            if part.raw.startswith('"'):
                return dump(new.text)
            return with_members(part.raw, {"text": dump(new.text), "citations": None})
        case ToolResult() if isinstance(old, ToolResult):
            return with_members(part.raw, {"content": _result_content(part.raw, new), **_error(old, new)})
        case ToolCall() if isinstance(old, ToolCall):
            return with_members(part.raw, {"input": _input(new.arguments), "name": dump(new.name)})
        case Thinking():
            unsigned = isinstance(old, Thinking) and not old.signed
            return with_members(part.raw, {"thinking": dump(new.text)}) if unsigned else None  # signed: whole or not at all
        case _:
            return _build(new, CallIds(), {})


def _error(old: ToolResult, new: ToolResult) -> dict[str, str | None]:
    return {} if old.error == new.error else {"is_error": "true" if new.error else None}


def _result_content(raw: str, new: ToolResult) -> str:
    kept = media_parts(value_of(members(raw), "content") or "", new.media)
    return array_text(([_text_part(new.text)] if new.text.strip() else []) + kept) if kept else dump(new.text)


def _built(piece: Piece, ids: CallIds, memo: Memo) -> _RenderedMessage | None:
    known = sources(piece)
    results = [block for block in piece.blocks if isinstance(block, ToolResult)]
    others = [block for block in piece.blocks if not isinstance(block, ToolResult)]
    parts = [part for block in (*results, *others) if (part := _build(block, ids, known))]
    role = "user" if piece.role is Role.SYSTEM else _role_name(piece.role)  # not every model takes system messages
    message = f'{{"role":"{role}","content":{array_text(parts)}}}'
    return (
        _RenderedMessage(role, memo.encoded(message), (True,) * len(results) + (False,) * len(others), loose=True)
        if parts
        else None
    )


def _build(block: Block, ids: CallIds, known: Mapping[str, MediaSource]) -> str | None:
    match block:
        case Text(text=text):
            return _text_part(text) if text.strip() else None
        case Thinking():
            return None  # only a signature of this API makes thinking acceptable to it
        case ToolCall(name=name, arguments=arguments):
            return f'{{"type":"tool_use","id":{dump(ids.call(block))},"name":{dump(name)},"input":{_input(arguments)}}}'
        case ToolResult(text=text, error=error, media=media):
            content: object = text
            if media:
                texts: list[object] = [{"type": "text", "text": text}] if text.strip() else []
                content = texts + [_media_part(item, known) for item in media]
            flag = {"is_error": True} if error else {}
            return dump({"type": "tool_result", "tool_use_id": ids.result(block), "content": content, **flag})
        case Media():
            return dump(_media_part(block, known)) if block.origin is not Origin.MODEL else _text_part(note(block))
        case Opaque(type=kind, text=text):
            return _text_part(text if text.strip() else f"[{kind}]")


def _media_part(media: Media, known: Mapping[str, MediaSource]) -> dict[str, object]:
    found = known.get(media.sha256)
    return medium(found) if found and carries(found) else {"type": "text", "text": note(media)}


def carries(item: MediaSource) -> bool:
    """Whether a message or result can hold this medium."""
    return bool((item.data and (item.image or item.media_type == PDF)) or item.url)


def medium(item: MediaSource) -> dict[str, object]:
    """The part of a message or result that holds a medium."""
    kind = "image" if item.image else "document"
    if item.data:
        return {"type": kind, "source": {"type": "base64", "media_type": item.media_type, "data": item.data}}
    return {"type": kind, "source": {"type": "url", "url": item.url}}


def _results_first(run: list[_RenderedMessage], memo: Memo) -> list[bytes]:
    """The messages of one role in a row. The API joins them, and wants every tool result before anything else."""
    messages = [out.message for out in run]
    if run[0].role != "user" or _is_sorted(out.results for out in run) or not any(out.loose or _is_mixed(out) for out in run):
        return messages
    texts = [source(message, "message") for message in messages]
    parts = [_content_parts(text) for text in texts]
    if _is_sorted([is_result for _, is_result in message] for message in parts):
        return messages
    holding = [n for n, message in enumerate(parts) if any(is_result for _, is_result in message)]
    joined = [part for message in parts[: holding[-1] + 1] for part in message]
    ordered = array_text(raw for raw, _ in sorted(joined, key=lambda part: not part[1]))
    return [memo.encoded(with_members(texts[holding[0]], {"content": ordered})), *messages[holding[-1] + 1 :]]


def _is_sorted(messages: Iterable[Sequence[bool]]) -> bool:
    """Whether results stand before anything else in these messages."""
    flat = [is_result for message in messages for is_result in message]
    return flat == sorted(flat, reverse=True)


def _is_mixed(out: _RenderedMessage) -> bool:
    """Whether a message of the host has words before a result: no place for it, be it as it came."""
    begins_with_result = out.message.startswith(_RESULT_FIRST) and b'{"type":"text"' not in out.message
    return not begins_with_result and not _is_sorted([out.results])


def _content_parts(text: str) -> list[tuple[str, bool]]:
    content = value_of(members(text), "content") or '""'
    if not content.startswith("["):
        return [(f'{{"type":"text","text":{content}}}', False)]
    return [(item.text, _type_of(item.text) == "tool_result") for item in elements(content)]


def _type_of(part: str) -> Json:
    return object_of(load(part), "part").get("type")


def _text_part(text: str) -> str:
    return dump({"type": "text", "text": text})


def _input(arguments: str) -> str:
    try:
        return arguments if isinstance(load(arguments), dict) else dump({"arguments": arguments})
    except InputError:
        return dump({"arguments": arguments})  # the API takes objects only


def _role_name(role: Role) -> str:
    return "user" if role is Role.TOOL else str(role)


def _origin(role: Role) -> Origin:
    return next(origin for known, origin in _ROLES.values() if known is role)


def _seal(signature: str) -> str:
    return sha256(signature.encode()).hexdigest() if signature else ""


def source_in(part: Mapping[str, Json]) -> MediaSource | None:
    """The source that a part names."""
    inner = part.get("source")
    if not isinstance(inner, dict):
        return None
    image = part.get("type") == "image"
    name = "\n".join(filter(None, (optional_string(part, "title"), optional_string(part, "context"))))
    kind, data = inner.get("type"), optional_string(inner, "data")
    media_type = optional_string(inner, "media_type")
    match kind:
        case "base64":
            return MediaSource(media_type=media_type, data=data, name=name, image=image)
        case "text":
            return MediaSource(media_type=PLAIN, plain=data, name=name, image=image)
        case "url":
            return MediaSource(url=optional_string(inner, "url"), name=name, image=image)
        case "file":
            return MediaSource(file_id=optional_string(inner, "file_id"), name=name, image=image)
        case _:
            return None
