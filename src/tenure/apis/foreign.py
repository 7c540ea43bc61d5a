"""What of one API another would refuse in a message: names of fields and kinds of parts, as tables."""

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, Final, cast

from tenure.apis.dialect import Message
from tenure.apis.json_text import load, source
from tenure.errors import InputError

_CHAT: Final = "openai-chat"
_RESPONSES: Final = "openai-responses"
_MESSAGES: Final = "anthropic"

_CHAT_FIELDS: Final[dict[str, str]] = dict.fromkeys(("tool_calls", "function_call", "tool_call_id"), _CHAT)
_CHAT_PARTS: Final[dict[str, str]] = dict.fromkeys(("image_url", "input_audio"), _CHAT)
_REFUSAL: Final[dict[str, str]] = {"refusal": "OpenAI"}
_RESPONSES_PARTS: Final[dict[str, str]] = dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), _RESPONSES)
_MESSAGES_PARTS: Final[dict[str, str]] = dict.fromkeys(
    ("tool_use", "tool_result", "redacted_thinking", "server_tool_use"), _MESSAGES
)

# By dialect: what is another's, and whose. Servers that take more than an API says are many, so only what cannot be meant otherwise is here.
FIELDS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {_MESSAGES: _CHAT_FIELDS, _RESPONSES: _CHAT_FIELDS, _CHAT: {"call_id": _RESPONSES}}
)
PARTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        _MESSAGES: _CHAT_PARTS | _RESPONSES_PARTS | _REFUSAL,
        _CHAT: _MESSAGES_PARTS | _RESPONSES_PARTS,
        _RESPONSES: _MESSAGES_PARTS | {"image_url": _CHAT},
    }
)

# A whole reply has all of these, and no message has.
REPLIES: Final[Mapping[str, Set[str]]] = MappingProxyType(
    {_MESSAGES: {"role", "stop_reason"}, _CHAT: {"choices"}, _RESPONSES: {"object", "output"}}
)


def refuse_foreign(message: Message, dialect: str, where: str) -> None:
    """Raises InputError for a message that another API made, and for a whole reply where a message is wanted."""
    given = load(source(message, where), where) if isinstance(message, bytes) else message
    if not isinstance(given, Mapping):
        raise InputError(
            where, f"a {type(given).__name__}", "a message: a dictionary, its JSON as bytes, or an object of the SDK"
        )
    fields = cast(Mapping[str, Any], given)
    if REPLIES[dialect] <= fields.keys():
        raise InputError(where, "a whole reply of the API", "`append`, which also learns from its usage")
    for key, owner in FIELDS[dialect].items():
        if fields.get(key):
            raise InputError(where, f"the field {key!r}, which is one of {owner}", f"messages of {dialect}")
    if fields.get("role") in ("user", "system", "developer") and "content" not in fields:
        raise InputError(where, "no content", f"messages of {dialect}")
    for part in _parts(fields):
        kind = str(part.get("type"))
        is_sourced = isinstance(part.get("source"), Mapping)  # so only the Messages API says where media come from
        if owner := _MESSAGES if is_sourced and dialect != _MESSAGES else PARTS[dialect].get(kind, ""):
            raise InputError(where, f"a part of type {kind!r}, which is one of {owner}", f"messages of {dialect}")


def _parts(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = fields.get("content")
    parts: list[Any] = [fields, *(cast(list[Any], content) if isinstance(content, list) else ())]
    yield from (cast(Mapping[str, Any], part) for part in parts if isinstance(part, Mapping))
