"""A judge's reply as checked fields.

Forgiven is form: fences, words around the JSON, reasoning before it, single quotes, trailing commas, numbers and truth values as text. Of several
objects the last whole one that answers counts. What is missing, or not what was allowed, is said in words that a model can act on.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.planners.loose_json import Node, Value, last_value, straight
from tenure.engine.planners.selfgc.objects import one_line

LONGEST: Final = 262_144  # characters of a reply that are read: its end
TEXT_CHARS: Final = 2_000
ITEMS: Final = 40
SHOWN_CHARS: Final = 60  # of what was found, in a problem
_WRAPPED: Final = 2  # objects around the one that is wanted
_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_NOTHING: Final = frozenset({"null", "none", "", "n/a"})
_THOUGHT = re.compile(r"</think(?:ing)?\s*>", re.IGNORECASE)


class Unusable(Struct, frozen=True, kw_only=True):
    """A reply that is no verdict, and everything that is wrong with it."""

    problems: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(self.problems)


class Reply:
    """An object of a reply, read field by field. Mutable: it gathers what is wrong."""

    def __init__(self, node: Node, problems: list[str], path: str = "") -> None:
        self._fields = {key: value for key, value in node.items if key}  # of a repeated key the last counts
        self._problems, self._path = problems, path

    def text(self, key: str, *, needed: bool = True) -> str:
        """A text, of which the beginning counts."""
        value = self._fields.get(key)
        if isinstance(value, str):
            return value.strip()[:TEXT_CHARS]
        if needed:
            self._wrong(key, "a text")
        return ""

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._fields.get(key)
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in _TRUE | _FALSE:
            self._wrong(key, "true or false")
        return word in _TRUE

    def number(self, key: str, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        value = self._fields.get(key)
        try:
            number = float(value) if isinstance(value, str) else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            self._wrong(key, f"a number from {low:g} to {high:g}")
            return low
        return number

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """One of a few words, in any case."""
        value = self._fields.get(key)
        word = value.strip().lower() if isinstance(value, str) else ""
        found = next((each for each in allowed if each.lower() == word), "")
        if not found:
            self._wrong(key, "one of " + ", ".join(allowed))
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text is a list of one."""
        value = self._fields.get(key)
        if isinstance(value, Node):
            return tuple(item.strip()[:TEXT_CHARS] for _, item in value.items[:ITEMS] if isinstance(item, str) and item.strip())
        if value is None:
            self._wrong(key, "a list of texts")
            return ()
        return () if value.strip().lower() in _NOTHING else (value.strip()[:TEXT_CHARS],)

    def inner(self, key: str) -> "Reply":
        """An object in the object; an empty one where there is none."""
        value = self._fields.get(key)
        if not isinstance(value, Node):
            self._wrong(key, "an object")
            return Reply(Node(), [], self._at(key))
        return Reply(value, self._problems, self._at(key))

    def perhaps(self, key: str) -> "Reply | None":
        """An object in the object, or None for null or nothing."""
        value = self._fields.get(key)
        if isinstance(value, Node):
            return Reply(value, self._problems, self._at(key)) if value.items else None
        if value is not None and value.strip().lower() not in _NOTHING:
            self._wrong(key, "an object or null")
        return None

    def each(self, key: str) -> tuple["Reply", ...]:
        """The objects of a list."""
        value = self._fields.get(key)
        if not isinstance(value, Node):
            if value is None or value.strip().lower() not in _NOTHING:
                self._wrong(key, "a list of objects")
            return ()
        items = [item for name, item in value.items if not name and isinstance(item, Node)]
        return tuple(Reply(item, self._problems, f"{self._at(key)}[{n}]") for n, item in enumerate(items[:ITEMS]))

    def _wrong(self, key: str, allowed: str) -> None:
        self._problems.append(f"{self._at(key)}: found {_described(self._fields.get(key))}, expected {allowed}")

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def whole(text: str) -> str:
    """Text that can be written down: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def answer_in(text: str, key: str) -> tuple[Reply, list[str]] | Unusable:
    """The object with `key` in a reply, and the list that its problems go to. Linear; never raises."""
    said = whole(text[-LONGEST:])
    thought = list(_THOUGHT.finditer(said))
    said = straight(said[thought[-1].end() :] if thought else said)
    if not said.strip():
        return Unusable(problems=("the reply is empty",))
    found = last_value(said, lambda value: _with(value, key) is not None, "{")
    node = _with(found.value, key) if found is not None else None
    if found is None or node is None:
        return Unusable(problems=(f"no JSON object with {key!r} in the reply",))
    if not found.whole:
        return Unusable(problems=("the JSON object has no end",))
    problems: list[str] = []
    return Reply(node, problems), problems


def _with(value: Value, key: str, depth: int = _WRAPPED) -> Node | None:
    """The outermost object that has the key; a model may wrap its answer in one or two more."""
    if not isinstance(value, Node):
        return None
    if any(name == key for name, _ in value.items):
        return value
    if not depth:
        return None
    return next((found for _, item in value.items if (found := _with(item, key, depth - 1)) is not None), None)


def _described(value: Value | None) -> str:
    if value is None:
        return "nothing"
    return repr(one_line(value, SHOWN_CHARS)) if isinstance(value, str) else "a list or an object"
