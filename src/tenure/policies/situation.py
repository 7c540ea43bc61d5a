"""What a policy is shown. Promise: nothing is broken."""

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from tenure.record.entry import Origin
from tenure.record.index import NONE, Index
from tenure.rules.rules import Rules
from tenure.view.guard import At, Guard, loop_start
from tenure.view.project import Projection

Count = Callable[[str], int]  # o200k tokens of a text


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """Everything a policy may look at. `view` is read only."""

    index: Index
    view: Projection
    rules: Rules
    guard: Guard
    count: Count
    loop_start: (
        int  # first entry of the open call/result loop: after the newest human text; the record's length when none is open
    )
    free: dict[int, list[At]] = field(default_factory=dict[int, list[At]])  # episode -> shown blocks that may go, in order
    held: dict[int, int] = field(default_factory=dict[int, int])  # episode -> shown blocks that may not go, human text apart
    alive: Set[int] = frozenset()  # episodes of which something is shown: those not fully evicted


def survey(index: Index, view: Projection, rules: Rules, guard: Guard, count: Count) -> Situation:
    """The situation now. One pass over the view, none over the record."""
    free: dict[int, list[At]] = {}
    held: dict[int, int] = {}
    for row in view.rows():
        facts = index.entries[row.entry].blocks
        for block in row.blocks:
            fact = facts[block]
            if fact.episode == NONE or fact.origin is Origin.HUMAN:
                continue
            at = (row.entry, block)
            if _pair_is_free(index, guard, at, fact.span):
                free.setdefault(fact.episode, []).append(at)
            else:
                held[fact.episode] = held.get(fact.episode, 0) + 1
    return Situation(
        index=index,
        view=view,
        rules=rules,
        guard=guard,
        count=count,
        loop_start=loop_start(index),
        free=free,
        held=held,
        alive=free.keys() | held.keys(),
    )


def _pair_is_free(index: Index, guard: Guard, at: At, span: int) -> bool:
    """A call and its result may only go together, so what holds one holds both; a waiting call holds itself."""
    if guard.why(at) is not None:
        return False
    if span == NONE:
        return True
    pair = index.spans[span]
    if pair.result is None:
        return index.entries[pair.call[0]].turn < len(index.turns)  # a human spoke since: it was interrupted
    other = pair.result if at == pair.call else pair.call
    return guard.why(other) is None
