"""Boosted trees as values: what is expected of something, from small whole numbers that describe it.

Learned from recorded sessions by `python bench/learn.py FOLDER`, which needs a library of trees; to ask them takes none.
"""

from collections.abc import Iterator, Sequence
from math import exp
from typing import Final

from msgspec import Struct

Tree = Sequence[
    int
]  # nodes of _NODE numbers: feature, the greatest value that goes left, and where left and right are; a leaf: -1 and its score
_NODE: Final = 4
_LEAF: Final = -1
_SCORE: Final = 1000  # a leaf's score is written as a whole number of thousandths


class Forest(Struct, frozen=True):
    """Trees whose scores add up to a natural logarithm of odds, as text: the nodes of each in order, `feature<value` or a leaf's thousandths."""

    text: str

    def grown(self) -> tuple[Tree, ...]:
        """The trees as they are asked."""
        nodes = iter(self.text.split())
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


class Chances(dict[tuple[int, ...], float]):
    """The chances of things by their features, each kind of thing looked at once. Mutable.

    Many things have their first features in common: what the trees say of those is worked out once for all of them.
    """

    def __init__(self, forest: Forest, common: int = 0) -> None:
        """`common` is how many of the first features many things share."""
        super().__init__()
        self._trees, self._common = forest.grown(), common
        self._given: dict[tuple[int, ...], tuple[int, list[Tree]]] = {}

    def __missing__(self, features: tuple[int, ...]) -> float:
        """Ask all trees."""
        first = features[: self._common]
        given = self._given.get(first)
        if given is None:
            given = self._given[first] = self._restricted(first)
        score, trees = given
        for tree in trees:
            place = 0
            while (feature := tree[place]) >= 0:
                place = tree[place + 2] if features[feature] <= tree[place + 1] else tree[place + 3]
            score += tree[place + 1]
        chance = self[features] = 1.0 / (1.0 + exp(-score / _SCORE))
        return chance

    def _restricted(self, first: tuple[int, ...]) -> tuple[int, list[Tree]]:
        """The trees without the splits that the first features decide; those of one leaf as a score."""
        score, trees = 0, list[Tree]()
        for tree in self._trees:
            left: list[int] = []
            _restrict(tree, 0, first, left)
            if left[0] == _LEAF:
                score += left[1]
            else:
                trees.append(left)
        return score, trees


def _restrict(tree: Tree, place: int, first: tuple[int, ...], into: list[int]) -> None:
    while 0 <= (feature := tree[place]) < len(first):
        place = tree[place + 2] if first[feature] <= tree[place + 1] else tree[place + 3]
    at = len(into)
    into += (feature, tree[place + 1], at + _NODE, 0)
    if feature >= 0:
        _restrict(tree, tree[place + 2], first, into)
        into[at + 3] = len(into)
        _restrict(tree, tree[place + 3], first, into)
