"""What a session reads of its store: entries, of which the newest stay in memory, and the commit log."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, overload

from tenure.engine.record.entry import Entry
from tenure.engine.view.edit import Commit
from tenure.store.records import Records

MOST: Final = 2**24  # bytes of payloads: more than a window of a million tokens shows
AHEAD: Final = 64  # entries that are read at once where one after the other is asked for


class RecentEntries:
    """The newest entries that were asked for, as many as `most` bytes of payloads allow, and the last in any case. Mutable."""

    def __init__(self, read: Callable[[int, int], Iterable[Entry]], is_shown: Callable[[int], bool], most: int = MOST) -> None:
        """`read` gives the entries from one number up to another; there may be fewer."""
        self.bytes = 0
        self._read, self._is_shown, self._most, self._next = read, is_shown, most, 0
        self._held: dict[int, Entry] = {}  # the last asked for at the end

    def take(self, entries: Iterable[Entry]) -> None:
        """Hold these."""
        for entry in entries:
            self._drop(entry.n)
            self._held[entry.n] = entry
            self.bytes += len(entry.payload)
        while self.bytes > self._most and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    def entry(self, n: int) -> Entry:
        """An entry of the record. What is not shown is recalled, not held."""
        entry = self._held.pop(n, None)
        if entry is not None:
            self._held[n] = entry
            return entry
        ahead = AHEAD if 0 <= n - self._next < AHEAD else 1  # a view larger than `most` is read in order, over and over
        entry, *others = self._read(n, n + ahead)
        self._next = n + ahead
        self.take(each for each in (*others[::-1], entry) if self._is_shown(each.n))
        return entry

    def changed(self, entries: Iterable[int]) -> None:
        """Let go of what is shown no longer of these."""
        for n in entries:
            if n in self._held and not self._is_shown(n):
                self._drop(n)

    def _drop(self, n: int) -> None:
        gone = self._held.pop(n, None)
        self.bytes -= len(gone.payload) if gone is not None else 0


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
