"""JSON as logs really hold it: lone surrogates, raw control characters, bytes that are not UTF-8.

The fast parser is tried first. What it refuses is mended in two steps: lone surrogate escapes are replaced by an escape of the
same length, so that every offset stays and slices can be cut from the original bytes; all else goes through a lenient parser.
"""

import json
import re
from math import isfinite
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_LONE: Final = re.compile("[\ud800-\udfff]")
_LONE_ESCAPE: Final = 6  # bytes; a pair has 12, any other escape 2
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


def aligned(raw: bytes) -> tuple[bytes, bytes]:
    """`raw` without its byte order mark, and bytes of equal offsets in which no escape is a lone surrogate."""
    raw = raw.removeprefix(_BOM)
    return raw, _without_lone_surrogates(raw)


def rewritten(raw: bytes) -> bytes:
    """What a lenient parser reads in `raw`, written as JSON. Raises Damaged."""
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
