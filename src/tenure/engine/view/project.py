"""The projection: record and commits in, view out.

`Projection` is the builder. It is grown with the record, takes edits in O(1) each and freezes into a `View`; it knows no texts, only what
of each entry is shown. An entry of which nothing is shown is not in it at all, so its size is that of the view, not of the record.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, assert_never

from msgspec import Struct

from tenure.engine.view.edit import Commit, Drop, Edit, Insert, Remove, Replace, Restore
from tenure.errors import LawBroken


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


class Projection:
    """A view in the making. Mutable; `copy` before rehearsing on it."""

    def __init__(self, weights: Weights) -> None:
        self.tokens: int = 0
        self.length: int = 0  # record entries taken in
        self._weights = weights
        self._rows: dict[int, Row] = {}  # by entry, ascending unless `_unsorted`
        self._inserts: dict[str, Insert] = {}
        self._unsorted: bool = False

    def copy(self) -> "Projection":
        """An independent builder in the same state. O(view)."""
        twin = Projection(self._weights)
        twin.tokens, twin.length, twin._unsorted = self.tokens, self.length, self._unsorted
        twin._rows, twin._inserts = dict(self._rows), dict(self._inserts)
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
            self.tokens += row.tokens

    def apply(self, edits: Iterable[Edit]) -> None:
        """Carry out edits in order. An edit of what is not shown, or of an entry not yet taken in, raises LawBroken."""
        for edit in edits:
            match edit:
                case Drop(entry=entry, block=block):
                    self.drop(entry, (block,))
                case Replace(entry=entry, block=block):
                    self._show(entry, block, Shown(edit.text, edit.tokens, edit.routes))
                case Restore(entry=entry, block=block):
                    self._show(entry, block, None)
                case Insert(key=key):
                    if key in self._inserts or not 0 <= edit.before_entry <= self.length:
                        raise LawBroken(f"insert {key!r} before entry {edit.before_entry} of {self.length}")
                    self._inserts[key] = edit
                    self.tokens += edit.tokens
                case Remove(key=key):
                    if key not in self._inserts:
                        raise LawBroken(f"remove {key!r}: no such inserted entry")
                    self.tokens -= self._inserts.pop(key).tokens
                case _:
                    assert_never(edit)

    def drop(self, entry: int, blocks: Sequence[int]) -> None:
        """Take several blocks of one entry out at once; the same as a `Drop` of each."""
        row = self._rows.get(entry)
        if row is not None and row.blocks == tuple(blocks):
            self.tokens -= row.tokens
            del self._rows[entry]
            return
        if row is None or not all(number in row.blocks for number in blocks):
            raise LawBroken(f"drop of blocks {blocks} of entry {entry}, which are not all shown")
        kept = tuple([number for number in row.blocks if number not in blocks])
        if row.replaced:
            self._put(entry, kept, tuple([pair for pair in row.replaced if pair[0] not in blocks]))
            return
        weights = self._weights.weights(entry)
        gone = sum([weights[number] for number in blocks])
        self._rows[entry] = Row(entry, kept, row.tokens - gone, (), whole=False)
        self.tokens -= gone

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
        return row is not None and (row.whole or block in row.blocks)

    def instead(self, entry: int, block: int) -> Shown | None:
        """What a shown block is replaced by; None for one that is shown as it is."""
        row = self._rows.get(entry)
        return next((shown for number, shown in row.replaced if number == block), None) if row is not None else None

    def weight(self, entry: int, block: int) -> int:
        """What a shown block weighs as it is shown; 0 for one that is not."""
        row = self._rows.get(entry)
        if row is None or block not in row.blocks:
            return 0
        shown = self.instead(entry, block)
        return shown.tokens if shown is not None else self._weights.weights(entry)[block]

    def insert(self, key: str) -> Insert | None:
        """The inserted entry of that key."""
        return self._inserts.get(key)

    @property
    def inserts(self) -> tuple[Insert, ...]:
        """The inserted entries in view order."""
        return tuple(sorted(self._inserts.values(), key=_place))

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

    def freeze(self) -> View:
        """The view. O(view)."""
        if not self._inserts:
            return View(tuple(self.rows()), self.tokens)
        lines: list[Line] = []
        waiting = list(reversed(self.inserts))
        for row in self.rows():
            while waiting and waiting[-1].before_entry <= row.entry:
                lines.append(waiting.pop())
            lines.append(row)
        lines.extend(reversed(waiting))
        return View(tuple(lines), self.tokens)

    def _show(self, entry: int, block: int, shown: Shown | None) -> None:
        if not (0 <= entry < self.length and 0 <= block < len(self._weights.weights(entry))):
            raise LawBroken(f"block {block} of entry {entry} is not in the record")
        row = self._rows.get(entry)
        blocks = row.blocks if row else ()
        if block not in blocks:
            if shown is not None:
                raise LawBroken(f"replacement of block {block} of entry {entry}, which is not shown")
            blocks = tuple(sorted((*blocks, block)))
        replaced = tuple(pair for pair in (row.replaced if row else ()) if pair[0] != block)
        if shown is not None:
            replaced = tuple(sorted((*replaced, (block, shown)), key=lambda pair: pair[0]))
        self._put(entry, blocks, replaced)

    def _put(self, entry: int, blocks: tuple[int, ...], replaced: tuple[tuple[int, Shown], ...]) -> None:
        before = self._rows.get(entry)
        self.tokens -= before.tokens if before else 0
        if not blocks:
            self._rows.pop(entry, None)
            return
        weights = self._weights.weights(entry)
        texts = dict(replaced)
        tokens = sum(texts[number].tokens if number in texts else weights[number] for number in blocks)
        self._rows[entry] = Row(entry, blocks, tokens, replaced, len(blocks) == len(weights) and not replaced)
        self._unsorted |= before is None
        self.tokens += tokens

    def _sort(self) -> None:
        if self._unsorted:
            self._rows = dict(sorted(self._rows.items()))
            self._unsorted = False


def project(weights: Weights, length: int, commits: Sequence[Commit]) -> View:
    """The view of the first `length` entries after `commits`: a pure fold, the definition that `Projection` is held to."""
    projection = Projection(weights)
    for commit in commits:
        while projection.length < commit.entries:
            projection.grow(projection.length)
        projection.apply(commit.edits)
    while projection.length < length:
        projection.grow(projection.length)
    return projection.freeze()


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


def _place(insert: Insert) -> tuple[int, int, str]:
    return insert.before_entry, insert.order, insert.key
