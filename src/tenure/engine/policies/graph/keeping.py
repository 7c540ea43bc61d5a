"""Which lines and names of texts stay when there is room for so many tokens.

A line is worth what it names that nothing kept names yet, and the chance that it is wanted to the letter; the best for each token is kept first.
A name can also stay alone, in the list of names of its text. n log n in the lines.

The chances are two forests, learned from recorded sessions: `python bench/learn.py FOLDER` learns them, writes them, and says how they do on sources
that were left out.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from tenure.engine.policies.graph.forest import Chances, Forest
from tenure.engine.policies.graph.sight import COMMON, LONGEST, NOTE, PieceKind, Sight, TextPiece
from tenure.engine.record.index import NONE


class ModelWeights(Struct, frozen=True, kw_only=True):
    """What was learned of names and of lines."""

    anchor: Forest
    line: Forest


WHOLE: Final = 0.85  # of a text's tokens: if so much of it is worth keeping, it stays as it is
_SMOOTH: Final = 1  # lines on each side: what is wanted to the letter stands together
_CHUNK: Final = 12  # lines
_LOOSE: Final = frozenset({PieceKind.COMMAND, PieceKind.SEARCH, PieceKind.LISTING})
_NUMBERING: Final = "0123456789→|\t: "
_NAME_TOKENS: Final = 0.3  # for each character of a name in a list
_LINE_TOKENS: Final = 0.5  # beside its characters


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
        self._nearness = [nearness(piece) for piece in sight.pieces]
        anchors, self._lines_chances = Chances(weights.anchor), Chances(weights.line, COMMON)
        self._worth = {
            name: anchors[features] * self._nearness[sight.mentions[name].piece] for name, features in sight.anchor_features()
        }
        self._items: list[_Item] = []
        self.losses: list[float] = []  # of each piece, per token: what is expected to be asked of it
        for number, piece in enumerate(sight.pieces):
            items = [*self._lines(number, piece), *self._names(number, piece)]
            self._items += items
            worth = sum(item.verbatim for item in items) + sum(self._worth.get(name, 0.0) for name in _named(piece))
            self.losses.append(worth / max(1, piece.weight))
        nothing = set[str]()
        self._values = [-self._value(item, nothing) for item in self._items]  # while nothing is kept
        self._best = sorted(range(len(self._items)), key=self._values.__getitem__)

    def worth_of(self, name: str) -> float:
        """What is expected to be asked of a name that stands only in what may go."""
        return self._worth[name]

    def choose(self, room: float, pieces: Sequence[int]) -> dict[int, KeptParts]:
        """What stays of the pieces of those numbers within `room` tokens, placeholders apart. Those of which nothing stays are in it too."""
        kept = {number: KeptParts(set(), []) for number in pieces}
        said: set[str] = set()
        again: list[tuple[float, int]] = []  # a part of whose worth was kept meanwhile: a heap
        first = iter(number for number in self._best if self._items[number].piece in kept)
        number = next(first, NONE)
        while room > 0 and (again or number != NONE):
            if again and (number == NONE or again[0] < (self._values[number], number)):
                value, at = heappop(again)
                is_first = False
            else:
                value, at, number, is_first = self._values[number], number, next(first, NONE), True
            item = self._items[at]
            if item.tokens > room:
                continue  # and there will never be more
            if not is_first or not said.isdisjoint(item.names):
                now = -self._value(item, said)
                if now > value + 1e-12:
                    if now < 0:
                        heappush(again, (now, at))
                    continue
            room -= item.tokens
            said.update(item.names)
            if item.stop:
                kept[item.piece].lines.update(range(item.start, item.stop))
            else:
                kept[item.piece].names += item.names
        return kept

    def _value(self, item: _Item, said: set[str]) -> float:
        """For each token."""
        fresh = [self._worth.get(name, 0.0) for name in item.names if name not in said]
        return (item.verbatim + sum(fresh)) / item.tokens

    def _lines(self, number: int, piece: TextPiece) -> list[_Item]:
        near = self._nearness[number]
        chances = [self._lines_chances[features] * near for features in self.sight.line_features(piece)]
        means = _means(chances)
        of_names = sum(len(name) for name in piece.names) * _NAME_TOKENS + (NOTE if piece.note else 0)
        characters = sum(len(line) + 1 for line in piece.lines)
        scale = max(0.05, (piece.weight - of_names) / max(1, characters))  # tokens of a character here
        items: list[_Item] = []
        for start, stop in _chunks(piece):
            names = dict.fromkeys(name for said in piece.said[start:stop] for name in said if name in self._worth)
            items.append(
                _Item(
                    piece=number,
                    start=start,
                    stop=stop,
                    names=tuple(names),
                    verbatim=(sum(chances[start:stop]) + sum(means[start:stop])) / 2,
                    tokens=max(1.0, sum(map(len, piece.lines[start:stop])) + stop - start) * scale,
                )
            )
        return items

    def _names(self, number: int, piece: TextPiece) -> list[_Item]:
        if piece.is_call:
            return []
        return [
            _Item(piece=number, start=0, stop=0, names=(name,), verbatim=0.0, tokens=1 + len(name) * _NAME_TOKENS)
            for name in _named(piece)
            if name in self._worth and len(name) <= LONGEST
        ]


def _named(piece: TextPiece) -> list[str]:
    return list(dict.fromkeys([*piece.names, *(name for said in piece.said for name in said)]))


def _means(values: Sequence[float]) -> list[float]:
    """Of each value and its neighbours. Linear."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    means: list[float] = []
    for place in range(len(values)):
        start, stop = max(0, place - _SMOOTH), min(len(values), place + _SMOOTH + 1)
        means.append((sums[stop] - sums[start]) / (2 * _SMOOTH + 1))
    return means


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
