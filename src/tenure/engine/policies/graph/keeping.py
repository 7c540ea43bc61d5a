"""Which lines and names of texts stay when there is room for so many tokens.

A line is worth what it names that nothing kept names yet, and the chance that it is wanted to the letter; the best for each token is kept first.
A name can also stay alone, in the list of names of its text. n log n in the lines.

The chances are two forests, learned from recorded sessions: `python bench/learn.py FOLDER` learns them, writes them, and says how they do on sources
that were left out. What edits will look for is a table: it counts there how often they did.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heappop, heappush, nlargest
from itertools import accumulate, chain
from typing import Final

from msgspec import Struct

from tenure.engine.policies.graph.forest import Forest
from tenure.engine.policies.graph.sight import LONGEST, NEVER, NOTE, PieceKind, Sight, TextPiece


class ModelWeights(Struct, frozen=True, kw_only=True):
    """What was learned of names and of lines."""

    anchor: Forest
    line: Forest


WHOLE: Final = 0.85  # of a text's tokens: if so much of it is worth keeping, it stays as it is
_SMOOTH: Final = 1  # lines on each side: what is wanted to the letter stands together
EDIT_WORTH: Final = 10.0  # needs that an edit counts for that no longer finds its text
# Edits to come that look for something in a text, for each of its lines, as counted by `bench/learn.py`.
_READ: Final = (
    2e-3,
    2e-3,
    2e-3,
    2e-3,
    14e-4,
    12e-4,
    5e-4,
    1e-4,
)  # of a file that was not edited, by the age of the read (OF_PIECE)
_WRITTEN: Final = (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 8e-4, 1e-4)  # by the agent, whole or in part
_EDITED_NOW: Final = 14e-4  # a read of a file that the newest step edited
_EDITED: Final = 2e-4  # of one that was edited before
_NO_FILE: Final = 5e-5
SUPERSEDED: Final = 3  # quarters of its lines that stand in a newer text: no edit looks there
_CUE_EVERY: Final = (
    80  # tokens of a text that is shortened: one name of it stays for each, so that its residue says what it leads to
)
_CUES_MOST: Final = 16
_CUE_LONGEST: Final = 40  # characters
_CHUNK: Final = 16  # lines
_TOO_LARGE: Final = 64  # parts that do not fit, after which no other is tried
_LOOSE: Final = frozenset({PieceKind.COMMAND, PieceKind.SEARCH, PieceKind.LISTING})
_NUMBERING: Final = "0123456789→|\t: "
_NAME_TOKENS: Final = 0.3  # for each character of a name in a list


class KeptParts(Struct):
    """What stays of one text: numbers of lines, and names beside them."""

    lines: set[int]
    names: list[str]


class _Item(Struct, frozen=True, gc=False):
    """Lines that stand together, or a name alone (then there are none)."""

    piece: int
    start: int
    stop: int
    names: tuple[str, ...]
    verbatim: float  # needs that are expected of it to the letter
    tokens: float


class Keeping:
    """The worth of all lines and names of a view, found once, whatever the room."""

    def __init__(self, sight: Sight, weights: ModelWeights, nearness: Callable[[TextPiece], float] = lambda _: 1.0) -> None:
        """`nearness` multiplies what is expected of a piece."""
        self.sight = sight
        self._weights = weights
        self._nearness = [nearness(piece) for piece in sight.pieces]
        self._worth: dict[str, float] = {}
        for head, names, columns in sight.names():
            chances = weights.anchor.tables(head, len(columns)).chances(columns)
            near = self._nearness[sight.mentions[names[0]].piece]
            self._worth.update(zip(names, [chance * near for chance in chances], strict=True))
        self._items: list[_Item] = []
        self.losses: list[float] = []  # of each piece, per token: what is expected to be asked of it
        for number, piece in enumerate(sight.pieces):
            named = [name for name in dict.fromkeys([*piece.names, *piece.facts.counts]) if name in self._worth]
            lines = self._lines(number, piece)
            self._items += lines
            if not piece.is_call:
                self._items += [
                    _Item(piece=number, start=0, stop=0, names=(name,), verbatim=0.0, tokens=1 + len(name) * _NAME_TOKENS)
                    for name in named
                    if len(name) <= LONGEST
                ]
            worth = sum([item.verbatim for item in lines]) + sum([self._worth[name] for name in named])
            self.losses.append(worth / max(1, piece.weight))
        nothing = set[str]()
        self._values = [-self._value(item, nothing) for item in self._items]  # while nothing is kept
        self._best = sorted(range(len(self._items)), key=self._values.__getitem__)
        self._ranked_of: Sequence[int] = ()  # the pieces that were asked about last
        self._ranked: list[_Item] = []
        self._rest: Iterator[_Item] = iter(())

    def worth_of(self, name: str) -> float:
        """What is expected to be asked of a name that stands only in what may go."""
        return self._worth[name]

    def cues(self, piece: TextPiece, kept: KeptParts, said: Collection[str]) -> list[str]:
        """The names that stay beside lines that say some: those chosen, and as many of the likeliest as tell whether a recall is worth it."""
        chosen = [name for name in kept.names if name not in said]
        wanted = min(_CUES_MOST, piece.weight // _CUE_EVERY) - len(chosen)
        if wanted <= 0:
            return chosen
        shown = {*said, *chosen}
        others = [name for name in piece.facts.counts if name in self._worth and name not in shown and len(name) <= _CUE_LONGEST]
        return chosen + nlargest(wanted, others, key=self._worth.__getitem__)

    def choose(self, room: float, pieces: Sequence[int]) -> dict[int, KeptParts]:
        """What stays of the pieces of those numbers within `room` tokens, placeholders apart. Those of which nothing stays are in it too."""
        kept = {number: KeptParts(set(), []) for number in pieces}
        if self._ranked_of != pieces:
            self._ranked_of, self._ranked, self._rest = pieces, [], self._ranking(kept.keys())
        too_large = 0
        for item in chain(self._ranked, self._further()):
            if too_large == _TOO_LARGE or room <= 0:
                break
            if item.tokens > room:
                too_large += 1
                continue
            room -= item.tokens
            if item.stop:
                kept[item.piece].lines.update(range(item.start, item.stop))
            else:
                kept[item.piece].names += item.names
        return kept

    def _further(self) -> Iterator[_Item]:
        """What was not ranked yet."""
        for item in self._rest:
            self._ranked.append(item)
            yield item

    def _ranking(self, pieces: Collection[int]) -> Iterator[_Item]:
        """What is worth most for each token first, given all that came before it."""
        said: set[str] = set()
        again: list[tuple[float, int]] = []  # a part of whose worth was kept meanwhile: a heap
        values, items = self._values, self._items
        for number in self._best:
            if items[number].piece not in pieces:
                continue
            while again and again[0][0] < values[number]:
                yield from self._once_more(heappop(again), said, again)
            yield from self._once_more((values[number], number), said, again)
        while again:
            yield from self._once_more(heappop(again), said, again)

    def _once_more(self, ranked: tuple[float, int], said: set[str], again: list[tuple[float, int]]) -> Iterator[_Item]:
        """A part, unless it is worth less by now: then it waits."""
        value, number = ranked
        item = self._items[number]
        if item.names:
            now = value if said.isdisjoint(item.names) else -self._value(item, said)
            if now > value + 1e-12:
                if now < 0:
                    heappush(again, (now, number))
                return
            said.update(item.names)
        yield item

    def _value(self, item: _Item, said: set[str]) -> float:
        """For each token."""
        if not item.names:
            return item.verbatim / item.tokens
        worth = self._worth
        return (item.verbatim + sum([worth[name] for name in item.names if name not in said])) / item.tokens

    def _lines(self, number: int, piece: TextPiece) -> list[_Item]:
        near = self._nearness[number]
        needs = list(accumulate(expected(self._weights, *self.sight.lines(number)), initial=0.0))
        of_names = sum(len(name) for name in piece.names) * _NAME_TOKENS + (NOTE if piece.note else 0)
        sizes = list(accumulate([len(line) + 1 for line in piece.lines], initial=0))
        scale = max(0.05, (piece.weight - of_names) / max(1, sizes[-1]))  # tokens of a character here
        said, worth = piece.facts.said, self._worth
        return [
            _Item(
                piece=number,
                start=start,
                stop=stop,
                names=tuple({name: None for names in said[start:stop] for name in names if name in worth}),
                verbatim=near * _level(needs, start, stop),
                tokens=max(1.0, (sizes[stop] - sizes[start]) * scale),
            )
            for start, stop in _chunks(piece)
        ]


def expected(weights: ModelWeights, head: tuple[int, ...], columns: Sequence[Sequence[int]]) -> list[float]:
    """Of each line of a text the needs that are expected of it, those for an edit that has to find it among them."""
    edits = EDIT_WORTH * edits_expected(head)
    return [chance + edits for chance in weights.line.tables(head, len(columns)).chances(columns)]


def edits_expected(head: tuple[int, ...]) -> float:
    """Edits to come that look for something in a text of these features (OF_PIECE), for each of its lines."""
    kind, age, _, _, edited, newer, turns = head[:7]
    if newer >= SUPERSEDED:
        return 0.0
    if kind in (PieceKind.WRITTEN, PieceKind.CHANGED):
        return _WRITTEN[min(age, len(_WRITTEN) - 1)]
    if kind != PieceKind.READ:
        return _NO_FILE
    if edited < NEVER:
        return _EDITED if edited else _EDITED_NOW
    return max(_READ[-1], _READ[min(age, len(_READ) - 1)] / 2**turns)


def _level(sums: Sequence[float], start: int, stop: int) -> float:
    """What lines are expected to be asked for, half of it by what those around are. `sums` are of all lines before each."""
    first, last = max(0, start - _SMOOTH), min(len(sums) - 1, stop + _SMOOTH)
    around = (sums[last] - sums[first]) / (last - first)
    return (sums[stop] - sums[start] + around * (stop - start)) / 2


def _chunks(piece: TextPiece) -> Iterator[tuple[int, int]]:
    """Runs of lines that stay or go together: in a source or a prose up to a blank line or _CHUNK lines; else each line alone."""
    count = len(piece.lines)
    if piece.kind in _LOOSE:
        yield from ((place, place + 1) for place in range(count))
        return
    start = 0
    for place, line in enumerate(piece.lines):
        if place - start >= _CHUNK or (place - start >= _CHUNK // 2 and _is_blank(line)):
            yield start, place
            start = place
    if start < count:
        yield start, count


def _is_blank(line: str) -> bool:
    """Whether a line is empty but for a number that a tool put before it."""
    return not line.strip(_NUMBERING)
