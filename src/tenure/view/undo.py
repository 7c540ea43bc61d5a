"""Undoing a commit with another one. Promise: nothing is lost, and the log is only appended to."""

from collections.abc import Sequence

from tenure.errors import InputError
from tenure.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.view.project import Projection, Weights


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
