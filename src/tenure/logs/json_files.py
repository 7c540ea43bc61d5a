"""Files of JSON: one document, one object per line, or samples in any of these forms; of a damaged file what can be read is read, and the rest is named."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.errors import InputError
from tenure.logs.reader import Skipped
from tenure.logs.salvage import DamagedJson, Shape, salvage, utf8
from tenure.logs.shape import bare, keys, opening

T = TypeVar("T")

MOST_JOINED: Final = 16  # places in a line where an object may have ended
_JOINT: Final = b'}{"'
_JOINTS: Final = re.compile(rb"\}\{(?=\")")
_any_value: Final = msgspec.json.Decoder(Raw)

HEAD: Final = 64 * 2**10  # bytes that a format is recognised by
LONGEST_LINE: Final = 256 * 2**20  # bytes; nothing longer is held, so memory stays bounded whatever the file holds


class Element(Struct, frozen=True, gc=False):
    """One line, or one element of an array, that could be read."""

    line: int  # 1-based, where it starts
    source: bytes  # what to decode
    faithful: bytes  # of equal offsets, to cut payloads from
    size: int = 0  # bytes


def opened(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first HEAD bytes or more, and all of the file."""
    rest, start, size = iter(chunks), list[bytes](), 0
    while size < HEAD and (chunk := next(rest, None)) is not None:
        start.append(chunk)
        size += len(chunk)
    head = b"".join(start)
    return head, chain((head,), rest)


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


def records(chunks: Iterable[bytes], shape: Shape[T]) -> Iterator[tuple[Element, T] | Skipped]:
    """The decoded lines of the file, in order; Skipped for each that no parser can read, and for each field in an unknown shape."""
    for item in lines(chunks):
        if isinstance(item, Skipped):
            yield item
            continue
        number, raw = item
        try:
            read = salvage(raw, shape)
        except DamagedJson as damage:
            if len(parts := _objects(raw)) > 1:
                for found in records((b"\n".join(parts),), shape):
                    yield (
                        replace(found, line=number) if isinstance(found, Skipped) else (replace(found[0], line=number), found[1])
                    )
                continue
            column = f" (column {damage.offset + 1})" if damage.offset >= 0 else ""
            reason = f"damaged line: found {damage.found}{column}, expected one JSON object of this format"
            yield Skipped(line=number, bytes=len(raw), reason=reason)
        else:
            yield from (Skipped(line=number, bytes=0, reason=reason) for reason in read.left_out)
            yield Element(number, read.source, read.faithful, len(raw)), read.value


def _objects(raw: bytes) -> list[bytes]:
    """The objects that a line consists of, where a writer lost the end of one; else nothing."""
    parts: list[bytes] = []
    at = 0
    if 0 < raw.count(_JOINT) <= MOST_JOINED:
        for end in (*(joint.start() + 1 for joint in _JOINTS.finditer(raw)), len(raw)):
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                _any_value.decode(raw[at:end])
                parts.append(raw[at:end])
                at = end
    return parts if at == len(raw) else []


def _line(number: int, held: list[bytes], dropped: int) -> Iterator[tuple[int, bytes] | Skipped]:
    if dropped:
        yield Skipped(line=number, bytes=dropped, reason=f"line of {dropped} bytes, expected at most {LONGEST_LINE}")
        return
    raw = held[0] if len(held) == 1 else b"".join(held)
    if raw and not raw.isspace():
        yield number, utf8(raw)


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


def document(chunks: Iterable[bytes], shape: Shape[T], allowed: str) -> "Document[T]":
    """The document, less what is damaged: elements of its outermost array, all from the damage on, or fields of another shape.

    Raises InputError naming `allowed` where not even that can be read.
    """
    raw = utf8(b"".join(chunks))
    holes: list[Skipped] = []
    while True:
        try:
            read = salvage(raw, shape)
        except DamagedJson as damage:
            if damage.misshapen or len(holes) > MOST_HOLES:
                raise _refusal(raw, damage, allowed) from damage
            raw, hole = _without_damage(raw, damage, len(holes) < MOST_HOLES, allowed)
            holes.append(hole)
        else:
            fields = (Skipped(line=0, bytes=0, reason=reason) for reason in read.left_out)
            return Document(read.value, read.source, read.faithful, (*holes, *fields))


def _without_damage(raw: bytes, damage: DamagedJson, resume: bool, allowed: str) -> tuple[bytes, Skipped]:
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


def _refusal(raw: bytes, damage: DamagedJson, allowed: str) -> InputError:
    return InputError(_place(raw, damage.offset), f"found {damage.found}", allowed)


def elements(array: list[Raw], source: bytes, faithful: bytes) -> Iterator[Element]:
    """The elements of `array`, which was decoded from `source`, with the lines they stand on."""
    at, line = 0, 1
    for raw in array:
        part = bytes(raw)
        start = source.find(part, at)
        end = start + len(part)
        line += faithful.count(b"\n", at, start)
        yield Element(line, part, faithful[start:end], len(part))
        line += faithful.count(b"\n", start, end)
        at = end


def decoded(array: Iterable[Element], shape: Shape[T], what: str) -> Iterator[tuple[Element, T] | Skipped]:
    """Each element with its value; Skipped for each that is no `what`, and for each field in an unknown shape."""
    for element in array:
        try:
            read = salvage(element.source, shape)
        except DamagedJson as damage:
            yield Skipped(line=element.line, bytes=element.size, reason=f"damaged {what}: found {damage.found}")
            continue
        yield from (Skipped(line=element.line, bytes=0, reason=reason) for reason in read.left_out)
        same = read.source is element.source
        yield element if same else Element(element.line, read.source, read.faithful, len(read.faithful)), read.value


def _place(raw: bytes, offset: int) -> str:
    if offset < 0:
        return "document"
    line, column = raw.count(b"\n", 0, offset) + 1, offset - raw.rfind(b"\n", 0, offset)
    return f"line {line}, column {column}"


GOES_ON: Final = (b"[", b",", b":")  # how a line ends inside of an object


def samples(chunks: Iterable[bytes], shape: Shape[T], allowed: str, what: str) -> Iterator[tuple[Element, T] | Skipped]:
    """Each sample with the line it starts on. Raises InputError naming `allowed` when not one can be read."""
    head, whole = opened(chunks)
    if opening(head) == "[":
        array = document(whole, list[Raw], allowed)
        yield from decoded(elements(array.value, array.source, array.faithful), shape, what)
        yield from array.skipped
    elif _is_by_line(head):
        yield from _by_line(whole, shape, allowed)
    else:
        yield from _whole(whole, 1, shape, allowed)


def inside(array: list[Raw], outer: Element) -> Iterator[Element]:
    """The elements of an array in `outer`, with the lines of the file they stand on."""
    for element in elements(array, outer.source, outer.faithful):
        yield replace(element, line=outer.line + element.line - 1)


def first_keys(head: bytes) -> tuple[str, ...]:
    """The keys of the first object: of the document, of the array's first element, or of the first line that has any."""
    start = bare(head)
    found = keys(start.removeprefix(b"["))
    return found or keys(start.partition(b"\n")[2])


def _is_by_line(head: bytes) -> bool:
    """A line that is followed by the start of another object, or by nothing that can be seen."""
    first, _, more = bare(head[:HEAD]).partition(b"\n")
    return not more.strip() or (more.lstrip().startswith(b"{") and not first.rstrip().endswith(GOES_ON))


def _whole(chunks: Iterable[bytes], line: int, shape: Shape[T], allowed: str) -> Iterator[tuple[Element, T] | Skipped]:
    read = document(chunks, shape, allowed)
    yield Element(line, read.source, read.faithful, len(read.faithful)), read.value
    yield from (replace(skipped, line=skipped.line and skipped.line + line - 1) for skipped in read.skipped)


def _by_line(chunks: Iterable[bytes], shape: Shape[T], allowed: str) -> Iterator[tuple[Element, T] | Skipped]:
    refusals: list[tuple[Skipped, InputError]] = []
    any_yet = False
    for item in lines(chunks):
        if isinstance(item, Skipped):
            yield item
            continue
        number, raw = item
        try:
            yield from _whole((raw,), number, shape, allowed)
            any_yet = True
        except InputError as error:
            reason = f"damaged line: {error.found}, expected {error.allowed}"
            refusals.append((Skipped(line=number, bytes=len(raw), reason=reason), error))
        if any_yet:
            yield from (skipped for skipped, _ in refusals)
            refusals = []
    if refusals:
        raise refusals[0][1]
