"""Boosted trees as values: what is expected of something, from small whole numbers that describe it.

The first features of a thing are shared by many (the lines of a text); each tree asks any of those and at most one of the rest. So for a set of shared
features all trees together are a table for each of the others, and a thing is looked up, not walked through trees.
Learned from recorded sessions by `python bench/learn.py FOLDER`, which needs a library of trees; to ask them takes none.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import exp
from typing import Final, NamedTuple

from msgspec import Struct

Tree = Sequence[
    int
]  # nodes of _NODE numbers: feature, the greatest value that goes left, and where left and right are; a leaf: -1 and its score
_NODE: Final = 4
_LEAF: Final = -1
_SCORE: Final = 1000  # a leaf's score is written as a whole number of thousandths
VALUES: Final = 18  # of a feature that is looked up: 0 and up


class Tables(NamedTuple):
    """What all trees say of things that share their first features: the same for all, and more by the value of each other feature."""

    score: int
    rows: tuple[tuple[int, ...], ...]

    def chances(self, columns: Sequence[Iterable[int]]) -> list[float]:
        """Of each thing, whose features that are not shared stand at its place in the columns."""
        start = -self.score
        scores = [
            start - sum(each)
            for each in zip(*[map(row.__getitem__, column) for row, column in zip(self.rows, columns, strict=True)], strict=True)
        ]
        return [1.0 / (1.0 + exp(score / _SCORE)) for score in scores]


class Forest(Struct, frozen=True):
    """Trees whose scores add up to a natural logarithm of odds, as text: the nodes of each in order, `feature<value` or a leaf's thousandths."""

    text: str

    def tables(self, shared: tuple[int, ...], others: int) -> Tables:
        """The trees for things whose first features are `shared` and that have so many others."""
        return _tables(self.text, shared, others)


@lru_cache(maxsize=16)
def _grown(text: str) -> tuple[Tree, ...]:
    nodes = iter(text.split())
    trees: list[Tree] = []
    for first in nodes:
        tree: list[int] = []
        _grow(tree, first, nodes)
        trees.append(tree)
    return tuple(trees)


def _grow(tree: list[int], node: str, nodes: Iterator[str]) -> None:
    feature, is_split, value = node.partition("<")
    if not is_split:
        tree += (_LEAF, int(node), 0, 0)
        return
    place = len(tree)
    tree += (int(feature), int(value), place + _NODE, 0)
    _grow(tree, next(nodes), nodes)
    tree[place + 3] = len(tree)
    _grow(tree, next(nodes), nodes)


@lru_cache(maxsize=4096)
def _tables(text: str, shared: tuple[int, ...], others: int) -> Tables:
    count = len(shared)
    score = 0
    steps = [[0] * (VALUES + 1) for _ in range(others)]  # by how much a score rises at a value
    for tree in _grown(text):
        waiting = [(0, _LEAF, 0, VALUES)]  # node, the feature that was asked, and which of its values come here
        while waiting:
            place, asked, first, stop = waiting.pop()
            while 0 <= (feature := tree[place]) < count:
                place = tree[place + 2] if shared[feature] <= tree[place + 1] else tree[place + 3]
            if feature >= 0:
                assert asked in (_LEAF, feature), "a tree that asks two features that are not shared is no table"
                middle = min(stop, max(first, tree[place + 1] + 1))
                waiting += ((tree[place + 2], feature, first, middle), (tree[place + 3], feature, middle, stop))
            elif asked == _LEAF:
                score += tree[place + 1]
            else:
                row = steps[asked - count]
                row[first] += tree[place + 1]
                row[stop] -= tree[place + 1]
    return Tables(score, tuple(tuple(accumulate(row[:VALUES])) for row in steps))
