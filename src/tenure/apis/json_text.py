r"""JSON as text: read without loss, changed by exchanging slices.

A fast parser refuses a lone surrogate and forgets a repeated key or the spelling of `1E2`. So a value that stays is never decoded and
encoded again: its slice of the source is carried over. Outer whitespace is not part of a JSON text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec

from tenure.errors import InputError

Message: TypeAlias = bytes | Mapping[str, Any]  # one provider message: its raw JSON, or the dictionary of it
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_DECODER: Final = json.JSONDecoder(strict=False)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Slice(NamedTuple):
    """An element of an array, or a member of an object by its value: as it is spelled, and where."""

    text: str
    start: int  # of the element, or of the member's key
    end: int
    key: str = ""  # decoded; a member's only
    spelled: str = ""  # the key with what stands before the value


def source(message: Message, where: str) -> str:
    """The JSON text of a message; a dictionary is written, bytes are taken as they are. Raises InputError for bytes that are no UTF-8."""
    if not isinstance(message, bytes):
        return dump(message)
    try:
        return message.decode("utf-8", "surrogatepass").strip(" \t\n\r")
    except UnicodeDecodeError as error:
        raise InputError(where, f"bytes that are not UTF-8 at {error.start}", "JSON in UTF-8") from error


def encoded(text: str) -> bytes:
    """The inverse of `source` for bytes."""
    return text.encode("utf-8", "surrogatepass")


def load(text: str, where: str = "JSON") -> Json:
    """The value of a JSON text. Lone surrogates stay, of a repeated key the last counts. Raises InputError when it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise InputError(where, f"no JSON ({error})", "a JSON text") from error


def dump(value: object) -> str:
    """The JSON text of a value. A lone surrogate is escaped; objects of a provider's SDK write themselves."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return json.dumps(value, separators=(",", ":"), default=_plain)


def clean(text: str) -> str:
    """`text` as valid Unicode: each lone surrogate becomes U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def members(text: str, where: str = "JSON") -> list[Slice]:
    """The members of an object in source order, repeated keys included. Raises InputError when it is no object."""

    def member(at: int) -> Slice:
        if text[at : at + 1] != '"':
            raise ValueError(f"no key at {at}")
        key, end = _DECODER.raw_decode(text, at)
        value = _skip(text, _expect(text, _skip(text, end), ":"))
        stop = _DECODER.raw_decode(text, value)[1]
        return Slice(text[value:stop], at, stop, key, text[at:value])

    return _slices(text, "{}", member, where)


def elements(text: str, where: str = "JSON") -> list[Slice]:
    """The elements of an array. Raises InputError when it is no array."""

    def element(at: int) -> Slice:
        stop = _DECODER.raw_decode(text, at)[1]
        return Slice(text[at:stop], at, stop)

    return _slices(text, "[]", element, where)


def value_of(items: Iterable[Slice], key: str) -> str | None:
    """The value that counts for `key`, as it is spelled; None where there is none."""
    return next((item.text for item in reversed(list(items)) if item.key == key), None)


def with_elements(text: str, changed: Sequence[str | None]) -> str:
    """The array `text` with each element exchanged for what lines up with it; None takes one out."""
    return _spliced(text, elements(text), changed)


def with_members(text: str, values: Mapping[str, str | None]) -> str:
    """The object `text` with other values for these keys; None takes a key out, a new key is added last."""
    items = members(text)
    changed = [item.spelled + item.text for item in items]
    last = {item.key: n for n, item in enumerate(items)}
    shown: list[str | None] = [
        item if source.key not in values or values[source.key] is not None else None
        for item, source in zip(changed, items, strict=True)
    ]
    added = ""
    for key, value in values.items():
        if value is not None and key in last:
            shown[last[key]] = items[last[key]].spelled + value
        elif value is not None:
            added += f",{dump(key)}:{value}"
    result = _spliced(text, items, shown)
    if not added:
        return result
    return result[:-1] + (added if any(item is not None for item in shown) else added[1:]) + "}"


def array_text(items: Iterable[str]) -> str:
    """The array of these elements."""
    return "[" + ",".join(items) + "]"


def object_of(value: Json, where: str) -> dict[str, Json]:
    """`value`, known to be an object. Raises InputError otherwise."""
    if isinstance(value, dict):
        return value
    raise InputError(where, f"{_kind(value)}", "an object")


def string_of(fields: Mapping[str, Json], key: str, where: str) -> str:
    """The string at `key`, valid Unicode. Raises InputError when it is missing or of another type."""
    value = fields.get(key)
    if isinstance(value, str):
        return clean(value)
    raise InputError(where, f"{key} is {_kind(value)}" if key in fields else f"no {key}", f"a string as {key}")


def optional_string(fields: Mapping[str, Json], key: str) -> str:
    """The string at `key`, valid Unicode; empty when it is missing or of another type."""
    value = fields.get(key)
    return clean(value) if isinstance(value, str) else ""


def number_of(fields: Mapping[str, Any], key: str) -> int:
    """The count at `key`; 0 when it is missing, null or no number."""
    value: object = fields.get(key)
    return int(value) if isinstance(value, int) or (isinstance(value, float) and isfinite(value)) else 0


def _slices(text: str, brackets: str, item: Callable[[int], Slice], where: str) -> list[Slice]:
    found: list[Slice] = []
    try:
        at = _skip(text, _expect(text, _skip(text, 0), brackets[0]))
        if text[at : at + 1] != brackets[1]:
            found.append(item(at))
            while text[(at := _skip(text, found[-1].end)) : at + 1] == ",":
                found.append(item(_skip(text, at + 1)))
        if _skip(text, _expect(text, at, brackets[1])) != len(text):
            raise ValueError("more text after its end")
    except (ValueError, RecursionError) as error:
        raise InputError(where, f"{text[:40]!r} ({error})", "an object" if brackets == "{}" else "an array") from error
    return found


def _spliced(text: str, items: Sequence[Slice], changed: Sequence[str | None]) -> str:
    if not items:
        return text
    body: list[str] = []
    for n, new in enumerate(changed):
        if new is not None:
            body.append((text[items[n - 1].end : items[n].start] if body else "") + new)
    return text[: items[0].start] + "".join(body) + text[items[-1].end :]


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise ValueError(f"no {sign} at {at}")
    return at + 1


def _kind(value: Json) -> str:
    return "null" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"


def _plain(value: object) -> object:
    kind = type(value).__name__
    dumped = getattr(value, "model_dump", None)
    if callable(dumped) and not isinstance(value, type):
        return dumped(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any mapping will do
    if isinstance(value, Iterable) and not isinstance(value, Iterator | type):
        return list(cast(Iterable[object], value))
    raise InputError("message", f"a {kind}", "values that JSON can hold")
