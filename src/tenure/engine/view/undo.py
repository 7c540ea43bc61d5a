"""Undoing a commit with another one."""

from collections.abc import Iterable, Iterator, Sequence

from tenure.engine.record.entry import Role
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.engine.view.project import Projection, Row, Weights, changed_from
from tenure.engine.view.rules import Rules
from tenure.engine.view.thinking import bond, invalidated, settle
from tenure.errors import InputError

At = tuple[int, int]  # (entry, block)


def undo(commits: Sequence[Commit], number: int, length: int, weights: Weights) -> tuple[Edit, ...]:
    """The edits that put everything commit `number` touched back to its state before it, which may be a clipped one.

    `length` is the record's present length. What a later commit removed that this one inserted stays removed. Raises InputError
    for a commit that does not exist.
    """
    if not 0 <= number < len(commits):
        raise InputError(
            "undo", f"commit {number}", f"one of 0 to {len(commits) - 1}" if commits else "a commit, of which there are none"
        )
    before = _state(commits[:number], commits[number].entries, weights)
    now = _state(commits, length, weights)
    edits: list[Edit] = []
    for place in dict.fromkeys(_touched(commits[number])):
        edits += _back(place, before, now)
    for edit in commits[number].edits:
        if isinstance(edit, Insert) and now.insert(edit.key):
            edits.append(Remove(key=edit.key))
        if isinstance(edit, Remove) and (gone := before.insert(edit.key)):
            edits.append(_again(gone, len(commits)))
    return tuple(edits)


def restored(places: Iterable[At], view: Projection) -> tuple[Edit, ...]:
    """The edits that show blocks as the record has them: those that left, and those that something stands for."""
    found: list[Edit] = []
    for entry, block in places:
        row = view.row(entry)
        if row is None or not row.shows(block) or row.instead(block) is not None:
            found.append(Restore(entry=entry, block=block))
    return tuple(found)


def lawful(edits: Sequence[Edit], view: Projection, index: Index, rules: Rules, loop_start: int) -> tuple[Edit, ...]:
    """Edits that bring something back, and what has to come or go with it so that the view stays valid.

    A call comes with its result, reasoning only with what it led to, and under `prefix_bound` no later signed reasoning stays.
    """
    after = view.copy()
    after.apply(edits)
    done = [*edits]

    def also(more: Iterable[Edit]) -> None:
        chosen = list(more)
        after.apply(chosen)
        done.extend(chosen)

    touched = dict.fromkeys(edit.entry for edit in edits if isinstance(edit, Drop | Restore))
    for entry in list(touched):
        for partner in _partners(index, after, entry):
            touched[partner[0]] = None
            also([Restore(entry=partner[0], block=partner[1])])
    for entry in touched:
        if row := after.row(entry):
            also(_settled(index, rules, loop_start, row))
    if rules.thinking == "prefix_bound" and done:
        also(invalidated(index, after, changed_from(view, done)))
    return tuple(done)


def _partners(index: Index, view: Projection, entry: int) -> Iterator[At]:
    """The calls and results of which an entry shows the other half."""
    row = view.row(entry)
    for block in row.blocks if row else ():
        facts = index.block((entry, block))
        if facts.span != NONE:
            span = index.spans[facts.span]
            yield from (at for at in (span.call, span.result) if at is not None and not view.shows(*at))


def _settled(index: Index, rules: Rules, loop_start: int, row: Row) -> Iterator[Edit]:
    """What makes an entry whole again where reasoning was torn from what it led to: it comes back if it may, else it goes."""
    facts = index.entries[row.entry].blocks
    if index.entries[row.entry].role is not Role.ASSISTANT or row.whole:
        return
    every = range(len(facts))
    gone = {number for number in every if number not in row.blocks}
    settled = settle(index, row.entry, every, gone, bond(index, rules, loop_start, row.entry))
    yield from (Restore(entry=row.entry, block=number) for number in sorted(gone - settled))
    yield from (Drop(entry=row.entry, block=number) for number in sorted(settled - gone))


def _state(commits: Sequence[Commit], length: int, weights: Weights) -> Projection:
    state = Projection(weights)
    for commit in commits:
        while state.length < commit.entries:
            state.grow(state.length)
        state.apply(commit.edits)
    while state.length < length:
        state.grow(state.length)
    return state


def _touched(commit: Commit) -> list[tuple[int, int]]:
    return [(edit.entry, edit.block) for edit in commit.edits if isinstance(edit, Drop | Replace | Restore)]


def _back(place: tuple[int, int], before: Projection, now: Projection) -> list[Edit]:
    entry, block = place
    row, present = before.row(entry), now.row(entry)
    was = dict(row.replaced).get(block) if row else None
    is_ = dict(present.replaced).get(block) if present else None
    if not before.shows(entry, block):
        return [Drop(entry=entry, block=block)] if now.shows(entry, block) else []
    if now.shows(entry, block) and was == is_:
        return []
    back: list[Edit] = [Restore(entry=entry, block=block)]
    if was is not None:
        back.append(Replace(entry=entry, block=block, text=was.text, tokens=was.tokens, routes=was.routes))
    return back


def _again(insert: Insert, commit: int) -> Insert:
    """The same inserted entry under a new key: keys are never used twice."""
    return Insert(
        before_entry=insert.before_entry,
        order=insert.order,
        key=f"{insert.key}~{commit}",
        role=insert.role,
        text=insert.text,
        tokens=insert.tokens,
        kind=insert.kind,
        call_id=insert.call_id,
        name=insert.name,
        routes=insert.routes,
    )
