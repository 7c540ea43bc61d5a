"""When a plan pays. Promise: nothing costs more than it saves.

Removing `d` tokens (net of residue) before a suffix of `s` tokens spares `r` per token and call from then on, and costs the difference
between writing and reading the suffix once, where the cache was warm.
"""

from typing import Final

from tenure.meter.price import Prices
from tenure.view.edit import Price

CALLS_FEWEST: Final = 4
CALLS_MOST: Final = 400


def price(prices: Prices, *, removed: int, suffix: int, calls: float, warm: float = 1.0, planning: float = 0.0) -> Price:
    """The gain of a commit: DESIGN.md, Lifecycle. `removed` and `suffix` in provider tokens, `calls` still expected, `warm` from 0 to 1."""
    w, r = prices.write, prices.read
    gain = removed * (w + r * (calls - 1)) - warm * (w - r) * (suffix + removed) - planning
    return Price(gain_usd=gain, d=removed, s=suffix, n=calls, p=warm, w=w, r=r, g=planning)


def expected_calls(made: int) -> float:
    """How many calls a session will still make that has made `made`: as many again, within bounds, for want of anything better."""
    return float(min(max(made, CALLS_FEWEST), CALLS_MOST))
