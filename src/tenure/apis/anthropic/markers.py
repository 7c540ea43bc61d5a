"""Cache markers of the Messages API.

Markers belong to a request: a host's are stripped before a message is recorded, and ours are placed on what is rendered.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

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
    with_elements,
    with_members,
)
from tenure.apis.turns import role_of, says_anything
from tenure.engine.view.rules import LOOKBACK
from tenure.errors import InputError

_UNMARKABLE: Final = ("thinking", "redacted_thinking")  # cannot carry cache_control; docs/en/build-with-claude/prompt-caching


def strip_markers(message: bytes) -> bytes:
    """The message without its cache markers; one without markers comes back as it is."""
    if b"cache_control" not in message:
        return message
    return encoded(_unmarked(source(message, "message")))


def place_markers(messages: Sequence[bytes], positions: Sequence[int], ttl: str = "") -> tuple[bytes, ...]:
    """The messages with a cache marker on the last part that can carry one, of each message at `positions` (negative: from the end).

    `ttl` is "" for five minutes or "1h". A message that has no such part stays as it is. Raises InputError for a place that is none.
    """
    if any(not -len(messages) <= position < len(messages) for position in positions):
        raise InputError("cache markers", f"positions {tuple(positions)}", f"places among {len(messages)} messages")
    marker = dump(_marker(ttl))
    marked = list(messages)
    for position in {position % len(messages) for position in positions}:
        marked[position] = _marked(messages[position], marker)
    return tuple(marked)


def mark_request(
    head: Mapping[str, Any], messages: Sequence[bytes], limit: int, ttl: str, stem: int = 0
) -> tuple[dict[str, Any], Sequence[bytes]]:
    """A request with markers on the newest message, where the request before ended, where its stem ends, and on the head unless the caller marked it himself.

    `stem` is how many messages stand in front of what was edited last: the next edit is likely to leave these as they are, too.
    Raises InputError for more markers of the caller's than `limit`.
    """
    own = markers_of(head)
    if len(own) > limit:
        raise InputError(
            "cache markers",
            f"{len(own)} in system, tools and cache_control",
            f"at most {limit}; with Context(markers=False) all of them are yours, and none is ours",
        )
    ttl = life_of(head, ttl)
    places = _places(messages, stem, limit - len(own))
    if not own and len(places) < limit:
        head = mark_head(head, ttl)
    return dict(head), place_markers(messages, places, ttl)


def markers_of(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The markers that the caller placed in a request's fields: on tools, on the system prompt, and the request's own, which comes last."""
    system, more = fields.get("system"), fields.get("extra_body")
    parts: list[Any] = [*(fields.get("tools") or ()), *(system if isinstance(system, list) else ())]
    found = [cast(Mapping[str, Any], part).get("cache_control") for part in (*parts, more, fields) if isinstance(part, Mapping)]
    return tuple(marker for marker in found if marker)


def mark_head(fields: Mapping[str, Any], ttl: str = "") -> dict[str, Any]:
    """The fields with a marker at the end of the system prompt; without one, on the last tool."""
    system: Any = fields.get("system")
    tools: list[dict[str, Any]] | None = fields.get("tools")
    if isinstance(system, str) and system.strip():
        system = [{"type": "text", "text": system}]
    if (
        isinstance(system, list)
        and system
        and isinstance(system[-1], Mapping)
        and cast(dict[str, Any], system[-1]).get("text") != ""
    ):
        return {**fields, "system": [*system[:-1], {**system[-1], "cache_control": _marker(ttl)}]}
    if tools and not system:
        return {**fields, "tools": [*tools[:-1], {**tools[-1], "cache_control": _marker(ttl)}]}
    return dict(fields)


def life_of(fields: Mapping[str, Any], ttl: str) -> str:
    """How long our markers may ask for, beside the caller's: no marker may ask for longer than one before it."""
    *before, last = (marker.get("ttl", "") for marker in (*markers_of({**fields, "cache_control": None}), {"ttl": ttl}))
    if any(each != "1h" for each in before):
        return ""
    own: Any = fields.get("cache_control")
    return "1h" if isinstance(own, Mapping) and cast(Mapping[str, Any], own).get("ttl") == "1h" else last


def _marker(ttl: str) -> dict[str, str]:
    return {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}


def _unmarked(part: str) -> str:
    """The part without its markers, those of what it holds too; what a tool was given is left alone."""
    if "cache_control" not in part or not part.startswith("{"):
        return part
    items = members(part)
    changed: dict[str, str | None] = {"cache_control": None}
    for key in ("content", "source"):
        held = value_of(items, key)
        if held and held.startswith("["):
            changed[key] = with_elements(held, [_unmarked(item.text) for item in elements(held)])
        elif held and held.startswith("{"):
            changed[key] = _unmarked(held)
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


def _places(messages: Sequence[bytes], stem: int, room: int) -> list[int]:
    """Where up to `room` markers go: the newest message, the one that the newest reply answered, where the request before this one ended, and the stem's last.

    A lookup from the newest reaches a request before that ended nearby, so that one needs a marker of its own least.
    """
    last = _carrier(messages, len(messages) - 1)
    n = len(messages) - 1
    while n >= 0 and role_of(messages[n]) != "assistant":
        n -= 1
    while n >= 0 and role_of(messages[n]) == "assistant":
        n -= 1
    stem -= 1
    while stem >= 0 and role_of(messages[stem]) == "assistant":  # a reply whose results were edited is likely to leave next
        stem -= 1
    before, stays = _carrier(messages, n), _carrier(messages, stem)
    wanted = [before, stays] if room > 2 or stays < 0 or _is_far(messages[before + 1 : last + 1]) else [stays, before]
    places = [last, *(place for place in dict.fromkeys(wanted) if place < last)]
    return [place for place in places if place >= 0][: max(0, room)]


def _is_far(messages: Sequence[bytes]) -> bool:
    """Whether a lookup from the end of these messages may not reach what stands in front of them."""
    parts = 0
    for message in messages:
        content = value_of(members(source(message, "message")), "content") or ""
        parts += sum(1 for _ in elements(content)) if content.startswith("[") else 1
    return parts >= LOOKBACK


def _carrier(messages: Sequence[bytes], n: int) -> int:
    """The nearest message up to place `n` that carries a marker; one of a system that only carries settings cannot. -1 for none."""
    while n >= 0 and role_of(messages[n]) == "system" and not says_anything(messages[n]):
        n -= 1
    return n
