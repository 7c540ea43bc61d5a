"""JSON as logs really hold it: lone surrogates, raw control characters, bytes that are not UTF-8. Promise: nothing is lost.

The fast parser is tried first. What it refuses is mended in two steps: lone surrogate escapes are replaced by an escape of the
same length, so that every offset stays and slices can be cut from the original bytes; all else goes through a lenient parser.
A field whose shape a newer version changed costs that field and not the message (`salvage`).
"""

import json
import re
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_LONE: Final = re.compile("[\ud800-\udfff]")
_LONE_ESCAPE: Final = 6  # bytes; a pair has 12, any other escape 2
MOST_LEFT_OUT: Final = 16  # fields of one value; what differs more than that is another format

_COMPLAINT: Final = re.compile(r"(?P<what>.*) - at `\$(?P<path>.+)`", re.DOTALL)
_STEP: Final = re.compile(r"\.[^.\[]+|\[(?:\.\.\.|\d+)\]")
_AT: Final = re.compile(r"\[\d+\]")
_ANY: Final = "[...]"
_GOT: Final = re.compile(r"got `(\w+)`")
_TYPES: Final = {dict: "object", list: "array", str: "str", int: "int", float: "float", bool: "bool", type(None): "null"}
_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_BOM: Final = b"\xef\xbb\xbf"
_PADDING: Final = b"\x00 \t\r\n\xef\xbb\xbf"  # what a crashed writer or a Windows editor leaves around the JSON


class Damaged(ValueError):
    """A text that no parser here can read: `found` says why, `offset` is the first bad byte, or -1 when none is known."""

    def __init__(self, found: str, offset: int = -1, *, misshapen: bool = False) -> None:
        super().__init__(found)
        self.found, self.offset = found, offset
        self.misshapen = misshapen  # JSON that can be read, in another shape than expected


def decode(raw: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    """The value of `raw`, mended where it has to be; strings in it are valid Unicode. Raises Damaged."""
    return decode_with_source(raw, decoder)[0]


def decode_with_source(raw: bytes, decoder: "msgspec.json.Decoder[T]") -> tuple[T, bytes, bytes]:
    """The value, the bytes it was decoded from, and bytes of equal offsets to cut payloads from: `raw` whenever that can be."""
    raw = raw.removeprefix(_BOM)
    try:
        return decoder.decode(raw), raw, raw
    except _REFUSALS as error:
        refusal = error
    for mended, aligned in ((_without_lone_surrogates, True), (_leniently, False)):
        try:
            source = mended(raw)
            return decoder.decode(source), source, raw if aligned else source
        except msgspec.ValidationError as error:
            raise Damaged(str(error), misshapen=True) from error
        except _REFUSALS:
            continue
    raise _damage(refusal, raw) from refusal


class Salvaged(NamedTuple):
    """A value as `decode_with_source` gives it, and what had to be left out of it, one sentence each."""

    value: Any
    source: bytes
    faithful: bytes
    left_out: tuple[str, ...] = ()


def salvage(raw: bytes, decoder: "msgspec.json.Decoder[Any]") -> Salvaged:
    """Like `decode_with_source`, less the fields that have another shape than `decoder` knows. Raises Damaged where that does not help."""
    try:
        return Salvaged(*decode_with_source(raw, decoder))
    except Damaged as damage:
        if not damage.misshapen:
            raise
        refusal = damage
    try:
        value, left_out = _value(raw), list[str]()
    except (ValueError, RecursionError) as error:  # damaged as well, further on
        raise _damage(error, raw) from error
    while len(left_out) < MOST_LEFT_OUT:
        source = valid(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
        try:
            return Salvaged(decoder.decode(source), source, source, tuple(left_out))
        except msgspec.ValidationError as error:
            found = _COMPLAINT.fullmatch(str(error))
            if found is None or not _leave_out(value, found):
                break
            left_out.append(f"field `{found['path'].lstrip('.')}` left out: {found['what'].replace('got', 'found')}")
    raise refusal


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


def _leave_out(value: Json, complaint: "re.Match[str]") -> bool:
    """Take what was complained about out of `value`; False when it is not there, or is all of it."""
    got = _GOT.search(complaint["what"])
    path = (
        complaint["path"] if got is None else _AT.sub(_ANY, complaint["path"])
    )  # a type that is wrong here is wrong in every element
    *way, last = _STEP.findall(path) or [""]
    holders = [value]
    for step in way:
        holders = [item for holder in holders for _, item in _members(holder, step)]
    any_yet = False
    for holder in holders:
        for key, item in reversed(_members(holder, last)):
            if got is None or _TYPES.get(type(item)) == got[1]:
                holder.pop(key)  # pyright: ignore - the key is one of this holder's
                any_yet = True
    return any_yet


def _members(holder: Json, step: str) -> list[tuple[str | int, Json]]:
    """The keys and values of `holder` that a step of a path means."""
    if isinstance(holder, dict):
        return [(key, item) for key, item in holder.items() if step in (_ANY, "." + key)]
    if isinstance(holder, list):
        return [(at, item) for at, item in enumerate(holder) if step in (_ANY, f"[{at}]")]
    return []


_REFUSALS: Final = (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError)


def _without_lone_surrogates(raw: bytes) -> bytes:
    return _ESCAPES.sub(lambda escape: b"\\ufffd" if len(escape[0]) == _LONE_ESCAPE else escape[0], raw)


def _leniently(raw: bytes) -> bytes:
    return valid(json.dumps(_value(raw), ensure_ascii=False, separators=(",", ":"))).encode()


def _value(raw: bytes) -> Json:
    text = raw.strip(_PADDING).decode("utf-8", "replace")
    return json.loads(text, strict=False, parse_float=_finite, parse_constant=lambda _: None)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


def _damage(refusal: Exception, raw: bytes) -> Damaged:
    if isinstance(refusal, RecursionError):
        return Damaged("JSON nested too deeply")
    if isinstance(refusal, msgspec.ValidationError):
        return Damaged(str(refusal), misshapen=True)
    if not raw.strip(_PADDING):
        return Damaged("nothing but padding", 0)
    if isinstance(refusal, json.JSONDecodeError):
        return Damaged(refusal.msg, len(refusal.doc[: refusal.pos].encode()))
    if at := _BYTE.search(str(refusal)):
        return Damaged(_BYTE.sub("", str(refusal)).strip(), int(at[1]))
    return Damaged("JSON that ends too early" if "truncated" in str(refusal) else str(refusal), len(raw))
