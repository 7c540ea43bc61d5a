"""Which commits a fork takes over. Promise: nothing is broken, and a fork's view of the shared entries is the one its source had.

A commit is inherited exactly when every edit of it touches only entries below the fork point; an insert before the first entry of
the fork's own touches nothing else. What removes an inserted entry needs the commit that inserted it.
"""

from collections.abc import Iterable, Set
from typing import assert_never

from msgspec.structs import replace

from tenure.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore


def inherited(commits: Iterable[Commit], at: int) -> tuple[Commit, ...]:
    """The commits of a source that a fork sharing its entries below `at` starts with, numbered anew from 0, in order.

    A commit that was made later than the fork point counts as made there: its `entries` is at most `at`.
    """
    kept: list[Commit] = []
    keys: set[str] = set()
    for commit in commits:
        inserted = {edit.key for edit in commit.edits if isinstance(edit, Insert)}
        if all(_is_shared(edit, at, keys | inserted) for edit in commit.edits):
            keys |= inserted
            kept.append(replace(commit, n=len(kept), entries=min(commit.entries, at)))
    return tuple(kept)


def _is_shared(edit: Edit, at: int, keys: Set[str]) -> bool:
    match edit:
        case Drop(entry=entry) | Replace(entry=entry) | Restore(entry=entry):
            return entry < at
        case Insert(before_entry=before):
            return before <= at
        case Remove(key=key):
            return key in keys
        case _:
            assert_never(edit)
