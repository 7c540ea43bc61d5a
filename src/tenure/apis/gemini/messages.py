"""Contents of Gemini's `generateContent`, and how their parts line up with blocks.

A content's parts are texts, calls, responses, media; each that says something is one block, so an edit exchanges or takes out exactly one slice. Google's
parsers take members in camel case and in snake case, which is how the SDK's objects write themselves; both are read, and what is written is camel case.
https://ai.google.dev/api/caching#Content https://ai.google.dev/api/caching#Part
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from tenure.apis.call_ids import CallIds
from tenure.apis.json_text import (
    Json,
    Slice,
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
from tenure.apis.media import PDF, PLAIN, MediaSource, media_of, note, sources
from tenure.apis.memo import Memo
from tenure.apis.memo import spelled as spelled_as
from tenure.apis.reply import fields_of
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.piece import Piece
from tenure.errors import InputError

NAME: Final = "gemini"

# Who speaks -> its role, and who wrote its text. Without a role it is the user. Responses come from the user; older examples say `function` or `tool`.
# `system` is no role of the API: a host may have it in a history all the same, and requests carry it as `systemInstruction`.
_ROLES: Final = {
    "user": (Role.USER, Origin.HUMAN),
    "model": (Role.ASSISTANT, Origin.MODEL),
    "function": (Role.TOOL, Origin.TOOL),
    "tool": (Role.TOOL, Origin.TOOL),
    "system": (Role.SYSTEM, Origin.HARNESS),
}

# Members of a response that are all of it: "output" and "error" by the API's reference of FunctionResponse, "result" as the SDK's own calls have it.
_WHOLE: Final = ("output", "error", "result")

# In place of a signature, for a call that the model did not make or whose signature left with another call:
# ai.google.dev/gemini-api/docs/thought-signatures#faqs
NO_SIGNATURE: Final = "skip_thought_signature_validator"

_ROLE: Final = re.compile(rb'\A\s*\{\s*"role"\s*:\s*"(\w+)"|"role"\s*:\s*"(\w+)"\s*\}\s*\Z')
_TAIL: Final = 64  # bytes at a content's end that hold its role, where it stands there
_GOOGLES: Final = re.compile(r"gs://|https://generativelanguage\.googleapis\.com/")  # files that nobody else can fetch


class _ContentPart(NamedTuple):
    place: int  # among the parts
    raw: str
    block: Block


class Calls(CallIds):
    """Calls without an id are known by the name of their tool; the id of others may be of any characters."""

    def fit(self, call: ToolCall) -> str:
        """The id of a call; "" where it has none."""
        return "" if call.call_id == call.name else call.call_id

    own = fit


def member(fields: Mapping[str, Any], key: str) -> Any:
    """The value at `key`, spelled either way; None where there is none."""
    return fields[key] if key in fields else fields.get(_snake(key))


def spelled(items: Iterable[Slice], key: str) -> str:
    """How an object spells `key`; in camel case where it does not have it."""
    return next((item.key for item in items if item.key in (key, _snake(key))), key)


@cache
def _snake(key: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key)


def role_of(content: bytes) -> str:
    """Who speaks in a rendered content."""
    found = _ROLE.search(content[:_TAIL]) or _ROLE.search(content[-_TAIL:])
    if found:
        return (found[1] or found[2]).decode()
    return str(object_of(load(source(content, "content")), "content").get("role") or "user")


def draft_of(text: str, where: str) -> Draft:
    """The draft of a content. Raises InputError."""
    fields = object_of(load(text, where), where)
    role, origin = _role(fields, where)
    blocks = tuple(spot.block for spot in _spots(text, origin, where)) or (Text(text="", origin=origin),)
    return Draft(role=role, blocks=blocks, dialect=NAME, payload=encoded(text))


def rendered(pieces: Sequence[Piece], memo: Memo) -> tuple[bytes, ...]:
    """One content per piece that shows something."""
    calls = Calls()
    return tuple(content for piece in pieces if (content := _rendered(piece, calls, memo)))


def joined(first: bytes, second: bytes) -> bytes:
    """Two contents of one role as one: responses before all else, as the API wants them right behind their calls."""
    text = source(first, "content")
    return encoded(_ordered(text, [*parts_of(text), *parts_of(source(second, "content"))]))


def signed(content: bytes) -> bytes:
    """A content of the model whose first call has a signature; where it has none, the one that stands for none."""
    if b'"functionCall"' not in content and b'"function_call"' not in content:
        return content
    text = source(content, "content")
    parts: list[str | None] = list(parts_of(text))
    if not _sign_first_call(parts):
        return content
    return encoded(with_members(text, {"parts": with_elements(value_of(members(text), "parts") or "[]", parts)}))


def parts_of(text: str) -> list[str]:
    """The parts of a content, as they are spelled."""
    return [item.text for item in elements(value_of(members(text), "parts") or "[]")]


def source_in(part: Mapping[str, Any]) -> MediaSource | None:
    """The source of an `inlineData` or `fileData`."""
    inline, file = fields_of(member(part, "inlineData")), fields_of(member(part, "fileData"))
    if inline:
        kind, name = _string(inline, "mimeType"), _string(inline, "displayName")
        return MediaSource(media_type=kind, data=_string(inline, "data"), name=name, image=not kind or kind.startswith("image/"))
    if file:
        kind, name, uri = _string(file, "mimeType"), _string(file, "displayName"), _string(file, "fileUri")
        held = {"file_id": uri} if _GOOGLES.match(uri) else {"url": uri}
        return MediaSource(media_type=kind, name=name, image=kind.startswith("image/"), **held)
    return None


def carries(item: MediaSource) -> bool:
    """Whether a content or a function's response can hold this medium.

    Images, PDF documents and plain text: https://ai.google.dev/gemini-api/docs/function-calling#multimodal
    """
    is_kind = item.image or item.media_type in (PDF, PLAIN)
    return bool((item.data and is_kind) or (item.file_id and _GOOGLES.match(item.file_id)))


def medium(item: MediaSource) -> dict[str, Any]:
    """The part that holds a medium."""
    kind = item.media_type or ("image/png" if item.image else PDF)
    if item.data:
        return {"inlineData": {"mimeType": kind, "data": item.data}}
    return {"fileData": {"mimeType": kind, "fileUri": item.url or item.file_id}}


def response_of(
    name: str, call_id: str, text: str, *, error: bool = False, media: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The part that answers a call. Media are parts of the response, which models from Gemini 3 on read."""
    named = {"id": call_id} if call_id else {}
    parts = {"parts": list(media)} if media else {}
    return {"functionResponse": {**named, "name": name, "response": {"error" if error else "output": text}, **parts}}


def arguments_of(text: str) -> str:
    """The JSON of a call's arguments, which are an object."""
    try:
        return text if isinstance(load(text), dict) else dump({"arguments": text})
    except InputError:
        return dump({"arguments": text})


def response_text(response: Json) -> str:
    """What a function's response says: its one member where that is all of it, else its JSON."""
    said = response
    if isinstance(response, dict) and len(response) == 1 and (key := next(iter(response))) in _WHOLE:
        said = response[key]
    return clean(said) if isinstance(said, str) else clean(dump(said)) if said or said is not response else ""


def _ordered(text: str, parts: Sequence[str]) -> str:
    """A content with these parts, responses first."""
    return with_members(text, {"parts": array_text(sorted(parts, key=lambda part: not _is_response(part)))})


def _is_response(part: str) -> bool:
    return ("functionResponse" in part or "function_response" in part) and member(_fields(part), "functionResponse") is not None


def _role(fields: Mapping[str, Json], where: str) -> tuple[Role, Origin]:
    role = fields.get("role") or "user"
    if not isinstance(role, str) or role not in _ROLES:
        raise InputError(where, f"role {role!r}", ", ".join(_ROLES))
    if not isinstance(fields.get("parts"), list | None) or ("parts" not in fields and "content" in fields):
        found = f"parts {dump(fields['parts'])[:40]}" if "parts" in fields else "a message with `content`"
        raise InputError(where, found, "a content: its role and a list of `parts`")
    return _ROLES[role]


def _spots(text: str, origin: Origin, where: str) -> list[_ContentPart]:
    raw = value_of(members(text, where), "parts") or "[]"
    parts = enumerate(elements(raw, where) if raw.startswith("[") else [])
    found = ((n, item.text, _block(item.text, origin, f"{where}, part {n}")) for n, item in parts)
    return [_ContentPart(n, raw, block) for n, raw, block in found if block is not None]


def _block(raw: str, origin: Origin, where: str) -> Block | None:
    """What a part says; None for one that says nothing, such as the signature at the end of a stream."""
    fields = object_of(load(raw, where), where)
    text = fields.get("text")
    if isinstance(text, str):
        if fields.get("thought") is True:
            return Thinking(text=clean(text), seal=_seal(fields))
        return Text(text=clean(text), origin=origin) if text else None
    if "text" in fields:
        raise InputError(where, f"no text but {dump(text)[:40]}", "a string as text")
    items = members(raw)
    if call := member(fields, "functionCall"):
        return _call(object_of(call, where), value_of(items, spelled(items, "functionCall")) or "{}", where)
    if response := member(fields, "functionResponse"):
        return _result(object_of(response, where), where)
    if found := source_in(fields):
        return media_of(found, origin)
    kind = next((key for key, value in fields.items() if isinstance(value, dict)), "")
    other = Origin.MODEL if origin is Origin.MODEL else Origin.HARNESS
    return Opaque(type=kind, text=clean(raw), origin=other) if kind else None


def _call(fields: Mapping[str, Json], raw: str, where: str) -> ToolCall:
    name = string_of(fields, "name", where)
    arguments = value_of(members(raw), "args")
    return ToolCall(
        call_id=optional_string(fields, "id") or name,
        name=name,
        arguments="{}" if arguments in (None, "null") else clean(arguments or ""),
    )


def _result(fields: Mapping[str, Json], where: str) -> ToolResult:
    response, parts = fields.get("response"), fields.get("parts")
    found = [source_in(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return ToolResult(
        call_id=optional_string(fields, "id") or string_of(fields, "name", where),
        text=response_text(response),
        error=isinstance(response, dict) and bool(response.get("error")),
        media=tuple(media_of(item, Origin.TOOL) for item in found if item),
    )


def _rendered(piece: Piece, calls: Calls, memo: Memo) -> bytes | None:
    if piece.dialect != NAME or not piece.payload or not calls.keep(piece.blocks):
        built = _built(piece, calls)
        return memo.encoded(built) if built else None
    return memo.of(piece, _native)


def _native(piece: Piece) -> bytes | None:
    """A content of this API as far as it is shown."""
    text = source(piece.payload, "payload")
    shown = _patched(text, piece) if piece.edited else text if any(map(_says_anything, piece.blocks)) else None
    if shown is None:
        return None
    is_result = [isinstance(block, ToolResult) for block in piece.blocks]
    return spelled_as(piece, shown if is_result == sorted(is_result, reverse=True) else _ordered(shown, parts_of(shown)))


def _says_anything(block: Block) -> bool:
    """Whether a content with this block is one that the API takes: reasoning alone, or an empty text, is none."""
    return not isinstance(block, Thinking | Text) or (isinstance(block, Text) and bool(block.text.strip()))


def _patched(text: str, piece: Piece) -> str | None:
    spots = _spots(text, Origin.HARNESS, "payload")
    shown = dict(zip(piece.kept, piece.blocks, strict=True))
    if not any(map(_says_anything, piece.blocks)):
        return None
    content = value_of(members(text), "parts") or "[]"
    parts: list[str | None] = [item.text for item in elements(content)]
    was_signed = _first_call_signed(parts)
    for n, spot in enumerate(spots):
        parts[spot.place] = _exchanged(spot, shown[n]) if n in shown else None
    if not any(parts):
        return None
    if was_signed:
        _sign_first_call(parts)
    return with_members(text, {"parts": with_elements(content, parts)})


def _first_call_signed(parts: Sequence[str | None]) -> bool:
    """Whether the first call among these parts has a signature; parallel calls have it on the first only."""
    calls = (fields for fields in map(_fields, filter(None, parts)) if member(fields, "functionCall"))
    first = next(calls, None)
    return first is not None and bool(member(first, "thoughtSignature"))


def _sign_first_call(parts: list[str | None]) -> bool:
    """Give the first call among these parts what stands for a signature, where it has none; whether it was given."""
    for n, part in enumerate(parts):
        fields = _fields(part) if part else {}
        if part and member(fields, "functionCall"):
            if not member(fields, "thoughtSignature"):
                parts[n] = with_members(part, {"thoughtSignature": dump(NO_SIGNATURE)})
                return True
            return False
    return False


def _exchanged(spot: _ContentPart, new: Block) -> str | None:
    old, items = spot.block, members(spot.raw)
    if _same(old, new):
        return spot.raw
    match new:
        case Text() if isinstance(old, Text):
            unsigned: dict[str, str | None] = {spelled(items, "thoughtSignature"): None}  # it was given for another text
            return with_members(spot.raw, {"text": dump(new.text), **unsigned}) if new.text.strip() else None
        case ToolResult() if isinstance(old, ToolResult):
            key = spelled(items, "functionResponse")
            return with_members(spot.raw, {key: _with_result(value_of(items, key) or "{}", old, new)})
        case ToolCall() if isinstance(old, ToolCall):
            key = spelled(items, "functionCall")
            changed = {"name": dump(new.name), "args": arguments_of(new.arguments)}
            return with_members(spot.raw, {key: with_members(value_of(items, key) or "{}", changed)})
        case Thinking():
            whole = isinstance(old, Thinking) and old.signed  # signed: whole or not at all
            return None if whole else with_members(spot.raw, {"text": dump(new.text)})
        case _:
            return dump({"text": _words(new)}) if _words(new) else None


def _same(old: Block, new: Block) -> bool:
    """Whether nothing changed; who wrote a text is not part of it."""
    if isinstance(old, Text) and isinstance(new, Text):
        return old.text == new.text
    return old == new or (isinstance(old, Media) and isinstance(new, Media) and old.sha256 == new.sha256)


def _with_result(raw: str, old: ToolResult, new: ToolResult) -> str:
    items = members(raw)
    before = load(value_of(items, "response") or "null")
    held = next(iter(before)) if isinstance(before, dict) and len(before) == 1 else ""
    key = held if held in _WHOLE and old.error == new.error else "error" if new.error else "output"
    wanted = {media.sha256 for media in new.media}
    parts = [item.text for item in elements(value_of(items, "parts") or "[]")]
    kept = [part for part in parts if (found := source_in(_fields(part))) and media_of(found, Origin.TOOL).sha256 in wanted]
    values: dict[str, str | None] = {"response": dump({key: new.text})}
    return with_members(raw, values | ({"parts": array_text(kept) if kept else None} if parts else {}))


def _built(piece: Piece, calls: Calls) -> str | None:
    known = sources(piece)
    results = [_response(block, calls, known) for block in piece.blocks if isinstance(block, ToolResult)]
    others = [part for block in piece.blocks if not isinstance(block, ToolResult) and (part := _part(block, calls, known))]
    role = "model" if piece.role is Role.ASSISTANT else "user"
    return dump({"role": role, "parts": [*results, *others]}) if results or others else None


def _part(block: Block, calls: Calls, known: Mapping[str, MediaSource]) -> dict[str, Any] | None:
    match block:
        case ToolCall():
            call_id = calls.call(block)
            named = {"id": call_id} if call_id else {}
            return {"functionCall": {**named, "name": block.name, "args": load(arguments_of(block.arguments))}}
        case Thinking() | ToolResult():
            return None  # reasoning of another API means nothing to this one
        case Media() if block.origin is not Origin.MODEL:
            return _media(block, known)
        case _:
            return {"text": _words(block)} if _words(block).strip() else None


def _response(result: ToolResult, calls: Calls, known: Mapping[str, MediaSource]) -> dict[str, Any]:
    name, call_id = calls.answered(result) or (result.call_id or "unknown", "")
    shown = [_media(item, known) for item in result.media]
    words = [result.text, *(str(part["text"]) for part in shown if "text" in part)]
    media = [part for part in shown if "text" not in part]
    return response_of(name, call_id, "\n".join(filter(None, words)), error=result.error, media=media)


def _media(block: Media, known: Mapping[str, MediaSource]) -> dict[str, Any]:
    found = known.get(block.sha256)
    return medium(found) if found and carries(found) else {"text": note(block)}


def _words(block: Block) -> str:
    if isinstance(block, Media):
        return note(block)
    return block.text or (f"[{block.type}]" if isinstance(block, Opaque) else "")


def _fields(part: str) -> dict[str, Json]:
    return object_of(load(part), "part")


def _string(fields: Mapping[str, Json], key: str) -> str:
    value = member(fields, key)
    return clean(value) if isinstance(value, str) else ""


def _seal(fields: Mapping[str, Json]) -> str:
    signature = _string(fields, "thoughtSignature")
    return sha256(signature.encode()).hexdigest() if signature else ""
