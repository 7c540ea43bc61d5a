"""The in-memory twin of the store. It keeps the same promises while the process lives, held to them by the same tests."""

from collections.abc import Iterator, Sequence
from itertools import count
from threading import RLock

from msgspec.structs import replace

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Entry, Usage
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold
from tenure.errors import Conflict, InputError
from tenure.store.records import (
    REPORT,
    ClientLink,
    Conversation,
    Now,
    Observed,
    Records,
    descendants,
    forked,
    opened,
    refusal,
    require_order,
)
from tenure.store.soundness import wrongs
from tenure.store.spills import Spills


class MemoryStore(Records):
    """`Records` in lists: its methods are described there. Its clock, unless one is handed in, counts seconds from 2026-01-01, so that tests repeat."""

    def __init__(self, *, now: Now | None = None, spills: Spills | None = None) -> None:
        ticks = count()
        self._now = now or (lambda: f"2026-01-01T{(t := next(ticks)) // 3600:02}:{t // 60 % 60:02}:{t % 60:02}Z")
        self.spills = spills or Spills()
        self.on_damage = REPORT
        self.where = "the store in memory"
        self._lock = RLock()
        self._conversations: dict[str, Conversation] = {}
        self._entries: dict[str, list[Entry]] = {}  # own entries; those of a fork begin at its fork point
        self._commits: dict[str, list[Commit]] = {}
        self._usages: dict[str, dict[int, Observed]] = {}
        self._asides: dict[str, list[Spent]] = {}
        self._holds: dict[str, dict[tuple[str, str], Hold]] = {}
        self._links: dict[str, ClientLink] = {}

    def close(self) -> None:
        """Nothing to let go of; what is kept stays readable."""

    def create(self, conversation: Conversation, entries: Sequence[Entry] = (), commits: Sequence[Commit] = ()) -> Conversation:
        return self._add(opened(conversation, entries, commits, self._now), commits, entries)

    def entitle(self, conversation_id: str, title: str, *, instead: str = "") -> bool:
        with self._lock:
            sheet = self.conversation(conversation_id)
            if sheet.title == instead:
                self._conversations[conversation_id] = replace(sheet, title=title)
            return sheet.title == instead

    def hold_to(self, sheet: Conversation) -> None:
        with self._lock:
            held = self.conversation(sheet.id)
            self._conversations[sheet.id] = replace(
                held, dialect=sheet.dialect, model=sheet.model, budget=sheet.budget, terms=sheet.terms
            )

    def conversation(self, conversation_id: str) -> Conversation:
        found = self._conversations.get(conversation_id)
        if found is None:
            raise InputError("store", f"no conversation {conversation_id!r}")
        return found

    def conversations(self, tenant: str | None = "") -> tuple[Conversation, ...]:
        with self._lock:
            found = [each for each in self._conversations.values() if tenant is None or each.tenant == tenant]
        return tuple(sorted(found, key=lambda each: (each.created, each.id), reverse=True))

    def append(self, conversation_id: str, entries: Sequence[Entry], commits: Sequence[Commit] = ()) -> None:
        require_order(entries, commits)
        with self._lock:
            before = self.conversation(conversation_id)
            after = before
            if entries:
                if (entries[0].n, entries[0].parent) != (before.length, before.head):
                    raise refusal(before, f"entry {entries[0].n} after {entries[0].parent[:12]}")
                after = replace(after, length=entries[-1].n + 1, head=entries[-1].id)
            if commits:
                if commits[0].n != before.commits:
                    raise refusal(before, f"commit {commits[0].n}")
                after = replace(after, commits=commits[-1].n + 1)
            self._conversations[conversation_id] = after
            self._entries[conversation_id].extend(entries)
            self._commits[conversation_id].extend(commits)

    def entries(self, conversation_id: str, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        conversation = self.conversation(conversation_id)
        end = conversation.length if stop is None else min(stop, conversation.length)
        return self._walk(conversation, max(start, 0), end)

    def commits(self, conversation_id: str) -> tuple[Commit, ...]:
        self.conversation(conversation_id)
        return tuple(self._commits[conversation_id])

    def observe(
        self, conversation_id: str, n: int, usage: Usage, model: str = "", at: str = "", usd: float | None = None
    ) -> None:
        self.conversation(conversation_id)
        self._usages[conversation_id][n] = Observed(n=n, usage=usage, model=model, at=at, usd=usd)

    def usages(self, conversation_id: str) -> tuple[Observed, ...]:
        conversation = self.conversation(conversation_id)
        own = self._usages[conversation_id]
        shared = self.usages(conversation.parent) if conversation.parent else ()
        below = tuple(each for each in shared if each.n < conversation.forked_at)
        return below + tuple(own[n] for n in sorted(own) if n >= conversation.forked_at)

    def call_counts(self, tenant: str = "", newest: int = 200) -> tuple[int, ...]:
        counts = (len(self._usages[each.id]) for each in self.conversations(tenant)[:newest])
        return tuple(sorted(count for count in counts if count))

    def note(self, conversation_id: str, spent: Spent) -> None:
        self.conversation(conversation_id)
        self._asides[conversation_id].append(spent)

    def asides(self, conversation_id: str) -> tuple[Spent, ...]:
        self.conversation(conversation_id)
        return tuple(self._asides[conversation_id])

    def hold(self, conversation_id: str, hold: Hold) -> None:
        self.conversation(conversation_id)
        self._holds[conversation_id][hold.kind, hold.object] = hold

    def release(self, conversation_id: str, hold: Hold) -> bool:
        self.conversation(conversation_id)
        return self._holds[conversation_id].pop((hold.kind, hold.object), None) is not None

    def holds(self, conversation_id: str) -> tuple[Hold, ...]:
        self.conversation(conversation_id)
        held = self._holds[conversation_id]
        return tuple(held[key] for key in sorted(held))

    def link(self, links: Sequence[ClientLink]) -> None:
        with self._lock:
            self._links.update((each.id, each) for each in links)

    def links(self, ids: Sequence[str]) -> tuple[ClientLink, ...]:
        with self._lock:
            return tuple(self._links[each] for each in ids if each in self._links)

    def fork(self, conversation_id: str, at: int, new_id: str, title: str = "") -> Conversation:
        return self._add(*forked(self, self.conversation(conversation_id), at, new_id, title, self._now))

    def forget(self, conversation_id: str) -> tuple[str, ...]:
        with self._lock:
            self.conversation(conversation_id)
            gone = descendants(conversation_id, [(each.id, each.parent) for each in self._conversations.values()])
            for table in (self._conversations, self._entries, self._commits, self._usages, self._asides, self._holds):
                for id_ in gone:
                    del table[id_]
            self._links = {key: link for key, link in self._links.items() if link.conversation not in gone}
        self.spills.forget(gone, ())
        return gone

    def verify(self, conversation_id: str) -> str | None:
        sheet = self.conversation(conversation_id)
        entries = self.entries(conversation_id, 0, sheet.length)
        return next(wrongs(sheet, entries, self.commits(sheet.id), self.usages(sheet.id), self.holds(sheet.id)), None)

    def _add(self, conversation: Conversation, commits: Sequence[Commit], entries: Sequence[Entry] = ()) -> Conversation:
        with self._lock:
            if conversation.id in self._conversations:
                raise Conflict(f"{conversation.id!r} is taken by another conversation")
            self._conversations[conversation.id] = conversation
            self._entries[conversation.id] = list(entries)
            self._commits[conversation.id] = list(commits)
            self._usages[conversation.id] = {}
            self._asides[conversation.id] = []
            self._holds[conversation.id] = {}
        return conversation

    def _walk(self, conversation: Conversation, start: int, stop: int) -> Iterator[Entry]:
        if conversation.parent and start < conversation.forked_at:
            yield from self._walk(self.conversation(conversation.parent), start, min(stop, conversation.forked_at))
        own = self._entries[conversation.id]
        for n in range(max(start, conversation.forked_at), stop):
            yield own[n - conversation.forked_at]
