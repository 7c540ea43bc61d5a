"""A provider's prefix cache, strictly: what was sent before, unit by unit, or nothing. Pure but for the cache it keeps.

https://platform.claude.com/docs/en/build-with-claude/prompt-caching and https://platform.openai.com/docs/guides/prompt-caching
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from itertools import accumulate
from typing import Any

from tenure.apis import APIS
from tenure.apis.server import Unit, units_of
from tenure.engine.record.entry import Usage
from tenure.engine.view.rules import LOOKBACK, Rules


def units(body: Mapping[str, Any], rules: Rules) -> tuple[Unit, ...]:
    """The prompt of a request in the order the model reads it."""
    return units_of(APIS[rules.dialect].server(), body, rules)


class PrefixCache:
    """What a provider remembers of earlier prompts."""

    def __init__(self, tokens: Callable[[str], int]) -> None:
        self._tokens = tokens
        self._until: dict[str, float] = {}

    def size(self, body: Mapping[str, Any], rules: Rules) -> int:
        """The tokens of a prompt."""
        return sum(self._tokens(unit.text) for unit in units(body, rules))

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
