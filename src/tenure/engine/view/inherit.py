"""Which commits a fork takes over: a prefix of its source's, so that its log means what it meant there.

A commit made when the record was no longer than the fork belongs to the view that the source had then, and is always taken over; so do the clips
of shared entries that were appended together with later ones. Of the commits made later the longest prefix is taken over that touches only
shared entries and gives a lawful view: valid, with what a fork at this place protects as it was, and with nothing hidden that the source has
shown again since.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.record.entry import At
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.engine.view.guard import governed_guard
from tenure.engine.view.laws import protection, reasoning_is_valid, structural
from tenure.engine.view.project import Projection, Shown, Weights, projection_of
from tenure.engine.view.rules import Rules


class Shared(Struct, frozen=True, kw_only=True):
    """What a fork has in common with its source: the record up to the fork, and what its views are held to."""

    index: Index
    rules: Rules
    limit: int  # o200k tokens of its budget


def inherited(commits: Sequence[Commit], at: int, shared: Callable[[], Shared]) -> tuple[Commit, ...]:
    """The commits of a source that a fork sharing its entries below `at` starts with, by the numbers they have there.

    One that was made later counts as made at the fork: its `entries` is at most `at`. `shared` is called only when there are later commits to
    judge, which there are not when a fork is made at the end. Raises LawBroken for commits that do not follow each other.
    """
    earlier = (*takewhile(lambda commit: commit.entries <= at, commits),)
    keys = {edit.key for each in earlier for edit in each.edits if isinstance(edit, Insert)}
    earlier += (*takewhile(lambda clips: clips.edits, map(partial(_clips, at=at), commits[len(earlier) :])),)
    later = (*_later(commits[len(earlier) :], at, keys),)
    return earlier + _lawful(earlier, later, commits, at, shared()) if later else earlier


def _clips(commit: Commit, at: int) -> Commit:
    """Of a later commit the clips of shared entries; no edits for another commit."""
    edits = tuple(_shared(commit.edits, at, set())) if commit.moment == "admission" else ()
    return replace(commit, entries=at, edits=edits)


def _later(commits: Sequence[Commit], at: int, keys: set[str]) -> Iterator[Commit]:
    """The commits up to the first that touches more than is shared. `keys` are of entries that were inserted before."""
    for commit in commits:
        edits = tuple(_shared(commit.edits, at, keys))
        if len(edits) < len(commit.edits):
            return
        yield replace(commit, entries=at)


def _lawful(
    earlier: Sequence[Commit], later: Sequence[Commit], commits: Sequence[Commit], at: int, shared: Shared
) -> tuple[Commit, ...]:
    """The longest prefix of the later commits after which the view is lawful."""
    index, view = shared.index, projection_of(shared.index, at, earlier)
    before, guard = view.freeze(), governed_guard(index, view, shared.limit)
    today = projection_of(index, at, [_cut(commit, at) for commit in commits])  # of the shared entries, in the source
    inherited_view = 0
    for number, commit in enumerate(later, start=1):
        view.apply(commit.edits)
        frozen = view.freeze()
        wrong = (
            *structural(frozen, index, shared.rules),
            *protection(before, frozen, index, guard, shared.rules),
            *(reasoning_is_valid(frozen, index, (*earlier, *later[:number])) if shared.rules.thinking == "prefix_bound" else ()),
        )
        if not wrong and not _hides(view, today):
            inherited_view = number
    return tuple(later[:inherited_view])


def _hides(view: Projection, today: Projection) -> bool:
    """Whether a block is not shown whole that the source shows whole."""
    return any(
        today.instead(row.entry, block) is None
        and (not view.shows(row.entry, block) or view.instead(row.entry, block) is not None)
        for row in today.rows()
        if (mine := view.row(row.entry)) is None or not mine.whole
        for block in row.blocks
    )


def _cut(commit: Commit, at: int) -> Commit:
    """What a commit did to the entries below `at`; inserted entries aside, which no question is about."""
    edits = tuple(edit for edit in commit.edits if not isinstance(edit, Insert | Remove) and edit.entry < at)
    return replace(commit, entries=min(commit.entries, at), edits=edits)


def _shared(edits: Sequence[Edit], at: int, keys: set[str]) -> Iterator[Edit]:
    """The edits that touch only entries below `at`; an insert before the first entry of the fork's own touches nothing else."""
    for edit in edits:
        match edit:
            case Drop(entry=entry) | Replace(entry=entry) | Restore(entry=entry):
                if entry < at:
                    yield edit
            case Insert(before_entry=before, key=key):
                if before <= at:
                    keys.add(key)
                    yield edit
            case Remove(key=key):
                if key in keys:
                    yield edit
            case _:
                assert_never(edit)


class InheritedView(Struct, frozen=True, kw_only=True):
    """A view, and beside it what stood there before briefs did."""

    view: Projection
    before: Mapping[
        At, Shown | None
    ]  # of blocks that a brief or a compaction took: what stood in their place; None: they stood as they were

    def shows(self, at: At) -> bool:
        """Whether a block is shown, or was until a brief took it."""
        return self.view.shows(*at) or at in self.before

    def instead(self, at: At) -> Shown | None:
        """What stands in a block's place."""
        return self.view.instead(*at) if self.view.shows(*at) else self.before.get(at)


def inherited_view(weights: Weights, length: int, commits: Sequence[Commit], is_brief: Callable[[Insert], bool]) -> InheritedView:
    """Play a record of `length` entries once more. O(record + edits)."""
    view = Projection(weights)
    before: dict[At, Shown | None] = {}
    for commit in commits:
        view.grow_to(commit.entries)
        briefs = commit.moment == "recorded" or any(isinstance(edit, Insert) and is_brief(edit) for edit in commit.edits)
        drops = [(edit.entry, edit.block) for edit in commit.edits if isinstance(edit, Drop)] if briefs else []
        before |= {at: view.instead(*at) for at in drops if view.shows(*at)}
        view.apply(commit.edits)
    view.grow_to(length)
    return InheritedView(view=view, before=before)
