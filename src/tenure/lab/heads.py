"""How large the head is that a log leaves out: system prompt and tools, of which only the provider's reports tell. Pure.

What a report has more than the log holds is the head, and whatever else the log leaves out. The head stands in every prompt, so the smallest stretch
between two compactions counts: a session that was begun elsewhere reports its history too, until it is compacted.
"""

from collections.abc import Iterable
from itertools import accumulate, groupby
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.ratio import ASSUMED, SMALLEST, is_credible
from tenure.lab.events import Head

FIRST: Final = (
    5  # reports of a stretch that size the head: the first alone may be of a warm-up, or from before the tools were there
)
MOST: Final = 4_000_000  # provider tokens: no model takes more
RATIOS: Final = (0.25, 4.0)  # provider tokens per o200k token that can be: beyond, the reports are no sizes of prompts


class Report(Struct, frozen=True, kw_only=True):
    """A reported prompt beside what the log holds of it."""

    prompt: int  # provider tokens
    counted: int  # o200k tokens
    stretch: int  # compactions and clearings before it
    grown: int = 0  # o200k tokens since the report before; 0 where nothing can be said of that


def middle(heads: Iterable[Head]) -> Head:
    """The head of sessions that run as one: the middle one of those that are known. The ratio of several is not one."""
    known = sorted((head for head in heads if head.reports), key=lambda head: head.tokens)
    if len(known) < 2:
        return known[0] if known else Head()
    return replace(known[(len(known) - 1) // 2], ratio=0.0)


def head_of(reports: Iterable[Report]) -> Head:
    """What the reports of one session reveal. The least of what the first of each stretch leave over, in the middle."""
    true = [report for report in reports if is_credible(report.prompt, report.counted, MOST)]
    ratio = ratio_of(true)
    if not true or not RATIOS[0] <= ratio <= RATIOS[1]:
        return Head()
    stretches = [list(each)[:FIRST] for _, each in groupby(true, key=lambda report: report.stretch)]
    sized = [(median(report.prompt - ratio * report.counted for report in each), len(each)) for each in stretches]
    size, count = min([each for each in sized if each[0] > 0], default=(0.0, sized[0][1]))
    return Head(tokens=round(size / ratio), origin="reported", provider_tokens=round(size), reports=count, ratio=ratio)


def ratio_of(reports: Iterable[Report]) -> float:
    """Provider tokens per o200k token: the middle growth of a prompt from one report to the next, by weight.

    As `tenure.engine.meter.ratio` learns it, but of the whole session at once. Where something left in between, there is no growth.
    """
    growths = [(1.0, ASSUMED)]
    before = 0
    for report in reports:
        gained = report.prompt - before
        if report.grown >= SMALLEST and gained > 0:
            growths.append((gained / report.grown, report.grown))
        before = report.prompt
    growths.sort()
    half = sum(weight for _, weight in growths) / 2
    reached = accumulate(weight for _, weight in growths)
    return next(ratio for (ratio, _), below in zip(growths, reached, strict=True) if below >= half)
