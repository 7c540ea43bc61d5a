"""A provider's prefix cache, strictly: what was sent before, unit by unit, or nothing. Pure but for the cache it keeps.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching and https://platform.openai.com/docs/guides/prompt-caching
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final, NamedTuple

from tenure.apis.json_text import Json, dump, load, object_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import Rules

LOOKBACK: Final = 20  # units before a marker in which an earlier prefix is looked for
_HEADS: Final = {"anthropic": ("tools", "system"), "openai-responses": ("tools", "instructions"), "openai-chat": ("tools",)}


class Unit(NamedTuple):
    """The smallest piece of a prompt that a prefix may end at."""

    text: str  # canonical: spelling and markers left out
    ttl_s: int = 0  # of the marker it carries; 0 without one


def units(body: Mapping[str, Any], rules: Rules) -> tuple[Unit, ...]:
    """The prompt of a request in the order the model reads it."""
    fields = object_of(load(dump(body)), "request")
    found: list[Unit] = []
    for key in _HEADS[rules.dialect]:
        value = fields.get(key)
        found += [_unit(key, part, rules) for part in (value if isinstance(value, list) else [] if value is None else [value])]
    key = "input" if rules.dialect == "openai-responses" else "messages"
    messages = fields.get(key)
    for message in messages if isinstance(messages, list) else [messages]:
        found += _message(message, rules)
    if "cache_control" in fields and found:  # the request asks for a marker on its last unit
        found[-1] = found[-1]._replace(ttl_s=_unit("", fields, rules).ttl_s)
    return tuple(found)


class PrefixCache:
    """What a provider remembers of earlier prompts."""

    def __init__(self, tokens: Callable[[str], int]) -> None:
        self._tokens = tokens
        self._until: dict[str, float] = {}

    def usage(self, body: Mapping[str, Any], rules: Rules, now: float, output: int = 0) -> Usage:
        """The bill of a prompt at `now` (seconds), which is remembered from then on."""
        prompt = units(body, rules)
        sizes = list(accumulate((self._tokens(unit.text) for unit in prompt), initial=0))
        digests = _digests(str(body.get("model", "")), prompt)
        marks = [n for n, unit in enumerate(prompt) if unit.ttl_s] if rules.cache_markers else list(range(len(prompt)))
        marks = [n for n in marks if sizes[n + 1] >= rules.cache_min_tokens]
        reach = LOOKBACK if rules.cache_markers else 0
        warm = [n for mark in marks for n in range(max(0, mark - reach), mark + 1) if self._until.get(digests[n], 0.0) > now]
        read = sizes[max(warm) + 1] if warm else 0
        for n in (*marks, *warm):  # a hit is refreshed, what is marked is remembered
            lives = now + (prompt[n].ttl_s or rules.cache_ttl_s)
            self._until[digests[n]] = max(lives, self._until.get(digests[n], 0.0))
        write = max(0, sizes[marks[-1] + 1] - read) if marks and rules.cache_markers else 0  # automatic caches are free to fill
        return Usage(uncached=sizes[-1] - read - write, cache_write=write, cache_read=read, output=output)


def _digests(model: str, prompt: tuple[Unit, ...]) -> list[str]:
    found, digest = list[str](), sha256(model.encode()).hexdigest()
    for unit in prompt:
        digest = sha256((digest + unit.text).encode("utf-8", "surrogatepass")).hexdigest()
        found.append(digest)
    return found


def _message(message: Json, rules: Rules) -> list[Unit]:
    if not isinstance(message, dict) or rules.dialect != "anthropic":
        return [_unit("", message, rules)]
    content = message.get("content")
    parts: list[Json] = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    return [_unit(str(message.get("role")), part, rules) for part in parts]


def _unit(place: str, value: Json, rules: Rules) -> Unit:
    marks = list[Json]()
    text = f"{place}:{dump(_without_markers(value, marks))}"
    long = any(isinstance(mark, dict) and mark.get("ttl") == "1h" for mark in marks)
    return Unit(text, (3600 if long else rules.cache_ttl_s) if marks else 0)


def _without_markers(value: Json, marks: list[Json]) -> Json:
    """`value` without the markers of its parts, which are added to `marks`; what a tool was given is left alone."""
    if isinstance(value, list):
        return [_without_markers(part, marks) for part in value]
    if not isinstance(value, dict):
        return value
    if value.get("cache_control") is not None:
        marks.append(value["cache_control"])
    rest = {key: part for key, part in value.items() if key != "cache_control"}
    return {key: _without_markers(part, marks) if key == "content" else part for key, part in rest.items()}
