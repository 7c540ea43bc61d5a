"""What a question may stand behind: a request as it was rendered, and how to go on with it. Pure, and byte-stable.

A prefix says itself what it was rendered for, and a model of another API refuses it: sent all the same, it would be paid for and misread.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.dialects.json_text import (
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
