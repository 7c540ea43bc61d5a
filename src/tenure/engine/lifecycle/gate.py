"""When a plan pays.

Removing `d` tokens (net of residue) before a suffix of `s` tokens spares `r` per token and call from then on, and costs the difference
between writing and reading the suffix once, where the cache was warm; and some of what left is asked for again.
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tenure.engine.view.edit import Price

CALLS_FEWEST: Final = 4
CALLS_MOST: Final = 400
CALLS_YOUNG: Final = 40  # a session of fewer is not assumed to go on: many end before the break has paid
CALLS_ASSUMED: Final = 5.0  # earlier sessions that the assumption "as many again" is worth
MISS_RATE: Final = 0.02  # recalls per object that leaves, until more are seen
RECALL_OUTPUT: Final = 60  # tokens of the call that asks
TRIGGER_SHARE: Final = 0.3  # of the window (Self-GC paper, Table 6: compression threshold)
AT_ONCE_SHARE: Final = 0.3  # expected pruning above which a commit pays at once (same, "Recoverability and Cache-Aware Commit")


class Rule(StrEnum):
    """What a gate goes by."""

    PRICED = "priced"  # the gain, DESIGN.md, Lifecycle
    SELFGC_PAPER = "selfgc-paper"  # the share that leaves: Self-GC paper, Recoverability and Cache-Aware Commit


class Outlook(Struct, frozen=True, kw_only=True, gc=False):
    """What is expected of the time after a commit. Money in USD."""

    calls: float  # still to come
    warm: float  # probability that the prefix is still held, from 0 to 1
    write: float  # per token that is new or changed
    read: float  # per token that stands as it was
    recall: float = 0.0  # per recall


class Round(Struct, frozen=True, kw_only=True, gc=False):
    """Where a conversation stands when a plan is held against a rule."""

    tokens: int  # of the view, in the unit of the plan's
    is_cold: bool = False
    at_boundary: bool = False  # a task ended: a person spoke


def price(outlook: Outlook, *, removed: int, suffix: int, misses: float = 0.0, planning: float = 0.0) -> Price:
    """The gain of a commit: DESIGN.md, Lifecycle. `removed` and `suffix` in provider tokens, `misses` recalls to be expected."""
    o = outlook
    spared = removed * (o.write + o.read * (o.calls - 1))
    broken = o.warm * (o.write - o.read) * (suffix + removed)
    gain = spared - broken - planning - misses * o.recall
    return Price(
        gain_usd=gain,
        d=removed,
        s=suffix,
        n=o.calls,
        p=o.warm,
        w=o.write,
        r=o.read,
        g=planning,
        misses=misses,
        recall=o.recall,
    )


def repriced(old: Price, outlook: Outlook, *, grown: int) -> Price:
    """What a plan that waits is worth by now, `grown` provider tokens later: a first look, in O(1)."""
    return price(outlook, removed=old.d, suffix=old.s + grown, misses=old.misses, planning=old.g)


def pays(rule: Rule, priced: Price, now: Round) -> bool:
    """Whether a plan is committed now. A plan that removes nothing never is."""
    if priced.d <= 0:
        return False
    if rule is Rule.PRICED:
        return priced.gain_usd > 0
    # Of the share that leaves more than AT_ONCE_SHARE is committed at once, less when the cache has expired or a task ends, whichever is first.
    return priced.d / max(now.tokens, priced.d) > AT_ONCE_SHARE or now.is_cold or now.at_boundary


def expected_calls(made: int, earlier: Sequence[int] = ()) -> float:
    """How many calls a session will still make that has made `made`.

    As many again, for want of anything better: what lasts long is likely to last. Of a young session only the fewest are assumed, so that short
    sessions are left alone. `earlier` are the calls of finished sessions, ascending; those that went beyond `made` say how many followed.
    O(log n) and the sessions beyond.
    """
    beyond = earlier[bisect_right(earlier, made) :]
    assumed = min(made, CALLS_MOST) if made >= CALLS_YOUNG else CALLS_FEWEST
    expected = (CALLS_ASSUMED * assumed + sum(beyond) - made * len(beyond)) / (CALLS_ASSUMED + len(beyond))
    return min(max(expected, CALLS_FEWEST), CALLS_MOST)


def miss_rate(recalls: int, removed: int) -> float:
    """How many recalls an object that leaves will cost: what was assumed, or more where this conversation asked for more."""
    return max(MISS_RATE, recalls / removed) if removed else MISS_RATE
