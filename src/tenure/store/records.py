"""What a store of records is, and what every store refuses.

`Store` keeps it in a database, `tenure.testing.store.MemoryStore` in memory; one suite of tests holds both to this contract.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import USUAL, Budget
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.chain import genesis
from tenure.engine.record.entry import Entry, Usage
from tenure.engine.record.index import index_of
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold
from tenure.engine.view.inherit import Shared, inherited
from tenure.errors import Conflict, InputError, LawBroken, StoreError
from tenure.store.spills import Spills

Now = Callable[[], str]

SHOWN: Final = 10  # ids named in an error
REPORT: Final = logging.getLogger("tenure.store").warning  # of damage, unless a host says where it is to go
OWN_STORE: Final = "sessions.db"  # the agent's, in its folder
PART: Final = "part: "  # how the titles of sub-agents' conversations begin: nobody goes on with them by accident


def utc_now() -> str:
    """The time as ISO 8601 in UTC, in microseconds, so that texts sort like times."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Conversation(Struct, frozen=True, kw_only=True):
    """A record's cover sheet. `head`, `length`, `commits` and an empty `created` are filled in by the store."""

    id: str
    tenant: str = ""
    title: str = ""
    parent: str = ""  # the conversation it was forked from or built from, "" for none
    forked_at: int = 0  # entries shared with the parent; 0 of one that was built
    model: str = ""
    dialect: str = ""
    budget: str = ""  # JSON; the store does not look inside
    head: str = ""  # id of the newest entry, or the tenant's genesis
    length: int = 0  # entries
    commits: int = 0
    created: str = ""  # ISO 8601 in UTC
    terms: str = ""  # JSON, likewise: policy, gate, clip, where requests go

    @property
    def is_part(self) -> bool:
        """Whether a sub-agent does a part of another's task in it."""
        return self.title.startswith(PART)


class Lost(Struct, frozen=True, kw_only=True, gc=False):
    """An entry or a commit that is not as it was written."""

    n: int
    what: str
    role: str = ""  # of an entry, where it can be read


class Observed(Struct, frozen=True, kw_only=True, gc=False):
    """What a provider reported for the agent's call whose answer is entry `n`, and what it cost then."""

    n: int
    usage: Usage
    model: str = ""
    at: str = ""
    usd: float | None = None  # None: not known, or stored by a version that did not keep it

    @property
    def spent(self) -> Spent:
        """The call as a ledger takes it."""
        return Spent(model=self.model, usage=self.usage, usd=self.usd, at=self.at)


class ClientLink(Struct, frozen=True, kw_only=True, gc=False):
    """Behind a place in a client's history, known by its hash, stand the first `n` entries of a conversation."""

    id: str
    conversation: str
    n: int


class Records(Protocol):
    """Conversations, their entries, commits, usage and holds. Appending is nearly all there is.

    Only holds are ever taken away, and whole conversations by `forget`; only titles, dialects, models, budgets and terms change.

    An unknown conversation or entry raises InputError. A writer that was not first gets Conflict, and then nothing of its call
    is stored. A store that cannot be written raises StoreError, and everything stored before is still there.
    """

    where: str  # the file or URL, as errors name it
    on_damage: Callable[[str], None]  # is told what was left out because it is damaged
    spills: Spills  # where outputs are kept that are too large for an entry

    def create(self, conversation: Conversation, entries: Sequence[Entry] = (), commits: Sequence[Commit] = ()) -> Conversation:
        """Open a new conversation with its first entries and commits, none unless given, all or nothing; Conflict when the id is taken."""
        ...

    def entitle(self, conversation_id: str, title: str, *, instead: str = "") -> bool:
        """Give a conversation a title in place of the one it has, `instead`; False when it has another, which stays."""
        ...

    def hold_to(self, sheet: Conversation) -> None:
        """Keep what a conversation is held to from now on: the dialect, model, budget and terms of this sheet, and nothing else of it."""
        ...

    def conversation(self, conversation_id: str) -> Conversation:
        """The cover sheet as it is now."""
        ...

    def conversations(self, tenant: str | None = "") -> tuple[Conversation, ...]:
        """All conversations of a tenant, newest first; None: of every tenant."""
        ...

    def append(self, conversation_id: str, entries: Sequence[Entry], commits: Sequence[Commit] = ()) -> None:
        """Add entries, and the commits that belong to them, all or none. They follow the head and the newest commit."""
        ...

    def commit(self, conversation_id: str, commit: Commit) -> None:
        """Add a commit; its `n` is the number of commits so far."""
        self.append(conversation_id, (), (commit,))

    def entry(self, conversation_id: str, n: int) -> Entry:
        """One entry."""
        for entry in self.entries(conversation_id, n, n + 1):
            return entry
        raise InputError("store", f"no entry {n} in conversation {conversation_id!r}")

    def entries(self, conversation_id: str, start: int = 0, stop: int | None = None) -> Iterator[Entry]:
        """Entries in order, a few at a time: memory does not grow with their number. Those appended meanwhile are not seen."""
        ...

    def commits(self, conversation_id: str) -> tuple[Commit, ...]:
        """The commit log in order. Raises Damaged when it is not as it was written."""
        ...

    def observe(
        self, conversation_id: str, n: int, usage: Usage, model: str = "", at: str = "", usd: float | None = None
    ) -> None:
        """Keep what was reported for the call whose answer is entry `n`; a second report replaces the first."""
        ...

    def usages(self, conversation_id: str) -> tuple[Observed, ...]:
        """All reports, in the order of their entries; those of shared entries are the parent's."""
        ...

    def call_counts(self, tenant: str = "", newest: int = 200) -> tuple[int, ...]:
        """How many calls each of a tenant's newest conversations made that reported any, ascending. A fork counts its own."""
        ...

    def note(self, conversation_id: str, spent: Spent) -> None:
        """Keep what a call of a helper model cost; it belongs to no entry."""
        ...

    def asides(self, conversation_id: str) -> tuple[Spent, ...]:
        """The calls of helper models, in the order in which they were noted. A fork starts with none."""
        ...

    def hold(self, conversation_id: str, hold: Hold) -> None:
        """Keep a hold; holding again only renews the reason."""
        ...

    def release(self, conversation_id: str, hold: Hold) -> bool:
        """Let go; False when it was not held."""
        ...

    def holds(self, conversation_id: str) -> tuple[Hold, ...]:
        """What is held, sorted. A fork starts with no holds: they are the host's word about one conversation."""
        ...

    def link(self, links: Sequence[ClientLink]) -> None:
        """Keep what stands behind places of clients' histories; of one that is known already the newer word counts."""
        ...

    def links(self, ids: Sequence[str]) -> tuple[ClientLink, ...]:
        """Those that are kept of these places, in no order."""
        ...

    def fork(self, conversation_id: str, at: int, new_id: str, title: str = "") -> Conversation:
        """A new conversation that shares the entries below `at` and inherits their commits. Its source stays as it is."""
        ...

    def forget(self, conversation_id: str) -> tuple[str, ...]:
        """Delete a conversation for good, with all that descend from it, since they share its entries or hold copies; their ids, its own last.

        Files of outputs that nothing refers to any more go too.
        """
        ...

    def verify(self, conversation_id: str) -> str | None:
        """Check entries, commits, usage and holds; what is wrong first, or None."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def conversation_named(store: Records, address: str, id_: str = "") -> Conversation:
    """The conversation of that id; without one the newest, a sub-agent's only where there is no other. Raises InputError, naming those there are."""
    found = store.conversations(None)
    if not found:
        raise InputError(address, "the store holds no conversation", "at least one")
    own = [held for held in found if not held.is_part] or found
    named = next((held for held in found if held.id == id_), None) if id_ else own[0]
    if named is None:
        raise InputError(address, f"no conversation {id_!r}", "one of " + ", ".join(repr(held.id) for held in found[:SHOWN]))
    return named


def descendants(conversation_id: str, parents: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All conversations that were made from one, and it itself last: children before their parents. `parents`: each id with its parent's."""
    children: dict[str, list[str]] = {}
    for id_, parent in parents:
        children.setdefault(parent, []).append(id_)
    found, waiting = {conversation_id: None}, [conversation_id]
    while waiting:
        fresh = [id_ for id_ in children.get(waiting.pop(), ()) if id_ not in found]
        found |= dict.fromkeys(fresh)
        waiting += fresh
    return tuple(found)[::-1]


def require_order(entries: Sequence[Entry], commits: Sequence[Commit]) -> None:
    """InputError unless the entries follow each other, and the commits do."""
    for before, after in pairwise(entries):
        if after.n != before.n + 1 or after.parent != before.id:
            raise InputError(
                "store", f"entry {after.n} after entry {before.n}", f"entry {before.n + 1} with the parent {before.id[:12]}"
            )
    for n, commit in enumerate(commits, commits[0].n if commits else 0):
        if commit.n != n:
            raise InputError("store", f"commit {commit.n}", f"commit {n}")


def opened(conversation: Conversation, entries: Sequence[Entry], commits: Sequence[Commit], now: Now) -> Conversation:
    """The cover sheet of a new conversation that begins with these. Raises InputError unless they are a chain from its genesis, and a log from 0."""
    require_order(entries, commits)
    if commits and commits[0].n:
        raise InputError("store", f"commit {commits[0].n} first", "commit 0")
    start = genesis(conversation.tenant)
    if entries and (entries[0].n, entries[0].parent) != (0, start):
        raise InputError("store", f"entry {entries[0].n} first", f"entry 0 with the parent {start[:12]}")
    return replace(
        conversation,
        forked_at=0,
        head=entries[-1].id if entries else start,
        length=len(entries),
        commits=len(commits),
        created=conversation.created or now(),
    )


def forked(
    store: Records, source: Conversation, at: int, new_id: str, title: str, now: Now
) -> tuple[Conversation, tuple[Commit, ...]]:
    """The cover sheet of a fork, and the commits it starts with. Raises InputError unless `at` is a number of entries that the source has."""
    if not 0 <= at <= source.length:
        raise InputError("store", f"the fork point {at}", f"0 to {source.length}, the entries of {source.id!r}")

    def shared() -> Shared:
        index, limit = index_of(store.entries(source.id, 0, at)), Budget.stored(source.budget, otherwise=USUAL).limit
        return Shared(index=index, rules=rules_for("", source.model, source.dialect), limit=limit)

    try:
        commits = inherited(store.commits(source.id), at, shared)
    except LawBroken as error:
        raise StoreError(f"conversation {source.id!r}: its commits do not follow each other ({error})") from error
    sheet = replace(
        source,
        id=new_id,
        title=title or source.title,
        parent=source.id,
        forked_at=at,
        head=store.entry(source.id, at - 1).id if at else genesis(source.tenant),
        length=at,
        commits=len(commits),
        created=now(),
    )
    return sheet, commits


def refusal(conversation: Conversation, what: str) -> Conflict:
    """Why a writer that was not first gets nothing."""
    return Conflict(
        f"conversation {conversation.id!r}: {what} is not next: another writer was first, and it has {conversation.length} entries, "
        f"head {conversation.head[:12]}, and {conversation.commits} commits now; open the conversation again to go on with it"
    )
