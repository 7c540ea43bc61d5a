"""What every store refuses, and in which words."""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import USUAL, Budget
from tenure.engine.record.chain import genesis
from tenure.engine.record.entry import Entry
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.inherit import Shared, inherited
from tenure.errors import Conflict, InputError, LawBroken, StoreError
from tenure.store.records import Conversation, Now, Records

_HEX: Final = re.compile(r"[0-9a-f]{1,64}")


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


def commit_id(parent: str, body: bytes) -> str:
    """The hash of a commit as it is stored, after the one whose hash is `parent`; the first follows an empty text."""
    return sha256(parent.encode() + b"\0" + body).hexdigest()


def require_hex(prefix: str) -> None:
    """InputError unless `prefix` is the start of a hash."""
    if not _HEX.fullmatch(prefix):
        raise InputError("store", f"the hash {prefix!r}", "1 to 64 digits of 0-9a-f")


def forked(
    store: Records, source: Conversation, at: int, new_id: str, title: str, now: Now
) -> tuple[Conversation, tuple[Commit, ...]]:
    """The cover sheet of a fork, and the commits it starts with. Raises InputError unless `at` is a number of entries that the source has."""
    if not 0 <= at <= source.length:
        raise InputError("store", f"the fork point {at}", f"0 to {source.length}, the entries of {source.id!r}")

    def shared() -> Shared:
        index = Index()
        for entry in store.entries(source.id, 0, at):
            index.grow(entry)
        limit = Budget.stored(source.budget, otherwise=USUAL).limit
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
