"""What a session's plans are worth: the gate's formulas on the numbers of one session."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.fit import Rehearsal
from tenure.engine.lifecycle.gate import RECALL_OUTPUT, Outlook, Round, expected_calls, miss_rate, pays, price, repriced
from tenure.engine.policies.policy import Planned
from tenure.engine.view.edit import Moment, Price

if TYPE_CHECKING:
    from tenure.engine.lifecycle.session import Session


class Waiting(Struct, frozen=True, kw_only=True):
    """A plan that was made elsewhere and waits for its time."""

    policy: Planned
    reason: str
    price: Price
    tokens: int  # of the record when it was priced
    turns: int  # when it was made


def priced(session: "Session", rehearsal: Rehearsal, at: str, planning_usd: float = 0.0) -> Price:
    """The price of a rehearsed plan."""
    objects, removed = len(rehearsal.actions), session.provider(rehearsal.saved)
    outlook = _outlook(session, at)
    asking = session.provider(session.view.tokens) * outlook.read + RECALL_OUTPUT * session.setup.prices.output
    return price(
        replace(outlook, recall=asking + removed / max(1, objects) * outlook.write),
        removed=removed,
        suffix=max(0, session.provider(rehearsal.tokens_after - session.view.tokens_before(rehearsal.changed_from))),
        misses=objects * miss_rate(len(session.index.recalls), session.removed),
        planning=planning_usd,
    )


def first_look(session: "Session", old: Price, tokens: int, at: str) -> Price:
    """A price brought up to date without a rehearsal, O(1); `tokens` are the record's when it was made."""
    outlook = replace(_outlook(session, at), recall=old.recall)
    return repriced(old, outlook, grown=session.provider(session.index.tokens - tokens))


def pays_now(session: "Session", plan: Price, total: int, moment: Moment, at: str) -> bool:
    """Whether the gate commits a plan for a view of `total` provider tokens now."""
    turns, steps = session.index.turns, session.index.steps
    is_new_turn = bool(turns) and (not steps or turns[-1].start[0] > steps[-1].entry)  # a person spoke since the newest reply
    cold = session.calls.warmth.chance(session.calls.idle_s(at), session.setup.prices) <= 0
    now = Round(tokens=total, is_cold=cold, at_boundary=moment == "task-boundary" or is_new_turn)
    return pays(session.setup.gate, plan, now)


def _outlook(session: "Session", at: str) -> Outlook:
    prices, warmth = session.setup.prices, session.calls.warmth
    write, read = warmth.rates(prices)
    return Outlook(
        calls=expected_calls(len(session.index.steps), session.setup.calls_seen),
        warm=warmth.chance(session.calls.idle_s(at), prices),
        write=write,
        read=read,
    )
