"""How likely something is to be asked for again: two logistic models, learned from recorded sessions.

`python bench/learn.py FOLDER` learns them and prints this table, and says how they do on sources that were left out.
"""

from collections.abc import Sequence
from math import exp
from operator import mul
from typing import Final

from msgspec import Struct


class Weights(Struct, frozen=True, kw_only=True):
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


LEARNED: Final = Weights(
    anchor=(0.228, -0.301, 0.802, 1.329, -0.134, -0.321, -1.431, 0.998, -0.126, -0.523, -1.119),
    anchor_bias=-6.669,
    line=(0.868, -0.468, -0.17, -0.759, -5.596, -0.176, 1.045, -0.217, 3.254, -0.38, -1.485, -0.401, -0.18, 0.731, 0.295),
    line_bias=-5.188,
)
