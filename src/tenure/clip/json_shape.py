"""JSON documents and JSON lines, pretty-printed or minified. Promise: nothing is lost; a kept line or slice is the text's own.

A container that is too heavy shows its errors, its first and last item, one item of each shape and the extreme ones, then more from the
start; what it leaves out is said by count, keys and types. Values are never decoded and written again: a pretty-printed document keeps its
own lines, and what stands on a gigantic line is quoted in slices after its path, as jq would write it.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, pairwise
from typing import Final, Literal, cast

import msgspec

from tenure.clip.filling import fitted, plural
from tenure.clip.shape import Count, Keep, Note, Piece, Shaped
from tenure.clip.shape import weight as ascii_weight

DEPTH: Final = 12  # levels that are opened; each is scanned again, and deeper ones are too small to matter
LEAST: Final = 16  # tokens; with less, a value is only named
EXCERPT: Final = 40  # characters; a shorter one tells less than the value's type and length
OPENED: Final = 48  # tokens; with less, a container is not opened
TAIL_SHARE: Final = 0.1  # of the text that may follow where its JSON ends or breaks off
TAIL_LINES: Final = 10  # that may follow a whole document: an exit code, a prompt
PRELUDE_LINES: Final = 8  # that may precede it; after a status line of HTTP, so many as `HEADER_LINES`
HEADER_LINES: Final = 60
LIGHT_LINE: Final = 120  # tokens of a line that only opens or closes a container
KEYS: Final = 16  # of a described shape
NAMES: Final = 12  # of left out members
MISSED: Final = 256  # units that do not fit any more before no other is tried
SAMPLE: Final = 1_000  # numbers from which quartiles are taken
FAR: Final = 5  # interquartile ranges beyond a quartile, from which a number is extreme

# Keys that tell of an error, and the values that do not; a value that may go on is judged by how it begins.
_NO_ERROR: Final = r"""(?!null|false|0+(?:\.0*)?\s*[,}\]\n]|""|\[\s*\]|\{\s*\}|"(?i:none|null|ok|no|false|0)")"""
_BAD_WORD: Final = r'"(?i:error|errored|failed|failure|fatal|critical|crashed|panic|timed_out|timeout)"'
_ERROR: Final = re.compile(
    r'"(?:'
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
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


class _Broken:
    """The value of what the text breaks off in."""


_Type = Literal["object", "array", "string", "number", "boolean", "null", "broken"]
_TYPES: Final[Mapping[type, _Type]] = {
    dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null",
    _Broken: "broken",
}  # fmt: skip
_RawForm = tuple[tuple[str, ...], tuple[type, ...]]  # an item's keys and types; of what is no object its type alone
_Form = tuple[tuple[str, _Type], ...]


_LONE: Final[Mapping[type, _RawForm]] = {each: ((), (each,)) for each in _TYPES}


class JsonShape:
    """JSON as tools, `curl`, `jq` and `gh api` print it."""

    @property
    def name(self) -> str:
        """As the marker prints it."""
        return "JSON"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether all of the text is JSON, but for a short prelude, a short tail, or an end that is missing."""
        return _prelude(lines) is not None and _documents(_Page(lines)) is not None

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """Errors, samples and shape in at most `room` tokens; None when the text is no JSON, or the room too small for a sample."""
        if room < LEAST or _prelude(lines) is None:
            return None
        page = _Page(lines)
        documents = _documents(page)
        if documents is None:
            return None
        return _Clip(page, documents).fitted(room, count)


def _weight(text: str) -> int:
    """About how many tokens a text weighs, lone surrogates included."""
    return ascii_weight(text) if text.isascii() else 1 + len(text.encode("utf-8", "surrogatepass")) // 2


class _Page:
    """The text with the offsets of its lines and of its errors."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.text = "\n".join(lines)
        self.starts = [0, *accumulate(len(line) + 1 for line in lines)]
        self._errors: list[int] | None = None

    @property
    def errors(self) -> list[int]:
        """Where keys stand that tell of an error, ascending."""
        if self._errors is None:
            self._errors = [match.start() for match in _ERROR.finditer(self.text)]
        return self._errors

    def line(self, at: int) -> int:
        """The line that holds an offset."""
        return bisect_right(self.starts, at) - 1

    def weight(self, start: int, stop: int) -> int:
        """About how many tokens a slice weighs."""
        return _weight(self.text[start:stop]) + self.line(stop - 1) - self.line(start)

    def flawed(self, start: int, stop: int) -> bool:
        """Whether a slice tells of an error."""
        at = bisect_left(self.errors, start)
        return at < len(self.errors) and self.errors[at] < stop


class _Items:
    """The items of a container in order, or the documents of a text: where each begins and ends, its key as spelled, its value."""

    def __init__(self, kind: Literal["object", "array", "documents"], path: str) -> None:
        self.kind = kind
        self.path = path
        self.starts: list[int] = []  # of the key, if there is one
        self.values_at: list[int] = []
        self.ends: list[int] = []
        self.keys: list[str] = []  # of an object: as spelled, without quotes
        self.values: list[object] = []
        self._forms: list[_RawForm] | None = None
        self.laid_out = False  # whether its units stand on lines of their own
        self.broken = False  # whether the text breaks off, or is no JSON any more, before the container ends

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def forms(self) -> list[_RawForm]:
        """Keys and types of each item."""
        if self._forms is None:
            self._forms = [_form_of(value) for value in self.values]
        return self._forms

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
        return f"{self.path}.{key}" if _PLAIN_KEY.match(key) else f'{self.path}["{key}"]'


def _scan(text: str, at: int) -> tuple[object, int] | None:
    """The value at an offset and where it ends; None where there is none."""
    try:
        return _STRICT.raw_decode(text, at)
    except (json.JSONDecodeError, RecursionError):
        return None
    except ValueError:  # an integer of more than 4,300 digits
        return _scan_leniently(text, at)


def _scan_leniently(text: str, at: int) -> tuple[object, int] | None:
    try:
        return _LENIENT.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _numbers(text: str, at: int, path: str) -> _Items | None:
    """An array that holds numbers, booleans and null only, all at once: where there is no string, every comma parts two items."""
    found = _scan(text, at) if _NUMBER.match(text, at + 1) else None
    if found is None:
        return None
    items = _Items("array", path)
    items.values = cast("list[object]", found[0])
    if not set(map(type, items.values)) <= {int, float, bool, type(None)}:
        return None
    parts = text[at + 1 : found[1] - 1].split(",")
    stops = [at + stop for stop in accumulate(len(part) + 1 for part in parts)]
    items.starts = [stop - len(part.lstrip()) for stop, part in zip(stops, parts, strict=True)]
    items.ends = [stop - len(part) + len(part.rstrip()) for stop, part in zip(stops, parts, strict=True)]
    items.values_at = items.starts
    return items


def _items(text: str, at: int, stop: int, path: str) -> _Items:
    """The items of the container that begins at `at`; what breaks off is the last of them, up to `stop`."""
    keyed = text[at] == "{"
    items = _Items("object" if keyed else "array", path)
    closing = "}" if keyed else "]"
    position = _blank(text, at + 1)
    if text[position : position + 1] == closing:
        return items
    if not keyed and (numbers := _numbers(text, at, path)) is not None:
        return numbers
    while position < stop:
        value_at = position
        if keyed:
            named = _key(text, position)
            if named is None:
                break
            key, value_at = named
            items.keys.append(key)
        found = _scan(text, value_at)
        items.starts.append(position)
        items.values_at.append(value_at)
        items.values.append(_Broken() if found is None else found[0])
        items.ends.append(stop if found is None else found[1])
        if found is None:
            break
        following = _NEXT.match(text, found[1])
        if following is None:
            break
        if following[2]:
            return items
        position = following.end()
    items.broken = True
    return items


def _key(text: str, at: int) -> tuple[str, int] | None:
    """The key at an offset as it is spelled, and where its value begins."""
    if text[at : at + 1] != '"':
        return None
    found = _scan(text, at)
    colon = found and _COLON.match(text, found[1])
    return (text[at + 1 : found[1] - 1], colon.end()) if found and colon and colon.end() < len(text) else None


def _blank(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _prelude(lines: Sequence[str]) -> int | None:
    """The line on which JSON may begin; None when there is none near the top."""
    allowed = HEADER_LINES if lines and lines[0].startswith("HTTP/") else PRELUDE_LINES
    for number, line in enumerate(lines[: allowed + 1]):
        if line.lstrip(" \t\r\ufeff")[:1] in ("{", "["):
            return number
        if len(line) > 500:
            return None
    return None


def _documents(page: _Page) -> _Items | None:
    """The documents of a text; None when it is no JSON. What follows the last one belongs to none of them."""
    text, first = page.text, _prelude(page.lines)
    if first is None:
        return None
    documents = _Items("documents", "")
    at = start = page.starts[first] + len(page.lines[first]) - len(page.lines[first].lstrip(" \t\r\ufeff"))
    while at < len(text) and text[at] in "{[":
        stop = _whole(text, at) if at == start else None
        found = (None, stop) if stop else _scan(text, at)
        if found is None:
            break
        documents.starts.append(at)
        documents.values_at.append(at)
        documents.values.append(found[0])
        documents.ends.append(found[1])
        at = _blank(text, found[1])
    if at >= len(text):
        return documents
    rest = len(text) - at
    if text[at] in "{[" and (broken := _breaks_off(text, at)) is not None and len(text) - broken <= TAIL_SHARE * len(text):
        documents.starts.append(at)
        documents.values_at.append(at)
        documents.values.append(_Broken())
        documents.ends.append(len(text))
        documents.broken = True
        return documents
    short = rest <= TAIL_SHARE * len(text) and len(page.lines) - page.line(at) <= TAIL_LINES
    return documents if documents.ends and short else None


def _whole(text: str, at: int) -> int | None:
    """Where the text ends, if one document is all of it: told without building its values."""
    try:
        msgspec.json.decode(text[at:], type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return at + len(text[at:].rstrip(" \t\n\r"))


def _breaks_off(text: str, at: int) -> int | None:
    """Where the document that begins there stops being one; None when it is nested too deeply to be told."""
    try:
        return _STRICT.raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        return error.pos
    except (RecursionError, ValueError):
        return None


class _Clip:
    """One text and what of it is shown."""

    def __init__(self, page: _Page, documents: _Items) -> None:
        self._page = page
        self._documents = documents
        self._known: dict[int, _Items] = {}
        self._orders: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
        self._bounds: dict[int, Sequence[int]] = {}
        self._described: dict[int, str] = {}

    def fitted(self, room: int, count: Count) -> Shaped | None:
        """The fullest of a few choices that fits."""
        pieces = fitted(self._page.lines, room, count, self._pieces)
        return Shaped(pieces=pieces, why=self._why(pieces)) if pieces else None

    def _pieces(self, share: int) -> tuple[Piece, ...]:
        page, documents = self._page, self._documents
        if share < LEAST:
            return ()
        first, last = page.line(documents.starts[0]), page.line(documents.ends[-1] - 1)
        around = page.weight(0, documents.starts[0]) * (first > 0) + page.weight(documents.ends[-1], len(page.text))
        framed = around <= share // 4
        pieces: list[Piece] = [Keep(0, first)] if framed else []
        share -= around if framed else 0
        if len(documents) == 1:
            pieces += self._value(documents, 0, share, 0, "")
        else:
            pieces += self._laid_out(documents, first, last, share, 0)
        if framed and not documents.broken:
            pieces.append(Keep(last + 1, len(page.lines)))
        joined = _joined(pieces)
        if documents.broken and joined:
            return (*joined, Note("The JSON breaks off here, without its end."))
        return joined

    def _why(self, pieces: Sequence[Piece]) -> str:
        errors = "items with errors, " if self._page.errors else ""
        if all(isinstance(piece, Note) for piece in pieces):
            return f"its shape and, as verbatim slices, {errors}first, last and differing items"
        return f"its shape, {errors}first, last and differing items"

    # What is shown of one value, on lines of its own or in slices

    def _value(self, items: _Items, item: int, share: int, depth: int, path: str) -> list[Piece]:
        """An item that stands on lines of its own."""
        page = self._page
        start, stop = items.starts[item], items.ends[item]
        first, last = page.line(start), page.line(stop - 1)
        if page.weight(page.starts[first], page.starts[last + 1] - 1) <= share:
            return [Keep(first, last + 1)]
        if share >= OPENED and depth < DEPTH and last > first and self._opened(items, item):
            at = items.values_at[item]
            light = min(LIGHT_LINE, share // 3)
            edges = _weight(page.lines[page.line(at)]), _weight(page.lines[last])
            if max(edges) <= light:
                held = self._held(at, stop, path)
                return [
                    Keep(first, page.line(at) + 1),
                    *self._laid_out(held, page.line(at) + 1, last - (not held.broken), share - sum(edges), depth + 1),
                    *(() if held.broken else (Keep(last, last + 1),)),
                ]
        return [Note("\n".join(self._slices_of(items, item, share, depth, path)))]

    def _laid_out(self, items: _Items, first: int, last: int, share: int, depth: int) -> list[Piece]:
        """Items on lines `first` to `last` (inclusive)."""
        page = self._page
        key = items.starts[0] if items.starts else -1
        bounds = self._bounds.get(key)
        if bounds is None:
            bounds = self._bounds[key] = _bounds(page, items)
        items.laid_out = True
        chosen = self._chosen(items, bounds, share)
        pieces: list[Piece] = []
        done, line = 0, first
        described = False
        for unit in sorted(chosen):
            if unit > done:
                stop = page.line(items.starts[bounds[unit]])
                if stop > line:
                    pieces.append(self._gap(items, bounds[done], bounds[unit], (line, stop), share, described))
                    described = True
            if bounds[unit + 1] - bounds[unit] == 1:
                item = bounds[unit]
                pieces += self._value(items, item, chosen[unit], depth, items.path_of(item))
            else:
                pieces += self._several(items, bounds[unit], bounds[unit + 1], chosen[unit], depth)
            done, line = unit + 1, page.line(items.ends[bounds[unit + 1] - 1] - 1) + 1
        if done < len(bounds) - 1 and last + 1 > line:
            pieces.append(self._gap(items, bounds[done], len(items), (line, last + 1), share, described))
        return pieces

    def _several(self, items: _Items, first: int, stop: int, share: int, depth: int) -> list[Piece]:
        """Items that share lines."""
        page = self._page
        lines = page.line(items.starts[first]), page.line(items.ends[stop - 1] - 1) + 1
        if page.weight(page.starts[lines[0]], page.starts[lines[1]] - 1) <= share:
            return [Keep(*lines)]
        return [Note("\n".join(self._slices(items, range(first, stop + 1), share, depth)))]

    def _slices_of(self, items: _Items, item: int, share: int, depth: int, path: str) -> list[str]:
        """An item as lines of a note."""
        page = self._page
        at, stop = items.values_at[item], items.ends[item]
        label = path or "."
        if page.weight(at, stop) + _weight(label) <= share:
            return [f"{label} = {page.text[at:stop]}"]
        if depth < DEPTH and share >= 2 * OPENED and self._opened(items, item):
            held = self._held(at, stop, path)
            if len(held):
                return self._slices(held, range(len(held) + 1), share, depth + 1)
        size = (share - _weight(label) - 12) * 5 // 2
        if size < EXCERPT:
            return [f"{label}: {_briefly(items.values[item], stop - at)}"]
        found = bisect_left(page.errors, at)
        error = page.errors[found] if found < len(page.errors) else stop
        if at + size // 2 < error < stop:
            begin = min(error, stop - size)
            return [
                f"{label} … {page.text[begin : begin + size]} ({size:,} of {stop - at:,} characters, from the first error on)"
            ]
        return [f"{label} = {page.text[at : at + size]}… (the first {size:,} of {stop - at:,} characters)"]

    def _slices(self, items: _Items, bounds: Sequence[int], share: int, depth: int) -> list[str]:
        """Items that stand on one line, as lines of a note: whole neighbours in one slice, heavy ones opened, the others counted."""
        items.laid_out = False
        text, path = self._page.text, items.path or "."
        keyed = items.kind == "object"
        head = f"{path}: {self._description(items, share)}"
        chosen = self._chosen(items, bounds, max(share - _weight(head), LEAST))
        whole = {unit for unit, part in chosen.items() if self._unit_weight(items, bounds, unit) <= part}
        lines: list[str] = []
        members: list[str] = []
        for first, stop in _runs(sorted(chosen), whole):
            item, last = bounds[first], bounds[stop] - 1
            if first not in whole:
                lines += self._slices_of(items, item, chosen[first], depth, items.path_of(item))
            elif keyed:
                members.append(text[items.starts[item] : items.ends[last]])
            else:
                label = items.path_of(item) + (f" to {items.path_of(last)}" if last > item else "")
                lines.append(f"{label} = {text[items.starts[item] : items.ends[last]]}")
        units = sorted(chosen)
        left = [
            (bounds[before + 1], bounds[after]) for before, after in pairwise((-1, *units, len(bounds) - 1)) if after > before + 1
        ]
        if left:
            lines.append(f"{path}: {self._left_out(items, left)}")
        if members:
            return [f"{head}: {' … '.join(members)}", *lines]
        return lines if keyed and not left and lines else [head, *lines]  # the paths of what it holds say that it is an object

    # What is left out, in words

    def _gap(self, items: _Items, first: int, stop: int, lines: tuple[int, int], share: int, described: bool) -> Note:
        where = f"line {lines[0] + 1:,}" if lines[1] - lines[0] == 1 else f"lines {lines[0] + 1:,} to {lines[1]:,}"
        said = f"{self._left_out(items, [(first, stop)])}, {where}"
        shape = "" if described or items.kind == "object" else f"; {items.path or 'all'}: {self._description(items, share)}"
        return Note(f"… {said}{shape}")

    def _left_out(self, items: _Items, left: Sequence[tuple[int, int]]) -> str:
        """How many items are left out, and of an object which; as ranges of items, ascending."""
        size = sum(stop - first for first, stop in left)
        errors = sum(self._flawed(items, first, stop) for first, stop in left)
        said = f"{size:,} of {plural(len(items), items.item)} left out" + (f", {errors:,} of them with errors" if errors else "")
        if items.kind != "object":
            return said
        briefs = [
            (items.keys[item][:80], _briefly(items.values[item], items.ends[item] - items.values_at[item]))
            for item in islice(chain.from_iterable(range(first, stop) for first, stop in left), NAMES)
        ]
        if 1 < size <= NAMES and len({brief for _, brief in briefs}) == 1:
            return f"{said}, each {briefs[0][1]}: {', '.join(name for name, _ in briefs)}"
        more = f" and {size - NAMES:,} more" if size > NAMES else ""
        return f"{said}: {', '.join(f'{name} ({brief})' for name, brief in briefs)}{more}"

    def _flawed(self, items: _Items, first: int, stop: int) -> int:
        """How many of the items tell of an error."""
        errors = self._page.errors
        low, high = bisect_left(errors, items.starts[first]), bisect_left(errors, items.ends[stop - 1])
        if low == high:
            return 0
        return len({bisect_right(items.starts, at, first, stop) for at in islice(errors, low, high)})

    def _description(self, items: _Items, share: int) -> str:
        """Count, keys and types of all items, in at most about a quarter of the share."""
        key = items.starts[0] if items.starts else -1
        text = self._described.get(key)
        if text is None:
            text = self._described[key] = _described(self._page.text, items)
        limit = max(share // 4 * 3, 60)
        if len(text) <= limit:
            return text
        cut = text.rfind(", ", 0, limit)
        return text[: cut if cut > 0 else limit] + ", …"

    # Which items are shown

    def _chosen(self, items: _Items, bounds: Sequence[int], share: int) -> dict[int, int]:
        """The units to show, each with the tokens it may weigh."""
        units = len(bounds) - 1
        if items.kind == "object" and units <= max(8, share // 8):
            return self._levelled(items, bounds, share)
        wanted, errors = self._order(items, bounds)
        part = max(share // 3, 64)
        narrow = max(32, min(part, share * 7 // 10 // max(errors, 1)))
        chosen: dict[int, int] = {}
        left, missed = share - 24, 0
        for place, unit in enumerate(wanted):
            cost = min(self._unit_weight(items, bounds, unit), narrow if place < errors else part)
            gap = 0 if unit - 1 in chosen or unit + 1 in chosen else LEAST
            if cost + gap > left:
                missed += 1
                if left < LEAST or missed > MISSED:
                    break
                continue
            chosen[unit] = cost
            left -= cost + gap
        return self._widened(items, bounds, chosen, max(left, 0))

    def _widened(self, items: _Items, bounds: Sequence[int], chosen: dict[int, int], left: int) -> dict[int, int]:
        """What is left goes to those that are shown in part, lightest first."""
        short = sorted((self._unit_weight(items, bounds, unit) - part, unit) for unit, part in chosen.items())
        partly = [(lack, unit) for lack, unit in short if lack > 0]
        for place, (lack, unit) in enumerate(partly):
            more = min(lack, max(left // (len(partly) - place), left // 3))
            chosen[unit] += more
            left -= more
        return chosen

    def _levelled(self, items: _Items, bounds: Sequence[int], share: int) -> dict[int, int]:
        """Members with errors for up to half of the share, then light ones whole, and heavy ones with equal parts of what is left."""
        units = range(len(bounds) - 1)
        weights = [self._unit_weight(items, bounds, unit) for unit in units]
        least = [min(weights[unit], OPENED + LEAST if self._opened(items, bounds[unit]) else LEAST) for unit in units]
        flawed = {unit for unit in units if self._page.flawed(items.starts[bounds[unit]], items.ends[bounds[unit + 1] - 1])}
        chosen: dict[int, int] = {}
        left = share
        for unit in sorted(units, key=lambda unit: (unit not in flawed, least[unit])):
            if least[unit] <= left:
                chosen[unit] = least[unit]
                left -= least[unit]
        for unit in flawed & set(chosen):
            more = max(min(weights[unit] - chosen[unit], share // 2 // len(flawed) - chosen[unit], left), 0)
            chosen[unit] += more
            left -= more
        return self._widened(items, bounds, chosen, left)

    def _order(self, items: _Items, bounds: Sequence[int]) -> tuple[Iterator[int], int]:
        """Units by what is lost with them: those with errors (how many is said, too), first, last, rare shapes, extremes, the rest."""
        units = len(bounds) - 1
        key = items.starts[0], bounds[0], units
        known = self._orders.get(key)
        if known is None:
            errors = self._page.errors
            low, high = bisect_left(errors, items.starts[bounds[0]]), bisect_left(errors, items.ends[bounds[-1] - 1])
            flawed = sorted({_unit(bounds, bisect_right(items.starts, at) - 1) for at in islice(errors, low, high)})
            values = items.values[bounds[0] : bounds[-1]]
            telling = [
                _unit(bounds, bounds[0] + item) for item in (*_rare(items.forms[bounds[0] : bounds[-1]]), *_extremes(values))
            ]
            known = self._orders[key] = flawed, telling
        flawed, telling = known
        return _unique(chain(flawed, (0, units - 1), telling, range(units))), len(flawed)

    def _unit_weight(self, items: _Items, bounds: Sequence[int], unit: int) -> int:
        """With its key and the comma; on lines of its own with all that these hold."""
        page = self._page
        start, stop = items.starts[bounds[unit]], items.ends[bounds[unit + 1] - 1]
        if items.laid_out:
            start, stop = page.starts[page.line(start)], page.starts[page.line(stop - 1) + 1] - 1
        return page.weight(start, stop) + 2

    def _opened(self, items: _Items, item: int) -> bool:
        at = items.values_at[item]
        return self._page.text[at : at + 1] in ("{", "[")

    def _held(self, at: int, stop: int, path: str) -> _Items:
        if at not in self._known:
            self._known[at] = _items(self._page.text, at, stop, path)
        return self._known[at]


# Units: the items that share lines, as bounds between them


def _bounds(page: _Page, items: _Items) -> Sequence[int]:
    """Where units of items begin, and the end of the last: an item that begins on the line on which another ends belongs to its unit."""
    begins = [page.line(at) for at in items.starts]
    ends = [page.line(at - 1) for at in items.ends]
    inner = [item for item in range(1, len(begins)) if begins[item] > ends[item - 1]]
    return [0, *inner, len(begins)] if begins else [0]


def _unit(bounds: Sequence[int], item: int) -> int:
    return bisect_right(bounds, item) - 1


def _runs(chosen: Sequence[int], whole: set[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that are shown whole, together; the others one by one. As first and stop."""
    first = stop = -1
    for unit in chosen:
        if unit == stop and unit in whole and first in whole:
            stop += 1
            continue
        if first >= 0:
            yield first, stop
        first, stop = unit, unit + 1
    if first >= 0:
        yield first, stop


def _unique(units: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for unit in units:
        if unit not in seen:
            seen.add(unit)
            yield unit


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Kept lines once each, ascending, neighbours together."""
    joined: list[Piece] = []
    end = 0
    for piece in pieces:
        if isinstance(piece, Note):
            joined.append(piece)
            continue
        start = max(piece.start, end)
        if piece.stop <= start:
            continue
        previous = joined[-1] if joined else None
        if isinstance(previous, Keep) and previous.stop == start:
            joined[-1] = Keep(previous.start, piece.stop)
        else:
            joined.append(Keep(start, piece.stop))
        end = piece.stop
    return tuple(joined)


# What the values are


def _form_of(value: object) -> _RawForm:
    """An item's keys and the types of their values; of another item its type."""
    if type(value) is dict:
        known = cast("dict[str, object]", value)
        return tuple(known), tuple(map(type, known.values()))
    return _LONE[type(value)]


def _form(raw: _RawForm) -> _Form:
    """Integers and floats are numbers, and the order of keys says nothing."""
    keys, types = raw
    if not keys:
        return (("", _TYPES[types[0]]),) if types else ()
    return tuple(sorted(zip(keys, (_TYPES[each] for each in types), strict=True)))


def _rare(raw: Sequence[_RawForm]) -> list[int]:
    """The first item of each form but the commonest, rarest forms first."""
    forms = {each: _form(each) for each in set(raw)}
    if len(forms) < 2:
        return []
    firsts: dict[_Form, int] = {}
    tally: Counter[_Form] = Counter()
    for item, each in enumerate(raw):
        form = forms[each]
        tally[form] += 1
        firsts.setdefault(form, item)
    common = tally.most_common(1)[0][0]
    return sorted((item for form, item in firsts.items() if form != common), key=lambda item: (tally[forms[raw[item]]], item))


def _extremes(values: Sequence[object]) -> list[int]:
    """Items that hold the largest or smallest number of their field, where it lies far outside the middle half of the field."""
    found: list[int] = []
    for column, places in _columns(values):
        sample = sorted(column[:: max(1, len(column) // SAMPLE)])
        lower, upper = sample[len(sample) // 4], sample[len(sample) * 3 // 4]
        for extreme in (max(column), min(column)):
            try:
                far = extreme > upper + FAR * (upper - lower) or extreme < lower - FAR * (upper - lower)
            except OverflowError:  # an integer beyond all floats
                far = True
            if far:
                at = column.index(extreme)
                found.append(at if places is None else places[at])
    return sorted(set(found))


def _columns(values: Sequence[object]) -> Iterator[tuple[list[int | float], list[int] | None]]:
    """Numbers that can be compared: the items themselves, or fields of the items; with the items they stand in."""
    if len(values) < 8:
        return
    if set(map(type, values)) <= {int, float}:
        yield _finite(cast("list[int | float]", values))
        return
    places = [item for item, value in enumerate(values) if type(value) is dict]
    if len(places) < 8:
        return
    rows = cast("list[dict[str, object]]", [values[item] for item in places])
    for key in [key for key, value in rows[0].items() if type(value) in (int, float)][:KEYS]:
        held = [row.get(key) for row in rows]
        if set(map(type, held)) <= {int, float}:
            numbers, within = _finite(cast("list[int | float]", held))
            yield numbers, places if within is None else [places[at] for at in within]


def _finite(values: list[int | float]) -> tuple[list[int | float], list[int] | None]:
    if all(value == value for value in values):
        return values, None
    places = [item for item, value in enumerate(values) if value == value]  # NaN has no place in an order
    return [values[item] for item in places] or [0], places or [0]


def _described(text: str, items: _Items) -> str:
    """What all items are, by keys and types, counts exact; numbers as they are spelled."""
    size = len(items)
    if items.kind == "object":
        return f"object of {plural(size, 'member')}"
    kind = "documents" if items.kind == "documents" else "array of"
    types = Counter(_TYPES[each] for each in map(type, items.values))
    head = f"{size:,} documents" if items.kind == "documents" else f"{kind} {plural(size, 'item')}"
    if list(types) != ["object"]:
        return f"{head}: {', '.join(f'{plural(n, name)}' for name, n in types.most_common())}" if types else head
    fields: dict[str, dict[_Type, int]] = {}
    for (keys, kinds), n in Counter(items.forms).items():
        for key, each in zip(keys, kinds, strict=True):
            field = fields.get(key)
            if field is None:
                field = fields[key] = {}
            name = _TYPES[each]
            field[name] = field.get(name, 0) + n
    told = [_field(text, items, key, kinds) for key, kinds in islice(fields.items(), KEYS)]
    more = f", {len(fields) - KEYS:,} more keys" if len(fields) > KEYS else ""
    return f"{head}, each {', '.join(told)}{more}" if told else f"{head}, each empty"


def _field(text: str, items: _Items, key: str, kinds: Mapping[_Type, int]) -> str:
    """A field: its types, how many items have it if not all do, and how long or large its values are if they are of one type."""
    present = sum(kinds.values())
    name = key if _PLAIN_KEY.match(key) else json.dumps(key[:80])
    some = "" if present == len(items) else f" (in {present:,})"
    if len(kinds) > 1:
        return f"{name}{some} {' or '.join(f'{each} ({n:,})' for each, n in kinds.items())}"
    (kind,) = kinds
    rows = cast("list[dict[str, object]]", items.values)
    if kind == "number":
        held = [cast("float", row[key]) for row in rows if key in row]
        first, last = (_spelled(text, items, key, extreme) for extreme in (min(held), max(held)))
        return f"{name}{some} number {first}" + (f" to {last}" if last != first else "")
    if kind in ("string", "array"):
        sizes = {len(cast("str | list[object]", row[key])) for row in rows if key in row}
        span = f"{min(sizes):,}" + (f" to {max(sizes):,}" if len(sizes) > 1 else "")
        return f"{name}{some} {kind} of {span}" + (" characters" if kind == "string" else "")
    return f"{name}{some} {kind}"


def _spelled(text: str, items: _Items, key: str, number: float) -> str:
    """A number that a field of some item holds, as the text has it."""
    rows = cast("list[dict[str, object]]", items.values)
    item = next(item for item, row in enumerate(rows) if key in row and (row[key] is number or row[key] == number))
    held = _items(text, items.values_at[item], items.ends[item], "")
    for at, end, name in zip(reversed(held.values_at), reversed(held.ends), reversed(held.keys), strict=True):
        if name == key or ("\\" in name and _STRICT.raw_decode(f'"{name}"')[0] == key):
            return text[at:end][:40]
    return "?"


def _briefly(value: object, characters: int) -> str:
    """A value in a word or two."""
    if isinstance(value, dict):
        return f"object of {plural(len(cast('dict[str, object]', value)), 'member')}"
    if isinstance(value, list):
        return f"array of {plural(len(cast('list[object]', value)), 'item')}"
    if isinstance(value, str):
        return f"string of {characters - 2:,}"
    if isinstance(value, _Broken):
        return f"{characters:,} characters that break off"
    return _TYPES[type(value)]
