"""N runs as one figure: mean and spread, and shares with their intervals. Pure."""

from collections.abc import Iterable
from math import sqrt

from msgspec import Struct

from tenure.lab.intervals import wilson


class Spread(Struct, frozen=True, kw_only=True, gc=False):
    """A figure over runs. `sd` is the sample's standard deviation (n - 1); None of fewer than two."""

    n: int
    mean: float
    sd: float | None
    low: float
    high: float


class Rate(Struct, frozen=True, kw_only=True, gc=False):
    """So many of so many, with Wilson's interval at 95 %; `value` None of nothing."""

    hits: int
    of: int
    value: float | None
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread | None:
    """Mean and spread; None of no values."""
    found = list(values)
    if not found:
        return None
    mean = sum(found) / len(found)
    sd = sqrt(sum((each - mean) ** 2 for each in found) / (len(found) - 1)) if len(found) > 1 else None
    return Spread(n=len(found), mean=mean, sd=sd, low=min(found), high=max(found))


def rate(hits: int, of: int) -> Rate:
    """A share. Raises ValueError for hits that are not among them."""
    interval = wilson(hits, of)
    return Rate(hits=hits, of=of, value=hits / of if of else None, low=interval.low, high=interval.high)
