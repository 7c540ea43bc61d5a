"""Tokens as pi counts them: UTF-16 units of what its messages hold, divided by four."""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Final, TypeAlias

from tenure.engine.record.entry import Block, Media, Opaque, Origin, Text, ToolCall, ToolResult
from tenure.logs.pi import BRANCHED, COMPACTED

UNITS_PER_TOKEN: Final = 4  # UTF-16 units
IMAGE_UNITS: Final = 4_800  # of an image in a tool result or a custom message; a user's image counts nothing

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def tokens_of(units: int) -> int:
    """Tokens of so many UTF-16 units."""
    return -(-units // UNITS_PER_TOKEN)


def units_of(text: object) -> int:
    """A text's UTF-16 units; nothing for what is no text."""
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def stringified(value: Json) -> int:
    """UTF-16 units of a value as JavaScript's `JSON.stringify` writes it. The order of keys does not matter for that."""
    units = 0
    waiting: list[Json] = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                units += _quoted(text)
            case bool(truth):
                units += 4 if truth else 5
            case int(number) | float(number):
                units += len(javascript_number(number))
            case list() as elements:
                units += len(elements) + (1 if elements else 2)
                waiting += elements
            case dict() as fields:
                units += 2 * len(fields) + (1 if fields else 2) + sum(map(_quoted, fields))
                waiting += fields.values()
            case None:
                units += 4
    return units


_LONE: Final = re.compile("[\ud800-\udfff]")


def _quoted(text: str) -> int:
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii():
        return len(quoted)
    wide = quoted.encode("utf-16-le", "surrogatepass")  # two halves that meet are one character
    lone = _LONE.findall(wide.decode("utf-16-le", "surrogatepass"))
    return len(wide) // 2 + 5 * len(lone)  # a lone half is escaped


def javascript_number(number: float) -> str:
    """A number as JavaScript writes it in JSON. All its numbers are doubles; what is none of them is null."""
    try:
        value = float(number)
    except OverflowError:
        return "null"
    if not isfinite(value):
        return "null"
    if value == 0:
        return "0"
    if 1e-6 <= abs(value) < 1e21:  # where JavaScript writes no exponent
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return repr(value).replace("e-0", "e-")


# How pi shows a model what it counts without these words: a command that the user ran, and the summaries of its session files.
_RAN: Final = re.compile(
    r"Ran `(?P<command>.*?)`\n(?:```\n(?P<output>.*)\n```|\(no output\))"
    r"(?:\n\n\(command cancelled\)|\n\nCommand exited with code -?\d+)?(?:\n\n\[Output truncated\. Full output: [^\n]*\])?",
    re.DOTALL,
)
_SUMMARIES: Final = tuple(tuple(frame.split("{}")) for frame in (COMPACTED, BRANCHED))


def weigh_like_pi(blocks: Sequence[Block]) -> tuple[int, ...]:
    """Tokens of each block so that they add up to pi's estimate of the message; the first takes the rounding.

    The parts of a result's text are joined in our blocks, so each part but the first counts one unit more than in pi.
    """
    if not blocks:
        return ()
    units = [_units(block) for block in blocks]
    rest = [each // UNITS_PER_TOKEN for each in units[1:]]
    return (tokens_of(sum(units)) - sum(rest), *rest)


def _units(block: Block) -> int:
    match block:
        case Text(text=text, origin=origin):
            return units_of(text) - _framing(text, origin)
        case ToolCall(name=name, arguments=arguments):
            return units_of(name) + _arguments(arguments)
        case ToolResult(text=text, media=media):
            return units_of(text) + IMAGE_UNITS * len(media)
        case Media(origin=origin):
            return IMAGE_UNITS if origin is Origin.HARNESS else 0
        case Opaque():
            return 0
        case _:
            return units_of(block.text)


def _arguments(text: str) -> int:
    try:
        return stringified(json.loads(text))
    except (ValueError, RecursionError):
        return units_of(text)


def _framing(text: str, origin: Origin) -> int:
    """UTF-16 units of the words around a text that pi counts without them."""
    if origin is Origin.HUMAN and (found := _RAN.fullmatch(text)):
        return units_of(text) - units_of(found["command"]) - units_of(found["output"])
    if origin is Origin.HARNESS:
        for head, tail in _SUMMARIES:
            if text.startswith(head) and text.endswith(tail) and len(text) >= len(head) + len(tail):
                return len(head) + len(tail)
    return 0
