"""What a question may stand behind: a request as it was rendered, and how to go on with it. Pure, and byte-stable.

A prefix says itself what it was rendered for, and a model of another API refuses it: sent all the same, it would be paid for and misread.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.apis.json_text import (
    Json,
    Slice,
    array_text,
    dump,
    elements,
    encoded,
    load,
    members,
    source,
    value_of,
    with_members,
)
from tenure.errors import InputError

SETTINGS: Final = ("model", "thinking", "max_tokens", "max_completion_tokens", "tools", "conversation")  # that decide something
_BODY: Final = {"openai-chat": "messages", "anthropic": "messages", "openai-responses": "input"}

# Settings of a request that hold for its answer and not for another's, in any of the three APIs; of `text` and `output_config` the format.
BENDING: Final = (
    "response_format", "output_format", "stop", "stop_sequences", "n", "logit_bias", "prediction", "modalities", "audio"
)  # fmt: skip
_FORMATS: Final = ("text", "output_config")
_CHOICES: Final = ("tool_choice", "function_call")


class Prefix(Struct, frozen=True, kw_only=True):
    """A request that is to be continued."""

    text: str
    body: str  # the key that holds its messages
    settings: Mapping[str, Json]  # those of `SETTINGS` that it has; its messages are not decoded


def dialects_of(raw: bytes) -> tuple[str, ...]:
    """The dialects that a request can have been rendered in, as far as its head and its first message tell.

    Raises InputError when it is no request.
    """
    return _dialects(members(source(raw, "prefix"), "prefix"))


def read_prefix(raw: bytes, dialect: str) -> Prefix:
    """The prefix of a question to a model that speaks `dialect`. Raises InputError when it is none, or of another dialect."""
    text = source(raw, "prefix")
    items = members(text, "prefix")
    allow(_dialects(items), (dialect,))
    settings = {key: load(value, "prefix") for key in SETTINGS if (value := value_of(items, key)) is not None}
    return Prefix(text=text, body=_BODY[dialect], settings=settings)


def allow(found: Sequence[str], spoken: Sequence[str]) -> None:
    """Raise InputError unless a request of one of the dialects `found` can go to who speaks only `spoken`."""
    if not set(found) & set(spoken):
        raise InputError("prefix", f"a request in {' or '.join(found)}", f"one in {' or '.join(spoken)}, which this model speaks")


def forked(raw: bytes) -> bytes:
    """The request without what would bend or cut the answer to another question: stops, formats, forced calls, sampling that bans words.

    What else the model reads before that question stays byte for byte, so that the provider's cache is read; a format is part of the prompt's
    beginning at OpenAI and at Anthropic, and is dropped all the same: a plan that is no plan is worth no cache. Raises InputError for no request.
    """
    text = source(raw, "prefix")
    found = {item.key: item.text for item in members(text, "prefix")}
    changed: dict[str, str | None] = dict.fromkeys(key for key in BENDING if key in found)
    for key in _FORMATS:
        held = load(found[key], "prefix") if key in found else None
        if isinstance(held, dict) and "format" in held:
            changed[key] = with_members(found[key], {"format": None}) if len(held) > 1 else None
    changed |= dict.fromkeys(key for key in _CHOICES if key in found and _forces(load(found[key], "prefix")))
    return encoded(with_members(text, changed)) if changed else raw


def _forces(choice: Json) -> bool:
    """Whether a choice of tools leaves the model no answer in words."""
    if not isinstance(choice, dict):
        return choice in ("required", "any")
    if choice.get("type") == "allowed_tools":  # in Chat Completions inside a member of that name
        inner = choice.get("allowed_tools")
        return (inner if isinstance(inner, dict) else choice).get("mode") == "required"
    return choice.get("type") not in ("auto", "none")


def continued(prefix: Prefix, tail: Iterable[str], settings: Mapping[str, object], dropped: Sequence[str] = ()) -> bytes:
    """The request with more messages directly behind its last, with these settings, and without those `dropped`.

    Not one byte that the model reads before the new messages changes. Raises InputError when there are none before.
    """
    values = {key: dump(value) for key, value in settings.items()} | dict.fromkeys(dropped)
    return encoded(with_members(_with_messages(prefix, tail), values))


def _with_messages(prefix: Prefix, tail: Iterable[str]) -> str:
    held = next(item for item in reversed(members(prefix.text, "prefix")) if item.key == prefix.body)
    start = held.end - len(held.text)
    if prefix.body == "input" and held.text.startswith('"'):  # a string is one user message, and the model reads the same
        opened = array_text([f'{{"role":"user","content":{held.text}}}', *tail])
        return prefix.text[:start] + opened + prefix.text[held.end :]
    spoken = elements(held.text, f"prefix, {prefix.body}")
    if not spoken:
        raise _empty()
    at = start + spoken[-1].end
    return prefix.text[:at] + "".join(f",{message}" for message in tail) + prefix.text[at:]


def _dialects(items: Sequence[Slice]) -> tuple[str, ...]:
    spoken = value_of(items, "messages")
    if spoken is None:
        if value_of(items, "input") is None:
            raise _empty()
        return ("openai-responses",)
    tools = _tools(value_of(items, "tools"))
    if (value_of(items, "system") or "")[:1] in ('"', "[") or any("input_schema" in tool for tool in tools):
        return ("anthropic",)
    first = elements(spoken, "prefix, messages")[:1]
    opening = load(first[0].text, "prefix") if first else None
    instructed = isinstance(opening, dict) and opening.get("role") in ("system", "developer")
    if instructed or any("function" in tool for tool in tools):
        return ("openai-chat",)
    return ("openai-chat", "anthropic")


def _tools(raw: str | None) -> list[dict[str, Json]]:
    tools = load(raw, "prefix") if raw is not None else None
    return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _empty() -> InputError:
    return InputError("prefix", "no messages", "a request that was rendered for this provider")
