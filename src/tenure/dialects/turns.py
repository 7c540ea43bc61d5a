"""Messages for providers that insist on turns: neighbours of one role become one message."""

import re
from collections.abc import Iterable
from typing import Final

from tenure.dialects.json_text import (
    array_text,
    dump,
    elements,
    encoded,
    load,
    members,
    object_of,
    source,
    value_of,
    with_members,
)

_ROLE: Final = re.compile(rb'\{"role":"(\w+)"')
_JOINED: Final = ("user", "assistant")


def role_of(message: bytes) -> str:
    """Who speaks in a rendered message."""
    if spelled := _ROLE.match(message):
        return spelled[1].decode()
    return str(object_of(load(source(message, "message")), "message").get("role"))


def alternate(messages: Iterable[bytes]) -> tuple[bytes, ...]:
    """The messages with neighbours of one role made one. Results of tools that are messages of their own stay apart."""
    turns: list[bytes] = []
    before = ""
    for message in messages:
        role = role_of(message)
        if role == before and role in _JOINED:
            turns[-1] = join(turns[-1], message)
        else:
            turns.append(message)
        before = role
    return tuple(turns)


def join(first: bytes, second: bytes) -> bytes:
    """Two messages of one role as one: the contents and the calls of both in order, of other members those of the second where both have them."""
    before, after = source(first, "message"), source(second, "message")
    one, other = members(before), members(after)
    values: dict[str, str | None] = {item.key: item.text for item in other}
    values["content"] = _content(value_of(one, "content") or "null", value_of(other, "content") or "null")
    if calls := [
        item.text for text in (value_of(one, "tool_calls"), value_of(other, "tool_calls")) for item in elements(text or "[]")
    ]:
        values["tool_calls"] = array_text(calls)
    return encoded(with_members(before, values))


def _content(first: str, second: str) -> str:
    if "[" in (first[:1], second[:1]):
        return array_text([*_parts(first), *_parts(second)])
    texts = [text for text in (load(first), load(second)) if text]
    return dump("\n\n".join(map(str, texts))) if texts else "null"


def _parts(content: str) -> list[str]:
    if content.startswith("["):
        return [item.text for item in elements(content)]
    text = load(content)
    return [dump({"type": "text", "text": text})] if text else []
