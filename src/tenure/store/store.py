"""Records in a database: SQLite by default, PostgreSQL by URL. Promise: nothing is lost.

Every append is one transaction. A killed process loses at most what it had not been told is stored. Losing power is another
matter: SQLite runs in WAL mode with `synchronous=NORMAL`, which keeps the file sound but may lose the last appends before the
power went; `Store(url, synchronous="FULL")` waits for the disk at every append instead.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, Self

from sqlalchemy import Executable

from tenure.errors import InputError, StoreError
from tenure.meter.ledger import Spent
from tenure.record.entry import Entry, Usage
from tenure.store import rows, tables
from tenure.store.contract import forked, opened, refusal, require_hex, require_order, wrong_with
from tenure.store.database import Cursor, Database, Synchronous
from tenure.store.migrations import migrate
from tenure.store.records import Conversation, Now, Observed, utc_now
from tenure.view.edit import Commit
from tenure.view.guard import Hold

PAGE: Final = 64  # entries read at a time

EVERY: Final = 2**31 - 1  # more entries than a conversation can have


class Stretch(NamedTuple):
    """Entries `start` up to `stop` of a conversation lie in the rows of `of`, which may be an ancestor."""

    of: str
    start: int
    stop: int


class Store:
    """`Records` in a database. Nothing is cached; threads may share it, processes open their own."""

    def __init__(
        self,
        url: str = "sqlite:///tenure.db",
        *,
        now: Now = utc_now,
        synchronous: Synchronous = "NORMAL",
        busy_timeout_s: float = 30.0,
    ) -> None:
        self._now = now
        self._database = Database(url, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
        try:
            migrate(self._database)
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections."""
        self._database.close()

    def create(self, conversation: Conversation, entries: Sequence[Entry] = ()) -> Conversation:
        """Open a new conversation with its first entries, none unless given, all or nothing; Conflict when the id is taken."""
        fresh = opened(conversation, entries, self._now)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_CONVERSATION, [rows.conversation_values(fresh)])
            self._add(cursor, tables.ADD_ENTRY, [rows.entry_values(fresh.id, entry) for entry in entries])
        return fresh

    def entitle(self, conversation_id: str, title: str, *, instead: str = "") -> bool:
        """Give a conversation a title in place of the one it has, `instead`; False when it has another, which stays."""
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            return self._run(cursor, tables.ENTITLE, of=conversation_id, old_title=instead, new_title=title) > 0

    def conversation(self, conversation_id: str) -> Conversation:
        """The cover sheet as it is now."""
        found = self._select(tables.CONVERSATION, of=conversation_id)
        if not found:
            raise InputError("store", f"no conversation {conversation_id!r}")
        return rows.conversation_of(found[0])

    def conversations(self, tenant: str | None = "") -> tuple[Conversation, ...]:
        """All conversations of a tenant, newest first; None: of every tenant."""
        found = self._select(tables.ALL_CONVERSATIONS) if tenant is None else self._select(tables.CONVERSATIONS, of=tenant)
        return tuple(map(rows.conversation_of, found))

    def append(self, conversation_id: str, entries: Sequence[Entry], commits: Sequence[Commit] = ()) -> None:
        """Add entries, and the commits that belong to them, all or none. They follow the head and the newest commit."""
        require_order(entries, commits)
        with self._database.writing() as cursor:
            if entries:
                self._advance(cursor, conversation_id, entries)
                self._add(cursor, tables.ADD_ENTRY, [rows.entry_values(conversation_id, entry) for entry in entries])
            if commits:
                self._advance_commits(cursor, conversation_id, commits)
                self._add(cursor, tables.ADD_COMMIT, [rows.commit_values(conversation_id, commit) for commit in commits])

    def commit(self, conversation_id: str, commit: Commit) -> None:
        """Add a commit; its `n` is the number of commits so far."""
        self.append(conversation_id, (), (commit,))

    def entry(self, conversation_id: str, n: int) -> Entry:
        """One entry."""
        for entry in self.entries(conversation_id, n, n + 1):
            return entry
        raise InputError("store", f"no entry {n} in conversation {conversation_id!r}")

    def entries(self, conversation_id: str, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries in order, read by the page. Those appended meanwhile are not seen."""
        conversation = self.conversation(conversation_id)
        stop = conversation.length if stop is None else min(stop, conversation.length)
        return self._entries(self._lineage(conversation, max(start, 0), stop))

    def find_entry(self, conversation_id: str, prefix: str) -> Entry | None:
        """The entry whose id starts with `prefix` (hex); InputError when several do."""
        require_hex(prefix)
        found: list[int] = []
        conversation = self.conversation(conversation_id)
        for stretch in self._lineage(conversation, 0, conversation.length):
            parameters = stretch._asdict() | {"low": prefix, "high": prefix + "g"}
            found += [row[0] for row in self._select(tables.FIND, **parameters)]
        if len(found) > 1:
            raise InputError("store", f"the hash {prefix!r} fits the entries {found[0]} and {found[1]}", "a longer one")
        return self.entry(conversation_id, found[0]) if found else None

    def commits(self, conversation_id: str) -> tuple[Commit, ...]:
        """The commit log in order."""
        self.conversation(conversation_id)
        return tuple(map(rows.commit_of, self._select(tables.COMMITS, of=conversation_id)))

    def observe(
        self, conversation_id: str, n: int, usage: Usage, model: str = "", at: str = "", usd: float | None = None
    ) -> None:
        """Keep what was reported for the call whose answer is entry `n`; a second report replaces the first."""
        self.conversation(conversation_id)
        observed = Observed(n=n, usage=usage, model=model, at=at, usd=usd)
        with self._database.writing() as cursor:
            self._run(cursor, tables.DROP_USAGE, of=conversation_id, at_n=n)
            self._add(cursor, tables.ADD_USAGE, [rows.observed_values(conversation_id, observed)])

    def usages(self, conversation_id: str) -> tuple[Observed, ...]:
        """All reports, in the order of their entries; those of shared entries are the parent's."""
        lineage = self._lineage(self.conversation(conversation_id), 0, EVERY)  # a report may come before the entry it is about
        return tuple(rows.observed_of(row) for stretch in lineage for row in self._select(tables.USAGES, **stretch._asdict()))

    def call_counts(self, tenant: str = "", newest: int = 200) -> tuple[int, ...]:
        """How many calls each of a tenant's newest conversations made that reported any, ascending. A fork counts its own."""
        return tuple(count for (count,) in self._select(tables.CALL_COUNTS, of=tenant, newest=newest))

    def note(self, conversation_id: str, spent: Spent) -> None:
        """Keep what a call of a helper model cost; it belongs to no entry."""
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_ASIDE, [rows.aside_values(conversation_id, spent)])

    def asides(self, conversation_id: str) -> tuple[Spent, ...]:
        """The calls of helper models, in the order in which they were noted. A fork starts with none."""
        self.conversation(conversation_id)
        return tuple(map(rows.aside_of, self._select(tables.ASIDES, of=conversation_id)))

    def hold(self, conversation_id: str, hold: Hold) -> None:
        """Keep a hold; holding again only renews the reason."""
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            self._drop_hold(cursor, conversation_id, hold)
            self._add(cursor, tables.ADD_HOLD, [rows.hold_values(conversation_id, hold)])

    def release(self, conversation_id: str, hold: Hold) -> bool:
        """Let go; False when it was not held."""
        self.conversation(conversation_id)
        with self._database.writing() as cursor:
            return self._drop_hold(cursor, conversation_id, hold) > 0

    def holds(self, conversation_id: str) -> tuple[Hold, ...]:
        """What is held, sorted by kind, entry, block and object."""
        self.conversation(conversation_id)
        return tuple(map(rows.hold_of, self._select(tables.HOLDS, of=conversation_id)))

    def fork(self, conversation_id: str, at: int, new_id: str, title: str = "") -> Conversation:
        """A new conversation that shares the entries below `at` and inherits their commits. Its source stays as it is."""
        sheet, commits = forked(self, self.conversation(conversation_id), at, new_id, title, self._now)
        with self._database.writing() as cursor:
            self._add(cursor, tables.ADD_CONVERSATION, [rows.conversation_values(sheet)])
            self._add(cursor, tables.ADD_COMMIT, [rows.commit_values(new_id, commit) for commit in commits])
        return sheet

    def verify(self, conversation_id: str) -> str | None:
        """Re-derive every hash; what is wrong with the first bad entry, or None. Memory does not grow with the record."""
        conversation = self.conversation(conversation_id)
        try:
            return wrong_with(conversation, self.entries(conversation_id, 0, conversation.length))
        except StoreError as error:
            return str(error)

    def _lineage(self, conversation: Conversation, start: int, stop: int) -> list[Stretch]:
        """Where the entries from `start` to `stop` are, oldest first."""
        stretches: list[Stretch] = []
        while True:
            own = Stretch(conversation.id, max(start, conversation.forked_at), stop)
            if own.start < own.stop:
                stretches.append(own)
            stop = min(stop, conversation.forked_at)
            if not conversation.parent or stop <= start:
                return stretches[::-1]
            conversation = self.conversation(conversation.parent)

    def _entries(self, stretches: list[Stretch]) -> Iterator[Entry]:
        for of, start, stop in stretches:
            for first in range(start, stop, PAGE):
                last = min(first + PAGE, stop)
                yield from map(rows.entry_of, self._select(tables.ENTRIES, of=of, start=first, stop=last, page=PAGE))

    def _advance(self, cursor: Cursor, conversation_id: str, entries: Sequence[Entry]) -> None:
        first, last = entries[0], entries[-1]
        swapped = self._run(
            cursor,
            tables.ADVANCE,
            of=conversation_id,
            old_length=first.n,
            old_head=first.parent,
            new_length=last.n + 1,
            new_head=last.id,
        )
        if not swapped:
            raise self._refusal(cursor, conversation_id, f"entry {first.n} after {first.parent[:12]}")

    def _advance_commits(self, cursor: Cursor, conversation_id: str, commits: Sequence[Commit]) -> None:
        before, after = commits[0].n, commits[-1].n + 1
        if not self._run(cursor, tables.ADVANCE_COMMITS, of=conversation_id, old_commits=before, new_commits=after):
            raise self._refusal(cursor, conversation_id, f"commit {before}")

    def _refusal(self, cursor: Cursor, conversation_id: str, what: str) -> Exception:
        """Why a compare-and-swap changed nothing, read in the transaction that failed."""
        self._run(cursor, tables.CONVERSATION, of=conversation_id)
        found = cursor.fetchall()
        if not found:
            return InputError("store", f"no conversation {conversation_id!r}")
        return refusal(rows.conversation_of(found[0]), what)

    def _drop_hold(self, cursor: Cursor, conversation_id: str, hold: Hold) -> int:
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

    def _run(self, cursor: Cursor, statement: Executable, **values: Any) -> int:
        return self._database.prepare(statement).run(cursor, values)

    def _add(self, cursor: Cursor, statement: Executable, values: list[rows.Values]) -> None:
        self._database.prepare(statement).run_all(cursor, values)
