"""Where a value stands on a figure, and which values are named on its axis."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from typing import Final

from msgspec import Struct

_STEPS: Final = (1, 2, 2.5, 3, 5, 10)


class Scale(Struct, frozen=True, kw_only=True):
    """Values from `low` to `high` over pixels from `start` to `stop`; with `by_factor`, equal factors are equally wide."""

    low: float
    high: float
    start: float
    stop: float
    by_factor: bool = False

    def at(self, value: float) -> float:
        """Its place, at the end for what lies beyond."""
        if self.high <= self.low:
            return self.start
        value = min(max(value, self.low), self.high)
        share = (
            log10(value / self.low) / log10(self.high / self.low)
            if self.by_factor
            else (value - self.low) / (self.high - self.low)
        )
        return self.start + share * (self.stop - self.start)


def ticks(high: float, about: int = 4, low: float = 0.0) -> tuple[float, ...]:
    """Round values, 0 among them, that reach from `low`, which is not above 0, to `high` or just beyond."""
    if high <= low:
        return (0.0, 1.0)
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in _STEPS if size * power >= rough * 0.999)
    return tuple(round(n * step, 10) for n in range(floor(low / step + 1e-9), ceil(high / step - 1e-9) + 1))


def factors(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 times powers of ten from below `low`, which is above 0, to above `high`."""
    first = floor(log10(low))
    found = [size * 10.0**power for power in range(first, floor(log10(high)) + 2) for size in (1, 2, 5)]
    start = max(number for number, value in enumerate(found) if value <= low * (1 + 1e-9))
    stop = next(number for number, value in enumerate(found) if value >= high * (1 - 1e-9))
    return tuple(round(value, 10) for value in found[start : max(stop, start + 1) + 1])


def apart(places: Sequence[float], least: float, lowest: float, highest: float) -> list[float]:
    """The places moved as little as it takes to be `least` apart, in the same order; labels are put there."""
    order = sorted(range(len(places)), key=lambda n: (places[n], n))
    moved = [places[n] for n in order]
    for n in range(1, len(moved)):
        moved[n] = max(moved[n], moved[n - 1] + least)
    over = (moved[-1] - highest) if moved else 0.0
    if over > 0:
        moved[-1] = highest
        for n in range(len(moved) - 2, -1, -1):
            moved[n] = min(moved[n], moved[n + 1] - least)
    moved = [max(place, lowest + n * least) for n, place in enumerate(moved)] if moved and moved[0] < lowest else moved
    found = [0.0] * len(places)
    for n, place in zip(order, moved, strict=True):
        found[n] = place
    return found


Told = Callable[[float], str]  # how a value is said
