"""JSON as logs hold it: lone surrogates, raw control characters, bytes that are not UTF-8, fields in another shape than is known.

The fast parser is tried first. What it refuses is mended in two steps: lone surrogate escapes are replaced by an escape of the
same length, so that every offset stays and slices can be cut from the original bytes; all else goes through a lenient parser. A field
in another shape is blanked out where it stands, and named.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from tenure.apis.json_text import Slice, elements, members
from tenure.errors import InputError

T = TypeVar("T")

_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_LONE: Final = re.compile("[\ud800-\udfff]")
_LONE_ESCAPE: Final = 6  # bytes; a pair has 12, any other escape 2
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_BOM: Final = b"\xef\xbb\xbf"
_PADDING: Final = b"\x00 \t\r\n\xef\xbb\xbf"  # what a crashed writer or a Windows editor leaves around the JSON


class DamagedJson(ValueError):
    """A text that no parser here can read: `found` says why, `offset` is the first bad byte, or -1 when none is known."""

    def __init__(self, found: str, offset: int = -1, *, misshapen: bool = False) -> None:
        super().__init__(found)
        self.found, self.offset = found, offset
        self.misshapen = misshapen  # JSON that can be read, in another shape than expected


Shape = type[T] | msgspec.json.Decoder[T]  # what JSON is decoded as: a type, or a decoder where that is a union


def decode(raw: bytes, shape: Shape[T]) -> T:
    """The value of `raw`, mended where it has to be; strings in it are valid Unicode. Raises DamagedJson."""
    return decode_with_source(raw, shape)[0]


def decode_with_source(raw: bytes, shape: Shape[T]) -> tuple[T, bytes, bytes]:
    """The value, the bytes it was decoded from, and bytes of equal offsets to cut payloads from: `raw` whenever that can be."""
    raw, decoder = raw.removeprefix(_BOM), _decoder(shape)
    try:
        return decoder.decode(raw), raw, raw
    except _REFUSALS as error:
        refusal = error
    for mended, aligned in ((_without_lone_surrogates, True), (_leniently, False)):
        try:
            source = mended(raw)
            return decoder.decode(source), source, raw if aligned else source
        except msgspec.ValidationError as error:
            raise DamagedJson(str(error), misshapen=True) from error
        except _REFUSALS:
            continue
    raise _damage(refusal, raw) from refusal


def _decoder(shape: Shape[T]) -> "msgspec.json.Decoder[T]":
    return shape if isinstance(shape, msgspec.json.Decoder) else _of_type(shape)


_of_type: Final = cache(msgspec.json.Decoder)


def aligned(raw: bytes) -> tuple[bytes, bytes]:
    """`raw` without its byte order mark, and bytes of equal offsets in which no escape is a lone surrogate."""
    raw = raw.removeprefix(_BOM)
    return raw, _without_lone_surrogates(raw)


def rewritten(raw: bytes) -> bytes:
    """What a lenient parser reads in `raw`, written as JSON. Raises DamagedJson."""
    try:
        return _leniently(raw)
    except (ValueError, RecursionError) as error:
        raise _damage(error, raw) from error


def cut(part: bytes, source: bytes, faithful: bytes) -> bytes:
    """What stands in `faithful` where `part` stands in `source`; both as `decode_with_source` gave them."""
    if source is faithful:
        return part
    start = source.find(part)
    return faithful[start : start + len(part)]


def utf8(raw: bytes) -> bytes:
    """`raw`, or its text with U+FFFD for every byte that is no UTF-8: the fast parser does not look into what it passes over."""
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


def valid(text: str) -> str:
    """`text` with U+FFFD for every lone surrogate."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


_REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError)


def _without_lone_surrogates(raw: bytes) -> bytes:
    return _ESCAPES.sub(lambda escape: b"\\ufffd" if len(escape[0]) == _LONE_ESCAPE else escape[0], raw)


def _leniently(raw: bytes) -> bytes:
    text = raw.strip(_PADDING).decode("utf-8", "replace")
    value = json.loads(text, strict=False, parse_float=_finite, parse_constant=lambda _: None)
    return valid(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _damage(refusal: Exception, raw: bytes) -> DamagedJson:
    if isinstance(refusal, RecursionError):
        return DamagedJson("JSON nested too deeply")
    if isinstance(refusal, msgspec.ValidationError):
        return DamagedJson(str(refusal), misshapen=True)
    if not raw.strip(_PADDING):
        return DamagedJson("nothing but padding", 0)
    if isinstance(refusal, json.JSONDecodeError):
        return DamagedJson(refusal.msg, len(refusal.doc[: refusal.pos].encode()))
    if at := _BYTE.search(str(refusal)):
        return DamagedJson(_BYTE.sub("", str(refusal)).strip(), int(at[1]))
    return DamagedJson("JSON that ends too early" if "truncated" in str(refusal) else str(refusal), len(raw))


MOST_LEFT_OUT: Final = 16  # fields of one value; what differs more than that is another format

_COMPLAINT: Final = re.compile(r"(?P<what>.*) - at `\$(?P<path>.+)`", re.DOTALL)
_STEP: Final = re.compile(r"\.[^.\[]+|\[(?:\.\.\.|\d+)\]")
_AT: Final = re.compile(r"\[\d+\]")
_ANY: Final = "[...]"
_GOT: Final = re.compile(r"got `(\w+)`")
_TYPES: Final = {"{": "object", "[": "array", '"': "str", "t": "bool", "f": "bool", "n": "null"}


class Salvaged(NamedTuple):
    """A value as `decode_with_source` gives it, and what had to be left out of it, one sentence each."""

    value: Any
    source: bytes
    faithful: bytes
    left_out: tuple[str, ...] = ()


def salvage(raw: bytes, shape: Shape[Any]) -> Salvaged:
    """Like `decode_with_source`, less the fields that have another shape. Raises DamagedJson where that does not help."""
    try:
        return Salvaged(*decode_with_source(raw, shape))
    except DamagedJson as damage:
        if not damage.misshapen:
            raise
        refusal = damage
    faithful, source = aligned(raw)
    try:
        return _without_misfits(source, faithful, _decoder(shape), refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, InputError):
        source = rewritten(raw)  # damaged as well: as the lenient parser reads it
        return _without_misfits(source, source, _decoder(shape), refusal)


def _without_misfits(source: bytes, faithful: bytes, decoder: "msgspec.json.Decoder[Any]", refusal: DamagedJson) -> Salvaged:
    left_out: list[str] = []
    while len(left_out) < MOST_LEFT_OUT:
        try:
            return Salvaged(decoder.decode(source), source, faithful, tuple(left_out))
        except msgspec.ValidationError as error:
            found = _COMPLAINT.fullmatch(str(error))
            blanked, size = _blanked(source, found) if found is not None else (source, 0)
            if found is None or not size:
                break
            source = blanked
            left_out.append(
                f"field `{found['path'].lstrip('.')}` left out: {found['what'].replace('got', 'found')} ({size} bytes)"
            )
    raise refusal


def _blanked(source: bytes, complaint: "re.Match[str]") -> tuple[bytes, int]:
    """`source` with spaces for what was complained about, and its bytes. Raises InputError when it is no JSON."""
    got = _GOT.search(complaint["what"])
    path = (
        complaint["path"] if got is None else _AT.sub(_ANY, complaint["path"])
    )  # a type that is wrong here is wrong in every element
    *way, last = _STEP.findall(path) or [""]
    text = source.decode("latin-1")  # one character a byte: the offsets are the same
    holders = [(0, text)]
    for step in way:
        holders = [(at + item.end - len(item.text), item.text) for at, held in holders for _, item in _meant(_items(held), step)]
    changed, size = bytearray(source), 0
    for at, held in holders:
        items = _items(held)
        gone = {n for n, item in _meant(items, last) if got is None or _type(item.text) == got[1]}
        size += sum(items[n].end - items[n].start for n in gone)
        for start, end in _spans(items, gone):
            changed[at + start : at + end] = b" " * (end - start)
    return bytes(changed), size


def _items(text: str) -> list[Slice]:
    """What an object or array holds; nothing for any other value."""
    try:
        return members(text) if text.lstrip()[:1] == "{" else elements(text) if text.lstrip()[:1] == "[" else []
    except RecursionError as error:
        raise InputError("JSON", "nested too deeply") from error


def _meant(items: list[Slice], step: str) -> Iterator[tuple[int, Slice]]:
    for n, item in enumerate(items):
        if step in (_ANY, f".{item.key}" if item.spelled else f"[{n}]"):
            yield n, item


def _type(text: str) -> str:
    return _TYPES.get(text[:1]) or ("float" if set(text) & set(".eE") else "int")


def _spans(items: list[Slice], gone: set[int]) -> Iterator[tuple[int, int]]:
    """What to blank out so that the rest is still an object or array: items, and the commas that parted them from others."""
    newest = max((n for n in range(len(items)) if n not in gone), default=-1)
    for n in gone:
        yield items[n].start, items[n].end
    for n in range(len(items) - 1):
        if n in gone or n == newest:  # after the newest that stays nothing stays
            yield items[n].end, items[n + 1].start
