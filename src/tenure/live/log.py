"""The commit log of a stored conversation."""

from collections.abc import Iterator, Sequence
from typing import overload

from tenure.engine.view.edit import Commit
from tenure.store.records import Records


class StoredLog:
    """The commit log as the store has it: in memory there is only how long it is."""

    def __init__(self, store: Records, conversation: str) -> None:
        self._store, self._conversation, self._length = store, conversation, 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Commit]:
        return iter(self._store.commits(self._conversation)[: self._length])

    @overload
    def __getitem__(self, place: int, /) -> Commit: ...

    @overload
    def __getitem__(self, place: slice, /) -> Sequence[Commit]: ...

    def __getitem__(self, place: int | slice, /) -> Commit | Sequence[Commit]:
        return tuple(self)[place]

    def append(self, _commit: Commit, /) -> None:
        """The store has it already."""
        self._length += 1
