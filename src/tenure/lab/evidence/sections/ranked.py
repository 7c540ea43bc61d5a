"""The order of policies in every table and figure: what knows the future or does nothing, then ours, then the rules of others, best first."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

from tenure.lab.evidence.figures.rows import Cells, Row
from tenure.lab.evidence.origins import order, origin

T = TypeVar("T")


def ranked(
    found: Iterable[T], name: Callable[[T], str], worst: Callable[[T], float], less: Callable[[T], bool] = lambda _: False
) -> list[T]:
    """By group, what did `less` than it was to do in a group after all others, and in each by what is the less the better, then by name."""
    return sorted(found, key=lambda each: (less(each), order(name(each)), worst(each), name(each)))


def as_rows(
    found: Iterable[T], name: Callable[[T], str], cells: Callable[[T], Cells], less: Callable[[T], bool] = lambda _: False
) -> list[Row]:
    """Rows of a figure, a gap between the groups; `found` is ranked likewise."""
    return list(_as_rows(found, name, cells, less))


def _as_rows(
    found: Iterable[T], name: Callable[[T], str], cells: Callable[[T], Cells], less: Callable[[T], bool]
) -> Iterator[Row]:
    groups = groupby(found, lambda each: (less(each), order(name(each))))
    for number, (_, members) in enumerate(groups):
        for place, each in enumerate(members):
            yield Row(
                name=name(each),
                whose=origin(name(each)).whose,
                cells=cells(each),
                less=less(each),
                apart=bool(number) and place == 0,
            )
