"""What a view holds, read once: the texts of which a part may stay, and what they alone name.

One pass over the texts of the view; what a text says by itself is remembered (texts.py). What was shortened before is read as it is shown, never again
from the record. How likely an anchor is to be asked for is learned.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.engine.policies.graph.texts import OF_CALL, TextFacts, facts_of, form_of, unlisted
from tenure.engine.policies.placeholder import is_note
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, BlockFacts, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ACTS, Act, ToolKind, is_virtual

LONGEST: Final = 80  # characters of a name that a list of names may hold
NOTE: Final = 48  # tokens of a placeholder, about
LEAST: Final = 80  # tokens: less is not worth shortening
AGAIN: Final = 160  # tokens of what was shortened before
LONG_ARGUMENT: Final = 200  # characters of an argument of which a part may stay
NAMES: Final = "[names in it: "

_GAP: Final = re.compile(r"\[… (\d{1,9})(?:-(\d{1,9}))?\]")
NEAR_LINES: Final = 4  # lines
_NEWEST: Final = 8  # calls
NEVER: Final = 12  # the bucket of what never happened


class PieceKind(IntEnum):
    """Where a text comes from, as far as it matters to what is asked of it."""

    READ = 0
    COMMAND = 1
    SEARCH = 2
    LISTING = 3
    OTHER = 4  # of another tool, or of one that is not known
    WORDS = 5  # of the model
    WRITTEN = 6  # a file as a call wrote it
    CHANGED = 7  # what a call took from a file and put there
    SCRIPT = 8  # what a call ran, and all other arguments


_OF_RESULT: Final = {
    Act.READ: PieceKind.READ,
    Act.RUN: PieceKind.COMMAND,
    Act.SEARCH: PieceKind.SEARCH,
    Act.LIST: PieceKind.LISTING,
}
_OF_CALL_KIND: Final = {
    Act.CREATE: PieceKind.WRITTEN,
    Act.WRITE: PieceKind.WRITTEN,
    Act.EDIT: PieceKind.CHANGED,
    Act.PATCH: PieceKind.CHANGED,
    Act.EDITOR: PieceKind.CHANGED,
}


def _kind(facts: BlockFacts, span: Span | None) -> PieceKind:
    if span is None:
        return PieceKind.WORDS if facts.origin is Origin.MODEL else PieceKind.OTHER
    act = ACTS.get(tool_name(span.tool))
    if facts.kind == "tool_call":
        return _OF_CALL_KIND.get(act, PieceKind.SCRIPT) if act else PieceKind.SCRIPT
    return _OF_RESULT.get(act, PieceKind.OTHER) if act else PieceKind.OTHER


class TextPiece(Struct, frozen=True, kw_only=True):
    """A text of which a part may stay."""

    at: At
    episode: int
    span: int  # NONE: words without a call
    kind: PieceKind
    weight: int  # tokens, as it is shown
    least: int  # tokens, when nothing of it stays
    note: str  # of what was shortened before; empty while it is whole
    names: tuple[str, ...]
    facts: TextFacts
    numbers: Sequence[int]  # of each line, in the text as it was once, from 1
    fields: tuple[tuple[str, int], ...] = ()  # of a call: the arguments that the lines are of, each with its number of lines
    step: int
    file: str = ""
    is_part: bool = False  # of a file

    @property
    def lines(self) -> tuple[str, ...]:
        """As they are shown."""
        return self.facts.lines

    @property
    def is_call(self) -> bool:
        """Whether it is of a call's arguments."""
        return bool(self.fields)


class Mention(Struct):
    """An anchor as far as it stands only in what may be shortened."""

    stands: int = 0
    pieces: int = 0  # that hold it
    piece: int = NONE  # the newest that holds it


class _Text(Struct, frozen=True):
    """A block that may be shortened, before all that stays is known."""

    at: At
    facts: BlockFacts
    text: str
    step: int
    is_replaced: bool  # by an earlier commit
    fields: tuple[tuple[str, str], ...] = ()


# Counts and ages are bit lengths: 0, 1, 2 to 3, 4 to 7, 8 to 15 and so on. Ages are in steps of the agent.
OF_PIECE: Final = (
    "kind",
    "age",
    "quiet",  # steps since its file was last spoken of
    "edits",  # of its file
    "edited",  # steps since the last of them
    "newer",  # quarters of its lines that stand in a newer text too
    "turns",  # of a person since
    "size",  # lines
    "stack",  # other files spoken of since its own was
    "phase",  # changes made in the newest steps
    "habit",  # eighths of all calls that change something
    "part",  # whether its call asked for a part of a file
)
OF_NAME: Final = (0, 1, 2, 3, 6)  # of OF_PIECE: those that matter to a name
ANCHOR_FEATURES: Final = (
    *(OF_PIECE[place] for place in OF_NAME),  # of the newest that holds it
    "stands",  # how often, in what may go
    "pieces",  # that hold it
    "length",
    "form",
    "depth",  # folders of a path
    "near",  # steps since a later step named something else on its lines
    "defined",
)
LINE_FEATURES: Final = (
    *OF_PIECE,
    "length",
    "indent",
    "near",  # lines up to the next that the agent wrote
    "copies",  # 1: stands in an older text too, 2: in a newer one
    "used",  # steps since a later step named something that it names
    "around",  # the same of its neighbours
    "names",
    "shape",  # of the line: defines, imports, fails, remarks
    "place",  # in the text
)


LineRows = tuple[
    tuple[int, ...], Sequence[Sequence[int]]
]  # what lines have in common, and a column for each of their other features


class Sight:
    """The texts of a view. What later steps named is known by the newest step that did."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.pieces: list[TextPiece] = []
        self.mentions: dict[str, Mention] = {}
        self._shown: set[str] = set()  # anchors of what stays
        self._used: dict[str, int] = {}  # the newest step that named an anchor
        self._spoken: dict[str, list[int]] = {}  # the steps that named a file
        self._edits: dict[str, list[int]] = {}  # the steps that changed a file
        self._written: set[str] = set()  # lines that the agent wrote
        self._copies: Counter[str] = Counter()
        self._newest: dict[str, int] = {}  # the newest piece that holds a line
        self._now = len(situation.index.steps)
        spans = situation.index.spans
        self._phase = min(_changes(spans[-_NEWEST:]), 7)
        self._habit = 8 * _changes(spans) // max(1, len(spans))
        waiting = list(self._first_pass())
        self._last_spoken = sorted(steps[-1] for steps in self._spoken.values())
        for text in waiting:
            self._take(text)
        for name in self.mentions.keys() & self._shown:
            del self.mentions[name]
        self._uses = [self._uses_of(piece) for piece in self.pieces]
        self._heads = [self._head(number, piece) for number, piece in enumerate(self.pieces)]

    def names(self) -> Iterator[tuple[tuple[int, ...], list[str], Sequence[Sequence[int]]]]:
        """The names that stand only in what may go, by the newest piece that holds them: the features of that, the names, and a column for each other feature."""
        near: dict[str, int] = {}
        for piece, uses in zip(self.pieces, self._uses, strict=True):
            if uses is not None:
                for newest, said in zip(uses, piece.facts.said, strict=True):
                    if newest > piece.step:
                        for name in said:
                            if near.get(name, -1) < newest:
                                near[name] = newest
        defined = set[str]().union(*(piece.facts.defined for piece in self.pieces))
        held: list[list[str]] = [[] for _ in self.pieces]
        for name, mention in self.mentions.items():
            held[mention.piece].append(name)
        for head, names in zip(self._heads, held, strict=True):
            if not names:
                continue
            mentions = [self.mentions[name] for name in names]
            columns = [
                tuple([min(mention.stands.bit_length(), 6) for mention in mentions]),
                tuple([min(mention.pieces.bit_length(), 4) for mention in mentions]),
                *zip(*map(form_of, names), strict=True),
                tuple([(self._now - near[name]).bit_length() if name in near else NEVER for name in names]),
                tuple([name in defined for name in names]),
            ]
            yield tuple([head[place] for place in OF_NAME]), names, columns

    def lines(self, number: int) -> LineRows:
        """The features of a piece, and a column for each other feature of its lines, as LINE_FEATURES has them."""
        piece, uses = self.pieces[number], self._uses[number]
        facts, step, now, count = piece.facts, piece.step, self._now, len(piece.lines)
        recent = around = _constant(NEVER, count)
        if uses is not None:
            recent = [(now - newest).bit_length() if newest > step else NEVER for newest in uses]
            around = [min(recent[max(0, place - 3) : place + 4]) for place in range(count)]
        copies, last = self._copies, self._newest
        columns: list[Sequence[int]] = [
            facts.lengths,
            facts.indents,
            self._near(facts, count),
            [0 if copies[bare] == 1 else 1 if last[bare] == number else 2 for bare in facts.bare],
            recent,
            around,
            facts.named,
            facts.shapes,
            _places(count),
        ]
        return self._heads[number], columns

    def _near(self, facts: TextFacts, count: int) -> Sequence[int]:
        written = self._written
        if written.isdisjoint(facts.bare):
            return _constant(NEAR_LINES, count)
        return _distances([bare in written for bare in facts.bare])

    def _uses_of(self, piece: TextPiece) -> list[int] | None:
        """The newest step that named something of each line; None when no step did since the piece came."""
        used, step = self._used.get, piece.step
        if all(used(name, -1) <= step for name in piece.facts.counts):
            return None
        return [max([used(name, -1) for name in said], default=-1) for said in piece.facts.said]

    def _head(self, number: int, piece: TextPiece) -> tuple[int, ...]:
        """What the lines of a piece have in common."""
        now, step, file = self._now, piece.step, piece.file
        spoken, edits = (each.get(file, ()) if file else () for each in (self._spoken, self._edits))
        telling, newest = piece.facts.telling, self._newest
        turns, last = len(self.situation.index.turns), spoken[-1] if spoken else 0
        return (
            int(piece.kind),
            (now - step).bit_length(),
            (now - max(last, step)).bit_length(),
            min(len(edits), 7).bit_length(),
            (now - edits[-1]).bit_length() if edits else NEVER,
            4 * sum([newest[bare] > number for bare in telling]) // max(1, len(telling)),
            min(turns - self.situation.index.block(piece.at).turn, 7).bit_length(),
            len(piece.lines).bit_length(),
            (len(self._last_spoken) - bisect_right(self._last_spoken, max(last, step))).bit_length(),
            self._phase,
            self._habit,
            piece.is_part,
        )

    def _first_pass(self) -> Iterator[_Text]:
        """What stays is read at once; what may be shortened is given."""
        situation, index = self.situation, self.situation.index
        for row in situation.view.rows():
            instead = dict(row.replaced)
            entry = situation.read(row.entry)
            entry_facts = index.entries[row.entry]
            signed = any(
                entry_facts.blocks[number].signed and not situation.is_free((row.entry, number)) for number in row.blocks
            )
            for number in row.blocks:
                at, facts = (row.entry, number), entry_facts.blocks[number]
                if facts.kind == "thinking":
                    continue
                shown = instead.get(number)
                text = entry.blocks[number].text if shown is None else shown.text
                is_models = facts.origin is Origin.MODEL
                if is_models:
                    self._heard(facts, text, entry_facts.step)
                waiting = None
                if self._may(at, facts, text, shown is not None) and not (is_models and signed):
                    waiting = _Text(at, facts, text, entry_facts.step, shown is not None)
                    if facts.kind == "tool_call":
                        waiting = _with_fields(waiting)
                if waiting is not None:
                    yield waiting
                    if waiting.fields:
                        text = text[:OF_CALL]
                    else:
                        continue
                self._shown |= facts_of(text).names
        for insert in situation.view.inserts:
            self._shown |= facts_of(insert.text).names

    def _heard(self, facts: BlockFacts, text: str, step: int) -> None:
        """What the agent itself said or called."""
        facts_of_text = facts_of(text)
        self._used.update(dict.fromkeys(facts_of_text.names, step))
        for name in facts_of_text.files:
            self._spoken.setdefault(name, []).append(step)
        if facts.kind != "tool_call":
            return
        span = self.situation.index.spans[facts.span]
        if facts_of_text.file and span.kind is ToolKind.DURABLE:
            self._edits.setdefault(facts_of_text.file, []).append(step)
        self._written |= facts_of_text.written

    def _may(self, at: At, facts: BlockFacts, text: str, is_replaced: bool) -> bool:
        """Whether a part of a block may stay while the rest goes."""
        least = AGAIN if is_replaced and is_note(text) else LEAST
        if facts.kind not in ("tool_result", "text", "tool_call") or facts.origin is Origin.HUMAN:
            return False
        if self.situation.view.weight(*at) < least or not self.situation.is_free(at):
            return False
        return facts.span == NONE or not is_virtual(self.situation.index.spans[facts.span].tool)

    def _take(self, waiting: _Text) -> None:
        index, facts = self.situation.index, waiting.facts
        span = index.spans[facts.span] if facts.span != NONE else None
        call = facts_of(self.situation.read(span.call[0]).blocks[span.call[1]].text) if span else None
        text = waiting.text
        note, names = "", ()
        fields: tuple[tuple[str, int], ...] = ()
        if waiting.fields:
            text = "\n".join([value for _, value in waiting.fields])
            fields = tuple((name, value.count("\n") + 1) for name, value in waiting.fields)
        elif waiting.is_replaced:
            note, names, text = _parted(text)
        lines, numbers = _numbered(text) if note else ((), range(1, text.count("\n") + 2))
        facts_of_text = facts_of("\n".join(lines) if note else text)
        weight = self.situation.view.weight(*waiting.at)
        rest = weight * (1 - len(text) / max(1, len(waiting.text))) if fields else 0
        number = len(self.pieces)
        self.pieces.append(
            TextPiece(
                at=waiting.at,
                episode=facts.episode,
                span=facts.span,
                kind=_kind(facts, span),
                weight=weight,
                least=min(weight, NOTE + max(0, int(rest))),
                note=note,
                names=names,
                facts=facts_of_text,
                numbers=numbers,
                fields=fields,
                step=waiting.step,
                file=call.file if call else "",
                is_part=call is not None and call.is_part,
            )
        )
        self._copies.update(facts_of_text.bare)
        self._newest.update(dict.fromkeys(facts_of_text.bare, number))
        for name, stands in (facts_of_text.counts + Counter(names) if names else facts_of_text.counts).items():
            mention = self.mentions.get(name)
            if mention is None:
                mention = self.mentions[name] = Mention()
            mention.stands += stands
            mention.pieces += 1
            mention.piece = number


def _changes(spans: Sequence[Span]) -> int:
    """How many calls change something."""
    return sum(span.kind is ToolKind.DURABLE for span in spans)


def _with_fields(waiting: _Text) -> _Text | None:
    """A call with the long texts among its arguments; None when there is none, or they are no object."""
    try:
        arguments: Any = msgspec.json.decode(waiting.text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(arguments, dict):
        return None
    members = cast(dict[str, object], arguments)
    long = tuple((name, value) for name, value in members.items() if isinstance(value, str) and len(value) > LONG_ARGUMENT)
    return _Text(waiting.at, waiting.facts, waiting.text, waiting.step, waiting.is_replaced, long) if long else None


def with_fields(text: str, fields: Mapping[str, str]) -> str:
    """A call's arguments with other texts for some of them."""
    arguments = cast(dict[str, object], msgspec.json.decode(text))
    return msgspec.json.encode({**arguments, **fields}).decode()


def _parted(text: str) -> tuple[str, tuple[str, ...], str]:
    """What was shortened before as its note, its names and its lines; of what is whole, its lines."""
    note, _, rest = text.partition("\n")
    if not is_note(note):
        return "", (), text
    first, _, more = rest.partition("\n")
    if first.startswith(NAMES):
        return note, tuple(unlisted(first[len(NAMES) : -1])), more
    return note, (), rest


def _numbered(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The lines of what was shortened before without the marks of its gaps, and the numbers that they had."""
    lines: list[str] = []
    numbers: list[int] = []
    number = 1
    for line in text.split("\n"):
        if gap := _GAP.fullmatch(line):
            number = int(gap[2] or gap[1]) + 1
        else:
            lines.append(line)
            numbers.append(number)
            number += 1
    return tuple(lines), tuple(numbers)


def with_gaps(piece: TextPiece, stays: Sequence[int]) -> Iterator[str]:
    """Lines of a text, each run of those that do not stay as a mark with their numbers."""
    due = 1
    for place in stays:
        number = piece.numbers[place]
        if number > due:
            yield _gap(due, number - 1)
        yield piece.lines[place]
        due = number + 1
    if piece.numbers and due <= piece.numbers[-1]:
        yield _gap(due, piece.numbers[-1])


def _gap(first: int, last: int) -> str:
    return f"[… {first}]" if first == last else f"[… {first}-{last}]"


def _constant(value: int, count: int) -> bytes:
    return bytes([value]) * count


@lru_cache(maxsize=1024)
def _places(count: int) -> bytes:
    """How near to its start or its end each line of a text stands."""
    return bytes([min(number.bit_length(), (count - number).bit_length() + 4, 10) for number in range(count)])


def _distances(marks: Sequence[bool]) -> list[int]:
    """Lines up to the next mark, at most NEAR_LINES. Linear."""
    far = [NEAR_LINES] * len(marks)
    if True not in marks:
        return far
    reach = NEAR_LINES
    for number, mark in enumerate(marks):
        reach = 0 if mark else min(NEAR_LINES, reach + 1)
        far[number] = reach
    reach = NEAR_LINES
    for number in range(len(marks) - 1, -1, -1):
        reach = 0 if marks[number] else min(NEAR_LINES, reach + 1)
        far[number] = min(far[number], reach)
    return far
