"""What SDKs hand over and take, as dictionaries. Promise: nothing is lost on the way."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from tenure.dialects.json_text import clean, load
from tenure.errors import InputError
from tenure.record.tools import DECLARATION

_decode: Final = msgspec.json.Decoder().decode


def plain(value: Any) -> Any:
    """An SDK's object as the dictionary it stands for; all else as it is."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else value


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
        return _sendable(load(message.decode("utf-8", "surrogatepass"), "message"))


def _sendable(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case list():
            return [_sendable(each) for each in cast(list[Any], value)]
        case dict():
            return {clean(key): _sendable(each) for key, each in cast(dict[str, Any], value).items()}
        case _:
            return value


def call_id(asked: Any) -> str:
    """The id of a tool call as a reply holds it. Raises InputError for what is no call."""
    fields = decoded(asked) if isinstance(asked, bytes) else asked
    if not isinstance(fields, Mapping):
        raise InputError("tool call", repr(fields), "a tool call as the provider's reply holds it")
    fields = cast(Mapping[str, Any], fields)
    found = fields.get("call_id") or fields.get("id") or ""
    if not found:
        raise InputError("tool call", f"no id among {sorted(fields)}", "a tool call as the provider's reply holds it")
    return str(found)
