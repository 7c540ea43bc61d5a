"""Files that hold one sample of a format, an array of them, or one on each line."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tenure.errors import InputError
from tenure.logs.document import Element, decoded, document, elements
from tenure.logs.jsonl import lines
from tenure.logs.reader import Skipped
from tenure.logs.shape import bare, keys, opening

T = TypeVar("T")

HEAD: Final = 64 * 2**10  # bytes in which a second line shows
GOES_ON: Final = (b"[", b",", b":")  # how a line ends inside of an object

_array: Final = msgspec.json.Decoder(list[Raw])


def samples(
    chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]", allowed: str, what: str
) -> Iterator[tuple[Element, T] | Skipped]:
    """Each sample with the line it starts on. Raises InputError naming `allowed` when not one can be read."""
    head, rest = _head(chunks)
    if opening(head) == "[":
        array = document(chain((head,), rest), _array, allowed)
        yield from decoded(elements(array.value, array.source, array.faithful), decoder, what)
        yield from array.skipped
    elif _is_by_line(head):
        yield from _by_line(chain((head,), rest), decoder, allowed)
    else:
        yield from _whole(chain((head,), rest), 1, decoder, allowed)


def inside(array: list[Raw], outer: Element) -> Iterator[Element]:
    """The elements of an array in `outer`, with the lines of the file they stand on."""
    for element in elements(array, outer.source, outer.faithful):
        yield replace(element, line=outer.line + element.line - 1)


def first_keys(head: bytes) -> list[str]:
    """The keys of the first object: of the document, of the array's first element, or of the first line that has any."""
    start = bare(head)
    found = keys(start.removeprefix(b"["))
    return found or keys(start.partition(b"\n")[2])


def _head(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    rest, held, size = iter(chunks), list[bytes](), 0
    while size < HEAD and (chunk := next(rest, None)) is not None:
        held.append(chunk)
        size += len(chunk)
    return b"".join(held), rest


def _is_by_line(head: bytes) -> bool:
    """A line that is followed by the start of another object, or by nothing that can be seen."""
    first, _, more = bare(head[:HEAD]).partition(b"\n")
    return not more.strip() or (more.lstrip().startswith(b"{") and not first.rstrip().endswith(GOES_ON))


def _whole(
    chunks: Iterable[bytes], line: int, decoder: "msgspec.json.Decoder[T]", allowed: str
) -> Iterator[tuple[Element, T] | Skipped]:
    read = document(chunks, decoder, allowed)
    yield Element(line, read.source, read.faithful), read.value
    yield from (replace(skipped, line=skipped.line and skipped.line + line - 1) for skipped in read.skipped)


def _by_line(chunks: Iterable[bytes], decoder: "msgspec.json.Decoder[T]", allowed: str) -> Iterator[tuple[Element, T] | Skipped]:
    refusals: list[tuple[int, int, InputError]] = []
    any_yet = False
    for item in lines(chunks):
        if isinstance(item, Skipped):
            yield item
            continue
        number, raw = item
        try:
            yield from _whole((raw,), number, decoder, allowed)
            any_yet = True
        except InputError as error:
            if any_yet:
                yield _refused(number, len(raw), error)
            else:
                refusals.append((number, len(raw), error))
                continue
        yield from (_refused(*refusal) for refusal in refusals)
        refusals = []
    if refusals:
        raise refusals[0][2]


def _refused(line: int, size: int, error: InputError) -> Skipped:
    return Skipped(line=line, bytes=size, reason=f"damaged line: {error.found}, expected {error.allowed}")
