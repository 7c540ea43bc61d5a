"""How sure a counted share is, and whether two that were counted on the same cases differ.

Wilson, "Probable inference, the law of succession, and statistical inference" (1927): the interval that the Self-GC paper reports (Metrics).
McNemar, "Note on the sampling error of the difference between correlated proportions" (1947), in its exact form.
"""

from math import exp, lgamma, log, sqrt
from typing import Final

from msgspec import Struct

Z95: Final = 1.959963984540054  # the normal quantile that leaves 2.5 % on each side


class Interval(Struct, frozen=True, gc=False):
    """Where a share lies with 95 % confidence, from 0 to 1."""

    low: float
    high: float


class Share(Struct, frozen=True, kw_only=True, gc=False):
    """So many of so many. `hits` may hold halves, where a tie counts for both sides."""

    hits: int | float
    of: int

    @property
    def value(self) -> float | None:
        """The share itself; None of nothing."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> Interval:
        """Wilson's, at 95 %."""
        return wilson(self.hits, self.of)


def wilson(hits: float, trials: int) -> Interval:
    """The Wilson score interval of a binomial share at 95 %; of no trials at all everything from 0 to 1.

    It stays within 0 and 1 and has its coverage for few trials too, where the textbook interval has not. Raises ValueError for hits that
    are not among the trials.
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"{hits} hits in {trials} trials, expected from 0 to {trials}")
    if not trials:
        return Interval(0.0, 1.0)
    share = hits / trials
    shrink = 1 + Z95**2 / trials
    middle = (share + Z95**2 / (2 * trials)) / shrink
    half = Z95 / shrink * sqrt(share * (1 - share) / trials + Z95**2 / (4 * trials**2))
    # At the ends the formula gives exactly 0 and 1, which rounding misses by a little.
    return Interval(0.0 if hits == 0 else max(0.0, middle - half), 1.0 if hits == trials else min(1.0, middle + half))


def sign_test(first: int, second: int) -> float:
    """How likely a split at least this uneven is where both sides are equally likely: the exact two-sided p-value.

    Of the cases on which two judgments differ, so many say one thing and so many the other: McNemar's test in its exact form. O(cases).
    Raises ValueError for negative counts.
    """
    if first < 0 or second < 0:
        raise ValueError(f"{first} against {second} cases, expected counts from 0 on")
    trials, fewer = first + second, min(first, second)
    whole = lgamma(trials + 1) - trials * log(2)
    tail = sum(exp(whole - lgamma(n + 1) - lgamma(trials - n + 1)) for n in range(fewer + 1))
    return min(1.0, 2 * tail)
