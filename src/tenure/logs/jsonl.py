"""Files of one JSON object per line, read as they stream in."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tenure.logs.mend import Damaged, utf8
from tenure.logs.reader import Skipped
from tenure.logs.salvage import salvage

T = TypeVar("T")

LONGEST_LINE: Final = 256 * 2**20  # bytes; nothing longer is held, so memory stays bounded whatever the file holds


class Record(Struct, frozen=True, gc=False):
    """One line that could be read, beside the value in it."""

    line: int  # 1-based
    size: int  # bytes
    source: bytes  # what was decoded
    faithful: bytes  # of equal offsets, to cut payloads from


def lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes] | Skipped]:
    """The lines of the file in valid UTF-8 with their 1-based numbers, without blank ones; Skipped for one too long to hold."""
    number, held, size, dropped = 1, list[bytes](), 0, 0
    for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        for index, piece in enumerate((first, *rest)):
            if index:
                yield from _line(number, held, dropped)
                number, held, size, dropped = number + 1, [], 0, 0
            size += len(piece)
            if size > LONGEST_LINE:
                dropped, held = size, []
            elif piece:
                held.append(piece)
    yield from _line(number, held, dropped)


def records(chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]") -> Iterator[tuple[Record, T] | Skipped]:
    """The decoded lines of the file, in order; Skipped for each that no parser can read, and for each field in an unknown shape."""
    for item in lines(chunks):
        if isinstance(item, Skipped):
            yield item
            continue
        number, raw = item
        try:
            read = salvage(raw, decoder)
        except Damaged as damage:
            yield Skipped(line=number, bytes=len(raw), reason=damaged_line(damage))
        else:
            yield from (Skipped(line=number, bytes=0, reason=reason) for reason in read.left_out)
            yield Record(number, len(raw), read.source, read.faithful), read.value


def damaged_line(damage: Damaged) -> str:
    """What was found, where in the line, and what is allowed."""
    column = f" (column {damage.offset + 1})" if damage.offset >= 0 else ""
    return f"damaged line: found {damage.found}{column}, expected one JSON object of this format"


def _line(number: int, held: list[bytes], dropped: int) -> Iterator[tuple[int, bytes] | Skipped]:
    if dropped:
        yield Skipped(line=number, bytes=dropped, reason=f"line of {dropped} bytes, expected at most {LONGEST_LINE}")
        return
    raw = held[0] if len(held) == 1 else b"".join(held)
    if raw and not raw.isspace():
        yield number, utf8(raw)
