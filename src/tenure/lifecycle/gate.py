"""When a plan pays. Promise: nothing costs more than it saves.

Removing `d` tokens (net of residue) before a suffix of `s` tokens spares `r` per token and call from then on, and costs the difference
between writing and reading the suffix once, where the cache was warm.
"""

from typing import Final

from msgspec import Struct

from tenure.view.edit import Price

CALLS_FEWEST: Final = 4
CALLS_MOST: Final = 400


class Rates(Struct, frozen=True, kw_only=True, gc=False):
    """What a provider charges, USD per token; `ttl_s` is how long a prefix stays cached."""

    uncached: float = 3e-6
    write: float = 3.75e-6
    read: float = 3e-7
    output: float = 1.5e-5
    ttl_s: int = 300
    min_cache: int = 1024


def price(rates: Rates, *, removed: int, suffix: int, calls: float, warm: float = 1.0, planning: float = 0.0) -> Price:
    """The gain of a commit: DESIGN.md, Lifecycle. `removed` and `suffix` in provider tokens, `calls` still expected, `warm` from 0 to 1."""
    w, r = rates.write, rates.read
    gain = removed * (w + r * (calls - 1)) - warm * (w - r) * (suffix + removed) - planning
    return Price(gain_usd=gain, d=removed, s=suffix, n=calls, p=warm, w=w, r=r, g=planning)


def expected_calls(made: int) -> float:
    """How many calls a session will still make that has made `made`: as many again, within bounds, for want of anything better."""
    return float(min(max(made, CALLS_FEWEST), CALLS_MOST))
