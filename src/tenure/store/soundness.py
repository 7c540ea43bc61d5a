"""Whether what a store holds is as it was written: entries, commits, usage and holds. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.chain import Chain, payload_wrong
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold, held_keys
from tenure.engine.view.project import Projection
from tenure.errors import InputError, LawBroken
from tenure.store.records import Conversation, Lost, Observed

MOST_MISSING: Final = 1_000


def checked(tenant: str, entries: Iterable[Entry | Lost]) -> Iterator[Entry | Lost]:
    """The entries with every hash derived again, and what is lost of them.

    Behind a lost entry the calls are not all known any more, so what depends on them is taken at its own hash's word.
    """
    chain: Chain | None = Chain(tenant)
    for each in entries:
        if isinstance(each, Entry) and (wrong := chain.follow(each) if chain is not None else payload_wrong(each)):
            yield Lost(n=each.n, what=wrong, role=each.role)
            chain = None
            continue
        if isinstance(each, Lost):
            chain = None
        yield each


def wrongs(
    sheet: Conversation,
    entries: Iterable[Entry | Lost],
    commits: Iterable[Commit | Lost],
    reports: Iterable[Observed | Spent | Lost],
    holds: Iterable[Hold | Lost],
) -> Iterator[str]:
    """All that is wrong with a conversation, in words. Of the record only its index is kept in memory."""
    yield from _sheet(sheet)
    index, head, whole = Index(), "", True
    for each in checked(sheet.tenant, entries):
        if isinstance(each, Lost):
            yield each.what
            whole = False
        else:
            head = each.id
            if whole:
                index.grow(each)
    if whole and sheet.length and head != sheet.head:
        yield f"{sheet.length} entries up to {head[:12]}, expected {sheet.head[:12]}"
    yield from _commits(sheet, index, commits, whole=whole)
    yield from (each.what for each in reports if isinstance(each, Lost))
    for hold in holds:
        if isinstance(hold, Lost):
            yield hold.what
        elif whole and not is_held(index, hold):
            yield f"a {hold.kind} of {hold.object!r}, which the record does not have"


def missing(what: str, start: int, stop: int) -> Iterator[Lost]:
    """What is not there: one by one, or in one sentence where a number is so wrong that there is no end."""
    if stop - start > MOST_MISSING:
        yield Lost(n=start, what=f"{what} {start} to {stop - 1} are missing")
        return
    yield from (Lost(n=n, what=f"{what} {n} is missing") for n in range(start, stop))


def in_place_of(lost: Lost) -> Draft:
    """The message that says what stood in its place."""
    role = next((role for role in Role if role.value == lost.role), Role.USER)
    return Draft(role=role, blocks=(Text(text=f"[this message is lost: {lost.what}]", origin=Origin.HARNESS),))


def is_held(index: Index, hold: Hold) -> bool:
    """Whether the record has what is held."""
    try:
        held_keys(index, hold)
    except InputError:
        return False
    return True


def _sheet(sheet: Conversation) -> Iterator[str]:
    for read, text in ((Budget.stored, sheet.budget), (Terms.stored, sheet.terms)):
        try:
            read(text)
        except InputError as error:
            yield str(error)


def _commits(sheet: Conversation, index: Index, commits: Iterable[Commit | Lost], *, whole: bool) -> Iterator[str]:
    """What is wrong with commits, each by itself and as a change of the view before it."""
    view, readable, last = Projection(index), whole, -1
    for commit in commits:
        last = commit.n
        if isinstance(commit, Lost):
            yield commit.what
            readable = False
        if not readable or isinstance(commit, Lost):
            continue
        try:
            view.grow_to(commit.entries)
            view.apply(commit.edits)
        except (LawBroken, IndexError) as error:
            yield f"commit {commit.n} cannot be carried out ({error})"
            readable = False
    if last >= sheet.commits:
        yield f"{last + 1} commits, expected {sheet.commits}"
