"""From a view to the messages that are sent.

Texts are read from the record only here, and only those that are shown. A call that was never answered gets a result saying so, a result
that answers nothing is left out, one that came after the model had gone on without it is told in words, and what a host recorded between
a call and its results stands after them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from msgspec import structs

from tenure.engine.record.entry import Block, Entry, Media, Opaque, Origin, Read, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Insert
from tenure.engine.view.piece import Piece
from tenure.engine.view.project import Line, Row, View

INTERRUPTED: Final = "[no result: the call was interrupted]"
LATE: Final = "[late result of {}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Message:
    """A piece on its way, with the calls it makes and answers, by span; `places` line up with its blocks."""

    piece: Piece
    reply: int = NONE  # of an assistant's message: the entry where the reply starts that it is part of
    calls: Mapping[int, ToolCall] = field(default_factory=dict[int, ToolCall])
    answers: Mapping[int, int] = field(default_factory=dict[int, int])  # span -> place in the piece's blocks

    def only(self, places: Set[int]) -> "_Message":
        """The part of it that these places make."""
        chosen = [place for place in range(len(self.piece.blocks)) if place in places]
        if len(chosen) == len(self.piece.blocks):
            return self
        piece = structs.replace(
            self.piece,
            blocks=tuple(self.piece.blocks[place] for place in chosen),
            kept=tuple(self.piece.kept[place] for place in chosen),
            edited=True,
        )
        return _Message(piece=piece, answers={span: chosen.index(at) for span, at in self.answers.items() if at in places})


def pieces(view: View, index: Index, read: Read) -> tuple[Piece, ...]:
    """The messages of a view, in an order and completeness that every provider accepts."""
    return Messages(index, read).of(view)


class Messages:
    """The messages of one conversation's views; what is shown as it was the last time is not made again. Mutable: it keeps what is shown."""

    def __init__(self, index: Index, read: Read, light: Callable[[Piece], Piece] | None = None) -> None:
        """`light` makes a piece that says the same and holds less."""
        self._index, self._read, self._light = index, read, light
        self._cache: dict[int | str, tuple[Line, tuple[_Message, ...]]] = {}  # by entry, or by the key of what was inserted
        self._lines: tuple[Line, ...] = ()  # of the view before, all of which were taken
        self._exchanges = _Exchanges()

    def of(self, view: View) -> tuple[Piece, ...]:
        """The messages of a view, in an order and completeness that every provider accepts. O(what is new), where nothing left or came back."""
        stands = len(self._lines)
        if view.lines[:stands] != self._lines:  # identity first: as fast as copying
            stands, self._exchanges = 0, _Exchanges()
            kept = {_key(line) for line in view.lines}
            self._cache = {key: made for key, made in self._cache.items() if key in kept}
        for line in view.lines[stands:]:
            for message in self._messages(line):
                self._exchanges.take(message)
        self._lines = view.lines
        return self._exchanges.pieces()

    def _messages(self, line: Line) -> tuple[_Message, ...]:
        key = _key(line)
        known = self._cache.get(key)
        if known is None or known[0] != line:
            messages = (
                (_Message(piece=Piece(role=line.role, blocks=(Text(text=line.text, origin=Origin.HARNESS),))),)
                if isinstance(line, Insert)
                else tuple(map(self._lighter, _lines(line, self._index, self._read)))
            )
            known = self._cache[key] = line, messages
        return known[1]

    def _lighter(self, message: _Message) -> _Message:
        piece = self._light(message.piece) if self._light is not None else message.piece
        return message if piece is message.piece else replace(message, piece=piece)


def _key(line: Line) -> int | str:
    return line.key if isinstance(line, Insert) else line.entry


def replaced(block: Block, text: str) -> Block:
    """The block with `text` in place of what it said; what identifies it stays."""
    match block:
        case ToolResult():
            return structs.replace(block, text=text, media=())
        case ToolCall():
            return structs.replace(block, arguments=text)
        case Text():
            return structs.replace(block, text=text)
        case Thinking() | Media() | Opaque():
            return Text(text=text, origin=block.origin)
        case _:
            assert_never(block)


def _lines(line: Row, index: Index, read: Read) -> Iterator[_Message]:
    entry = read(line.entry)
    texts = {block: shown.text for block, shown in line.replaced}
    blocks = {
        block: replaced(entry.blocks[block], texts[block]) if block in texts else entry.blocks[block] for block in line.blocks
    }
    late = list[Piece]()
    for number, block in list(blocks.items()):
        if isinstance(block, ToolResult):
            span = index.block((line.entry, number)).span
            if span == NONE:
                del blocks[number]
            elif index.is_late(index.spans[span]):
                late.append(_late(block, index.spans[span].object))
                del blocks[number]
    yield _message_of(line, entry, blocks, index)
    yield from (_Message(piece=piece) for piece in late)


def _message_of(row: Row, entry: Entry, blocks: Mapping[int, Block], index: Index) -> _Message:
    spans = {block: index.block((row.entry, block)).span for block in blocks}
    return _Message(
        piece=Piece(
            role=entry.role,
            blocks=tuple(blocks.values()),
            dialect=entry.dialect,
            payload=entry.payload,
            kept=tuple(blocks),
            edited=not row.whole or len(blocks) < len(row.blocks),
        ),
        reply=index.entries[row.entry].reply if entry.role is Role.ASSISTANT else NONE,
        calls={spans[number]: block for number, block in blocks.items() if isinstance(block, ToolCall)},
        answers={spans[number]: place for place, (number, block) in enumerate(blocks.items()) if isinstance(block, ToolResult)},
    )


def _late(result: ToolResult, object_: str) -> Piece:
    words = Text(text=f"{LATE.format(object_)}\n{result.text}", origin=Origin.HARNESS)
    return Piece(role=Role.USER, blocks=(words, *result.media))


class _Exchanges:
    """Each reply with its results directly behind it, then what else was recorded up to the next reply. Mutable: the newest is open still."""

    def __init__(self) -> None:
        self._done: list[Piece] = []
        self._reply: list[_Message] = []
        self._rest: list[_Message] = []

    def take(self, message: _Message) -> None:
        """Take the next message."""
        if message.reply == NONE:
            self._rest.append(message)
            return
        if self._rest or (self._reply and self._reply[0].reply != message.reply):
            self._done += _exchange(self._reply, self._rest)
            self._reply, self._rest = [], []
        self._reply.append(message)

    def pieces(self) -> tuple[Piece, ...]:
        """All that was taken."""
        return (*self._done, *_exchange(self._reply, self._rest, newest=True))


def _exchange(reply: list[_Message], rest: list[_Message], *, newest: bool = False) -> Iterator[Piece]:
    to_come = newest and not rest  # the results of the newest reply of all
    for message, piece in zip(reply, _trimmed(reply), strict=True):
        is_open = to_come and message is reply[-1]
        if piece.blocks:
            yield piece
        if not message.calls:
            continue
        results = [other for other in rest if other.answers.keys() & message.calls.keys()]
        answered = {span for other in results for span in other.answers if span in message.calls}
        last = results[-1] if len(answered) == len(message.calls) else None  # what is said beside the last result can stay there
        rest = list(_back(rest, message.calls, last))
        for other in results:
            answers = {span: place for span, place in other.answers.items() if span in message.calls}
            whole = other is last and len(answers) == len(other.answers)
            yield (other if whole else other.only(set(answers.values()))).piece
        yield from _interrupted(call for span, call in message.calls.items() if span not in answered and not is_open)
    yield from (other.piece for other in rest if other.piece.blocks)


def _trimmed(reply: Sequence[_Message]) -> list[Piece]:
    """The pieces of a reply, none of which ends in reasoning before a result or the reply's own end, be it logged in several messages."""
    trimmed: list[Piece] = []
    is_end = True
    for message in reversed(reply):
        piece = _to_the_point(message.piece) if is_end or message.calls else message.piece
        is_end = is_end and not piece.blocks
        trimmed.append(piece)
    return trimmed[::-1]


def _to_the_point(piece: Piece) -> Piece:
    """Without reasoning at the end, where the model was cut short: no provider takes it there."""
    end = len(piece.blocks)
    while end and isinstance(piece.blocks[end - 1], Thinking):
        end -= 1
    if end == len(piece.blocks):
        return piece
    return structs.replace(piece, blocks=piece.blocks[:end], kept=piece.kept[:end], edited=True)


def _back(rest: Iterable[_Message], calls: Mapping[int, ToolCall], last: _Message | None) -> Iterator[_Message]:
    """What is left for after the results of `calls`: all that is no such result, and does not stand beside the last one."""
    for message in rest:
        if not message.answers.keys() & calls.keys():
            yield message
        elif message is not last or message.answers.keys() - calls.keys():
            own = {place for span, place in message.answers.items() if span in calls}
            left = message.only(set(range(len(message.piece.blocks))) - own)
            if left.piece.blocks:
                yield left


def _interrupted(calls: Iterable[ToolCall]) -> Iterator[Piece]:
    for call in calls:
        yield Piece(role=Role.TOOL, blocks=(ToolResult(call_id=call.call_id, text=INTERRUPTED, error=True),))
