"""Whether what a store holds is as it was written: entries, commits, usage and holds; and reading a conversation only if it is."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.ledger import Spent
from tenure.engine.record.chain import Chain, payload_wrong
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Text
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold, held_keys
from tenure.engine.view.project import Projection
from tenure.errors import Damaged, InputError, LawBroken
from tenure.store.records import Conversation, Lost, Observed, Records

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


def encoded(value: Budget | Terms) -> str:
    """As a cover sheet keeps it."""
    return msgspec.json.encode(value).decode()


def held_to(
    store: Records,
    conversation: str,
    budget: Budget | None,
    asked: Callable[[Terms, Conversation], Terms],
    *,
    dialect: str,
    model: str,
) -> tuple[Conversation, Terms]:
    """The cover sheet and terms of a conversation, with what is asked for stored. Raises Damaged for a stored budget that cannot be read."""
    sheet = store.conversation(conversation)
    try:
        kept = replace(
            sheet,
            dialect=dialect or sheet.dialect,
            model=model or sheet.model,
            budget=encoded(budget or Budget.stored(sheet.budget)),
            terms=encoded(terms := asked(Terms.stored(sheet.terms), sheet)),
        )
    except InputError as error:
        if error.where in ("budget", "terms"):
            raise Damaged(f"its {error}", store.where, conversation) from error
        raise
    if kept != sheet:
        store.hold_to(kept)
    return kept, terms


@contextmanager
def damage_in(store: Records, conversation: str) -> Generator[None]:
    """Raise Damaged for entries and commits that do not follow each other."""
    try:
        yield
    except (ValueError, LawBroken, IndexError) as error:
        raise Damaged(str(error), store.where, conversation) from error


def whole_record(store: Records, sheet: Conversation) -> Iterator[Entry]:
    """The entries of a conversation, with every hash derived again. Raises Damaged for one that is not as it was written."""
    for each in checked(sheet.tenant, store.entries(sheet.id)):
        if isinstance(each, Lost):
            raise Damaged(each.what, store.where, sheet.id)
        yield each


def sound_holds(store: Records, conversation: str, index: Index) -> tuple[Hold, ...]:
    """What is held of what the record has; a hold of something else is reported, and holds nothing."""
    held = store.holds(conversation)
    sound = tuple(hold for hold in held if is_held(index, hold))
    for hold in held:
        if hold not in sound:
            what = f"a {hold.kind} of {hold.object!r}, which the record does not have"
            store.on_damage(f"{store.where}: conversation {conversation!r}: {what}")
    return sound
