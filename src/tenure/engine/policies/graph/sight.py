"""What a view holds, read once: the texts of which a part may stay, and what they alone name.

One pass over the texts of the view. What was shortened before is read as it is shown, never again from the record. An anchor is a string whose form
could be told apart later; how likely it is to be asked for is learned. The harm detector has an extractor of its own.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import chain, pairwise
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.engine.policies.placeholder import is_note
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, BlockFacts, Span
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ACTS, Act, ToolKind, is_virtual

LONGEST: Final = 80  # characters of a name that a list of names may hold

# Paths, dotted and joined names, names with capitals inside, ids and larger numbers.
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_][\w./:@~-]{2,199}")
_TOKEN: Final = re.compile(r"\n|[A-Za-z0-9_][\w./:@~-]{2,199}")
_TELLING: Final = re.compile(r"[/_.:@]|[a-z][A-Z]|\d{3}")
_FILE: Final = re.compile(r"(?<![\w.-])[\w-][\w.-]{0,119}\.[A-Za-z]\w{0,5}\b")  # tried once in each run, and bounded
_ENDS: Final = ".:-/"


def anchors(text: str) -> Iterator[str]:
    """The strings of a text that can be told apart later, as often as they stand in it."""
    return (found.rstrip(_ENDS) for found in _ANCHOR.findall(text) if _TELLING.search(found))


class Anchors(dict[str, str]):
    """The anchors of many texts that name much the same: each candidate is looked at once. Mutable: candidate -> anchor, empty for none."""

    def __missing__(self, found: str) -> str:
        """Look at a new one."""
        name = self[found] = next(anchors(found), "")
        return name

    def of(self, text: str) -> list[str]:
        """What `anchors` gives."""
        return [name for found in _ANCHOR.findall(text) if (name := self[found])]

    def by_line(self, text: str) -> list[tuple[str, ...]]:
        """What `anchors` gives of each line."""
        lines: list[tuple[str, ...]] = []
        names: list[str] = []
        for found in _TOKEN.findall(text):
            if found == "\n":
                lines.append(tuple(names))
                names = []
            elif name := self[found]:
                names.append(name)
        lines.append(tuple(names))
        return lines


def files(text: str) -> Iterator[str]:
    """Names of files, without their folders."""
    return iter(_FILE.findall(text))


def listed(names: Iterable[str]) -> str:
    """Names in as few characters as there are: plain ones first, then the files of each folder behind it."""
    plain: list[str] = []
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, last = name.rpartition("/")
        if folder and last:
            folders.setdefault(folder, []).append(last)
        else:
            plain.append(name)
    alone = [f"{folder}/{lasts[0]}" for folder, lasts in folders.items() if len(lasts) == 1]
    shared = [f"{folder}/: {' '.join(lasts)}" for folder, lasts in folders.items() if len(lasts) > 1]
    return " ".join([*plain, *alone, *shared])


def unlisted(text: str) -> Iterator[str]:
    """The names that `listed` put together."""
    folder = ""
    for word in text.split():
        if word.endswith("/:"):
            folder = word[:-1]
        else:
            yield folder + word


NOTE: Final = 48  # tokens of a placeholder, about
LEAST: Final = 80  # tokens: less is not worth shortening
AGAIN: Final = 160  # tokens of what was shortened before
LONG_ARGUMENT: Final = 200  # characters of an argument of which a part may stay
NAMES: Final = "[names in it: "

_GAP: Final = re.compile(r"\[… (\d{1,9})(?:-(\d{1,9}))?\]")
_DEFINES: Final = re.compile(
    r"\s*(?:\d+[\t→|: ]+)?\s*(?:(?:export|public|private|protected|static|async|pub|default|abstract) )*"
    r"(?:def|class|func|function|interface|type|const|let|var|struct|enum|trait|impl|fn|module|package)\b"
)
_IMPORTS: Final = re.compile(r"\s*(?:\d+[\t→|: ]+)?\s*(?:import|from|use|require|#include)\b")
_FAILURES: Final = ("error", "fail", "panic", "exception", "traceback", "warning", "✗")
_REMARKS: Final = re.compile(r"\s*(?:\d+[\t→|: ]+)?\s*(?:#|//|/?\*|--|<!--|\"\"\")")
_NUMBERED: Final = re.compile(r"\s*\d+(?:→|\t|\| ?|: ?)")
_START: Final = 160  # characters of a line in which it says that it defines something
NEAR_LINES: Final = 4  # lines
_TELLING_LINE: Final = 15  # characters of a line that is no other's by accident
_OF_CALL: Final = 300  # characters of a call's arguments in which the file stands that it changes
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
    lines: tuple[str, ...]
    numbers: Sequence[int]  # of each line, in the text as it was once, from 1
    said: Sequence[tuple[str, ...]]  # what each line names
    fields: tuple[tuple[str, int], ...] = ()  # of a call: the arguments that the lines are of, each with its number of lines
    step: int
    file: str = ""

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
ANCHOR_FEATURES: Final = (
    "stands",  # how often, in what may go
    "pieces",  # that hold it
    "kind",  # of the newest that holds it
    "age",
    "quiet",
    "edits",
    "length",
    "form",
    "depth",  # folders of a path
    "near",  # steps since a later step named something else on its lines
    "turns",
    "defined",
)
COMMON: Final = 10  # of LINE_FEATURES: the first, which the lines of a text share
LINE_FEATURES: Final = (
    "kind",
    "age",
    "quiet",  # steps since its file was last spoken of
    "edits",  # of its file
    "edited",  # steps since the last of them
    "newer",  # reads of the file that are newer
    "turns",  # of a person since
    "size",  # lines
    "stack",  # other files spoken of since its own was
    "phase",  # changes made in the newest steps
    "length",
    "indent",
    "near",  # lines up to the next that the agent wrote
    "copies",
    "used",  # steps since a later step named something that it names
    "around",  # the same of its neighbours
    "names",
    "shape",  # of the line: defines, imports, fails, remarks
    "place",  # in the text
)


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
        self._reads: dict[str, list[int]] = {}  # the steps that read it
        self._written: set[str] = set()  # lines that the agent wrote
        self._copies: Counter[str] = Counter()
        self._anchors = Anchors()
        self._now = len(situation.index.steps)
        self._phase = min(sum(span.kind is ToolKind.DURABLE for span in situation.index.spans[-_NEWEST:]), 7)
        waiting = list(self._first_pass())
        self._last_spoken = sorted(steps[-1] for steps in self._spoken.values())
        for text in waiting:
            self._take(text)
        for name in [name for name in self.mentions if name in self._shown]:
            del self.mentions[name]

    def anchor_features(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Of each name that stands only in what may go, as ANCHOR_FEATURES has them."""
        heads = [self._head(piece) for piece in self.pieces]
        near: dict[str, int] = {}
        defined: set[str] = set()
        used = self._used.get
        for piece in self.pieces:
            for line, said in zip(piece.lines, piece.said, strict=True):
                if not said:
                    continue
                newest = max([used(name, -1) for name in said])
                if newest > piece.step:
                    for name in said:
                        if near.get(name, -1) < newest:
                            near[name] = newest
                if _DEFINES.match(line, 0, _START):
                    defined.update(said)
        for name, mention in self.mentions.items():
            kind, age, quiet, edits, _, _, turns, *_ = heads[mention.piece]
            yield (
                name,
                (
                    min(mention.stands.bit_length(), 6),
                    min(mention.pieces.bit_length(), 4),
                    kind,
                    age,
                    quiet,
                    edits,
                    min(len(name) // 4, 12),
                    _form(name),
                    min(name.count("/"), 6),
                    (self._now - near[name]).bit_length() if name in near else NEVER,
                    turns,
                    name in defined,
                ),
            )

    def line_features(self, piece: TextPiece) -> Iterator[tuple[int, ...]]:
        """Of each line, as LINE_FEATURES has them."""
        head = self._head(piece)
        bares = [line.strip() for line in piece.lines]
        near = _distances([bare in self._written for bare in bares])
        step, now, used, count = piece.step, self._now, self._used.get, len(bares)
        uses = [max([used(name, -1) for name in said], default=-1) for said in piece.said]
        recent = [(now - newest).bit_length() if newest > step else NEVER for newest in uses]
        for number, (line, bare, said) in enumerate(zip(piece.lines, bares, piece.said, strict=True)):
            start = max(0, number - 3)
            yield (
                *head,
                min(len(bare) // 8, 16),
                min(len(line) - len(line.lstrip()), 24) // 2,
                near[number],
                min(self._copies[bare].bit_length(), 4),
                recent[number],
                min(recent[start : number + 4]),
                min(len(said), 5),
                _shape(line),
                min(number.bit_length(), (count - number).bit_length() + 4, 10),
            )

    def _head(self, piece: TextPiece) -> tuple[int, ...]:
        """What the lines of a piece have in common."""
        now, step, file = self._now, piece.step, piece.file
        spoken, edits, reads = (each.get(file, ()) if file else () for each in (self._spoken, self._edits, self._reads))
        turns, last = len(self.situation.index.turns), spoken[-1] if spoken else 0
        return (
            int(piece.kind),
            (now - step).bit_length(),
            (now - max(last, step)).bit_length(),
            min(len(edits), 7).bit_length(),
            (now - edits[-1]).bit_length() if edits else NEVER,
            min(len(reads) - bisect_right(reads, step), 3),
            min(turns - self.situation.index.block(piece.at).turn, 7).bit_length(),
            len(piece.lines).bit_length(),
            (len(self._last_spoken) - bisect_right(self._last_spoken, max(last, step))).bit_length(),
            self._phase,
        )

    def _first_pass(self) -> Iterator[_Text]:
        """What stays is read at once; what may be shortened is given."""
        situation, index = self.situation, self.situation.index
        for row in situation.view.rows():
            instead = dict(row.replaced)
            entry = situation.read(row.entry)
            facts_of = index.entries[row.entry]
            signed = any(facts_of.blocks[number].signed and not situation.is_free((row.entry, number)) for number in row.blocks)
            for number in row.blocks:
                at, facts = (row.entry, number), facts_of.blocks[number]
                if facts.kind == "thinking":
                    continue
                shown = instead.get(number)
                text = entry.blocks[number].text if shown is None else shown.text
                is_models = facts.origin is Origin.MODEL
                if is_models:
                    self._heard(facts, text, facts_of.step)
                waiting = None
                if self._may(at, facts, text, shown is not None) and not (is_models and signed):
                    waiting = _Text(at, facts, text, facts_of.step, shown is not None)
                    if facts.kind == "tool_call":
                        waiting = _with_fields(waiting)
                if waiting is not None:
                    yield waiting
                    if waiting.fields:
                        text = text[:_OF_CALL]
                    else:
                        continue
                self._shown.update(self._anchors.of(text))
        for insert in situation.view.inserts:
            self._shown.update(self._anchors.of(insert.text))

    def _heard(self, facts: BlockFacts, text: str, step: int) -> None:
        """What the agent itself said or called."""
        self._used.update(dict.fromkeys(self._anchors.of(text), step))
        named = set(files(text))
        for name in named:
            self._spoken.setdefault(name, []).append(step)
        if facts.kind != "tool_call":
            return
        span = self.situation.index.spans[facts.span]
        if span.kind is ToolKind.DURABLE:
            for name in set(files(text[:_OF_CALL])):
                self._edits.setdefault(name, []).append(step)
        elif ACTS.get(tool_name(span.tool)) is Act.READ:
            for name in set(files(text[:_OF_CALL])):
                self._reads.setdefault(name, []).append(step)
        plain = text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
        self._written |= {line for raw in plain.split("\n") if len(line := raw.strip()) > _TELLING_LINE}

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
        text = waiting.text
        note, names = "", ()
        fields: tuple[tuple[str, int], ...] = ()
        if waiting.fields:
            text = "\n".join([value for _, value in waiting.fields])
            fields = tuple((name, value.count("\n") + 1) for name, value in waiting.fields)
        elif waiting.is_replaced:
            note, names, text = _parted(text)
        lines, numbers = _numbered(text) if note else (tuple(text.split("\n")), range(1, text.count("\n") + 2))
        said = self._anchors.by_line("\n".join(lines)) if lines else []
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
                lines=lines,
                numbers=numbers,
                said=said,
                fields=fields,
                step=waiting.step,
                file=next(files(span.cue), "") if span else "",
            )
        )
        self._copies.update([line.strip() for line in lines])
        for name, stands in Counter(chain(names, *said)).items():
            mention = self.mentions.get(name)
            if mention is None:
                mention = self.mentions[name] = Mention()
            mention.stands += stands
            mention.pieces += 1
            mention.piece = number


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


def _is_camel(name: str) -> bool:
    """Whether a capital stands behind a small letter."""
    if name.islower() or name.isupper():
        return False
    return any(a.islower() and b.isupper() for a, b in pairwise(name))


def _form(name: str) -> int:
    """What a name looks like, as one number."""
    if "/" in name:
        return 6 if "." in name.rpartition("/")[2] else 5
    if name.isdigit():
        return 0
    if name.isupper():
        return 1
    if "." in name or ":" in name:
        return 4 if _FILE.fullmatch(name) else 3
    return 7 if _is_camel(name) else 2


def _shape(line: str) -> int:
    """What a line is, as one number."""
    if _DEFINES.match(line, 0, _START):
        return 3
    if _IMPORTS.match(line, 0, _START):
        return 2
    if _REMARKS.match(line, 0, _START):
        return 1
    start = line[:_START].lower()
    return 4 if any(word in start for word in _FAILURES) else 0


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
