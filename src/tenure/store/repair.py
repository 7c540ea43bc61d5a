"""Saving what is sound of a damaged store into a new one (an edge: it reads one store and writes another).

Messages keep their numbers: in place of one that is lost stands one that says so. What followed it is chained anew, so the hashes in its handles
change; where nothing is lost they are the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.chain import Chain, payload_wrong
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.laws import structural
from tenure.engine.view.project import Projection
from tenure.errors import InputError, LawBroken, StoreError
from tenure.store.records import Conversation, Lost
from tenure.store.soundness import in_place_of, is_held, missing
from tenure.store.store import Store

PLACE_TOKENS: Final = 24  # o200k, of the message that stands in place of a lost one, about


T = TypeVar("T")


class Saved(Struct, frozen=True, kw_only=True):
    """What came of one conversation."""

    id: str
    entries: int  # that are sound
    commits: int
    lost: tuple[str, ...]


def repair(source: Store, target: Store) -> Iterator[Saved]:
    """Save every conversation, one after the other; a fork after what it was forked from."""
    waiting = {each.id: each for each in source.mended_sheets()}
    while waiting:
        ready = [sheet for sheet in waiting.values() if sheet.parent not in waiting] or list(waiting.values())[:1]
        for sheet in ready:
            del waiting[sheet.id]
            yield _saved(source, target, sheet)


def _saved(source: Store, target: Store, sheet: Conversation) -> Saved:
    lost = list(source.wrongs(sheet.id))
    chain, index = Chain(sheet.tenant), Index()
    parent = _parent(target, sheet)
    for entry in target.entries(parent, 0, sheet.forked_at) if parent else ():
        chain.follow(entry)
        index.grow(entry)
    placed: list[Entry] = []
    sound, whole = chain.length, True
    for each in _own(source, sheet, shared=bool(parent)):
        held = each
        if isinstance(each, Entry) and (wrong := chain.ahead().follow(each) if whole else payload_wrong(each)):
            held = Lost(n=each.n, what=wrong, role=each.role)
        draft, tokens = (in_place_of(held), (PLACE_TOKENS,)) if isinstance(held, Lost) else (_draft(held), held.tokens)
        sound, whole = sound + isinstance(held, Entry), whole and isinstance(held, Entry)
        entry = chain.place(draft, tokens)
        index.grow(entry)
        placed.append(entry)
    commits = _commits(_rows(lambda: list(source.salvaged_commits(sheet.id, sheet.commits)), []), sheet, index, lost)
    kept = replace(
        sheet,
        parent=parent,
        forked_at=sheet.forked_at if parent else 0,
        head=chain.head,
        length=chain.length,
        commits=len(commits),
        budget=_readable(Budget.stored, sheet.budget),
        terms=_readable(Terms.stored, sheet.terms),
    )
    reports, asides, holds = _rows(lambda: source.salvaged_rest(sheet), ([], [], []))
    target.adopt(kept, placed, commits, reports, asides, [hold for hold in holds if is_held(index, hold)])
    return Saved(id=sheet.id, entries=sound, commits=len(commits), lost=tuple(lost))


def _rows(read: Callable[[], T], nothing: T) -> T:
    """What a table holds; nothing where it is gone, which `wrongs` tells."""
    try:
        return read()
    except StoreError:
        return nothing


def _parent(target: Store, sheet: Conversation) -> str:
    """The conversation that a fork shares entries with, where it was saved with all of them."""
    try:
        return sheet.parent if sheet.parent and target.conversation(sheet.parent).length >= sheet.forked_at else ""
    except InputError:
        return ""


def _own(source: Store, sheet: Conversation, *, shared: bool) -> Iterator[Entry | Lost]:
    """The entries that are the conversation's own; all where what it shared is lost."""
    found = list(source.salvaged(replace(sheet, parent="")))
    while found and isinstance(found[-1], Lost) and found[-1].what.endswith("missing"):
        found.pop()
    yield from () if shared else missing("entry", 0, sheet.forked_at)
    yield from found


def _draft(entry: Entry) -> Draft:
    return Draft(
        role=entry.role,
        blocks=entry.blocks,
        dialect=entry.dialect,
        payload=entry.payload,
        at=entry.at,
        model=entry.model,
        source=entry.source,
        line=entry.line,
    )


def _commits(found: Iterable[Commit | Lost], sheet: Conversation, index: Index, lost: list[str]) -> Sequence[Commit]:
    """The commits that can still be carried out, under their numbers; in place of another stands one that changes nothing.

    Those after which the view would not be lawful any more stay behind.
    """
    rules, view = rules_for("", sheet.model, sheet.dialect), Projection(index)
    commits: list[Commit] = []
    lawful = 0
    for each in found:
        commit = each if isinstance(each, Commit) else _nothing(each, commits)
        after = view.copy()
        try:
            after.grow_to(min(commit.entries, len(index)))
            after.apply(commit.edits)
        except (LawBroken, IndexError):
            commit = _nothing(Lost(n=commit.n, what=f"commit {commit.n} cannot be carried out"), commits)
        else:
            view = after
        commits.append(replace(commit, entries=min(commit.entries, len(index))))
        if not lost or not any(structural(view.freeze(), index, rules)):
            lawful = len(commits)
    if lawful < len(commits):
        lost.append(f"commits {lawful} to {len(commits) - 1} give no valid view without what is lost")
    return commits[:lawful]


def _nothing(lost: Lost, before: Sequence[Commit]) -> Commit:
    entries = before[-1].entries if before else 0
    return Commit(n=lost.n, entries=entries, policy="repair", moment="manual", reason=lost.what)


def _readable(read: Callable[[str], object], text: str) -> str:
    """The text, where it can be read; empty, which means the usual, where it cannot."""
    try:
        read(text)
    except InputError:
        return ""
    return text
