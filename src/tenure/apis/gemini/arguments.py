"""The body of a request and the arguments of the SDK's call, one as the other.

The SDK's `generate_content(model=…, contents=…, config=…)` has one flat config where the API has a body with `generationConfig` inside.
https://googleapis.github.io/python-genai/genai.html#genai.types.GenerateContentConfig https://ai.google.dev/api/generate-content#request-body
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tenure.apis.sdk import plain

# Members of the SDK's config that are members of the body. All others are settings of the generation,
_OF_BODY: Final = frozenset(
    {"systemInstruction", "tools", "toolConfig", "safetySettings", "cachedContent", "serviceTier", "store", "labels"}
)
# but for these, which only the SDK knows.
_OF_SDK: Final = frozenset({"httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling"})


def camel(name: str) -> str:
    """A name as the body has it."""
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)


def snake(name: str) -> str:
    """A name as the SDK has it."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def body_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body, from fields of it or arguments of the SDK's call. What only the SDK knows stays in `config`."""
    fields = {camel(name): value for name, value in given.items() if name != "config"}
    settings, rest = dict[str, Any](), dict[str, Any]()
    for name, value in _members(given.get("config")).items():
        key = camel(name)
        (rest if key in _OF_SDK else fields if key in _OF_BODY else settings)[key] = value
    if fields.get("tools") in (None, []):
        fields.pop("tools", None)
    if (system := fields.get("systemInstruction")) is not None:
        fields["systemInstruction"] = {"parts": texts_of(system)}
    if settings:
        fields["generationConfig"] = {**_members(fields.get("generationConfig")), **settings}
    return {**fields, "config": rest} if rest else fields


def sdk_arguments(fields: Mapping[str, Any], contents: Sequence[Any]) -> dict[str, Any]:
    """The keyword arguments of the SDK's call, from the fields of a body."""
    inner = {**_members(fields.get("config")), **_members(fields.get("generationConfig"))}
    inner |= {name: value for name, value in fields.items() if name not in ("config", "generationConfig", "model")}
    config = {snake(name): value for name, value in inner.items()}
    named = {"model": fields["model"]} if "model" in fields else {}
    return {**named, "contents": list(contents), **({"config": config} if config else {})}


def texts_of(system: Any) -> list[Any]:
    """The parts of a system instruction: the SDK takes a text, a part, a content, or a list of texts and parts."""
    value: Any = plain(system)
    if isinstance(value, str):
        return [{"text": value}]
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return texts_of(fields["parts"] or []) if "parts" in fields else [dict(fields)]
    return [part for each in cast(Sequence[Any], value) for part in texts_of(each)]


def _members(value: Any) -> dict[str, Any]:
    """The members that an object of the SDK's types or a dictionary has, with their values as they are."""
    if isinstance(value, Mapping):
        return {name: each for name, each in cast(Mapping[str, Any], value).items() if each is not None}
    names: set[str] = getattr(value, "model_fields_set", set[str]())
    return {name: each for name in sorted(names) if (each := getattr(value, name)) is not None}
