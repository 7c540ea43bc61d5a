"""What SDKs hand over and take, as dictionaries."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec.structs import asdict, replace

from tenure.apis.json_text import clean, dump, load
from tenure.engine.record.entry import Block, Draft
from tenure.engine.record.tools import DECLARATION
from tenure.errors import InputError

_HELPERS_KEYS: Final = ("parsed", "parsed_arguments", "parsed_output")
_decode: Final = msgspec.json.Decoder().decode


def plain(value: Any) -> Any:
    """An SDK's object as the dictionary it stands for, without what a streaming helper adds to it; all else as it is."""
    write = None if isinstance(value, type) else getattr(value, "model_dump", None)
    if not callable(write):
        return value
    fields = write(mode="json", exclude_unset=True, by_alias=True)
    return _without_helper_keys(fields) if type(value).__name__.startswith("Parsed") else fields


def _without_helper_keys(value: Any) -> Any:
    """A value without the keys that an SDK's helper adds and its API refuses."""
    match value:
        case list():
            return [_without_helper_keys(each) for each in cast(list[Any], value)]
        case dict():
            fields = cast(dict[str, Any], value)
            added = (*_HELPERS_KEYS, "index") if "function" in fields else _HELPERS_KEYS
            return {key: _without_helper_keys(each) for key, each in fields.items() if key not in added}
        case _:
            return value


def is_json(value: Any) -> bool:
    """Whether a value can stand in a body: an SDK's sentinel, a class or a timeout cannot."""
    try:
        dump(value)
    except (InputError, TypeError, ValueError):
        return False
    return True


def reply_id(reply: Any) -> str:
    """The id that the provider gave a reply; empty when it has none."""
    fields = decoded(reply) if isinstance(reply, bytes) else reply
    if not isinstance(fields, Mapping):
        return ""
    named = cast(Mapping[str, Any], fields)
    return next((str(named[key]) for key in ("id", "responseId", "response_id") if named.get(key)), "")


def undeclared(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The tool without our own declaration, which providers do not know."""
    bare = {key: value for key, value in tool.items() if key != DECLARATION}
    if isinstance(bare.get("function"), Mapping):
        bare["function"] = {key: value for key, value in bare["function"].items() if key != DECLARATION}
    return bare


def decoded(message: bytes) -> Any:
    """A message as an SDK can send it. What a fast parser refuses is read all the same; a lone surrogate, which none can send, is U+FFFD."""
    try:
        return _decode(message)
    except (msgspec.DecodeError, UnicodeError):
        return sendable(load(message.decode("utf-8", "surrogatepass"), "message"))


def sendable(value: Any) -> Any:
    """A value as JSON of UTF-8 can carry it: a lone surrogate becomes U+FFFD. What is no JSON stays as it is."""
    match value:
        case str():
            return clean(value)
        case list():
            return [sendable(each) for each in cast(list[Any], value)]
        case dict():
            return {clean(key): sendable(each) for key, each in cast(dict[str, Any], value).items()}
        case _:
            return value


def storable(draft: Draft) -> Draft:
    """A host's draft as a record can keep it: a lone surrogate becomes U+FFFD."""
    try:
        msgspec.json.encode(draft.blocks)
    except UnicodeEncodeError:
        return replace(draft, blocks=tuple(replace(block, **sendable(_texts(block))) for block in draft.blocks))
    return draft


def _texts(block: Block) -> dict[str, str]:
    return {key: value for key, value in asdict(block).items() if isinstance(value, str)}
