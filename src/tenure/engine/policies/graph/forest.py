"""Boosted trees as values: what is expected of something, from small whole numbers that describe it.

Learned from recorded sessions by `python bench/learn.py FOLDER`, which needs a library of trees; to ask them takes none.
"""

from collections.abc import Iterator
from math import exp
from typing import Final

from msgspec import Struct

Tree = tuple[int, int, "Tree", "Tree"] | float  # feature, the greatest value that goes left, left, right; or the score of a leaf
_LEAF: Final = 1000  # a leaf's score is written as a whole number of thousandths


class Forest(Struct, frozen=True):
    """Trees whose scores add up to a natural logarithm of odds, as text: the nodes of each in order, `feature<value` or a leaf's thousandths."""

    text: str

    def grown(self) -> tuple[Tree, ...]:
        """The trees as they are asked."""
        nodes = iter(self.text.split())
        return tuple(_tree(node, nodes) for node in nodes)


def _tree(node: str, nodes: Iterator[str]) -> Tree:
    feature, is_split, value = node.partition("<")
    if not is_split:
        return int(node) / _LEAF
    return int(feature), int(value), _tree(next(nodes), nodes), _tree(next(nodes), nodes)


class Chances(dict[tuple[int, ...], float]):
    """The chances of things by their features, each kind of thing looked at once. Mutable."""

    def __init__(self, forest: Forest) -> None:
        super().__init__()
        self._trees = forest.grown()

    def __missing__(self, features: tuple[int, ...]) -> float:
        """Ask all trees."""
        score = 0.0
        for tree in self._trees:
            node = tree
            while isinstance(node, tuple):
                feature, value, left, right = node
                node = left if features[feature] <= value else right
            score += node
        chance = self[features] = 1.0 / (1.0 + exp(-score))
        return chance
