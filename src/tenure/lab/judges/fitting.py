"""Pieces in the room there is, and which lines of a text that is too long decide a verdict.

Each side of a case gets its share of the room, and what it does not need the others get. Where a side is too large, its largest pieces lose their
middle; where that is not enough, pieces leave from the middle of the side. The lines that tell give way last: those with a rare word, or a whole
line, that later steps say and that stood in what was removed (little else of what was removed can have been used to the letter, and hardly
anywhere else can it stand still or have been had again), and those with a handle, which is a way back.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from tenure.engine.planners.handoff.transcript import ends
from tenure.engine.record.entry import Count
from tenure.lab.harm.holdings import words_of
from tenure.lab.harm.passage import plain
from tenure.lab.judges.cases import INSERTED, CasePiece, Kind

RARE: Final = (4, 24)  # pieces of the view that may hold a word that tells: a tenth of them, within these bounds
MOST: Final = 2_000  # words that tell, and as many lines: those that are said first
LINE_LEAST: Final = 16  # characters of a line that can be told from others
LINE_CHARS: Final = 400  # of a line that is shown; a longer one is several
GAP: Final = "…"

_RUN = re.compile(rf"[^\n]{{1,{LINE_CHARS}}}")
_HANDLE = re.compile(r"[a-z_]\w{0,80}:[\w.\-]{1,120}@[0-9a-f]{4}")


class Telling(Struct, frozen=True):
    """What makes a line worth its room: rare words, and lines as they stand."""

    words: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()

    def __or__(self, other: "Telling") -> "Telling":
        """Both together."""
        return Telling(self.words | other.words, self.lines | other.lines)

    def __bool__(self) -> bool:
        return bool(self.words or self.lines)

    def of(self, text: str) -> tuple[str, ...]:
        """What of it a text holds. O(text)."""
        if not self:
            return ()
        spelled = plain(text)
        return (*self.words.intersection(words_of(spelled)), *self.lines.intersection(_lines(spelled)))


NOTHING: Final = Telling()


def telling(future: Iterable[CasePiece], removed: Iterable[CasePiece], prefix: Sequence[CasePiece]) -> Telling:
    """What later steps say of what was removed.

    `prefix` is what was in view before, piece by piece: a word in more than RARE of them tells nothing. O(text).
    """
    rare = max(RARE[0], min(RARE[1], len(prefix) // 10))
    gone = [plain(piece.text) for piece in removed]
    gone_words = {word for text in gone for word in words_of(text)}
    gone_lines = {line for text in gone for line in _lines(text)}
    times = Counter(word for piece in prefix for word in gone_words.intersection(words_of(plain(piece.text))))
    words: dict[str, None] = {}
    lines: dict[str, None] = {}
    for piece in future:
        if piece.kind in ("call", "words"):
            text = plain(piece.text)
            words |= dict.fromkeys(word for word in words_of(text) if 0 < times[word] <= rare)
            lines |= dict.fromkeys(line for line in _lines(text) if line in gone_lines)
            if len(words) >= MOST and len(lines) >= MOST:
                break
    return Telling(frozenset(islice(words, MOST)), frozenset(islice(lines, MOST)))


def excerpts(pieces: Sequence[CasePiece], tells: Telling) -> tuple[str, ...]:
    """For each piece the lines of it that tell, each gap between them a line of its own; empty where none does. O(text).

    Nothing is shown more than once for its own sake, in order of the pieces.
    """
    seen: set[str] = set()
    found: list[str] = []
    for piece in pieces:
        fresh = frozenset(tells.of(piece.text)) - seen
        seen |= fresh
        found.append(_excerpt(piece.text, fresh) if fresh or _HANDLE.search(piece.text) else "")
    return tuple(found)


def _excerpt(text: str, fresh: frozenset[str]) -> str:
    tells = Telling(fresh, fresh)
    seen: set[str] = set()
    shown: list[str] = []
    end = 0
    for line in _RUN.finditer(text):
        held = set(tells.of(line[0])) - seen
        if held or _HANDLE.search(line[0]):
            seen |= held
            if line.start() > end + 1:
                shown.append(GAP)
            shown.append(line[0])
            end = line.end()
    return "\n".join(shown)


def _lines(text: str) -> Iterator[str]:
    """The lines of a text that are long enough to be told from others."""
    return (line for raw in text.split("\n") if len(line := raw.strip()) >= LINE_LEAST)


LABEL: Final = 20  # o200k tokens that a piece weighs beside its text
EXCERPT: Final = 60  # beside what tells of it
SLACK: Final = 0.97  # of the room that pieces are planned for, since joints weigh too
TELLS: Final = "[of what is left out here, the lines that later steps may have used:]"

_ALL: Final[frozenset[Kind]] = frozenset({"system", "human", "words", "thinking", "call", "result", "note"})

# Who gives way first where a side is too large, and whether it holds words that tell: results give what came, calls and words what was done and
# wanted.
GIVES_WAY: Final[tuple[tuple[frozenset[Kind], bool], ...]] = (
    (frozenset({"thinking"}), False),
    (frozenset({"result"}), False),
    (_ALL, False),
    (_ALL, True),
)
# O200k tokens down to which a piece may be shortened, its label included; where that is not enough, pieces leave.
LEAST: Final[Mapping[Kind, int]] = {
    "system": 160,
    "human": 320,
    "words": 240,
    "thinking": 60,
    "call": 320,
    "result": 100,
    "note": 120,
}


class Side(Struct, frozen=True, kw_only=True):
    """Pieces in order that share a part of the room."""

    name: str
    share: float
    pieces: Sequence[CasePiece]
    front: float = 0.5  # of the room for what stays, where not all can: for the beginning
    telling: Telling = NOTHING  # of a shortened piece, the lines that hold something of it stay before others

    @property
    def weight(self) -> int:
        """O200k tokens of all of it, labels included."""
        return sum(_weight(piece) for piece in self.pieces)


class SideTexts(Struct, frozen=True):
    """The pieces of one side, each with the text that is shown of it; None for one that is left out."""

    rows: tuple[tuple[CasePiece, str | None], ...]

    @property
    def shortened(self) -> int:
        """How many lost their middle."""
        return sum(text is not None and text != piece.text for piece, text in self.rows)

    @property
    def left_out(self) -> int:
        """How many are not shown."""
        return sum(text is None for _, text in self.rows)

    @property
    def by_place(self) -> dict[tuple[int, int], str]:
        """The texts of record blocks that are shown, by (entry, block)."""
        return {piece.at: text for piece, text in self.rows if text is not None and piece.block != INSERTED}


def parts(sides: Sequence[Side], room: int) -> dict[str, int]:
    """How much each side gets: its share, or what it needs where that is less; what is left over is shared among the others."""
    found: dict[str, int] = {}
    left = int(room * SLACK)
    waiting: list[Side] = [*sides]
    while waiting:
        shares: float = sum(side.share for side in waiting) or 1.0
        content: list[Side] = [side for side in waiting if side.weight <= left * side.share / shares]
        for side in content or waiting:
            found[side.name] = side.weight if content else int(left * side.share / shares)
        if not content:
            break
        left -= sum(side.weight for side in content)
        waiting = [side for side in waiting if side.name not in found]
    return found


def fitted(side: Side, room: int, count: Count) -> SideTexts:
    """A side in its part of the room. O(n log n), and of a gigantic text only the ends are counted."""
    limits = [_weight(piece) for piece in side.pieces]
    if sum(limits) <= room:
        return SideTexts(tuple((piece, piece.text) for piece in side.pieces))
    found = excerpts(side.pieces, side.telling)
    floors = [
        max(LEAST[piece.kind], min(limits[n], count(found[n]) + EXCERPT if found[n] else 0))
        for n, piece in enumerate(side.pieces)
    ]
    for kinds, is_telling in GIVES_WAY:
        over = sum(limits) - room
        if over <= 0:
            break
        chosen = [n for n, piece in enumerate(side.pieces) if piece.kind in kinds and bool(found[n]) is is_telling]
        level = _level([limits[n] for n in chosen], over)
        for n in chosen:
            limits[n] = min(limits[n], max(level, floors[n]))
    kept = set(range(len(limits))) if sum(limits) <= room else _from_both_ends(side, limits, found, room)
    texts = (_text(piece, limits[n], found[n], count) if n in kept else None for n, piece in enumerate(side.pieces))
    return SideTexts(tuple(zip(side.pieces, texts, strict=True)))


def _weight(piece: CasePiece) -> int:
    return piece.tokens + LABEL


def _level(weights: Sequence[int], over: int) -> int:
    """The weight down to which the heaviest have to come for `over` to be saved; 0 when that is not enough."""
    ordered = sorted(weights, reverse=True)
    saved, level = 0, ordered[0] if ordered else 0
    for n, weight in enumerate(ordered):
        saved += n * (level - weight)
        if saved >= over:
            return weight + (saved - over) // n
        level = weight
    return max(0, level - -(-(over - saved) // len(ordered))) if ordered else 0


def _from_both_ends(side: Side, limits: Sequence[int], excerpts: Sequence[str], room: int) -> set[int]:
    """The pieces that stay where not all can: what people said, then what tells, then the rest, each from both ends inwards."""
    last, front, back = len(limits) - 1, max(side.front, 0.01), max(1 - side.front, 0.01)
    groups = [0 if piece.kind == "human" else 1 if excerpts[n] else 2 for n, piece in enumerate(side.pieces)]
    kept: set[int] = set()
    full: set[int] = set()
    for n in sorted(range(len(limits)), key=lambda n: (groups[n], min(n / front, (last - n) / back), n)):
        if limits[n] > room:
            full.add(groups[n])  # a gap, not a sieve
        elif groups[n] not in full:
            room -= limits[n]
            kept.add(n)
    return kept


def _text(piece: CasePiece, limit: int, excerpt: str, count: Count) -> str | None:
    """A piece in `limit` tokens, label included: its ends, and between them what of it tells. None where not even its ends fit."""
    if _weight(piece) <= limit:
        return piece.text
    room = limit - LABEL
    inner = ends(excerpt, room - LABEL, count) if excerpt else ""
    outer = ends(piece.text, room - LABEL - count(inner), count) if inner else ""
    if inner:
        return f"{outer}\n{TELLS}\n{inner}" if outer else f"{TELLS}\n{inner}"
    return ends(piece.text, room, count) or None
