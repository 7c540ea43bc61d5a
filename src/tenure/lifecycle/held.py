"""What holds the space of a view whose limit cannot be kept: every token counts under what really holds it."""

from collections.abc import Collection, Mapping
from typing import Final

from tenure.policies.situation import Situation
from tenure.record.index import NONE
from tenure.view.guard import At, Reason
from tenure.view.project import Row
from tenure.view.thinking import bond, settle

_BY_REASON: Final[Mapping[Reason, str]] = {
    "human": "human_text",
    "prologue": "prologue",
    "pin": "pins",
    "hold": "holds",
    "notes": "notes",
    "recall": "recalls",
    "tail": "tail",
    "episode": "episode",
}
OPEN_CALL: Final = "open_calls"  # a call that may still be answered
REASONING: Final = "reasoning"  # that no provider takes apart from what it led to
POLICY: Final = "policy_protection"  # what the policy leaves alone by its own rule
NO_POLICY: Final = "lack_of_policy"
DEFERRED: Final = "small_savings"  # what could leave, but would break the cache for next to nothing
HOLDERS: Final = (*_BY_REASON.values(), OPEN_CALL, REASONING, POLICY, NO_POLICY, DEFERRED, "head", "residues")


def held_by(situation: Situation, *, head: int, has_policy: bool, deferred: int) -> dict[str, int]:
    """O200k tokens by holder, in the order of `HOLDERS`; they add up to view and head. One pass over the view.

    `deferred` are tokens that the policy offered and that were not worth a commit.
    """
    held = dict.fromkeys(HOLDERS, 0)
    view = situation.view
    rest = POLICY if has_policy else NO_POLICY
    for row in view.rows():
        bound = _bound(situation, row)
        for block in row.blocks:
            held[_holder(situation, (row.entry, block), bound) or rest] += view.weight(row.entry, block)
    waiting = min(deferred, held[POLICY])
    held[POLICY] -= waiting
    held[DEFERRED] += waiting
    held["head"] = head
    held["residues"] = sum(insert.tokens for insert in view.inserts)
    return held


def _holder(situation: Situation, at: At, bound: Collection[int]) -> str | None:
    """What keeps a block from leaving; None when nothing but the policy does."""
    guard, index = situation.guard, situation.index
    if (why := guard.why(at)) is not None:
        return _BY_REASON[why]
    if situation.is_free(at):
        return REASONING if at[1] in bound else None
    pair = index.block(at).span
    if pair == NONE:
        return _BY_REASON["prologue"]
    span = index.spans[pair]
    why = guard.why(span.call) if span.result is None else guard.why(span.call) or guard.why(span.result)
    return OPEN_CALL if why is None else _BY_REASON[why]


def _bound(situation: Situation, row: Row) -> frozenset[int]:
    """The blocks of an entry that may leave by themselves and cannot without others that may not."""
    free = {block for block in row.blocks if situation.is_free((row.entry, block))}
    if len(free) in (0, len(row.blocks)):
        return frozenset()
    tie = bond(situation.index, situation.rules, situation.loop_start, row.entry)
    return frozenset(free - settle(situation.index, row.entry, row.blocks, free, tie))
