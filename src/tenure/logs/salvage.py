"""Values with fields in another shape than is known: what a newer version of a tool changed.

The field is blanked out where it stands, so that every offset stays and slices can still be cut from the original bytes.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from tenure.apis.json_text import Slice, elements, members
from tenure.errors import InputError
from tenure.logs.mend import Damaged, aligned, decode_with_source, rewritten

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


def salvage(raw: bytes, decoder: "msgspec.json.Decoder[Any]") -> Salvaged:
    """Like `decode_with_source`, less the fields that have another shape than `decoder` knows. Raises Damaged where that does not help."""
    try:
        return Salvaged(*decode_with_source(raw, decoder))
    except Damaged as damage:
        if not damage.misshapen:
            raise
        refusal = damage
    faithful, source = aligned(raw)
    try:
        return _without_misfits(source, faithful, decoder, refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, InputError):
        source = rewritten(raw)  # damaged as well: as the lenient parser reads it
        return _without_misfits(source, source, decoder, refusal)


def _without_misfits(source: bytes, faithful: bytes, decoder: "msgspec.json.Decoder[Any]", refusal: Damaged) -> Salvaged:
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
    """The type of a JSON value in the words of the complaint."""
    return _TYPES.get(text[:1]) or ("float" if set(text) & set(".eE") else "int")


def _spans(items: list[Slice], gone: set[int]) -> Iterator[tuple[int, int]]:
    """What to blank out so that the rest is still an object or array: items, and the commas that parted them from others."""
    newest = max((n for n in range(len(items)) if n not in gone), default=-1)
    for n in gone:
        yield items[n].start, items[n].end
    for n in range(len(items) - 1):
        if n in gone or n == newest:  # after the newest that stays nothing stays
            yield items[n].end, items[n + 1].start
