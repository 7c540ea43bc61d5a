"""What a view shows, told by the lines of a replay."""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.view.edit import Drop, Edit, Insert, Remove, Replace, Restore
from tenure.lab.events import At, CommitLine, EntryLine

Key = At | str  # a block of the record, or the key of an inserted entry


class Change(Struct, frozen=True, gc=False):
    """Something in the view weighs more or less than before, in o200k tokens; 0 is what is not shown."""

    key: Key
    before: int
    after: int


class Standing:
    """What every block weighs in the view. Mutable; each line costs what it changes."""

    def __init__(self) -> None:
        self.tokens = 0
        self._weights: dict[Key, int] = {}  # of what is shown
        self._record: list[tuple[int, ...]] = []

    def weight(self, key: Key) -> int:
        """What it weighs as it is shown; 0 when it is not."""
        return self._weights.get(key, 0)

    def entry(self, line: EntryLine) -> Iterator[Change]:
        """A message that was said."""
        weights = tuple([block.tokens or 0 for block in line.blocks])
        self._record.append(weights)
        for number, tokens in enumerate(weights):
            yield self._set((line.entry, number), tokens)

    def commit(self, line: CommitLine) -> Iterator[tuple[Edit, Change]]:
        """What a commit changed, edit by edit."""
        for edit in line.edits:
            match edit:
                case Drop():
                    yield edit, self._set((edit.entry, edit.block), None)
                case Replace():
                    yield edit, self._set((edit.entry, edit.block), edit.tokens)
                case Restore():
                    yield edit, self._set((edit.entry, edit.block), self._record[edit.entry][edit.block])
                case Insert():
                    yield edit, self._set(edit.key, edit.tokens)
                case Remove():
                    yield edit, self._set(edit.key, None)

    def _set(self, key: Key, tokens: int | None) -> Change:
        before = self._weights.pop(key, 0)
        if tokens is not None:
            self._weights[key] = tokens
        self.tokens += (tokens or 0) - before
        return Change(key, before, tokens or 0)
