"""What is no message or reply of an API: another's message, a whole reply among messages, a stream that is not over."""

from collections.abc import Iterator, Mapping
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, cast

from tenure.apis import APIS
from tenure.apis.api import Api
from tenure.apis.json_text import Message, load, source
from tenure.errors import InputError


def refuse_foreign(message: Message, api: Api, where: str) -> None:
    """Raises InputError for a message that another API made, and for a whole reply where a message is wanted."""
    given = load(source(message, where), where) if isinstance(message, bytes) else message
    if not isinstance(given, Mapping):
        raise InputError(
            where, f"a {type(given).__name__}", "a message: a dictionary, its JSON as bytes, or an object of the SDK"
        )
    fields = cast(Mapping[str, Any], given)
    if api.shape.reply <= fields.keys():
        raise InputError(where, "a whole reply of the API", "`append`, which also learns from its usage")
    others = [other for other in APIS.values() if other.name != api.name]
    for key, owner in ((key, other.name) for other in others for key in sorted(other.shape.fields)):
        if fields.get(key):
            raise InputError(where, f"the field {key!r}, which is one of {owner}", f"messages of {api.name}")
    if fields.get("role") in ("user", "system", "developer") and api.content_key not in fields:
        raise InputError(where, "no content", f"messages of {api.name}")
    for part in _parts(fields, api.content_key):
        kind = str(part.get("type"))
        owner = next((other.name for other in others if _is_of(part, kind, other, api)), "")
        if owner:
            raise InputError(where, f"a part of type {kind!r}, which is one of {owner}", f"messages of {api.name}")


def _is_of(part: Mapping[str, Any], kind: str, other: Api, api: Api) -> bool:
    """Whether a part is of another API, and not taken by this one."""
    has_field = any(isinstance(part.get(key), Mapping) for key in other.shape.part_fields)
    return has_field or (kind in other.shape.parts and kind not in api.shape.also)


def _parts(fields: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    content = fields.get(key)
    parts: list[Any] = [fields, *(cast(list[Any], content) if isinstance(content, list) else ())]
    yield from (cast(Mapping[str, Any], part) for part in parts if isinstance(part, Mapping))


def refuse_stream(value: Any, api: Api, where: str) -> None:
    """Raises InputError, in the words of the SDK, for what is no reply yet: a stream, a coroutine, a raw response. It is not read."""
    if isinstance(value, bytes | Mapping) or callable(getattr(value, "model_dump", None)):
        return
    found = f"a {type(value).__name__}"
    if isawaitable(value):
        if iscoroutine(value):
            value.close()
        raise InputError(where, found, "what it gives: await it first")
    if final := next((each.stream[1] for each in APIS.values() if each.stream[1] and hasattr(value, each.stream[1])), ""):
        wait = "await " if iscoroutinefunction(getattr(value, final)) else ""
        raise InputError(where, f"{found}, which is not over", f"the whole reply: context.append({wait}stream.{final}())")
    if any(hasattr(value, name) for name in ("__next__", "__anext__", "__enter__", "__aenter__")) and not hasattr(value, "parse"):
        if not api.stream[1]:
            raise InputError(where, f"{found}, a stream", api.stream[0])
        wait = "async " if hasattr(value, "__anext__") or hasattr(value, "__aenter__") else ""
        helper = f"{'await ' if wait else ''}stream.{api.stream[1]}()"
        raise InputError(where, f"{found}, a stream", f"{wait}with {api.stream[0]} as stream: context.append({helper})")
    if callable(getattr(value, "parse", None)):
        raise InputError(where, found, "what it holds: context.append(response.parse())")
    raise InputError(where, found, "a reply of the API: the SDK's object, its dictionary, or its JSON as bytes")
