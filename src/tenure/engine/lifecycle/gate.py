"""When a plan pays: the formulas, and their numbers for one session.

Removing `d` tokens (net of residue) before a suffix of `s` tokens spares `r` per token and call from then on, and costs the difference
between writing and reading the suffix once, where the cache was warm; and some of what left is asked for again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import GateRule
from tenure.engine.view.edit import Moment, Price

if TYPE_CHECKING:
    from tenure.engine.lifecycle.fit import Rehearsal
    from tenure.engine.lifecycle.state import SessionState

CALLS_FEWEST: Final = 4
CALLS_MOST: Final = 400
CALLS_YOUNG: Final = 40  # a session of fewer is not assumed to go on: many end before the break has paid
CALLS_ASSUMED: Final = 5.0  # earlier sessions that the assumption "as many again" is worth
MISS_RATE: Final = 0.02  # recalls per object that leaves, until more are seen
RECALL_OUTPUT: Final = 60  # tokens of the call that asks
LOSS_SHARE: Final = 0.01  # of the bill so far,
DOUBT: Final = 0.2  # by which what has to be written again may be more than it is counted, and what left less
RETURN: Final = 3.0  # times what may be lost that a commit is to gain: what may be lost is little, and better kept for more
AT_ONCE_SHARE: Final = (
    0.3  # expected pruning above which a commit pays at once (Self-GC paper, "Recoverability and Cache-Aware Commit")
)


class Outlook(Struct, frozen=True, kw_only=True, gc=False):
    """What is expected of the time after a commit. Money in USD."""

    calls: float  # still to come
    warm: float  # probability that the prefix is still held, from 0 to 1
    write: float  # per token that is new or changed
    read: float  # per token that stands as it was
    recall: float = 0.0  # per recall


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


class Outlay(Struct, frozen=True, kw_only=True, gc=False):
    """What a session has spent so far, as far as prompts go, and what eviction made of that. O200k tokens."""

    sent: int = 0  # of all prompts together
    away: int = 0  # that they would have been larger by, had nothing left
    lost_usd: float = 0.0  # what commits cost, but for what they spared since

    def after_call(self, shown: int, whole: int, beside: int) -> "Outlay":
        """After a call that saw `shown` of `whole` tokens, and `beside` in front of them."""
        return replace(self, sent=self.sent + shown + beside, away=self.away + whole - shown)

    def after_commit(self, price: Price) -> "Outlay":
        """After a commit: the next call, too, spares reading what left."""
        return replace(self, lost_usd=self.lost_usd + price.lost_usd + price.r * price.d)


class Removal(Struct, frozen=True, kw_only=True, gc=False):
    """Something that could leave, in provider tokens."""

    tokens: int  # net of what is left in its place
    behind: int  # from its first block on, itself included: what is sent anew when it is the first to leave


def best_start(
    outlook: Outlook, removals: Iterable[Removal], *, miss: float = MISS_RATE, most_usd: float = inf
) -> tuple[float, int]:
    """The most that may be gained by a part of a plan, and what the first of that part has behind it; nothing gains where that is 0.

    `most_usd` is what the part may lose if the session ends with the next call.

    A commit costs what stands behind its first change, whatever else leaves there: so the best part is what is worth its own recalls from some place
    on. O(n log n).
    """
    o = outlook
    spared = sorted((each.behind, worth, each.tokens) for each in removals if (worth := _worth(o, each, miss)) > 0)
    total, tokens, best = 0.0, 0, (0.0, 0)
    for place, (behind, worth, leaving) in enumerate(spared):
        total, tokens = total + worth, tokens + leaving
        if place + 1 < len(spared) and spared[place + 1][0] == behind:
            continue
        broken = o.warm * (o.write - o.read) * behind
        if (1 + DOUBT) * o.warm * (o.write - o.read) * (behind - tokens) <= most_usd:
            best = max(best, (total - broken, behind))
    return best


def is_worth_it(outlook: Outlook, removal: Removal, *, miss: float = MISS_RATE) -> bool:
    """Whether it gains anything by leaving beside others, be it only for its recalls."""
    return _worth(outlook, removal, miss) > 0


def _worth(o: Outlook, removal: Removal, miss: float) -> float:
    return removal.tokens * (o.write + o.read * (o.calls - 1)) - miss * (o.recall + removal.tokens * o.write)


def pays(rule: GateRule, plan: Price, tokens: int, *, is_cold: bool = False, at_boundary: bool = False) -> bool:
    """Whether a plan is committed now, for a view of so many tokens. A plan that removes nothing never is.

    Of the share that leaves the paper commits more than AT_ONCE_SHARE at once, less when the cache has expired or a task ends, whichever is first.
    """
    if plan.d <= 0:
        return False
    if rule is not GateRule.SELFGC_PAPER:
        return plan.gain_usd > 0
    return plan.d / max(tokens, plan.d) > AT_ONCE_SHARE or is_cold or at_boundary


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


def priced(session: "SessionState", rehearsal: "Rehearsal", at: str, planning_usd: float = 0.0, *, head: int = 0) -> Price:
    """The price of a rehearsed plan; with it `head` o200k tokens in front of the view change."""
    objects, removed = len(rehearsal.actions), session.provider(rehearsal.saved)
    outlook = outlook_of(session, at)
    standing = -head if head else session.view.tokens_before(session.read_until(rehearsal.changed_from))
    return price(
        replace(outlook, recall=outlook.recall + removed / max(1, objects) * outlook.write),
        removed=removed,
        suffix=max(0, session.provider(rehearsal.tokens_after - standing)),
        misses=objects * miss_rate(len(session.index.recalls), session.removed),
        planning=planning_usd,
    )


def first_look(session: "SessionState", old: Price, tokens: int, at: str) -> Price:
    """A price brought up to date without a rehearsal, O(1); `tokens` are the record's when it was made."""
    outlook = replace(outlook_of(session, at), recall=old.recall)
    suffix = old.s + session.provider(session.index.tokens - tokens)
    return price(outlook, removed=old.d, suffix=suffix, misses=old.misses, planning=old.g)


def pays_now(session: "SessionState", plan: Price, total: int, moment: Moment, at: str) -> bool:
    """Whether a plan is committed now, for a view of `total` provider tokens."""
    turns, steps = session.index.turns, session.index.steps
    is_new_turn = bool(turns) and (not steps or turns[-1].start[0] > steps[-1].entry)  # a person spoke since the newest reply
    is_cold = outlook_of(session, at).warm <= 0
    if session.setup.gate is GateRule.BOUNDED and not is_allowed(session, plan, at):
        return False
    return pays(session.setup.gate, plan, total, is_cold=is_cold, at_boundary=moment == "task-boundary" or is_new_turn)


def is_allowed(session: "SessionState", plan: Price, at: str) -> bool:
    """Whether a plan gains much beside what it loses if the session ends with the next call, and may lose that.

    What the next call spares is not set against the break: where much leaves, both are large, and their difference is uncertain.
    """
    at_stake = (1 + DOUBT) * plan.broken_usd + plan.g
    return plan.lost_usd * RETURN <= plan.gain_usd and at_stake <= allowed_usd(session, at)


def allowed_usd(session: "SessionState", at: str) -> float:
    """What a commit may lose if the session ends with the next call: LOSS_SHARE of the bill so far, and what was saved.

    So a session costs at most that share more than it would have cost alone, whenever it ends. The bill is estimated low: output is left out.
    """
    outlook, outlay = outlook_of(session, at), session.outlay
    once = session.provider(session.index.tokens + session.beside) * (outlook.write - outlook.read)
    spared = (1 - DOUBT) * session.provider(outlay.away) * outlook.read - len(session.index.recalls) * outlook.recall
    return LOSS_SHARE * (session.provider(outlay.sent + outlay.away) * outlook.read + once) + spared - outlay.lost_usd


def outlook_of(session: "SessionState", at: str) -> Outlook:
    """What is expected of the time after a commit that is made now; `recall` without what it brings back."""
    prices, warmth = session.setup.prices, session.calls.warmth
    write, read = warmth.rates(prices)
    return Outlook(
        calls=expected_calls(len(session.index.steps), session.setup.calls_seen),
        warm=warmth.chance(session.calls.idle_s(at), prices),
        write=write,
        read=read,
        recall=session.provider(session.view.tokens) * read + RECALL_OUTPUT * prices.output,
    )
