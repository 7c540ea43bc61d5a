"""Messages for providers that insist on turns: neighbours of one role become one message."""

import re
from collections.abc import Iterable
from typing import Final

from tenure.apis.json_text import (
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

REMINDER: Final = "<system-reminder>\n{}\n</system-reminder>"

_ROLE: Final = re.compile(rb'\{"role":"(\w+)"')
_JOINED: Final = ("user", "assistant")
_INSTRUCTIONS: Final = ("system", "developer")
_WORDS: Final = ("reasoning_content", "reasoning", "refusal")  # said after each other
_LISTS: Final = ("reasoning_details", "tool_calls")


def role_of(message: bytes) -> str:
    """Who speaks in a rendered message."""
    if spelled := _ROLE.match(message):
        return spelled[1].decode()
    return str(object_of(load(source(message, "message")), "message").get("role"))


def says_anything(message: bytes) -> bool:
    """Whether a rendered message has content, and not only settings."""
    return bool(object_of(load(source(message, "message")), "message").get("content"))


def alternate(messages: Iterable[bytes]) -> tuple[bytes, ...]:
    """The messages with neighbours of one role made one. Results of tools that are messages of their own stay apart.

    Instructions behind the first of the others are a reminder in a message of the user: such providers keep all instructions before the talk.
    """
    turns: list[bytes] = []
    before = ""
    for each in messages:
        role, message = role_of(each), each
        if role in _INSTRUCTIONS and before not in ("", *_INSTRUCTIONS):
            role, message = "user", _reminder(each)
        if role == before and role in _JOINED:
            turns[-1] = join(turns[-1], message)
        else:
            turns.append(message)
        before = role
    return tuple(turns)


def join(first: bytes, second: bytes) -> bytes:
    """Two messages of one role as one: contents, reasoning and calls of both in order; of members that only one can have, those of the second.

    A name stays where it is of both.
    """
    before, after = source(first, "message"), source(second, "message")
    one, other = members(before), members(after)
    values: dict[str, str | None] = {item.key: item.text for item in other}
    contents = value_of(one, "content") or "null", value_of(other, "content") or "null"
    values["content"] = _content(*contents)
    if value_of(one, "name") != value_of(other, "name"):
        values["name"] = None
    if "null" not in contents:
        values["annotations"] = None  # they point into a text that is another now
    for key in _WORDS:
        if (mine := value_of(one, key)) and (theirs := value_of(other, key)):
            values[key] = _content(mine, theirs)
    for key in _LISTS:
        if (mine := value_of(one, key)) and mine.startswith("["):
            values[key] = array_text(item.text for text in (mine, value_of(other, key) or "[]") for item in elements(text))
    return encoded(with_members(before, values))


def _reminder(message: bytes) -> bytes:
    content = load(value_of(members(source(message, "message")), "content") or '""')
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text")]
    return encoded(dump({"role": "user", "content": REMINDER.format("\n\n".join(texts))}))


def _content(first: str, second: str) -> str:
    if "[" in (first[:1], second[:1]):
        kind = next((kind for kind in ("input_text", "output_text") if f'"{kind}"' in first + second), "text")
        return array_text([*_parts(first, kind), *_parts(second, kind)])
    texts = [text for text in (load(first), load(second)) if text]
    return dump("\n\n".join(map(str, texts))) if texts else "null"


def _parts(content: str, kind: str) -> list[str]:
    if content.startswith("["):
        return [item.text for item in elements(content)]
    text = load(content)
    return [dump({"type": kind, "text": text})] if text else []
