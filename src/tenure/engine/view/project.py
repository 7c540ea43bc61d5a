"""The projection: record and commits in, view out.

`Projection` is the builder. It is grown with the record, takes edits in O(1) each and freezes into a `View`; it knows no texts, only what
of each entry is shown. An entry of which nothing is shown is not in it at all, so its size is that of the view, not of the record.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol, TypeVar, assert_never

from msgspec import Struct

from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.errors import LawBroken

T = TypeVar("T")
NO_ENTRY: Final = -1


class Shown(Struct, frozen=True, gc=False):
    """What stands in place of a block."""

    text: str
    tokens: int
    routes: tuple[str, ...] = ()


class Row(Struct, frozen=True, gc=False):
    """One record entry as far as it is shown: block numbers in order, and what stands in place of some of them."""

    entry: int
    blocks: tuple[int, ...]
    tokens: int
    replaced: tuple[tuple[int, Shown], ...] = ()
    whole: bool = True  # every block, none replaced

    def shows(self, block: int) -> bool:
        """Whether a block of the entry is shown, be it replaced. O(log blocks)."""
        return self.whole or _place_of(self.blocks, block, int) is not None

    def instead(self, block: int) -> Shown | None:
        """What a block is replaced by. O(log blocks)."""
        place = _place_of(self.replaced, block, itemgetter(0))
        return None if place is None else self.replaced[place][1]


Line = Row | Insert


class View(Struct, frozen=True, gc=False):
    """What is sent, apart from head, notes and markers: lines in order, and their weight in o200k tokens."""

    lines: tuple[Line, ...]
    tokens: int


class Weights(Protocol):
    """Tokens of every block of every entry. The index is one."""

    def weights(self, entry: int) -> tuple[int, ...]:
        """One number per block of the entry."""
        ...

    def weight(self, entry: int, block: int) -> int:
        """That of one block."""
        ...


class Projection:
    """A view in the making. Mutable; `copy` before rehearsing on it."""

    def __init__(self, weights: Weights) -> None:
        self.tokens: int = 0
        self.length: int = 0  # record entries taken in
        self._weights = weights
        self._rows: dict[int, Row] = {}  # by entry, ascending unless `_unsorted`
        self._inserts: dict[str, Insert] = {}
        self._standing: list[Insert] = []  # the same, in view order
        self._unsorted: bool = False
        self._before = 0, 0  # an entry that was asked about, and the tokens shown before it

    def copy(self) -> "Projection":
        """An independent builder in the same state. O(view)."""
        twin = Projection(self._weights)
        twin.tokens, twin.length, twin._unsorted = self.tokens, self.length, self._unsorted
        twin._rows, twin._inserts, twin._before = dict(self._rows), dict(self._inserts), self._before
        twin._standing = list(self._standing)
        return twin

    def grow(self, entry: int) -> None:
        """Show the next record entry whole."""
        if entry != self.length:
            raise LawBroken(f"entry {entry} cannot follow {self.length} entries in a view")
        weights = self._weights.weights(entry)
        self.length += 1
        if weights:
            row = Row(entry, tuple(range(len(weights))), sum(weights))
            self._rows[entry] = row
            self._weigh(entry, row.tokens)

    def grow_to(self, length: int) -> None:
        """Show record entries whole until `length` are taken in."""
        while self.length < length:
            self.grow(self.length)

    def apply(self, edits: Iterable[Edit]) -> None:
        """Carry out edits in order. An edit of what is not shown, or of an entry not yet taken in, raises LawBroken."""
        for entry, run in groupby(edits, key=lambda edit: NO_ENTRY if isinstance(edit, Insert | Remove) else edit.entry):
            if entry != NO_ENTRY:
                self._edit(entry, run)
                continue
            for edit in run:
                match edit:
                    case Insert(key=key):
                        if key in self._inserts or not 0 <= edit.before_entry <= self.length:
                            raise LawBroken(f"insert {key!r} before entry {edit.before_entry} of {self.length}")
                        self._inserts[key] = edit
                        insort(self._standing, edit, key=_place)
                        self.tokens += edit.tokens
                    case Remove(key=key):
                        if key not in self._inserts:
                            raise LawBroken(f"remove {key!r}: no such inserted entry")
                        gone = self._inserts.pop(key)
                        del self._standing[bisect_left(self._standing, _place(gone), key=_place)]
                        self.tokens -= gone.tokens
                    case Drop() | Replace() | Restore():
                        raise AssertionError(edit)
                    case _:
                        assert_never(edit)

    def drop(self, entry: int, blocks: Sequence[int]) -> None:
        """Take several blocks of one entry out at once; the same as a `Drop` of each."""
        row = self._rows.get(entry)
        if row is not None and row.blocks == tuple(blocks):
            self._weigh(entry, -row.tokens)
            del self._rows[entry]
            return
        if row is None or not all(map(row.shows, blocks)):
            raise LawBroken(f"drop of blocks {blocks} of entry {entry}, which are not all shown")
        left = set(blocks)
        kept = tuple([number for number in row.blocks if number not in left])
        if row.replaced:
            self._put(entry, kept, tuple([pair for pair in row.replaced if pair[0] not in left]))
            return
        weights = self._weights.weights(entry)
        gone = sum([weights[number] for number in blocks])
        self._rows[entry] = Row(entry, kept, row.tokens - gone, (), whole=False)
        self._weigh(entry, -gone)

    @property
    def height(self) -> int:
        """The number of record entries of which anything is shown."""
        return len(self._rows)

    def row(self, entry: int) -> Row | None:
        """What is shown of an entry; None when nothing is."""
        return self._rows.get(entry)

    def shows(self, entry: int, block: int) -> bool:
        """Whether a block is shown, be it replaced."""
        row = self._rows.get(entry)
        return row is not None and row.shows(block)

    def instead(self, entry: int, block: int) -> Shown | None:
        """What a shown block is replaced by; None for one that is shown as it is."""
        row = self._rows.get(entry)
        return row.instead(block) if row is not None else None

    def weight(self, entry: int, block: int) -> int:
        """What a shown block weighs as it is shown; 0 for one that is not."""
        row = self._rows.get(entry)
        if row is None or not row.shows(block):
            return 0
        shown = row.instead(block)
        return shown.tokens if shown is not None else self._weights.weight(entry, block)

    def insert(self, key: str) -> Insert | None:
        """The inserted entry of that key."""
        return self._inserts.get(key)

    @property
    def inserts(self) -> tuple[Insert, ...]:
        """The inserted entries in view order."""
        return tuple(self._standing)

    def rows(self) -> Iterator[Row]:
        """The shown record entries in order."""
        self._sort()
        return iter(self._rows.values())

    def rows_from(self, entry: int) -> Iterator[Row]:
        """The shown record entries at or after `entry`, newest first; stops at once at older ones."""
        self._sort()
        for number in reversed(self._rows):
            if number < entry:
                return
            yield self._rows[number]

    def tokens_before(self, entry: int) -> int:
        """The tokens of the shown record entries before `entry`. O(entries between it and the one asked about before), at most O(view)."""
        if not entry:
            return 0
        last, tokens = self._before
        if abs(entry - last) > len(self._rows):
            tokens = sum([row.tokens for row in self._rows.values() if row.entry < entry])
        else:
            rows = map(self._rows.get, range(min(entry, last), max(entry, last)))
            between = sum([row.tokens for row in rows if row is not None])
            tokens += between if entry > last else -between
        self._before = entry, tokens
        return tokens

    def freeze(self) -> View:
        """The view. O(view)."""
        if not self._inserts:
            return View(tuple(self.rows()), self.tokens)
        lines: list[Line] = []
        waiting = self._standing[::-1]
        for row in self.rows():
            while waiting and waiting[-1].before_entry <= row.entry:
                lines.append(waiting.pop())
            lines.append(row)
        lines.extend(reversed(waiting))
        return View(tuple(lines), self.tokens)

    def _edit(self, entry: int, edits: Iterable[Edit]) -> None:
        """Carry out edits of the blocks of one entry. O(its blocks + edits)."""
        row = self._rows.get(entry)
        blocks, replaced = (set(row.blocks), dict(row.replaced)) if row else (set[int](), dict[int, Shown]())
        size = len(self._weights.weights(entry)) if 0 <= entry < self.length else 0
        for edit in edits:
            assert isinstance(edit, Drop | Replace | Restore)
            block = edit.block
            if not 0 <= block < size:
                raise LawBroken(f"block {block} of entry {entry} is not in the record")
            if block not in blocks and not isinstance(edit, Restore):
                raise LawBroken(f"{type(edit).__name__.lower()} of block {block} of entry {entry}, which is not shown")
            blocks.add(block)
            replaced.pop(block, None)
            if isinstance(edit, Drop):
                blocks.remove(block)
            elif isinstance(edit, Replace):
                replaced[block] = Shown(edit.text, edit.tokens, edit.routes)
        self._put(entry, tuple(sorted(blocks)), tuple(sorted(replaced.items(), key=itemgetter(0))))

    def _put(self, entry: int, blocks: tuple[int, ...], replaced: tuple[tuple[int, Shown], ...]) -> None:
        before = self._rows.get(entry)
        self._weigh(entry, -before.tokens if before else 0)
        if not blocks:
            self._rows.pop(entry, None)
            return
        weights = self._weights.weights(entry)
        texts = dict(replaced)
        tokens = sum(texts[number].tokens if number in texts else weights[number] for number in blocks)
        self._rows[entry] = Row(entry, blocks, tokens, replaced, len(blocks) == len(weights) and not replaced)
        self._unsorted |= before is None
        self._weigh(entry, tokens)

    def _weigh(self, entry: int, change: int) -> None:
        self.tokens += change
        if entry < self._before[0]:
            self._before = self._before[0], self._before[1] + change

    def _sort(self) -> None:
        if self._unsorted:
            self._rows = dict(sorted(self._rows.items()))
            self._unsorted = False


def projection_of(weights: Weights, length: int, commits: Iterable[Commit]) -> Projection:
    """The view of the first `length` entries after `commits`: a pure fold, the definition that `Projection` is held to."""
    projection = Projection(weights)
    for commit in commits:
        projection.grow_to(commit.entries)
        projection.apply(commit.edits)
    projection.grow_to(length)
    return projection


def project(weights: Weights, length: int, commits: Iterable[Commit]) -> View:
    """The same, frozen."""
    return projection_of(weights, length, commits).freeze()


def changed_from(view: Projection, edits: Iterable[Edit]) -> int:
    """The first record entry at or after which edits change the view; the record's length when there are none."""
    first = view.length
    for edit in edits:
        match edit:
            case Insert(before_entry=entry):
                first = min(first, entry)
            case Remove(key=key):
                standing = view.insert(key)
                first = min(first, standing.before_entry if standing else first)
            case _:
                first = min(first, edit.entry)
    return first


def _place_of(sorted_: Sequence[T], block: int, key: Callable[[T], int]) -> int | None:
    place = bisect_left(sorted_, block, key=key)
    return place if place < len(sorted_) and key(sorted_[place]) == block else None


def _place(insert: Insert) -> tuple[int, int, str]:
    return insert.before_entry, insert.order, insert.key


Unit = tuple[object, ...]  # (entry, block, replacement or None) or (key, text)


class Difference(Struct, frozen=True, kw_only=True):
    """What one view shows that the other does not: `(entry, block)` of record blocks, keys of inserted entries."""

    gone: tuple[tuple[int, int], ...]
    come: tuple[tuple[int, int], ...]
    changed: tuple[tuple[int, int], ...]
    removed: tuple[Insert, ...]
    inserted: tuple[Insert, ...]


def units(view: View, weights: Weights) -> Iterator[tuple[Unit, int]]:
    """The smallest parts of a view in order, each with its tokens."""
    for line in view.lines:
        if isinstance(line, Insert):
            yield (line.key, line.text), line.tokens
            continue
        tokens = weights.weights(line.entry)
        replaced = dict(line.replaced)
        for block in line.blocks:
            shown = replaced.get(block)
            yield (line.entry, block, shown.text if shown else None), shown.tokens if shown else tokens[block]


def shared_prefix(before: View, after: View, weights: Weights) -> int:
    """Tokens of the longest equal run of units at the start of two views."""
    total = 0
    for (old, _), (new, tokens) in zip(units(before, weights), units(after, weights), strict=False):
        if old != new:
            break
        total += tokens
    return total


def difference(before: View, after: View, weights: Weights) -> Difference:
    """What the model saw then, and what it sees now."""
    old = {unit[:-1]: unit[-1] for unit, _ in units(before, weights) if len(unit) == 3}
    new = {unit[:-1]: unit[-1] for unit, _ in units(after, weights) if len(unit) == 3}
    stood = {line.key: line for line in before.lines if isinstance(line, Insert)}
    stands = {line.key: line for line in after.lines if isinstance(line, Insert)}
    return Difference(
        gone=_places(place for place in old if place not in new),
        come=_places(place for place in new if place not in old),
        changed=_places(place for place in new if place in old and new[place] != old[place]),
        removed=tuple(line for key, line in stood.items() if key not in stands),
        inserted=tuple(line for key, line in stands.items() if key not in stood),
    )


def _places(places: Iterator[Unit]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((int(str(entry)), int(str(block))) for entry, block in places))
