"""Files that are one JSON document."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from tenure.errors import InputError
from tenure.logs.mend import Damaged, utf8
from tenure.logs.reader import Skipped
from tenure.logs.salvage import salvage
from tenure.logs.shape import keys

T = TypeVar("T")

_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)  # a string may be cut off
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}
_OPENING: Final = re.compile(rb'\{\s*"[^"\\]*"\s*:')
_GLANCE: Final = 2**12  # bytes of an element looked at
_ALIKE: Final = 3  # keys in which neighbours agree
_CANDIDATES: Final = 200
MOST_HOLES: Final = 16  # damaged elements of one document; every one costs a pass over it
_OUTER: Final = 2  # an array that is the document, or a member of it


class Document(Struct, Generic[T], frozen=True):
    """A document as far as it could be read; `source` and `faithful` as `decode_with_source` gives them."""

    value: T
    source: bytes
    faithful: bytes
    skipped: tuple[Skipped, ...] = ()  # what could not be read


def document(chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]", allowed: str) -> "Document[T]":
    """The document, less what is damaged: elements of its outermost array, all from the damage on, or fields of another shape.

    Raises InputError naming `allowed` where not even that can be read.
    """
    raw = utf8(b"".join(chunks))
    holes: list[Skipped] = []
    while True:
        try:
            read = salvage(raw, decoder)
        except Damaged as damage:
            if damage.misshapen or len(holes) > MOST_HOLES:
                raise _refusal(raw, damage, allowed) from damage
            raw, hole = _without_damage(raw, damage, len(holes) < MOST_HOLES, allowed)
            holes.append(hole)
        else:
            fields = (Skipped(line=0, bytes=0, reason=reason) for reason in read.left_out)
            return Document(read.value, read.source, read.faithful, (*holes, *fields))


def _without_damage(raw: bytes, damage: Damaged, resume: bool, allowed: str) -> tuple[bytes, Skipped]:
    """The document without the element that is damaged, or, where no other is seen to follow, without all from there on."""
    refusal = _refusal(raw, damage, allowed)
    limit = damage.offset if damage.offset >= 0 else len(raw)
    elements = _Elements(raw, limit)
    if not elements.end:
        raise refusal from damage
    line = raw.count(b"\n", 0, elements.end) + 1
    start = elements.next_after(limit) if resume else 0
    if start:
        lost = raw[elements.end : start]
        kept = raw[: elements.end] + b"," + b"\n" * lost.count(b"\n") + raw[start:]  # lines keep their numbers
        left_out = f"a damaged element ({len(lost)} bytes) is left out"
    else:
        lost, kept = raw[elements.end :], raw[: elements.end] + elements.closing
        left_out = f"all from line {line} on is left out"
    return kept, Skipped(line=line, bytes=len(lost), reason=f"{refusal.where}: {refusal.found}; {left_out}")


class _Elements:
    """The outermost array of a document, as far as it can be told from the bytes before `limit`."""

    def __init__(self, raw: bytes, limit: int) -> None:
        self.raw = raw
        self.end, self.closing = 0, b""  # of the last whole element, and what closes the document there; 0 for nowhere
        self._start = 0  # of that element
        starts: list[int] = []
        open_: list[bytes] = []
        for found in _STRUCTURE.finditer(raw, 0, limit):
            sign = found[0]
            if sign in _CLOSERS:
                open_.append(sign)
                starts.append(found.start())
            elif sign in (b"}", b"]") and open_:
                open_.pop()
                start = starts.pop()
                if open_ and open_[-1] == b"[" and len(open_) <= _OUTER:
                    self.end, self.closing = found.end(), b"".join(_CLOSERS[each] for each in reversed(open_))
                    self._start = start

    def next_after(self, offset: int) -> int:
        """Where the next element seems to start, by how the last whole one starts and is indented; 0 for nowhere."""
        opening = _OPENING.match(self.raw, self._start)
        if opening is None:
            return 0
        indent = self.raw[self.raw.rfind(b"\n", 0, self._start) + 1 : self._start]
        before = rb"\}\s*,\s*?" + (rb"\n" + re.escape(indent) if indent.isspace() else b"")
        usual = keys(self.raw[self._start : self._start + _GLANCE])[:_ALIKE]
        found = re.compile(before + rb"(?=(" + re.escape(opening[0]) + rb"))").finditer(self.raw, offset)
        for start in (each.start(1) for each, _ in zip(found, range(_CANDIDATES), strict=False)):
            if keys(self.raw[start : start + _GLANCE])[:_ALIKE] == usual:
                return start
        return 0


def _refusal(raw: bytes, damage: Damaged, allowed: str) -> InputError:
    return InputError(_place(raw, damage.offset), f"found {damage.found}", allowed)


class Element(Struct, frozen=True, gc=False):
    """One element of an array in the document."""

    line: int  # 1-based, where it starts
    source: bytes  # what to decode
    faithful: bytes  # of equal offsets, to cut payloads from


def elements(array: list[Raw], source: bytes, faithful: bytes) -> Iterator[Element]:
    """The elements of `array`, which was decoded from `source`, with the lines they stand on."""
    at, line = 0, 1
    for raw in array:
        part = bytes(raw)
        start = source.find(part, at)
        end = start + len(part)
        line += faithful.count(b"\n", at, start)
        yield Element(line, part, faithful[start:end])
        line += faithful.count(b"\n", start, end)
        at = end


def decoded(array: Iterable[Element], decoder: "msgspec.json.Decoder[T]", what: str) -> Iterator[tuple[Element, T] | Skipped]:
    """Each element with its value; Skipped for each that is no `what`, and for each field in an unknown shape."""
    for element in array:
        try:
            read = salvage(element.source, decoder)
        except Damaged as damage:
            size = len(element.faithful)
            yield Skipped(line=element.line, bytes=size, reason=f"damaged {what}: found {damage.found}")
            continue
        yield from (Skipped(line=element.line, bytes=0, reason=reason) for reason in read.left_out)
        same = read.source is element.source
        yield (element if same else Element(element.line, read.source, read.faithful)), read.value


def _place(raw: bytes, offset: int) -> str:
    if offset < 0:
        return "document"
    line, column = raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"
