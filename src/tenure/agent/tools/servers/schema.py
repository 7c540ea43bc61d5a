"""What a server says its tool takes, as every provider accepts it. Pure but for a library that is loaded.

OpenAI wants `properties` and no alternatives at the top ("object schema missing properties"); Anthropic keys of a certain form ("Property keys should
match pattern '^[a-zA-Z0-9_.-]{1,64}$'", github.com/anthropics/claude-code issue 79418) and valid JSON Schema, draft 2020-12.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from typing import Any, Final, cast

from msgspec import Struct

from tenure.apis.json_text import dump

LONGEST: Final = 30_000  # characters of a schema's JSON
TOLD: Final = 1_500  # of a schema that is told in words instead

_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_.-]+")
_LONGEST_KEY: Final = 57
_NOT_AT_THE_TOP: Final = frozenset({"$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"})


class Taken(Struct, frozen=True, kw_only=True):
    """What a tool takes. `own` are the server's names of those fields that go by another; `told` goes into the description."""

    schema: Mapping[str, Any]
    own: Mapping[str, str] = {}
    told: str = ""


def taken(given: Mapping[str, Any]) -> Taken:
    """A server's schema as it can be offered; in words where it cannot."""
    text = _text(given)
    if given.get("type") != "object" or len(text) > LONGEST or not _is_sound(given):
        return Taken(schema={"type": "object", "properties": {}}, told=_told(text))
    properties = cast(Mapping[str, Any], given.get("properties") or {})
    names = _names(properties)
    schema = {key: value for key, value in given.items() if key not in _NOT_AT_THE_TOP}
    schema["properties"] = {names.get(key, key): value for key, value in properties.items()}
    if "required" in given:
        schema["required"] = [names.get(key, key) for key in cast(list[str], given["required"])]
    told = _told(text) if given.keys() & (_NOT_AT_THE_TOP - {"$schema", "$id"}) else ""
    return Taken(schema=schema, own={new: key for key, new in names.items()}, told=told)


def _names(properties: Mapping[str, Any]) -> dict[str, str]:
    """Other names for the fields whose own no provider takes."""
    names: dict[str, str] = {}
    used = {key for key in properties if _KEY.fullmatch(key)}
    for key in properties:
        if key not in used:
            name = _UNSAFE.sub("_", key)[:_LONGEST_KEY] or "_"
            names[key] = name if name not in used else f"{name}_{sha256(key.encode('utf-8', 'replace')).hexdigest()[:6]}"
            used.add(names[key])
    return names


def _text(given: Mapping[str, Any]) -> str:
    try:
        return dump(given)
    except (RecursionError, ValueError, TypeError):
        return ""


def _told(text: str) -> str:
    return f"Its arguments as JSON Schema: {text[:TOLD]}{'…' * (len(text) > TOLD)}" if text else ""


def _is_sound(given: Mapping[str, Any]) -> bool:
    """Whether it is JSON Schema; the protocol's SDK brings who knows."""
    try:
        import_module("jsonschema").Draft202012Validator.check_schema(given)
    except ImportError:  # then it is the provider's to say
        return True
    except Exception:  # a schema of a stranger's: besides SchemaError it can hold loops, patterns and references that the checker itself stumbles over
        return False
    return True
