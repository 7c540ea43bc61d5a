"""What holds the space of a view whose limit cannot be kept: every token counts under what really holds it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from tenure.engine.lifecycle.state import SessionState
from tenure.engine.policies.situation import Situation, survey
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Reason
from tenure.engine.view.project import Row
from tenure.engine.view.rules import Rules
from tenure.engine.view.thinking import droppable

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
RESIDUES: Final = "residues"
HOLDERS: Final = (*_BY_REASON.values(), OPEN_CALL, REASONING, POLICY, NO_POLICY, DEFERRED, "head", RESIDUES)


class Holders:
    """Tokens of a session's view by what holds them. Mutable: rows whose holder cannot change before the next commit are summed up once.

    A holder changes as the record grows only near its end: in the tail, in the open episode, among fresh recalls, of a call whose result is
    still to come, and of reasoning in the open loop.
    """

    def __init__(self, state: SessionState, *, after: Commit | None = None) -> None:
        """`after` is a commit that is not taken in yet: of the view that it would make, not of the present one."""
        self._state, self._after = state, None
        if after is not None:
            self._after = state.view.copy()
            self._after.apply(after.edits)
        self._forget()

    def _forget(self) -> None:
        self._key: object = None
        self._until = 0  # rows of older entries are settled, but for those in `_loose`
        self._settled: Counter[str] = Counter()
        self._rows: dict[int, dict[str, int]] = {}  # what of it is of each entry
        self._loose: list[int] = []
        self._unanswered: set[int] = set()  # settled calls without a result

    def look_again(self, entries: Iterable[int]) -> None:
        """Of these entries more is held than was."""
        for entry in entries:
            if (settled := self._rows.pop(entry, None)) is not None:
                self._settled.subtract(settled)
                self._loose.append(entry)

    def weigh(self) -> dict[str, int]:
        """O200k tokens by holder, in the order of `HOLDERS`; they add up to the view. O(rows that are not settled)."""
        state, view = self._state, self._state.view if self._after is None else self._after
        guard, index, rules = state.guard(), state.index, state.setup.rules
        key = state.rewrites, guard.standing
        if key != self._key or guard.settled_until < self._until:
            self._forget()
        older = [row for row in map(view.row, self._loose) if row is not None]
        rows = [*older, *reversed([*view.rows_from(self._until)])]
        if self._unanswered and any(index.block((row.entry, n)).span in self._unanswered for row in rows for n in row.blocks):
            self._forget()  # a late result
            rows = list(view.rows())
        self._key, self._until, self._loose = key, guard.settled_until, []
        situation = survey(index, view, rules, guard, state.count, rows=rows)
        held = dict.fromkeys(HOLDERS, 0)
        for row in rows:
            settled = row.entry < self._until and not self._is_loose(index, rules, row)
            into = dict[str, int]() if settled else held
            if row.entry < self._until and not settled:
                self._loose.append(row.entry)
            bound = _bound(situation, row)
            for block in row.blocks:
                holder = _holder(situation, (row.entry, block), bound) or POLICY
                into[holder] = into.get(holder, 0) + view.weight(row.entry, block)
            if settled:
                self._rows[row.entry] = into
                self._settled.update(into)
        for holder, tokens in self._settled.items():
            held[holder] += tokens
        held[RESIDUES] = sum(insert.tokens for insert in view.inserts)
        return held

    def _is_loose(self, index: Index, rules: Rules, row: Row) -> bool:
        """Whether what holds a row may still change; a call that will get no result is remembered, in case one comes all the same."""
        in_loop = rules.thinking == "open_loop" and row.entry >= index.loop_start
        for facts in (index.entries[row.entry].blocks[block] for block in row.blocks):
            if in_loop and facts.kind == "thinking":
                return True
            if facts.span == NONE:
                continue
            span = index.spans[facts.span]
            if span.result is None and index.entries[row.entry].turn < len(index.turns):
                self._unanswered.add(facts.span)
            elif span.result is None or max(span.call, span.result)[0] >= self._until:
                return True
        return False


def free_of(held: Mapping[str, int]) -> int:
    """The tokens that nothing but the policy's own rule keeps."""
    return held[POLICY] + held[REASONING] + held[OPEN_CALL]


def parts(held: Mapping[str, int], *, head: int, has_policy: bool, deferred: int) -> dict[str, int]:
    """The tokens of view and head by holder. `deferred` are tokens that the policy offered and that were not worth a commit."""
    free = held[POLICY]
    waiting = min(deferred, free)
    kept = {POLICY: free - waiting, DEFERRED: waiting} if has_policy else {POLICY: 0, NO_POLICY: free}
    return {**held, **kept, "head": head}


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
    return frozenset(free.difference(droppable(situation.index, situation.rules, row, sorted(free))))
