"""Arguments that a model wrote, as a typed value or as a result that helps it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from tenure.agent.approval import Approval
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.apis.json_text import Json, load
from tenure.errors import InputError

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NAMES: Final[Mapping[type, str]] = {bool: "a boolean", str: "a string", list: "an array", type(None): "null"}
_EXPECTED: Final = re.compile(r"Expected (?P<wanted>.+?)(?:, got (?P<found>\w+))?(?: - at \$\.?(?P<place>.*))?", re.DOTALL)
_TYPES: Final = {
    "int": "an integer",
    "str": "a string",
    "bool": "a boolean",
    "float": "a number",
    "array": "an array",
    "object": "an object",
}
_ORDER: Final = ("type", "description", "enum", "items", "properties", "required", "additionalProperties")
_DROPPED: Final = frozenset({"title", "default"})  # what msgspec adds, and no model needs

T = TypeVar("T", bound=Struct)


def parse_arguments(kind: type[T], arguments: str, tool: str) -> T | ToolOutcome:
    """The arguments of a call of `tool`, or the error that names what was expected. Never raises."""
    try:
        return _read(kind, arguments)
    except InputError as error:
        return ToolOutcome(text=f"{tool}: {error}. It takes {_signature(kind)}.", error=True)


class ArgumentTool(ABC, Generic[T]):
    """A tool of ours, which takes its arguments as a struct. Arguments that cannot be read need nothing, and are answered with what was expected."""

    name: str
    takes: type[T]

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments."""
        return schema_of(self.takes)

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:
        """What the call would change; None when nothing, or when its arguments cannot be read."""
        given = parse_arguments(self.takes, arguments, self.name)
        return None if isinstance(given, ToolOutcome) else self._needs(given, workspace)

    async def run(self, arguments: str, here: Here) -> ToolOutcome:
        """What came of the call."""
        given = parse_arguments(self.takes, arguments, self.name)
        if isinstance(given, ToolOutcome):
            return given
        try:
            return await self._run(given, here)
        except InputError as error:
            return ToolOutcome(text=f"{self.name}: {error}{self._hint(given, here)}", error=True)

    def _needs(self, given: T, workspace: Workspace, /) -> Approval | None:  # noqa: ARG002 - for tools that change something
        """As `needs`."""
        return None

    @abstractmethod
    async def _run(self, given: T, here: Here, /) -> ToolOutcome:
        """As `run`. Raises InputError for what cannot be done."""

    def _hint(self, given: T, here: Here, /) -> str:  # noqa: ARG002 - for tools that have one
        """What follows an error."""
        return ""


def _read(kind: type[T], arguments: str) -> T:
    """The arguments of a call; null is as good as left out. Raises InputError."""
    text = arguments.strip() or "{}"
    value = load(text, "arguments")
    if not isinstance(value, dict):
        raise InputError("arguments", f"found {_NAMES.get(type(value), 'a number')}", "one JSON object")
    if "\\u" in text and not _is_unicode(value):
        raise InputError("arguments", "half of a surrogate pair", "text that is valid Unicode")
    try:
        return msgspec.convert({key: inner for key, inner in value.items() if inner is not None}, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError("arguments", _in_words(str(error))) from error


def _signature(kind: type[Struct]) -> str:
    """The fields of some arguments in a line: `path (string), offset (integer, optional)`."""
    schema = schema_of(kind)
    required = cast(tuple[str, ...], schema.get("required", ()))
    fields = cast(Mapping[str, Mapping[str, Any]], schema["properties"])
    return ", ".join(
        f"{name} ({'|'.join(field.get('enum', ())) or field.get('type')}{'' if name in required else ', optional'})"
        for name, field in fields.items()
    )


@cache
def schema_of(kind: type[Struct]) -> Mapping[str, Any]:
    """The JSON Schema of some arguments, without references, frozen; the same for the same type."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    return cast(Mapping[str, Any], frozen(_plain(schema, parts)))


class Frozen(dict[str, Any]):
    """A dictionary that stays as it is; encoders take it for any other."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("a schema does not change")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore


def frozen(value: Any) -> Any:
    """JSON that nobody can change."""
    match value:
        case Mapping():
            return Frozen({key: frozen(inner) for key, inner in cast(Mapping[str, Any], value).items()})
        case list() | tuple():
            return tuple(frozen(inner) for inner in cast(list[Any], value))
        case _:
            return value


def _plain(value: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with its references replaced by what they name, its keys in a settled order."""
    match value:
        case {"$ref": str(name), **rest}:
            return _plain({**parts[name], "description": None, **rest}, parts)  # a class's own words are not for a model
        case {"anyOf": [inner, {"type": "null"}]}:  # what may be left out
            return _plain(inner, parts)
        case dict():
            schema = cast(dict[str, Any], value)
            if "enum" in schema and "type" not in schema:
                schema = dict[str, Any](schema, type="string")
            given = [key for key, inner in schema.items() if inner not in (None, []) and key not in _DROPPED]
            keys = sorted(given, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))
            fields = {name: _plain(field, parts) for name, field in schema.get("properties", {}).items()}
            return {key: fields if key == "properties" else _plain(schema[key], parts) for key in keys}
        case list():
            return [_plain(inner, parts) for inner in cast(list[Any], value)]
        case _:
            return value


def _is_unicode(value: Json) -> bool:
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text) if not text.isascii() and _SURROGATE.search(text):
                return False
            case list(inner):
                waiting += inner
            case dict(inner):
                waiting += [*inner.keys(), *inner.values()]
            case _:
                pass
    return True


def _in_words(said: str) -> str:
    """What msgspec says of a wrong value, in the words of JSON."""
    said = said.replace("`", "")
    wrong = _EXPECTED.fullmatch(said)
    if wrong is None:
        return (said[:1].lower() + said[1:]).replace(" - at $.", " at ")
    wanted = _TYPES.get(wrong["wanted"], wrong["wanted"])
    found = f"found {_TYPES.get(wrong['found'], wrong['found'])}, " if wrong["found"] else ""
    return f"{wrong['place'] or 'the whole'}: {found}expected {wanted}"
