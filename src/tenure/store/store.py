"""Records in a database: SQLite by default, PostgreSQL by URL.

Every append is one transaction. A killed process loses at most what it had not been told is stored. Losing power is another
matter: SQLite runs in WAL mode with `synchronous=NORMAL`, which keeps the file sound but may lose the last appends before the
power went; `Store(url, synchronous="FULL")` waits for the disk at every append instead.
"""

import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import asdict, replace
from sqlalchemy import Executable, Insert
from sqlalchemy.engine.interfaces import DBAPICursor

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Entry, Spill, ToolResult, Usage
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold
from tenure.errors import Damaged, InputError, StoreError
from tenure.store import rows, tables
from tenure.store.database import Database, Synchronous, words_of
from tenure.store.migrations import migrate, migrate_copy
from tenure.store.records import (
    REPORT,
    ClientLink,
    Conversation,
    Lost,
    Now,
    Observed,
    Records,
    descendants,
    forked,
    opened,
    refusal,
    require_order,
    utc_now,
)
from tenure.store.seal import keys_of, unlock
from tenure.store.soundness import missing, wrongs
from tenure.store.spills import Spills
from tenure.store.vectors import Vectors

_GONE: Final = re.compile(r"no such table|UndefinedTable|relation .* does not exist")
PAGE: Final = 64  # entries read at a time

T = TypeVar("T")

_BLANK: Final = Conversation(id="")

EVERY: Final = 2**31 - 1  # more entries than a conversation can have


class OwnedRows(NamedTuple):
    """Entries `start` up to `stop` of a conversation lie in the rows of `of`, which may be an ancestor."""

    of: str
    start: int
    stop: int


class Store(Records):
    """`Records` in a database. Nothing is cached; threads may share it, processes open their own. The methods of `Records` are described there."""

    def __init__(
        self,
        url: str = "sqlite:///tenure.db",
        *,
        now: Now = utc_now,
        synchronous: Synchronous = "NORMAL",
        busy_timeout_s: float = 30.0,
        on_damage: Callable[[str], None] = REPORT,
        spills: Spills | None = None,
        read_only: bool = False,
        keys: Sequence[bytes] | None = None,
    ) -> None:
        """Open a store, and bring it up to date; with `read_only` it stays as it is, and an old one is read as if it were up to date. `on_damage` is told what was left out because its row is damaged: usage, a pin, a cover sheet.

        `spills` is where outputs too large for the record are kept, where that is not beside a database file. `keys` seal the records (`tenure.store.seal`),
        the one in force first; None: those that the environment names. A sealed store keeps no outputs in files. Raises StoreError when it cannot be opened.
        """
        self._now, self.on_damage = now, on_damage
        self._reported: set[str] = set()
        self._database = Database(url, synchronous=synchronous, busy_timeout_s=busy_timeout_s, read_only=read_only)
        self.where = self._database.where
        try:
            (migrate_copy if read_only else migrate)(self._database)
            keys = () if self._database.is_in_memory else keys_of(os.environ) if keys is None else keys
            self._seal = unlock(self._database, keys, read_only=read_only)
        except BaseException:
            self._database.close()
            raise
        self.spills = Spills() if self._seal.is_set else spills or Spills.beside(self._database.file)

    def close(self) -> None:
        self._database.close()

    def create(self, conversation: Conversation, entries: Sequence[Entry] = (), commits: Sequence[Commit] = ()) -> Conversation:
        fresh = opened(conversation, entries, commits, self._now)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_CONVERSATION, [rows.conversation_values(fresh)])
            self._add(cursor, tables.ADD_ENTRY, [rows.entry_values(fresh.id, entry) for entry in entries])
            self._add(cursor, tables.ADD_COMMIT, rows.commit_values(fresh.id, commits, ""))
        return fresh

    def entitle(self, conversation_id: str, title: str, *, instead: str = "") -> bool:
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            old, new = (self._seal.close("conversation", "title", [conversation_id], each) for each in (instead, title))
            return self._run(cursor, tables.ENTITLE, of=conversation_id, old_title=old, new_title=new) > 0

    def hold_to(self, sheet: Conversation) -> None:
        self.conversation(sheet.id)
        new = {"new_dialect": sheet.dialect, "new_model": sheet.model, "new_budget": sheet.budget, "new_terms": sheet.terms}
        with self._database.writing() as cursor:
            self._run(cursor, tables.HOLD_TO, of=sheet.id, **new)

    def conversation(self, conversation_id: str) -> Conversation:
        found = self._select(tables.CONVERSATION, of=conversation_id)
        if not found:
            raise InputError("store", f"no conversation {conversation_id!r}")
        with self._placed():
            return self._sheet_of(found[0])

    def conversations(self, tenant: str | None = "") -> tuple[Conversation, ...]:
        found = self._select(tables.ALL_CONVERSATIONS) if tenant is None else self._select(tables.CONVERSATIONS, of=tenant)
        return self._sound("", self._sheet_of, found)

    def _sheet_of(self, row: rows.Row) -> Conversation:
        return rows.conversation_of(self._seal.open_row("conversation", "", row))

    def append(self, conversation_id: str, entries: Sequence[Entry], commits: Sequence[Commit] = ()) -> None:
        require_order(entries, commits)
        with self._database.writing() as cursor:
            if entries:
                self._advance(cursor, conversation_id, entries)
                self._add(cursor, tables.ADD_ENTRY, [rows.entry_values(conversation_id, entry) for entry in entries])
            if commits:
                parent = self._advance_commits(cursor, conversation_id, commits)
                self._add(cursor, tables.ADD_COMMIT, rows.commit_values(conversation_id, commits, parent))

    def entries(self, conversation_id: str, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        conversation = self.conversation(conversation_id)
        stop = conversation.length if stop is None else min(stop, conversation.length)
        return self._entries(conversation, self._lineage(conversation, max(start, 0), stop))

    def commits(self, conversation_id: str) -> tuple[Commit, ...]:
        length = self.conversation(conversation_id).commits
        read: list[Commit] = []
        for each in self.salvaged_commits(conversation_id, length):
            if isinstance(each, Lost):
                raise Damaged(each.what, self.where, conversation_id)
            read.append(each)
        if len(read) > length and len(read) > (length := self.conversation(conversation_id).commits):
            raise Damaged(f"{len(read)} commits, expected {length}", self.where, conversation_id)
        return tuple(read)

    def salvaged_commits(self, conversation_id: str, length: int) -> Iterator[Commit | Lost]:
        """The commits in order, at least `length`, and what is lost of them. What follows a lost one is taken at its own hash's word."""
        parent: str | None = ""
        n = 0
        for row in self._select(tables.COMMITS, of=conversation_id):
            if type(row[0]) is not int:
                continue  # the commit of its number is missing
            if row[0] > n:
                yield from missing("commit", n, row[0])
                parent = None
            n = row[0] + 1
            try:
                row = self._seal.open_row("commit_log", conversation_id, row)
                commit = rows.commit_of(row, parent)
            except Damaged as error:
                yield Lost(n=row[0], what=error.what)
                parent = None
                continue
            parent = row[2]
            yield commit
        yield from missing("commit", n, length)

    def observe(
        self, conversation_id: str, n: int, usage: Usage, model: str = "", at: str = "", usd: float | None = None
    ) -> None:
        self.conversation(conversation_id)
        observed = Observed(n=n, usage=usage, model=model, at=at, usd=usd)
        with self._database.writing() as cursor:
            self._run(cursor, tables.DROP_USAGE, of=conversation_id, at_n=n)
            self._add(cursor, tables.ADD_USAGE, [rows.observed_values(conversation_id, observed)])

    def usages(self, conversation_id: str) -> tuple[Observed, ...]:
        lineage = self._lineage(self.conversation(conversation_id), 0, EVERY)  # a report may come before the entry it is about
        found = [row for stretch in lineage for row in self._select(tables.USAGES, **stretch._asdict())]
        return self._sound(conversation_id, rows.observed_of, found)

    def call_counts(self, tenant: str = "", newest: int = 200) -> tuple[int, ...]:
        return tuple(count for (count,) in self._select(tables.CALL_COUNTS, of=tenant, newest=newest))

    def note(self, conversation_id: str, spent: Spent) -> None:
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_ASIDE, [rows.aside_values(conversation_id, spent)])

    def asides(self, conversation_id: str) -> tuple[Spent, ...]:
        self.conversation(conversation_id)
        return self._sound(conversation_id, rows.aside_of, self._select(tables.ASIDES, of=conversation_id))

    def hold(self, conversation_id: str, hold: Hold) -> None:
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            self._drop_hold(cursor, conversation_id, hold)
            self._add(cursor, tables.ADD_HOLD, [rows.hold_values(conversation_id, hold)])

    def release(self, conversation_id: str, hold: Hold) -> bool:
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            return self._drop_hold(cursor, conversation_id, hold) > 0

    def holds(self, conversation_id: str) -> tuple[Hold, ...]:
        self.conversation(conversation_id)
        return self._sound(conversation_id, *self._hold_rows(conversation_id))

    def _hold_rows(self, conversation_id: str) -> tuple[Callable[[rows.Row], Hold], Sequence[rows.Row]]:
        """What is held, and what reads a row of it."""
        found = self._select(tables.HOLDS, of=conversation_id)
        return lambda row: rows.hold_of(self._seal.open_row("hold", conversation_id, row)), found

    def link(self, links: Sequence[ClientLink]) -> None:
        with self._database.writing() as cursor:
            for each in links:
                self._run(cursor, tables.DROP_LINK, of_id=self._seal.close("client_link", "id", (), each.id))
            self._add(cursor, tables.ADD_LINK, [asdict(each) for each in links])

    def links(self, ids: Sequence[str]) -> tuple[ClientLink, ...]:
        size = tables.LINKS_AT_ONCE
        ids = [self._seal.close("client_link", "id", (), each) for each in ids]
        pages = (ids[start : start + size] for start in range(0, len(ids), size))
        asked = ({f"id_{n}": page[n] if n < len(page) else "" for n in range(size)} for page in pages)
        found = (self._seal.open_row("client_link", "", row) for each in asked for row in self._select(tables.LINKS, **each))
        return tuple(ClientLink(id=id_, conversation=of, n=n) for id_, of, n in found)

    def fork(self, conversation_id: str, at: int, new_id: str, title: str = "") -> Conversation:
        sheet, commits = forked(self, self.conversation(conversation_id), at, new_id, title, self._now)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_CONVERSATION, [rows.conversation_values(sheet)])
            self._add(cursor, tables.ADD_COMMIT, rows.commit_values(new_id, commits, ""))
        return sheet

    def forget(self, conversation_id: str) -> tuple[str, ...]:
        self.conversation(conversation_id)
        family = descendants(conversation_id, self._select(tables.PARENTS))
        spills = {spill.sha256 for id_ in family for spill in self._spills_of(id_)}
        with self._database.writing(erase=True) as cursor:
            self._run(cursor, tables.PARENTS)
            gone = descendants(conversation_id, cursor.fetchall())  # one may have been forked meanwhile
            for id_ in gone:
                for statement in tables.FORGET:
                    self._run(cursor, statement, of=id_)
        if spills:
            spills -= {spill.sha256 for (id_,) in self._select(tables.CONVERSATION_IDS) for spill in self._spills_of(id_)}
        self.spills.forget(gone, spills)
        Vectors.beside(self.spills.folder).forget()
        return gone

    def _spills_of(self, conversation_id: str) -> list[Spill]:
        """The outputs in files that a conversation's own entries refer to."""
        found: list[tuple[int, Spill]] = []
        for _ in _noting(self._all_readable(conversation_id), found):
            pass
        return [spill for _, spill in found]

    def _all_readable(self, conversation_id: str) -> Iterator[Entry | Lost]:
        start = 0
        while held := self._readable(conversation_id, start, EVERY):
            yield from held
            start = held[-1].n + 1

    def verify(self, conversation_id: str) -> str | None:
        if not self._select(tables.CONVERSATION, of=conversation_id):
            raise InputError("store", f"no conversation {conversation_id!r}")
        return next(self.wrongs(conversation_id), None)

    def wrongs(self, conversation_id: str) -> Iterator[str]:
        """All that is wrong with a conversation, in words."""
        spills: list[tuple[int, Spill]] = []
        try:
            sheet = self.conversation(conversation_id)
            yield from wrongs(
                sheet,
                _noting(self.salvaged(sheet), spills),
                self.salvaged_commits(sheet.id, sheet.commits),
                self._reports(sheet),
                self._held(sheet),
            )
            for n, spill in spills:
                if not self.spills.has(spill):
                    yield f"the output of entry {n} that is kept in a file, {spill.handle}, is not there"
        except InputError:
            yield "its cover sheet is missing"
        except Damaged as error:
            yield error.what
        except StoreError as error:
            yield str(error)

    def salvaged(self, sheet: Conversation) -> Iterator[Entry | Lost]:
        """Every entry of a conversation in order, or why it cannot be read back. Raises Damaged when it cannot be known where they lie."""
        for of, start, stop in self._lineage(sheet, 0, sheet.length):
            while held := self._readable(of, start, stop):
                for each in held:
                    yield from missing("entry", start, each.n)
                    yield each
                    start = each.n + 1
            yield from missing("entry", start, stop)

    def _readable(self, of: str, start: int, stop: int) -> list[Entry | Lost]:
        """The next rows that there are, a page of them."""
        try:
            held = self._select(tables.ENTRIES, of=of, start=start, stop=stop, page=PAGE)
        except StoreError as error:  # a page of the file is damaged, which holds a few of them
            if _GONE.search(words_of(error.__cause__ or error)):
                raise
            if stop - start == 1:
                return [Lost(n=start, what=f"entry {start} cannot be read ({words_of(error.__cause__ or error)})")]
            return [each for n in range(start, min(start + PAGE, stop)) for each in self._readable(of, n, n + 1)]
        found: list[Entry | Lost] = []
        for row in held:
            try:
                found.append(rows.entry_of(self._seal.open_row("entry", of, row)))
            except Damaged as error:
                if type(row[0]) is int:
                    found.append(Lost(n=row[0], what=error.what, role=str(row[4])))
        return found

    def mended_sheets(self) -> list[Conversation]:
        """The cover sheet of every conversation, oldest first, with the usual in place of what cannot be read; also of one that has none."""
        lengths = {str(of): n + 1 for of, n in self._select(tables.OWNERS) if type(n) is int}
        ids = dict.fromkeys([*(str(row[0]) for row in self._select(tables.CONVERSATION_IDS)), *lengths])
        sheets = (self._mended(id_) for id_ in ids)
        return [replace(sheet, length=max(sheet.length, lengths.get(sheet.id, 0))) for sheet in sheets]

    def _mended(self, id_: str) -> Conversation:
        row = next(iter(self._select(tables.CONVERSATION, of=id_)), ())
        with suppress(Damaged):
            row = self._seal.open_row("conversation", "", row) if row else row
        values: rows.Values = dict(zip(Conversation.__struct_fields__, row, strict=False)) | {"id": id_}
        sheet = Conversation(**{name: value for name, value in values.items() if type(value) is type(getattr(_BLANK, name))})
        return sheet if sheet.parent and sheet.forked_at >= 0 else replace(sheet, parent="", forked_at=0)

    def salvaged_rest(self, sheet: Conversation) -> tuple[list[Observed], list[Spent], list[Hold]]:
        """The reports, the calls of helper models and the holds that are sound."""
        reports = list(self._reports(sheet))
        return (
            [each for each in reports if isinstance(each, Observed)],
            [each for each in reports if isinstance(each, Spent)],
            [each for each in self._held(sheet) if isinstance(each, Hold)],
        )

    def adopt(
        self,
        sheet: Conversation,
        entries: Sequence[Entry],
        commits: Sequence[Commit],
        reports: Iterable[Observed],
        asides: Iterable[Spent],
        holds: Iterable[Hold],
    ) -> None:
        """Take over a conversation of another store as it is, all or nothing."""
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_CONVERSATION, [rows.conversation_values(sheet)])
            self._add(cursor, tables.ADD_ENTRY, [rows.entry_values(sheet.id, entry) for entry in entries])
            self._add(cursor, tables.ADD_COMMIT, rows.commit_values(sheet.id, commits, ""))
            self._add(cursor, tables.ADD_USAGE, [rows.observed_values(sheet.id, each) for each in reports])
            self._add(cursor, tables.ADD_ASIDE, [rows.aside_values(sheet.id, each) for each in asides])
            self._add(cursor, tables.ADD_HOLD, [rows.hold_values(sheet.id, each) for each in holds])

    def _reports(self, sheet: Conversation) -> Iterator[Observed | Spent | Lost]:
        """Usage and the calls of helper models; those of shared entries are the parent's."""
        own = OwnedRows(sheet.id, sheet.forked_at, EVERY)
        for make, found in (
            (rows.observed_of, self._select(tables.USAGES, **own._asdict())),
            (rows.aside_of, self._select(tables.ASIDES, of=sheet.id)),
        ):
            yield from self._either(make, found)

    def _held(self, sheet: Conversation) -> Iterator[Hold | Lost]:
        yield from self._either(*self._hold_rows(sheet.id))

    def _either(self, make: Callable[[rows.Row], T], found: Iterable[rows.Row]) -> Iterator[T | Lost]:
        for row in found:
            try:
                yield make(row)
            except Damaged as error:
                yield Lost(n=-1, what=error.what)

    def _sound(self, conversation_id: str, make: Callable[[rows.Row], T], found: Iterable[rows.Row]) -> tuple[T, ...]:
        """What can be read of rows that nothing else depends on; what cannot is reported once."""
        sound: list[T] = []
        for each in self._either(make, found):
            if isinstance(each, Lost):
                words = str(Damaged(each.what, self.where, conversation_id))
                if words not in self._reported:
                    self._reported.add(words)
                    self.on_damage(words)
            else:
                sound.append(each)
        return tuple(sound)

    @contextmanager
    def _placed(self, conversation_id: str = "") -> Generator[None]:
        """What is damaged, with the place."""
        try:
            yield
        except Damaged as error:
            if error.where:
                raise
            raise Damaged(error.what, self.where, conversation_id) from error

    def _lineage(self, conversation: Conversation, start: int, stop: int) -> list[OwnedRows]:
        """Where the entries from `start` to `stop` are, oldest first. Raises Damaged when an ancestor is missing, or is its own."""
        first, seen = conversation.id, {conversation.id}
        stretches: list[OwnedRows] = []
        while True:
            own = OwnedRows(conversation.id, max(start, conversation.forked_at), stop)
            if own.start < own.stop:
                stretches.append(own)
            stop = min(stop, conversation.forked_at)
            if not conversation.parent or stop <= start:
                return stretches[::-1]
            if conversation.parent in seen:
                raise Damaged(f"its parent {conversation.parent!r} is its own fork", self.where, first)
            seen.add(conversation.parent)
            try:
                conversation = self.conversation(conversation.parent)
            except InputError as error:
                raise Damaged(f"its parent {conversation.parent!r} is missing", self.where, first) from error

    def _entries(self, conversation: Conversation, stretches: list[OwnedRows]) -> Iterator[Entry]:
        entry = None
        for of, start, stop in stretches:
            for first in range(start, stop, PAGE):
                held = self._page(of, first, min(first + PAGE, stop))
                with self._placed(conversation.id):
                    for n in range(first, min(first + PAGE, stop)):
                        if n not in held:
                            raise Damaged(f"entry {n} is missing")
                        yield (entry := rows.entry_of(self._seal.open_row("entry", of, held[n])))
        if entry is not None and entry.n + 1 == conversation.length and entry.id != conversation.head:
            what = f"{conversation.length} entries up to {entry.id[:12]}, expected {conversation.head[:12]}"
            raise Damaged(what, self.where, conversation.id)

    def _page(self, of: str, start: int, stop: int) -> dict[int, rows.Row]:
        return {row[0]: row for row in self._select(tables.ENTRIES, of=of, start=start, stop=stop, page=PAGE)}

    def _advance(self, cursor: DBAPICursor, conversation_id: str, entries: Sequence[Entry]) -> None:
        first, last = entries[0], entries[-1]
        swapped = self._run(
            cursor,
            tables.ADVANCE,
            of=conversation_id,
            old_length=first.n,
            old_head=self._seal.close("conversation", "head", [conversation_id], first.parent),
            new_length=last.n + 1,
            new_head=self._seal.close("conversation", "head", [conversation_id], last.id),
        )
        if not swapped:
            raise self._refusal(cursor, conversation_id, f"entry {first.n} after {first.parent[:12]}")

    def _advance_commits(self, cursor: DBAPICursor, conversation_id: str, commits: Sequence[Commit]) -> str:
        """Make room for commits; the hash that the first of them follows."""
        before, after = commits[0].n, commits[-1].n + 1
        if not self._run(cursor, tables.ADVANCE_COMMITS, of=conversation_id, old_commits=before, new_commits=after):
            raise self._refusal(cursor, conversation_id, f"commit {before}")
        if not before:
            return ""
        self._run(cursor, tables.COMMIT_HEAD, of=conversation_id, at_n=before - 1)
        heads = cursor.fetchall()
        if not heads:
            raise StoreError(f"{self.where}: conversation {conversation_id!r}: commit {before - 1} is missing")
        with self._placed(conversation_id):
            return str(self._seal.open_row("commit_log", conversation_id, (before - 1, b"", heads[0][0]))[2])

    def _refusal(self, cursor: DBAPICursor, conversation_id: str, what: str) -> Exception:
        """Why a compare-and-swap changed nothing, read in the transaction that failed."""
        self._run(cursor, tables.CONVERSATION, of=conversation_id)
        found = cursor.fetchall()
        if not found:
            return InputError("store", f"no conversation {conversation_id!r}")
        return refusal(self._sheet_of(found[0]), what)

    def _drop_hold(self, cursor: DBAPICursor, conversation_id: str, hold: Hold) -> int:
        return self._run(
            cursor,
            tables.DROP_HOLD,
            of=conversation_id,
            of_kind=hold.kind,
            of_object=hold.object,
        )

    def _select(self, statement: Executable, **values: Any) -> Sequence[rows.Row]:
        with self._database.reading() as cursor:
            self._run(cursor, statement, **values)
            return cursor.fetchall()

    def _run(self, cursor: DBAPICursor, statement: Executable, **values: Any) -> int:
        return self._database.prepare(statement).run(cursor, values)

    def _add(self, cursor: DBAPICursor, statement: Insert, values: list[rows.Values]) -> None:
        sealed = [self._seal.close_row(str(statement.table), each) for each in values]
        self._database.prepare(statement).run_all(cursor, sealed)


def _noting(entries: Iterable[Entry | Lost], spills: list[tuple[int, Spill]]) -> Iterator[Entry | Lost]:
    """The entries as they are; the outputs that their results have in files are noted."""
    for each in entries:
        if isinstance(each, Entry):
            spills += [
                (each.n, block.spill) for block in each.blocks if isinstance(block, ToolResult) and block.spill is not UNSET
            ]
        yield each
