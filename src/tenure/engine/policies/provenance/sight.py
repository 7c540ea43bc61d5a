"""What a view holds, read once: the results that may be shortened, and what they alone name.

One pass over the texts of the view. What was shortened before is read as it is shown, never again from the record. An anchor is a string whose form
could be told apart later; how likely it is to be asked for is learned. The harm detector has an extractor of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, pairwise
from math import log1p
from typing import Final

from msgspec import Struct

from tenure.engine.policies.placeholder import is_note
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At, Origin
from tenure.engine.record.index import NONE, BlockFacts
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import ACTS, Act, ToolKind, is_delimiter

LONGEST: Final = 80  # characters of a name that a list of names may hold

# Paths, dotted and joined names, names with capitals inside, ids and larger numbers.
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_][\w./:@~-]{2,199}")
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


LEAST: Final = 80  # tokens: less is not worth shortening
AGAIN: Final = 160  # tokens of what was shortened before
NAMES: Final = "[names in it: "

_DEFINES: Final = re.compile(
    r"\s*(?:\d+[\t→|: ]+)?\s*(?:(?:export|public|private|protected|static|async|pub|default|abstract) )*"
    r"(?:def|class|func|function|interface|type|const|let|var|struct|enum|trait|impl|fn|module|package|import|from|use)\b"
)
_START: Final = 160  # characters of a line in which it says that it defines something
_NEAR: Final = 4  # lines
_TELLING_LINE: Final = 15  # characters of a line that is no other's by accident
_DEEPEST: Final = 24  # spaces
_OF_CALL: Final = 300  # characters of a call's arguments in which the file stands that it changes
_LONGEST: Final = 300  # characters of a line beyond which length says nothing more
_LONG_AGO: Final = 150  # steps


class ResultSource(StrEnum):
    """What kind of tool a result came from, as far as it matters to what is asked of it."""

    READ = "read"
    COMMAND = "command"
    SEARCH = "search"
    LISTING = "listing"
    OTHER = "other"


_SOURCES: Final = {
    Act.READ: ResultSource.READ,
    Act.RUN: ResultSource.COMMAND,
    Act.SEARCH: ResultSource.SEARCH,
    Act.LIST: ResultSource.LISTING,
}


def _source(tool: str) -> ResultSource:
    act = ACTS.get(tool_name(tool))
    return _SOURCES.get(act, ResultSource.OTHER) if act else ResultSource.OTHER


class PartialResult(Struct, frozen=True, kw_only=True):
    """A result of which a part may stay."""

    at: At
    episode: int
    span: int  # NONE: a tool's words without a call of which they are the result
    source: ResultSource
    weight: int  # tokens, as it is shown
    note: str  # of what was shortened before; empty while it is whole
    names: tuple[str, ...]
    lines: tuple[str, ...]
    said: tuple[tuple[str, ...], ...]  # what each line names
    age: int  # steps since
    quiet: int  # steps since its file was last spoken of
    edits: int  # of its file


class Mention(Struct):
    """An anchor as far as it stands only in what may be shortened."""

    stands: int = 0
    piece: int = NONE  # the newest that holds it


class _Result(Struct, frozen=True):
    """A block that may be shortened, before all that stays is known."""

    at: At
    facts: BlockFacts
    text: str
    step: int
    is_replaced: bool  # by an earlier commit


class Sight:
    """The texts of a view. What later steps named is known by the newest step that did."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.pieces: list[PartialResult] = []
        self.mentions: dict[str, Mention] = {}
        self._shown: set[str] = set()  # anchors of what stays
        self._used: dict[str, int] = {}  # the newest step that named an anchor
        self._spoken: dict[str, int] = {}  # the newest step that named a file
        self._edits: Counter[str] = Counter()  # of a file
        self._written: set[str] = set()  # lines that the agent wrote
        self._copies: Counter[str] = Counter()
        self._anchors = Anchors()
        self._now = len(situation.index.steps)
        for waiting in list(self._first_pass()):
            self._take(waiting)
        for mention in [name for name in self.mentions if name in self._shown]:
            del self.mentions[mention]

    def anchor_features(self, name: str) -> tuple[float, ...]:
        """As ANCHOR_FEATURES names them."""
        mention = self.mentions[name]
        piece = self.pieces[mention.piece]
        return (
            log1p(mention.stands),
            log1p(piece.age),
            log1p(len(name)),
            float("/" in name),
            float(name.count("/")),
            float(name.isdigit()),
            float(name.isupper()),
            float(_is_camel(name)),
            float("." in name),
            log1p(piece.edits),
            float(piece.source is ResultSource.LISTING),
        )

    def line_features(self, piece: PartialResult) -> Iterator[tuple[float, ...]]:
        """Of each line, as LINE_FEATURES names them."""
        bares = [line.strip() for line in piece.lines]
        near = _spread([bare in self._written for bare in bares])
        step, age, quiet = self._now - piece.age, log1p(piece.age), log1p(piece.quiet)
        source = [
            float(piece.source is each)
            for each in (ResultSource.COMMAND, ResultSource.LISTING, ResultSource.SEARCH, ResultSource.READ)
        ]
        size, edits, long_ago = log1p(len(piece.lines)), log1p(piece.edits), log1p(_LONG_AGO)
        for line, bare, is_near, said in zip(piece.lines, bares, near, piece.said, strict=True):
            used = max([self._used.get(name, -1) for name in said], default=-1)
            yield (
                log1p(min(len(bare), _LONGEST)),
                age,
                is_near,
                *source,
                quiet,
                min(len(line) - len(line.lstrip()), _DEEPEST) / _DEEPEST,
                size,
                log1p(self._copies[bare]),
                float(used > step),
                log1p(self._now - used) if used > step else long_ago,
                float(_DEFINES.match(line[:_START]) is not None),
                edits,
            )

    def _first_pass(self) -> Iterator["_Result"]:
        """What stays is read at once; what may be shortened is given."""
        situation, index = self.situation, self.situation.index
        for row in situation.view.rows():
            instead = dict(row.replaced)
            entry = situation.read(row.entry)
            step = index.entries[row.entry].step
            for number in row.blocks:
                at = (row.entry, number)
                facts = index.block(at)
                if facts.kind == "thinking":
                    continue
                shown = instead.get(number)
                text = entry.blocks[number].text if shown is None else shown.text
                may = self._may(at, facts, AGAIN if shown is not None and is_note(shown.text) else LEAST)
                is_models = facts.origin is Origin.MODEL
                names = self._anchors.of(text) if is_models or not may else ()
                if is_models:
                    self._heard(facts, text, names, step)
                if may:
                    yield _Result(at, facts, text, step, shown is not None)
                else:
                    self._shown.update(names)
        for insert in situation.view.inserts:
            self._shown.update(self._anchors.of(insert.text))

    def _heard(self, facts: BlockFacts, text: str, names: Sequence[str], step: int) -> None:
        """What the agent itself said or called."""
        self._used.update(dict.fromkeys(names, step))
        for name in files(text):
            self._spoken[name] = step
        if facts.kind != "tool_call":
            return
        if self.situation.index.spans[facts.span].kind is ToolKind.DURABLE:
            self._edits.update(set(files(text[:_OF_CALL])))
        plain = text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
        self._written |= {line for raw in plain.split("\n") if len(line := raw.strip()) > _TELLING_LINE}

    def _may(self, at: At, facts: BlockFacts, least: int) -> bool:
        """Whether a part of a block may stay while the rest goes."""
        of_tool = facts.kind == "tool_result" or (facts.kind == "text" and facts.origin in (Origin.TOOL, Origin.HARNESS))
        if not of_tool or not self.situation.is_free(at) or self.situation.view.weight(*at) < least:
            return False
        return facts.span == NONE or not is_delimiter(self.situation.index.spans[facts.span].tool)

    def _take(self, result: "_Result") -> None:
        index, facts, step = self.situation.index, result.facts, result.step
        span = index.spans[facts.span] if facts.span != NONE else None
        note, names, lines = _parted(result.text) if result.is_replaced else ("", (), tuple(result.text.split("\n")))
        said = tuple([tuple(self._anchors.of(line)) for line in lines])
        file = next(files(span.cue), "") if span else ""
        number = len(self.pieces)
        self.pieces.append(
            PartialResult(
                at=result.at,
                episode=facts.episode,
                span=facts.span,
                source=_source(span.tool) if span else ResultSource.OTHER,
                weight=self.situation.view.weight(*result.at),
                note=note,
                names=names,
                lines=lines,
                said=said,
                age=self._now - step,
                quiet=self._now - max(self._spoken.get(file, 0) if file else 0, step),
                edits=self._edits[file] if file else 0,
            )
        )
        self._copies.update([line.strip() for line in lines])
        for name, stands in Counter(chain(names, *said)).items():
            mention = self.mentions.get(name)
            if mention is None:
                mention = self.mentions[name] = Mention()
            mention.stands += stands
            mention.piece = number


def _is_camel(name: str) -> bool:
    """Whether a capital stands behind a small letter."""
    if name.islower() or name.isupper():
        return False
    return any(a.islower() and b.isupper() for a, b in pairwise(name))


def _parted(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """What was shortened before as its note, its names and its lines; of what is whole, its lines."""
    lines = text.split("\n")
    if not is_note(lines[0]):
        return "", (), tuple(lines)
    names = tuple(unlisted(lines[1][len(NAMES) : -1])) if len(lines) > 1 and lines[1].startswith(NAMES) else ()
    return lines[0], names, tuple(lines[2:] if names else lines[1:])


def _spread(marks: Sequence[bool]) -> list[float]:
    """1 within a few lines of a mark, else 0. Linear."""
    near = [0.0] * len(marks)
    reach = -1
    for number, mark in enumerate(marks):
        reach = number + _NEAR if mark else reach
        near[number] = float(number <= reach)
    reach = len(marks)
    for number in range(len(marks) - 1, -1, -1):
        reach = number - _NEAR if marks[number] else reach
        near[number] = max(near[number], float(number >= reach))
    return near
