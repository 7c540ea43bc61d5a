"""A session's calls as the measures see them: what each was about, what it changed, what it gave back."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from tenure.agent.tools.shell.judge import judged
from tenure.agent.workspace import Workspace
from tenure.engine.record.entry import Entry, Read, Role, Text, ToolCall, ToolResult
from tenure.engine.record.index import Index, Span
from tenure.engine.record.tools import ToolKind, is_delimiter, is_notes, is_recall
from tenure.lab.audit.files import Deed, deed_of

# Whether a call changed anything outside the conversation; "perhaps" of a command whose words do not tell.
Changed = Literal["yes", "perhaps", "no"]
_COMMANDS: Final = ("command", "cmd")


class Called(Struct, frozen=True, kw_only=True):
    """One call with its result. `tokens` (o200k) are of both."""

    span: Span
    arguments: str
    text: str  # of the result; empty while there is none
    answered: bool
    deed: Deed
    changed: Changed
    tokens: int
    result_tokens: int
    turn: int  # the human turn that it was made in

    @property
    def digest(self) -> bytes:
        """Of what it gave back."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).digest()


class Calls(Struct, frozen=True, kw_only=True):
    """The calls of a stretch of the record, in order, bookkeeping apart: `made` is all but delimiters, recalls and notes."""

    made: tuple[Called, ...]
    delimiters: tuple[Called, ...]
    recalls: tuple[Called, ...]


def calls_of(index: Index, read: Read, first: int = 0, last: int | None = None) -> Calls:
    """The calls made in the entries from `first` up to `last`. O(what they and their results hold)."""
    made: list[Called] = []
    delimiters: list[Called] = []
    recalls: list[Called] = []
    judge = _Judge()
    for span in index.spans_in(first, len(index) if last is None else last):
        called = _called(index, read, span, judge)
        if is_delimiter(span.tool):
            delimiters.append(called)
        elif is_recall(span.tool):
            recalls.append(called)
        elif not is_notes(span.tool):
            made.append(called)
    return Calls(made=tuple(made), delimiters=tuple(delimiters), recalls=tuple(recalls))


def replies(index: Index, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Sequence[Span]]]:
    """The entries of the model's replies, each with the calls that it made."""
    for entry in range(first, len(index) if last is None else last):
        if index.entries[entry].role is Role.ASSISTANT:
            yield entry, tuple(index.spans_in(entry, entry + 1))


def says_anything(entry: Entry) -> bool:
    """Whether a reply has words for a reader."""
    return any(isinstance(block, Text) and block.text.strip() for block in entry.blocks)


class _Judge:
    """Tells whether a command only looks. Mutable: it remembers what it was asked."""

    def __init__(self) -> None:
        self._workspace = Workspace(Path("/"), home=Path("/"))  # where is of no matter: it is only asked whether
        self._known: dict[str, Changed] = {}

    def of(self, tool_kind: ToolKind, arguments: str, deed: Deed) -> Changed:
        if deed.changes:
            return "yes"
        if deed.shows is not None or tool_kind is ToolKind.BULK:
            return "no"
        if tool_kind is ToolKind.DURABLE:
            return "perhaps"
        command = _command(arguments)
        if command is None:
            return "no" if not arguments.strip() else "perhaps"
        if command not in self._known:
            self._known[command] = "no" if judged(command, self._workspace, disk=False) is None else "perhaps"
        return self._known[command]


def _called(index: Index, read: Read, span: Span, judge: _Judge) -> Called:
    call = read(span.call[0]).blocks[span.call[1]]
    arguments = call.arguments if isinstance(call, ToolCall) else ""
    result = read(span.result[0]).blocks[span.result[1]] if span.result is not None else None
    text = result.text if isinstance(result, ToolResult) else ""
    deed = deed_of(span.tool, arguments)
    weight = index.block(span.result).tokens if span.result is not None else 0
    return Called(
        span=span,
        arguments=arguments,
        text=text,
        answered=result is not None,
        deed=deed,
        changed=judge.of(span.kind, arguments, deed) if not span.error else "no",
        tokens=index.block(span.call).tokens + weight,
        result_tokens=weight,
        turn=index.block(span.call).turn,
    )


def _command(arguments: str) -> str | None:
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if not isinstance(found, dict):
        return None
    fields = cast(dict[str, Any], found)
    return next((str(fields[key]) for key in _COMMANDS if isinstance(fields.get(key), str)), None)
