"""A bill's parts, as every figure and table of bills shows them."""

from collections.abc import Callable
from typing import Final

from tenure.lab.events import Bill, Measured
from tenure.lab.evidence.figures.canvas import Ink
from tenure.lab.evidence.figures.rows import Bar

# In the order in which a bar shows them.
PARTS: Final[tuple[tuple[Ink, str, Callable[[Bill], float]], ...]] = (
    ("read", "cache read", lambda bill: bill.cache_read.usd),
    ("write", "write", lambda bill: bill.cache_write.usd),
    ("uncached", "uncached", lambda bill: bill.uncached.usd),
    ("output", "output", lambda bill: bill.output.usd),
    ("recall", "recalls", lambda bill: bill.recall.usd),
    ("helpers", "helpers", lambda bill: bill.helpers_usd),
)


# What is missed, likewise.
HARMS: Final[tuple[tuple[Ink, str], ...]] = (("routed", "one recall away"), ("lost", "lost"))


def parts_of(bills: tuple[Bill, ...]) -> tuple[tuple[Ink, str, Callable[[Bill], float]], ...]:
    """The parts that any of the bills has."""
    return tuple(part for part in PARTS if any(part[2](bill) for bill in bills))


def as_bar(bill: Bill, parts: tuple[tuple[Ink, str, Callable[[Bill], float]], ...]) -> Bar:
    """A bill as a bar of them, in USD."""
    return Bar(tuple(of(bill) for _, _, of in parts))


def overruns(found: Measured) -> bool:
    """Whether a ceiling was not kept at a quarter of the calls or more: then a bill and misses are of another budget."""
    return found.unmet * 4 >= found.calls > 0


def per_hundred(count: int, found: Measured) -> float:
    """For each 100 calls."""
    return 100 * count / found.calls if found.calls else 0.0


def missed(found: Measured) -> float:
    """Needs missed for each 100 calls."""
    return per_hundred(found.misses.missed, found)
