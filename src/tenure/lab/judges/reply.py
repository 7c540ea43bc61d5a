"""A judge's reply as values of its contract's schema.

Forgiven is form: fences, words around the JSON, reasoning before it, single quotes, trailing commas, numbers and truth values as text. Of several
objects the last whole one that answers counts. What is missing, or not what was allowed, is reported in words that a model can act on.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tenure.engine.meter.figures import first_line
from tenure.engine.planners.loose_json import Node, Value, last_value, straight
from tenure.lab.judges.contracts import OPTIONAL, RANGES, Contract

LONGEST: Final = 262_144  # characters of a reply that are read: its end
TEXT_CHARS: Final = 2_000
ITEMS: Final = 40
SHOWN_CHARS: Final = 60  # of what was found, in a problem
_WRAPPED: Final = 2  # objects around the one that is wanted
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}
_NOTHING: Final = frozenset({"null", "none", "", "n/a"})
_THOUGHT = re.compile(r"</think(?:ing)?\s*>", re.IGNORECASE)


class Unusable(Struct, frozen=True, kw_only=True):
    """A reply that is no verdict, and everything that is wrong with it."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.problems)


def whole(text: str) -> str:
    """Text that can be written down: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def answer_in(text: str, key: str, contract: Contract) -> dict[str, Any] | Unusable:
    """The object with `key` in a reply, by the contract's schema. Linear; never raises."""
    reply = whole(text[-LONGEST:])
    thoughts = list(_THOUGHT.finditer(reply))
    reply = straight(reply[thoughts[-1].end() :] if thoughts else reply)
    if not reply.strip():
        return Unusable(problems=("the reply is empty",))
    found = last_value(reply, lambda value: _with(value, key) is not None, "{")
    if found is None or (node := _with(found.value, key)) is None:
        return Unusable(problems=(f"no JSON object with {key!r} in the reply",))
    if not found.whole:
        return Unusable(problems=("the JSON object has no end",))
    problems: list[str] = []
    answer = _checked(node, contract.schema, "", problems)
    return Unusable(problems=tuple(problems)) if problems else answer


def _with(value: Value, key: str, depth: int = _WRAPPED) -> Node | None:
    """The outermost object that has the key; a model may wrap its answer in one or two more."""
    if not isinstance(value, Node):
        return None
    if any(name == key for name, _ in value.items):
        return value
    if not depth:
        return None
    return next((found for _, item in value.items if (found := _with(item, key, depth - 1)) is not None), None)


def _checked(value: Value | None, schema: Mapping[str, Any], path: str, problems: list[str]) -> Any:
    """A value as its schema has it; what cannot be read as that is a problem."""
    if isinstance(value, Node):
        found = _of_node(value, schema, path, problems)
    else:
        found = _of_text(value, schema, path.rpartition(".")[2])
    if isinstance(found, _Expected):
        problems.append(f"{path}: found {_described(value)}, expected {found}")
        return None
    return found


class _Expected(str):
    """What was allowed in a place that holds something else."""

    __slots__ = ()


def _of_node(node: Node, schema: Mapping[str, Any], path: str, problems: list[str]) -> Any:
    match schema:
        case {"anyOf": [inner, *_]}:
            return _of_node(node, inner, path, problems) if node.items else None
        case {"type": "object", "properties": fields}:
            held = {key: value for key, value in node.items if key}  # of a repeated key the last counts
            return {
                key: _checked(held.get(key), each, f"{path}.{key}" if path else key, problems) for key, each in fields.items()
            }
        case {"type": "array", "items": {"type": "string"}}:
            return [item.strip()[:TEXT_CHARS] for _, item in node.items[:ITEMS] if isinstance(item, str) and item.strip()]
        case {"type": "array", "items": items}:
            objects = [item for name, item in node.items if not name and isinstance(item, Node)][:ITEMS]
            return [_checked(item, items, f"{path}[{n}]", problems) for n, item in enumerate(objects)]
        case _:
            return _of_text(None, schema, path.rpartition(".")[2])


def _of_text(value: str | None, schema: Mapping[str, Any], name: str) -> Any:
    text = value.strip() if value is not None else None
    word = (text or "").lower()
    match schema:
        case {"anyOf": _}:
            return None if word in _NOTHING else _Expected("an object or null")
        case {"enum": allowed}:
            return next((each for each in allowed if each.lower() == word), _Expected("one of " + ", ".join(allowed)))
        case {"type": "object"}:
            return _Expected("an object")
        case {"type": "array", "items": {"type": "string"}} if text is not None:
            return [] if word in _NOTHING else [text[:TEXT_CHARS]]
        case {"type": "array", "items": {"type": kind}}:
            return (
                [] if text is not None and word in _NOTHING else _Expected(f"a list of {'text' if kind == 'string' else kind}s")
            )
        case {"type": "boolean"}:
            return _WORDS.get(word, _Expected("true or false"))
        case {"type": "number"}:
            return _number(text, *RANGES[name])
        case _:
            return text[:TEXT_CHARS] if text is not None else "" if name in OPTIONAL else _Expected("a text")


def _number(text: str | None, low: float, high: float) -> float | _Expected:
    try:
        number = float(text or "")
    except ValueError:
        number = low - 1
    return number if low <= number <= high else _Expected(f"a number from {low:g} to {high:g}")


def _described(value: Value | None) -> str:
    if value is None:
        return "nothing"
    return repr(first_line(value, SHOWN_CHARS)) if isinstance(value, str) else "a list or an object"
