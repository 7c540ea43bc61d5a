"""A conversation that goes on: what it is held to, and what of it cannot be taken in again (an edge)."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.entry import Entry
from tenure.engine.record.index import Index
from tenure.engine.view.guard import Hold
from tenure.errors import Damaged, InputError, LawBroken
from tenure.store.records import Conversation, Lost, Records
from tenure.store.soundness import checked, is_held


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
    for hold in held:
        if not is_held(index, hold):
            store.on_damage(
                f"{store.where}: conversation {conversation!r}: a {hold.kind} of {hold.object!r}, which the record does not have"
            )
    return tuple(hold for hold in held if is_held(index, hold))
