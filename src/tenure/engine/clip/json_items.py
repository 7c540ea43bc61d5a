"""JSON read with the places of its items: where each begins and ends.

Parsers give values or places, and one item after the other is read at some 5 MB/s. But a printer parts the items of a container alike: so
all of them are taken at once, as bytes, and put together again with the first separator; when that gives the text, every place is known.
What is parted in another way, or breaks off, is read one by one from there on.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, repeat
from operator import itemgetter
from typing import Final, Literal, cast

import msgspec

from tenure.engine.clip.shape import weight

TAIL_SHARE: Final = 0.1  # of the text that may follow where its JSON ends or breaks off
TAIL_LINES: Final = 10  # that may follow a whole document: an exit code, a prompt
PRELUDE_LINES: Final = 8  # that may precede it; after a status line of HTTP, so many as `HEADER_LINES`
HEADER_LINES: Final = 60
SMALL: Final = 1_000  # characters; what a smaller container holds is read one by one
TOGETHER: Final = 2_000  # documents on lines of their own that are read at once
BREAKS: Final = 8  # separators before a break after which a container is tried to be closed

# Keys that tell of an error, and the values that do not; a value that may go on is judged by how it begins.
_NO_ERROR: Final = r"""(?!null|false|0+(?:\.0*)?\s*[,}\]\n]|""|\[\s*\]|\{\s*\}|"(?i:none|null|ok|no|false|0)")"""
_BAD_WORD: Final = r'"(?i:error|errored|failed|failure|fatal|critical|crashed|panic|timed_out|timeout)"'
_ERROR: Final = re.compile(
    r'"(?=[a-zA-Z_]{2,15}"\s*+:)(?:'  # no more than a key of such a length: twice as fast
    rf"(?:errors?|exception|traceback|stack_?[tT]race|errorMessage|error_message|failureMessages?)\"\s*+:\s*+{_NO_ERROR}"
    r'|(?:is_?[eE]rror|failed|timed_?[oO]ut)"\s*+:\s*+(?:true|[1-9])'
    r'|(?:success|ok|succeeded)"\s*+:\s*+false'
    r'|(?:exit_?[cC]ode|errorCount|error_count|failures)"\s*+:\s*+-?0*[1-9]'
    rf'|(?:status|status_?[cC]ode|http_?[sS]tatus)"\s*+:\s*+(?:"?[45]\d\d\b(?!\.)|{_BAD_WORD})'
    rf'|(?:state|conclusion|outcome|result|level|severity|type)"\s*+:\s*+{_BAD_WORD}'
    r")"
)

_BLANK: Final = r"[ \t\n\r]*+"
_BLANKS: Final = re.compile(_BLANK)
_NEXT: Final = re.compile(rf"{_BLANK}(?:(,){_BLANK}|([\]}}]))")
_NUMBER: Final = re.compile(rf"{_BLANK}[-0-9tfnNI]")
_COLON: Final = re.compile(rf"{_BLANK}:{_BLANK}")
_STRICT: Final = json.JSONDecoder(strict=False)
_LENIENT: Final = json.JSONDecoder(strict=False, parse_int=float)  # integers of more digits than Python converts
BROKEN_OFF: Final = -1
_TRUNCATED: Final = "Input data was truncated"  # as msgspec says it; with other words the slower parser is asked
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)  # ValueError: also lone surrogates and too many digits


class BrokenValue:
    """The value of what the text breaks off in."""


class Page:
    """The text with the offsets of its lines and of its errors."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
        self.starts = list(accumulate(map((1).__add__, map(len, lines)), initial=0))

    @cached_property
    def errors(self) -> list[int]:
        """Where keys stand that tell of an error, ascending."""
        return [match.start() for match in _ERROR.finditer(self.text)]

    def line(self, at: int) -> int:
        """The line that holds an offset."""
        return bisect_right(self.starts, at) - 1

    def weight(self, start: int, stop: int) -> int:
        """About how many tokens a slice weighs."""
        return weight(self.text[start:stop]) + self.line(stop - 1) - self.line(start)


class Items:
    """The items of a container in order, or the documents of a text: where each begins and ends, its key as spelled, its value."""

    def __init__(self, kind: Literal["object", "array", "documents"], path: str) -> None:
        self.kind: Final = kind
        self.path = path
        self.starts: list[int] = []  # of the key, if there is one
        self.values_at: list[int] = []
        self.ends: list[int] = []
        self.keys: list[str] = []  # of an object: as spelled, without quotes
        self._values: list[object] = []
        self._unread: list[
            tuple[int, Sequence[str]]
        ] = []  # documents whose values were not asked for yet, and the first one's number
        self.broken = False  # whether the text breaks off, or is no JSON any more, before the container ends
        self.alike = 0  # items from the first on between which the same stands,
        self.parted = False  # and whether a line break is in it

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def values(self) -> list[object]:
        """What the items are, in Python's words."""
        for first, sources in self._unread:
            self._values[first : first + len(sources)] = _values(sources)
        self._unread.clear()
        return self._values

    @property
    def item(self) -> str:
        """What one of them is called."""
        return {"object": "member", "array": "item", "documents": "document"}[self.kind]

    def path_of(self, item: int) -> str:
        """As jq would write it."""
        if self.kind != "object":
            return f"{self.path}[{item}]"
        key = self.keys[item]
        if len(key) > 80:
            return f"{self.path}[member {item}]"
        return f"{self.path}.{key}" if PLAIN_KEY.match(key) else f'{self.path}["{key}"]'

    def bounds(self, text: str) -> Sequence[int]:
        """Where units begin, and the end of the last: an item that begins on the line on which another ends belongs to its unit."""
        size = len(self)
        if not size:
            return [0]
        if self.alike == size:
            return range(size + 1) if self.parted else [0, size]
        known = range(self.alike) if self.parted and self.alike else (0,)
        others = range(max(self.alike, 1), size)
        return [*known, *(item for item in others if "\n" in text[self.ends[item - 1] : self.starts[item]]), size]

    def add(self, start: int, value_at: int, stop: int, value: object) -> None:
        """One more item."""
        self.starts.append(start)
        self.values_at.append(value_at)
        self.ends.append(stop)
        self._values.append(value)

    def add_lines(self, starts: Sequence[int], lines: Sequence[str]) -> None:
        """More documents, each a line; their values are read when they are asked for."""
        self._unread.append((len(self), lines))
        self._values += repeat(None, len(lines))
        self.starts += starts
        self.values_at += starts
        self.ends += map(int.__add__, starts, map(len, lines))

    def fill(self, starts: list[int], values_at: list[int], ends: list[int], keys: list[str], values: list[object]) -> None:
        """All of them at once."""
        self.starts, self.values_at, self.ends, self.keys, self._values = starts, values_at, ends, keys, values


PLAIN_KEY: Final = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


# Containers


def items_of(text: str, at: int, stop: int, path: str) -> Items:
    """The items of the container that begins at `at`; what breaks off is the last of them, up to `stop`."""
    keyed = text[at] == "{"
    items = Items("object" if keyed else "array", path)
    position = _blank(text, at + 1)
    if text[position : position + 1] == ("}" if keyed else "]") or (not keyed and _fill_numbers(text, at, items)):
        return items
    following = _fill_at_once(text, at, position, stop, items) if stop - at > SMALL else position
    while following is not None and following < stop:
        position = value_at = following
        if keyed:
            named = _key(text, position)
            if named is None:
                break
            key, value_at = named
            items.keys.append(key)
        scanned = _scan(text, value_at)
        if scanned is None:
            items.add(position, value_at, stop, BrokenValue())
            break
        items.add(position, value_at, scanned[1], scanned[0])
        separator = _NEXT.match(text, scanned[1])
        if separator is None:
            break
        following = None if separator[2] else separator.end()
    items.broken = following is not None
    return items


def _fill_numbers(text: str, at: int, items: Items) -> bool:
    """An array that holds numbers, booleans and null only, all at once: where there is no string, every comma parts two items."""
    scanned = _scan(text, at) if _NUMBER.match(text, at + 1) else None
    values = cast("list[object]", scanned[0]) if scanned else []
    if scanned is None or not set(map(type, values)) <= {int, float, bool, type(None)}:
        return False
    parts = text[at + 1 : scanned[1] - 1].split(",")
    stops = list(accumulate(map((1).__add__, map(len, parts)), initial=at))[1:]
    starts = [stop - len(part.lstrip()) for stop, part in zip(stops, parts, strict=True)]
    ends = [stop - len(part) + len(part.rstrip()) for stop, part in zip(stops, parts, strict=True)]
    items.fill(starts, starts, ends, [], values)
    return True


def _fill_at_once(text: str, at: int, first: int, stop: int, items: Items) -> int | None:
    """Puts as many items as can be read together into `items`; where the next one begins, None after the last."""
    keyed = items.kind == "object"
    second = _second(text, first, keyed=keyed)
    if second is None:
        return first
    separator, colon = second
    for source, whole in _closed(text, at, stop, separator):
        parts = _read_items(source, keyed=keyed)
        if parts is None:
            continue
        keys, slices, values = parts
        heads = [f'"{key}"{colon}' for key in keys]
        units = list(map(str.__add__, heads, slices)) if keyed else slices
        sizes = list(map(len, units))
        starts = list(accumulate(map(len(separator).__add__, sizes), initial=first))
        following = starts.pop()
        alike = separator.join(units) == text[first : following - len(separator)]
        if not alike:  # a key is there twice, or separators differ
            following = 0 if keyed or not whole else _walk(text, first, sizes, starts)
        if not following:
            return first
        values_at = list(map(int.__add__, starts, map(len, heads))) if keyed else starts.copy()
        items.fill(starts, values_at, list(map(int.__add__, starts, sizes)), keys, values)
        if alike:
            items.alike, items.parted = len(starts), "\n" in separator
        return None if whole else following
    return first


def _walk(text: str, at: int, sizes: Sequence[int], starts: list[int]) -> int:
    """Puts right where each item starts when they are parted in several ways; where the last separator ends, 0 when it cannot be told."""
    for item, size in enumerate(sizes):
        starts[item] = at
        separator = _NEXT.match(text, at + size)
        if separator is None:
            return 0
        at = separator.end()
    return at


def _second(text: str, first: int, *, keyed: bool) -> tuple[str, str] | None:
    """What stands between the first item and the second, and between a key and its value; None when there is no second item."""
    named = _key(text, first) if keyed else ("", first)
    scanned = _scan(text, named[1]) if named else None
    separator = _NEXT.match(text, scanned[1]) if scanned else None
    if named is None or separator is None or separator[2]:
        return None
    return separator[0], text[first + len(named[0]) + 2 : named[1]] if keyed else ""


def _closed(text: str, at: int, stop: int, separator: str) -> Iterator[tuple[str, bool]]:
    """The whole container; or, when that breaks off, as much of it as may be read, closed: from the longest on."""
    yield text[at:stop], True
    cut = _breaks_off(text, at) or at
    for _ in range(BREAKS):
        cut = text.rfind(separator, at, cut)
        if cut <= at:
            return
        yield text[at:cut] + ("}" if text[at] == "{" else "]"), False


def _read_items(source: str, *, keyed: bool) -> tuple[list[str], list[str], list[object]] | None:
    """Keys, slices and values of a container's items."""
    try:
        raw = source.encode()
        slices = _OBJECT.decode(raw) if keyed else _ARRAY.decode(raw)
        values = _decoded(source, raw)
    except _UNREADABLE:
        return None
    if isinstance(slices, dict):
        return list(slices), list(map(str, slices.values(), repeat("utf-8"))), list(cast("dict[str, object]", values).values())
    return [], list(map(str, slices, repeat("utf-8"))), cast("list[object]", values)


def _scan(text: str, at: int) -> tuple[object, int] | None:
    """The value at an offset and where it ends; None where there is none."""
    for decoder in (_STRICT, _LENIENT):
        try:
            return decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            return None
        except ValueError:  # an integer of more than 4,300 digits
            continue
    return None


def _key(text: str, at: int) -> tuple[str, int] | None:
    """The key at an offset as it is spelled, and where its value begins."""
    scanned = _scan(text, at) if text[at : at + 1] == '"' else None
    colon = scanned and _COLON.match(text, scanned[1])
    return (text[at + 1 : scanned[1] - 1], colon.end()) if scanned and colon and colon.end() < len(text) else None


def spelled_as(key: str) -> object:
    """What a key means that is spelled so."""
    return _STRICT.raw_decode(f'"{key}"')[0]


def _blank(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


# Documents


def prelude(lines: Sequence[str]) -> int | None:
    """The line on which JSON may begin; None when there is none near the top."""
    allowed = HEADER_LINES if lines and lines[0].startswith("HTTP/") else PRELUDE_LINES
    for number, line in enumerate(lines[: allowed + 1]):
        if line.lstrip(" \t\r\ufeff")[:1] in ("{", "["):
            return number
        if len(line) > 500:
            return None
    return None


def documents_of(page: Page) -> Items | None:
    """The documents of a text; None when it is no JSON. What follows the last one belongs to none of them."""
    text, first = page.text, prelude(page.lines)
    if first is None:
        return None
    documents = Items("documents", "")
    at = start = page.starts[first] + len(page.lines[first]) - len(page.lines[first].lstrip(" \t\r\ufeff"))
    alone = first  # the line up to which documents are read one by one
    while at < len(text) and text[at] in "{[":
        line = page.line(at) if at != start else first
        if at == page.starts[line] and line >= alone:
            alone = _add_lines(page, line, documents)
            if documents.ends and documents.ends[-1] > at:
                at = _blank(text, documents.ends[-1])
                continue
        stop = _whole(text, at) if at == start else None
        scanned = None if stop == BROKEN_OFF else (None, stop) if stop else _scan(text, at)
        if scanned is None:
            break
        documents.add(at, at, scanned[1], scanned[0])
        at = _blank(text, scanned[1])
    if at >= len(text):
        return documents
    broken = _breaks_off(text, at) if text[at] in "{[" else None
    if broken is not None and len(text) - broken <= TAIL_SHARE * len(text):
        documents.add(at, at, len(text), BrokenValue())
        documents.broken = True
        return documents
    short = len(text) - at <= TAIL_SHARE * len(text) and len(page.lines) - page.line(at) <= TAIL_LINES
    return documents if documents.ends and short else None


def _add_lines(page: Page, first: int, documents: Items) -> int:
    """Adds the documents that fill lines `first` and following, one each; the line from which on it may be tried again."""
    lines = page.lines[first : first + TOGETHER]
    if len(lines) < 2 or lines[0][-1:] not in ("}", "]"):
        return first + 1
    try:
        slices = _ARRAY.decode(f"[{','.join(lines)}]".encode())
    except _UNREADABLE:
        return first + TOGETHER
    if list(map(str, slices, repeat("utf-8"))) != list(lines) or not set(map(itemgetter(0), lines)) <= {"{", "["}:
        return first + TOGETHER
    documents.add_lines(page.starts[first : first + len(lines)], lines)
    return first + len(lines)


def _decoded(source: str, raw: bytes) -> object:
    """The value of a text that is whole JSON, by the faster parser unless it minds a number."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return cast("object", _STRICT.decode(source))


def _values(sources: Sequence[str]) -> list[object]:
    """The value of each."""
    try:
        whole = f"[{','.join(sources)}]"
        return cast("list[object]", _decoded(whole, whole.encode()))
    except (ValueError, RecursionError):
        scanned = [_scan(source, 0) for source in sources]
        return [BrokenValue() if each is None else each[0] for each in scanned]


def _whole(text: str, at: int) -> int | None:
    """Where the text ends, if one document is all of it, and `BROKEN_OFF` if it lacks its end: told without building its values."""
    try:
        msgspec.json.decode(text[at:], type=msgspec.Raw)
    except msgspec.DecodeError as error:
        return BROKEN_OFF if str(error) == _TRUNCATED else None
    except (ValueError, RecursionError):
        return None
    return at + len(text[at:].rstrip(" \t\n\r"))


def _breaks_off(text: str, at: int) -> int | None:
    """Where the document that begins there stops being one; None when it is nested too deeply to be told."""
    if _whole(text, at) == BROKEN_OFF:
        return len(text)
    try:
        return _STRICT.raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        return error.pos
    except (RecursionError, ValueError):
        return None
