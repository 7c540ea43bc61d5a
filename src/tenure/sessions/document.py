"""Files that are one JSON document. Promise: nothing is lost; a document that cannot be read is refused with line and column."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from tenure.errors import InputError
from tenure.sessions.mend import Damaged, decode_with_source, utf8

T = TypeVar("T")


def document(chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]", allowed: str) -> tuple[T, bytes, bytes]:
    """The document, and the two byte strings of `decode_with_source`. Raises InputError naming `allowed`."""
    raw = utf8(b"".join(chunks))
    try:
        return decode_with_source(raw, decoder)
    except Damaged as damage:
        raise InputError(_place(raw, damage.offset), f"found {damage.found}", allowed) from damage


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
