"""A message as the detector reads it.

Both what is held and what is needed are read in one plain spelling: a call's arguments as the strings they hold, and the escapes of JSON and of
shells undone, so that a line is the same line in a file, in a call and in a dump of either.
"""

from collections.abc import Iterator
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
