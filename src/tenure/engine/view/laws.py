"""The laws, as functions from values to violations.

Each returns what is wrong in words, nothing when all is well. Structural laws bind every view; what the record itself holds against them (a
call that was interrupted, a result without a call) is not the view's fault and is mended in the request.
"""

from collections.abc import Iterable, Iterator, Mapping

from tenure.engine.record.entry import Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Commit, Drop, Insert, Remove, Replace, Restore
from tenure.engine.view.guard import Guard, Reason
from tenure.engine.view.project import Row, View
from tenure.engine.view.rules import Rules
from tenure.engine.view.thinking import bond, led_to, reopened, settle


def structural(view: View, index: Index, rules: Rules) -> Iterator[str]:
    """Order, nothing empty, pairing, nothing between a call and its result, reasoning with what it led to, a user first."""
    yield from _order(view)
    yield from _pairing(view, index)
    yield from _units(view, index, rules)
    if rules.first_user:
        yield from _user_first(view, index)


def protection(before: View, after: View, index: Index, guard: Guard, rules: Rules | None = None) -> Iterator[str]:
    """Human text, prologue, tail, holds and the open episode are shown after a commit exactly as they were before it.

    Reasoning is protected only as long as something it led to is shown, and under `prefix_bound` (or without `rules`) signed reasoning not
    even then: an edit before it has made it invalid.
    """
    for (entry, block), why in touched(before, after, index, guard, rules):
        yield f"block {block} of entry {entry} is protected ({why}) and was changed"


def touched(
    before: View, after: View, index: Index, guard: Guard, rules: Rules | None = None
) -> Iterator[tuple[tuple[int, int], Reason]]:
    """The blocks that `protection` holds against a commit, each with what protects it."""
    shown = {row.entry: row for row in after.lines if isinstance(row, Row)}
    for row in before.lines:
        if not isinstance(row, Row):
            continue
        now = shown.get(row.entry)
        if now == row:
            continue
        for block in row.blocks:
            why = guard.why((row.entry, block))
            if why is None or (now is not None and _alike(row, now, block)):
                continue
            if index.block((row.entry, block)).kind == "thinking" and may_go(index, now, (row.entry, block), rules):
                continue
            yield (row.entry, block), why


def never_larger(before: View, after: View, commit: Commit) -> Iterator[str]:
    """A commit does not make a view larger, unless it restores something."""
    if after.tokens > before.tokens and not any(isinstance(edit, Restore) for edit in commit.edits):
        yield f"the view grew from {before.tokens} to {after.tokens} tokens"


def reasoning_is_valid(view: View, index: Index, commits: Iterable[Commit]) -> Iterator[str]:
    """Under `prefix_bound`: no signed reasoning is shown that a commit changed the prefix of."""
    rows = [row for row in view.lines if isinstance(row, Row)]
    places: dict[str, int] = {}  # where inserted entries stand, those that were removed again too
    for commit in commits:
        places |= {edit.key: edit.before_entry for edit in commit.edits if isinstance(edit, Insert)}
        start = min((_first_entry(edit, places) for edit in commit.edits), default=commit.entries)
        for row in rows:
            if start <= row.entry < commit.entries and any(index.block((row.entry, b)).signed for b in row.blocks):
                yield f"entry {row.entry} shows signed reasoning although commit {commit.n} changed what precedes it"


def _order(view: View) -> Iterator[str]:
    last = -1
    for line in view.lines:
        if isinstance(line, Insert):
            if not line.text:
                yield f"inserted entry {line.key!r} is empty"
            if line.before_entry <= last:
                yield f"inserted entry {line.key!r} stands after entry {last}, not before entry {line.before_entry}"
            continue
        if line.entry <= last:
            yield f"entry {line.entry} stands after entry {last}"
        last = line.entry
        if not line.blocks:
            yield f"entry {line.entry} shows nothing"
        if list(line.blocks) != sorted(set(line.blocks)):
            yield f"the blocks of entry {line.entry} are out of order: {line.blocks}"
        for block, shown in line.replaced:
            if not shown.text:
                yield f"block {block} of entry {line.entry} is replaced by nothing"


def _pairing(view: View, index: Index) -> Iterator[str]:
    length = len(index)
    shown = {(line.entry, block) for line in view.lines if isinstance(line, Row) for block in line.blocks}
    waiting: set[int] = set()
    for line in view.lines:
        if isinstance(line, Insert):
            if waiting:
                call = index.spans[min(waiting)]
                yield f"inserted entry {line.key!r} stands between {call.object} and its result"
            continue
        for block in line.blocks:
            facts = index.block((line.entry, block))
            if facts.span == NONE:
                continue
            span = index.spans[facts.span]
            if facts.kind == "tool_result":
                waiting.discard(span.ordinal)
                if span.call not in shown:
                    yield f"entry {line.entry} shows the result of {span.object} without its call"
            elif span.result is not None and span.result[0] < length:
                if not index.is_late(span):
                    waiting.add(span.ordinal)
                if span.result not in shown:
                    yield f"entry {line.entry} shows {span.object} without its result"


def _units(view: View, index: Index, rules: Rules) -> Iterator[str]:
    for line in view.lines:
        if not isinstance(line, Row) or len(line.blocks) == len(index.entries[line.entry].blocks):
            continue
        if index.entries[line.entry].role is not Role.ASSISTANT:
            continue
        every = range(len(index.entries[line.entry].blocks))
        gone = {block for block in every if block not in line.blocks}
        if settle(index, line.entry, tuple(every), gone, bond(index, rules, line.entry)) != gone:
            yield f"entry {line.entry} shows blocks {line.blocks}: reasoning is torn from what it led to"
    if rules.thinking == "open_loop":
        for edit in reopened(index, view.lines):
            yield f"entry {edit.entry} lacks block {edit.block}: reasoning of a loop that a provider sees open"


def _user_first(view: View, index: Index) -> Iterator[str]:
    roles = [line.role if isinstance(line, Insert) else index.entries[line.entry].role for line in view.lines]
    spoken = [role for role in roles if role is not Role.SYSTEM]
    recorded = next((facts.role for facts in index.entries if facts.role is not Role.SYSTEM and facts.blocks), None)
    if spoken and spoken[0] is not Role.USER and recorded is Role.USER:
        yield f"the first message is the {spoken[0]}'s, not the user's"


def _alike(before: Row, after: Row, block: int) -> bool:
    return block in after.blocks and dict(before.replaced).get(block) == dict(after.replaced).get(block)


def may_go(index: Index, now: Row | None, at: tuple[int, int], rules: Rules | None) -> bool:
    """Whether reasoning that is protected leaves all the same: nothing it led to is shown `now`, or an edit before it has made it invalid."""
    if index.block(at).signed and (rules is None or rules.thinking == "prefix_bound"):
        return True
    return now is None or not any(block in now.blocks for block in led_to(index, *at))


def _first_entry(edit: Drop | Replace | Insert | Remove | Restore, places: Mapping[str, int]) -> int:
    match edit:
        case Insert(before_entry=entry):
            return entry
        case Remove(key=key):
            return places[key]
        case _:
            return edit.entry
