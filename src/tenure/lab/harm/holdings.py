"""Which messages hold a string.

A message is taken in in O(its length), and a string is looked for only in the few passages that hold its rarest word.

A message as the detector reads it.

Both what is held and what is needed are read in one plain spelling: a call's arguments as the strings they hold, and the escapes of JSON and of
shells undone, so that a line is the same line in a file, in a call and in a dump of either.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from tenure.engine.record.entry import Entry, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index, kind_of
from tenure.lab.events import At, BlockLine, EntryLine

_DEEPEST: Final = 12  # levels of arguments that are read as fields
_MOST: Final = 2_000  # fields of one call


class Field(Struct, frozen=True, gc=False):
    """A part of a message: an argument by its name, or a whole text, whose name is empty."""

    name: str
    text: str


class Passage(Struct, frozen=True, kw_only=True, gc=False):
    """One block: where it is, what it is, and what it says."""

    at: At
    kind: str
    origin: str
    role: str
    tool: str = ""
    error: bool = False
    objects: tuple[str, ...] = ()  # it is part of; the tool span first where there is one
    fields: tuple[Field, ...]
    text: str  # of all fields

    @property
    def thing(self) -> str | At:
        """What it counts as when the holders of a string are counted: a call and its result are one."""
        return self.objects[0] if self.tool and self.objects else self.at


class Message(Struct, frozen=True, kw_only=True):
    """One entry."""

    entry: int
    role: str
    passages: tuple[Passage, ...]


def of_line(line: EntryLine) -> Message:
    """An entry of a replay."""
    return Message(
        entry=line.entry,
        role=line.role,
        passages=tuple(_of_block(block, (line.entry, n), line.role) for n, block in enumerate(line.blocks)),
    )


def of_entry(entry: Entry, index: Index) -> Message:
    """An entry of a record."""
    passages: list[Passage] = []
    for number, block in enumerate(entry.blocks):
        at = (entry.n, number)
        facts = index.block(at)
        fields = _fields(block.text, is_call=isinstance(block, ToolCall))
        passages.append(
            Passage(
                at=at,
                kind=kind_of(block),
                origin=str(block.origin),
                role=str(entry.role),
                tool=index.spans[facts.span].tool if facts.span != NONE else "",
                error=isinstance(block, ToolResult) and block.error,
                objects=tuple(index.objects_of(at)),
                fields=fields,
                text=_joined(fields),
            )
        )
    return Message(entry=entry.n, role=str(entry.role), passages=tuple(passages))


def plain(text: str) -> str:
    """`text` in the one spelling in which things are compared. O(text)."""
    if "\\" in text:
        text = text.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\'", "'")
    return text.replace("\r\n", "\n") if "\r" in text else text


def _of_block(block: BlockLine, at: At, role: str) -> Passage:
    kind = block.kind or ""
    fields = _fields(block.text or "", is_call=kind == "tool_call")
    return Passage(
        at=at,
        kind=kind,
        origin=block.origin or "",
        role=role,
        tool=block.name or "",
        error=block.error is True,
        objects=() if block.objects is UNSET else block.objects or (),
        fields=fields,
        text=_joined(fields),
    )


def _joined(fields: tuple[Field, ...]) -> str:
    return "\n".join([field.text for field in fields])


def _fields(text: str, *, is_call: bool) -> tuple[Field, ...]:
    if not is_call:
        return (Field("", plain(text)),)
    try:
        arguments: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return (Field("", plain(text)),)
    return tuple(Field(name, plain(leaf)) for name, leaf in _leaves(arguments))


def _leaves(arguments: object) -> Iterator[tuple[str, str]]:
    """The strings and numbers of arguments, each with the name of the argument it is under; what lies too deep is left out."""
    waiting: list[tuple[str, object, int]] = [("", arguments, 0)]
    given = 0
    while waiting and given < _MOST:
        name, value, depth = waiting.pop()
        if isinstance(value, dict):
            children = [(str(key), child, depth + 1) for key, child in cast(dict[object, object], value).items()]
        elif isinstance(value, list):
            children = [(name, child, depth + 1) for child in cast(list[object], value)]
        else:
            children = []
            if value is not None and not isinstance(value, bool):
                given += 1
                yield name, str(value)
        if depth < _DEEPEST:
            waiting += reversed(children)


LOOKED_AT: Final = 96  # passages: a string whose rarest word stands in more is common
_PLACES: Final = 64  # of one string in one passage that are looked at
_NOWHERE: Final[list[int]] = []
_WORD = re.compile(r"\w{3,64}")
_FIGURE = re.compile(r"\d[\d.,]*[.,]\d+")  # by which a text without words is found


class Holdings:
    """The messages so far, by the words in them. Mutable, grown with the record; it keeps their texts."""

    def __init__(self) -> None:
        self._held: list[Passage] = []
        self._by_place: dict[At, int] = {}
        self._by_word: dict[str, list[int]] = {}  # ordinals of passages, ascending
        self._spelt: dict[At, str] = {}

    def take(self, message: Message) -> None:
        """Take in the next message. O(its length)."""
        for passage in message.passages:
            ordinal = len(self._held)
            self._held.append(passage)
            self._by_place[passage.at] = ordinal
            for word in {*_WORD.findall(passage.text), *_FIGURE.findall(passage.text)}:
                self._by_word.setdefault(word, []).append(ordinal)

    def at(self, place: At) -> Passage:
        """The passage at a place."""
        return self._held[self._by_place[place]]

    def find(self, text: str, before: int) -> tuple[Passage, ...] | None:
        """The passages of entries below `before` that hold `text`, oldest first; None when it is too common to be looked for."""
        held = self.candidates(text, before, LOOKED_AT)
        return None if held is None else tuple([each for each in held if holds(each.text, text)])

    def candidates(self, text: str, before: int, most: int) -> list[Passage] | None:
        """The passages of entries below `before` that hold the rarest word of `text`, oldest first; None when those are more than `most`."""
        lists = [self._by_word.get(word, _NOWHERE) for word in words_of(text)]
        if not lists:
            return []
        until, rarest = min(((self._until(ordinals, before), ordinals) for ordinals in lists), key=lambda pair: pair[0])
        return None if until > most else [self._held[ordinal] for ordinal in rarest[:until]]

    def spelling(self, held: Passage, spell: Callable[[str], str]) -> str:
        """A passage's text in another spelling, made once."""
        if held.at not in self._spelt:
            self._spelt[held.at] = spell(held.text)
        return self._spelt[held.at]

    def count(self, word: str, before: int) -> int:
        """How many passages of entries below `before` hold a word. O(log passages)."""
        return self._until(self._by_word.get(word, _NOWHERE), before)

    def _until(self, ordinals: list[int], before: int) -> int:
        if not ordinals or self._held[ordinals[-1]].at[0] < before:
            return len(ordinals)
        return bisect_left(ordinals, before, key=lambda ordinal: self._held[ordinal].at[0])


def holds(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in `text` on its own, not as a part of a longer word or number."""
    place = text.find(wanted)
    for _ in range(_PLACES):
        if place < 0:
            return False
        stop = place + len(wanted)
        if not (_joins(text, place - 1, wanted[0]) or _joins(text, stop, wanted[-1])):
            return True
        place = text.find(wanted, place + 1)
    return False


def words_of(text: str) -> Iterator[str]:
    """The words by which a text is found."""
    return iter(dict.fromkeys(_WORD.findall(text) or _FIGURE.findall(text)))


def _joins(text: str, place: int, edge: str) -> bool:
    """Whether the character at `place` makes one word with the edge of a string."""
    return 0 <= place < len(text) and _is_of_word(text[place]) and _is_of_word(edge)


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
