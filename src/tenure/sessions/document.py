"""Files that are one JSON document. Promise: nothing is lost; of a damaged document what can be read is read, and the rest is counted."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from tenure.errors import InputError
from tenure.sessions.mend import Damaged, decode_with_source, utf8
from tenure.sessions.reader import Skipped

T = TypeVar("T")

_STRUCTURE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
_CLOSERS: Final = {b"{": b"}", b"[": b"]"}
_OUTER: Final = 2  # an array that is the document, or a member of it


class Document(Struct, Generic[T], frozen=True):
    """A document as far as it could be read; `source` and `faithful` as `decode_with_source` gives them."""

    value: T
    source: bytes
    faithful: bytes
    skipped: tuple[Skipped, ...] = ()  # what could not be read


def document(chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]", allowed: str) -> "Document[T]":
    """The document; of a damaged one what stands before the damage, up to the last whole element of its outermost array.

    Raises InputError naming `allowed` where not even that can be read.
    """
    raw = utf8(b"".join(chunks))
    try:
        return Document(*decode_with_source(raw, decoder))
    except Damaged as damage:
        refusal = InputError(_place(raw, damage.offset), f"found {damage.found}", allowed)
        end, closing = _whole_elements(raw, damage.offset if damage.offset >= 0 else len(raw))
        if not end:
            raise refusal from damage
    try:
        value, source, faithful = decode_with_source(raw[:end] + closing, decoder)
    except Damaged:
        raise refusal from None
    line = raw.count(b"\n", 0, end) + 1
    lost = Skipped(
        line=line, bytes=len(raw) - end, reason=f"{refusal.where}: {refusal.found}; all from line {line} on is left out"
    )
    return Document(value, source, faithful, (lost,))


def _whole_elements(raw: bytes, limit: int) -> tuple[int, bytes]:
    """Where the last whole element of the outermost array ends before `limit`, and what closes the document there; 0 for nowhere."""
    open_: list[bytes] = []
    end, closing = 0, b""
    for found in _STRUCTURE.finditer(raw, 0, limit):
        sign = found[0]
        if sign in _CLOSERS:
            open_.append(sign)
        elif sign in (b"}", b"]") and open_:
            open_.pop()
            if open_ and open_[-1] == b"[" and len(open_) <= _OUTER:
                end, closing = found.end(), b"".join(_CLOSERS[each] for each in reversed(open_))
    return end, closing


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


def _place(raw: bytes, offset: int) -> str:
    if offset < 0:
        return "document"
    line, column = raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"
