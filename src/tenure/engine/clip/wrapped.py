"""Texts inside JSON: what a command printed, as a string of the JSON that a harness or server put around it.

`{"stdout": "…", "exit_code": 1}`, `{"result": {"stdout": "…"}}` and `{"content": [{"type": "text", "text": "…"}]}` hold a log, a diff or a search
that is worth more as such than as a string. Only strings that make up most of the JSON are taken out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

import msgspec

from tenure.engine.clip.json_items import items_of

KEYS: Final = frozenset(  # whose strings are texts; elements of an array bear the key of the array
    "stdout stderr output content contents text result results log logs diff patch body message error data".split()
)
DEPTH: Final = 5  # containers around a text
WIDTH: Final = 64  # members of a container that is searched
SHARE: Final = 0.1  # of the JSON that one such string makes up at least
MOST: Final = 0.5  # of the JSON that all of them make up at least
FEWEST: Final = 5  # line breaks in a string that is a text

_ESCAPE: Final = re.compile(r"\\(?:(n|u000[aA])|.)", re.DOTALL)


class InnerText:
    """A string of the JSON: its path, its text, and where it stands."""

    def __init__(self, source: str, path: str, start: int, stop: int) -> None:
        self.path = path
        self.start = start  # of the literal, with its quotes
        self.stop = stop
        self._source = source
        self.text: str = msgspec.json.decode(source[start:stop].encode("utf-8", "surrogatepass"), type=str)

    @cached_property
    def lines(self) -> Sequence[str]:
        """The text's lines."""
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> tuple[Sequence[int], Sequence[int]]:
        """Where each of its lines begins in the JSON, and where each line of the JSON begins."""
        breaks = (self.start + match.end() for match in _ESCAPE.finditer(self._source[self.start : self.stop]) if match[1])
        return [self.start + 1, *breaks], list(accumulate((len(line) + 1 for line in self._source.split("\n")), initial=0))

    def place(self, start: int, stop: int) -> str:  # noqa: ARG002 - a recall begins at a character and ends with a line
        """Lines of the text as `recall` takes them: from a character of the JSON's line on."""
        starts, source_lines = self._starts
        line = bisect_right(source_lines, starts[start])
        return f"{line}@{starts[start] - source_lines[line - 1] + 1}-{line}"


def inner_texts(text: str) -> tuple[InnerText, ...]:
    """The texts inside a text that is one JSON document; none when it is none, or mostly something else."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] not in ("{", "[") or text.count("\\n") < FEWEST:
        return ()
    try:
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
        inner = tuple(_strings(text, start, len(text.rstrip()), "", "", 0))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ()
    return inner if sum(each.stop - each.start for each in inner) >= MOST * len(text) else ()


def outside(text: str, inner: Sequence[InnerText]) -> str:
    """The JSON without the texts."""
    starts = (0, *(each.stop for each in inner))
    stops = (*(each.start for each in inner), len(text))
    return '"…"'.join(text[start:stop] for start, stop in zip(starts, stops, strict=True))


def _strings(text: str, at: int, stop: int, path: str, key: str, depth: int) -> Iterator[InnerText]:
    if stop - at < SHARE * len(text) or depth > DEPTH:
        return
    if text[at] == '"':
        known = key in KEYS and text.count("\\n", at, stop) >= FEWEST
        if known and sum(1 for match in _ESCAPE.finditer(text, at, stop) if match[1]) >= FEWEST:
            yield InnerText(text, path or ".", at, stop)
    elif text[at] in "{[":
        items = items_of(text, at, stop, path)
        for item in range(len(items) if len(items) <= WIDTH else 0):
            name = items.keys[item] if items.kind == "object" else key
            yield from _strings(text, items.values_at[item], items.ends[item], items.path_of(item), name.lower(), depth + 1)
