"""Which lines and names of results stay when there is room for so many tokens.

A line is worth what it names that nothing kept names yet, and the chance that it is wanted to the letter; the best for each token is kept first.
A name can also stay alone, in the list of names of its result. n log n in the lines.

The chances are two logistic models, learned from recorded sessions: `python bench/learn.py FOLDER` learns them, prints this table, and says how
they do on sources that were left out.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import exp
from operator import mul
from typing import Final

from msgspec import Struct

from tenure.engine.policies.provenance.sight import LONGEST, PartialResult, Sight
from tenure.engine.record.index import NONE


class ModelWeights(Struct, frozen=True, kw_only=True):
    """Of each model the weights of its features, in the order of their names, and the constant behind them."""

    anchor: tuple[float, ...]
    anchor_bias: float
    line: tuple[float, ...]
    line_bias: float


# Natural logarithms of one more than the count, where it is a count; ages in steps of the agent.
ANCHOR_FEATURES: Final = (
    "stands",  # how often, in the view
    "age",  # of the newest result that holds it
    "length",
    "path",
    "depth",  # folders of a path
    "digits",  # nothing else
    "capitals",  # nothing else
    "camel",
    "dotted",
    "edits",  # of the file it stands in
    "listing",
)
LINE_FEATURES: Final = (
    "length",
    "age",
    "near",  # lines that the agent wrote stand close by
    "command",
    "listing",
    "search",
    "read",
    "quiet",  # steps since its file was last spoken of
    "indent",
    "size",  # lines of the result
    "copies",
    "used",  # something that it names was named by a later step
    "since",  # steps since then
    "defines",
    "edits",
)


def chance(weights: Sequence[float], bias: float, features: Sequence[float]) -> float:
    """The probability that a logistic model gives."""
    assert len(weights) == len(features)
    score = bias + sum(map(mul, weights, features))
    return 1.0 / (1.0 + exp(-max(-30.0, min(30.0, score))))


LEARNED: Final = ModelWeights(
    anchor=(0.228, -0.301, 0.802, 1.329, -0.134, -0.321, -1.431, 0.998, -0.126, -0.523, -1.119),
    anchor_bias=-6.669,
    line=(0.868, -0.468, -0.17, -0.759, -5.596, -0.176, 1.045, -0.217, 3.254, -0.38, -1.485, -0.401, -0.18, 0.731, 0.295),
    line_bias=-5.188,
)


NOTE: Final = 48  # tokens of a placeholder, about
WHOLE: Final = 0.85  # of a result's tokens: if so much of it is worth keeping, it stays as it is
_SMOOTH: Final = 3  # lines on each side: what is wanted to the letter stands together
_BARE: Final = 0.2  # of its chance: a line too short to be one that is wanted to the letter
_SHORT_LINE: Final = 16  # characters
_NAME_TOKENS: Final = 0.3  # for each character of a name in a list


class KeptParts(Struct):
    """What stays of one result: numbers of lines, and names beside them."""

    lines: set[int]
    names: list[str]


class _Item(Struct, frozen=True, gc=False):
    """A line, or a name alone (`line` is -1)."""

    piece: int
    line: int
    names: tuple[str, ...]
    verbatim: float  # chance that it is wanted to the letter
    tokens: float


class Keeping:
    """The worth of all lines and names of a view, found once, whatever the room."""

    def __init__(self, sight: Sight, weights: ModelWeights) -> None:
        self.sight = sight
        self._worth = {name: chance(weights.anchor, weights.anchor_bias, sight.anchor_features(name)) for name in sight.mentions}
        self._items: list[_Item] = []
        self.losses: list[float] = []  # of each piece, per token: what is expected to be asked of it
        for number, piece in enumerate(sight.pieces):
            items = [*self._lines(number, piece, weights), *self._names(number, piece)]
            self._items += items
            worth = sum(item.verbatim for item in items) + sum(self._worth.get(name, 0.0) for name in _named(piece))
            self.losses.append(worth / max(1, piece.weight))
        nothing = set[str]()
        self._values = [-self._value(item, nothing) for item in self._items]  # while nothing is kept
        self._best = sorted(range(len(self._items)), key=self._values.__getitem__)

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
            if item.line >= 0:
                kept[item.piece].lines.add(item.line)
            else:
                kept[item.piece].names += item.names
        return kept

    def _value(self, item: _Item, said: set[str]) -> float:
        """For each token."""
        fresh = [self._worth.get(name, 0.0) for name in item.names if name not in said]
        return (item.verbatim + sum(fresh)) / item.tokens

    def _lines(self, number: int, piece: PartialResult, weights: ModelWeights) -> list[_Item]:
        chances = [chance(weights.line, weights.line_bias, each) for each in self.sight.line_features(piece)]
        chances = [p if len(line.strip()) >= _SHORT_LINE else p * _BARE for p, line in zip(chances, piece.lines, strict=True)]
        means = _means(chances)
        of_names = sum(len(name) for name in piece.names) * _NAME_TOKENS + (NOTE if piece.note else 0)
        characters = sum(len(line) + 1 for line in piece.lines)
        scale = max(0.05, (piece.weight - of_names) / max(1, characters))  # tokens of a character here
        return [
            _Item(
                piece=number,
                line=place,
                names=tuple(dict.fromkeys(name for name in piece.said[place] if name in self._worth)),
                verbatim=(own + mean) / 2,
                tokens=max(1.0, (len(line) + 1) * scale),
            )
            for place, (line, own, mean) in enumerate(zip(piece.lines, chances, means, strict=True))
        ]

    def _names(self, number: int, piece: PartialResult) -> list[_Item]:
        return [
            _Item(piece=number, line=-1, names=(name,), verbatim=0.0, tokens=1 + len(name) * _NAME_TOKENS)
            for name in _named(piece)
            if name in self._worth and len(name) <= LONGEST
        ]


def _named(piece: PartialResult) -> list[str]:
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
