"""What a view shows of blocks, and last showed of those that a brief took: what a conversation that is built from them shows. Pure."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from tenure.engine.record.entry import At
from tenure.engine.view.edit import Commit, Drop, Insert
from tenure.engine.view.project import Projection, Shown, Weights


class Kept(Struct, frozen=True, kw_only=True):
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


def kept(weights: Weights, length: int, commits: Sequence[Commit], is_brief: Callable[[Insert], bool]) -> Kept:
    """Play a record of `length` entries once more. O(record + edits)."""
    view = Projection(weights)
    before: dict[At, Shown | None] = {}
    for commit in commits:
        view.grow_to(commit.entries)
        briefs = commit.moment == "recorded" or any(isinstance(edit, Insert) and is_brief(edit) for edit in commit.edits)
        taken = [(edit.entry, edit.block) for edit in commit.edits if isinstance(edit, Drop)] if briefs else []
        before |= {at: view.instead(*at) for at in taken if view.shows(*at)}
        view.apply(commit.edits)
    view.grow_to(length)
    return Kept(view=view, before=before)
