"""Cache markers of the Messages API. Promise: nothing costs more than it saves: markers move, the messages they sit on do not change.

Markers belong to a request: a host's are stripped before a message is recorded, and ours are placed on what is rendered.
"""

from collections.abc import Sequence
from typing import Any, Final

from tenure.dialects.dialect import Head
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
    with_elements,
    with_members,
)
from tenure.errors import InputError

_UNMARKABLE: Final = ("thinking", "redacted_thinking")  # cannot carry cache_control; docs/en/build-with-claude/prompt-caching


def strip_markers(message: bytes) -> bytes:
    """The message without its cache markers; one without markers comes back as it is."""
    if b"cache_control" not in message:
        return message
    text = source(message, "message")
    content = value_of(members(text), "content")
    if content is None or not content.startswith("["):
        return message
    return encoded(with_members(text, {"content": with_elements(content, [_unmarked(item.text) for item in elements(content)])}))


def place_markers(messages: Sequence[bytes], positions: Sequence[int], ttl: str = "") -> tuple[bytes, ...]:
    """The messages with a cache marker on the last part that can carry one, of each message at `positions` (negative: from the end).

    `ttl` is "" for five minutes or "1h". A message that has no such part stays as it is. Raises InputError for a place that is none.
    """
    if any(not -len(messages) <= position < len(messages) for position in positions):
        raise InputError("cache markers", f"positions {tuple(positions)}", f"places among {len(messages)} messages")
    marker = dump({"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"})
    wanted = {position % len(messages) for position in positions}
    return tuple(_marked(message, marker) if n in wanted else message for n, message in enumerate(messages))


def count_markers(head: Head) -> int:
    """How many markers of a request its head takes up: those on tools, on the system prompt, and the request's own."""
    tools: list[Any] = head.fields.get("tools") or []
    prompts = [
        part for draft in head.system if (text := source(draft.payload, "system")).startswith("[") for part in elements(text)
    ]
    marked = [object_of(load(part.text), "system") for part in prompts] + [object_of(tool, "tool") for tool in tools]
    return sum("cache_control" in part for part in marked) + ("cache_control" in head.fields)


def _unmarked(part: str) -> str:
    if "cache_control" not in part:
        return part
    changed: dict[str, str | None] = {"cache_control": None}
    content = value_of(members(part), "content")
    if content and content.startswith("[") and object_of(load(part), "part").get("type") == "tool_result":
        changed["content"] = with_elements(
            content, [with_members(item.text, {"cache_control": None}) for item in elements(content)]
        )
    return with_members(part, changed)


def _marked(message: bytes, marker: str) -> bytes:
    text = source(message, "message")
    content = value_of(members(text), "content") or '""'
    if not content.startswith("["):
        content = array_text([f'{{"type":"text","text":{content}}}'])
    parts: list[str | None] = [item.text for item in elements(content)]
    for n in range(len(parts) - 1, -1, -1):
        fields = object_of(load(parts[n] or "{}"), "part")
        if fields.get("type") not in _UNMARKABLE and fields.get("text") != "":
            parts[n] = with_members(parts[n] or "{}", {"cache_control": marker})
            return encoded(with_members(text, {"content": with_elements(content, parts)}))
    return message
