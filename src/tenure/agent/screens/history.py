"""A session as the viewer reads it: its record, and everything that changed what the model saw; plain search in it (an edge)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.screens import clean
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.tokens import Tokenizer, weigh
from tenure.engine.record.entry import At, Draft, Entry, Usage
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit
from tenure.engine.view.guard import Hold
from tenure.engine.view.project import View, project
from tenure.errors import InputError
from tenure.lab.loading import own_address, own_store, source
from tenure.lab.recorded import Recorded
from tenure.lab.source import DEFAULT_MODEL, Reading
from tenure.logs.places import stores
from tenure.logs.reader import Rewritten
from tenure.store.soundness import whole_record

if TYPE_CHECKING:
    from tenure.context import Context
    from tenure.store.records import Conversation, Records

PAGE: Final = 32  # entries read at once from a store
PAGES: Final = 16
MOST: Final = 500  # places of searched words that are listed
_BEFORE: Final = 40  # characters shown before a match
_SHOWN: Final = 240


class History(Struct, frozen=True, kw_only=True):
    """A record with its commits. `context` is there while the session is live: only then can it be changed."""

    title: str
    format: str
    model: str  # the newest that is named; empty when none is
    index: Index
    read: Callable[[int], Entry]
    commits: Sequence[Commit]
    usages: Mapping[int, Usage]  # by the entry of the answer
    holds: tuple[Hold, ...] = ()
    context: "Context | None" = None
    sheet: "Conversation | None" = None  # of a conversation in a store of ours

    @property
    def calls(self) -> int:
        """How many times the model was asked."""
        return len(self.index.steps)

    def view_at(self, call: int) -> View:
        """What the model saw at its `call`-th call, from 0; at `calls`, what it would see next. Raises InputError beyond."""
        if not 0 <= call <= self.calls:
            raise InputError("call", str(call), f"0 to {self.calls}")
        if call == self.calls:
            return project(self.index, len(self.index), self.commits)
        length = self.index.steps[call].entry
        return project(self.index, length, [commit for commit in self.commits if commit.entries <= length])


def of_context(context: "Context", *, title: str = "", model: str = "") -> History:
    """A live session. What is committed later is seen in the next one that is made."""
    store, name = context.store, context.conversation
    return History(
        title=title or name,
        format="live",
        model=model,
        index=context.session.index,
        read=paged(store, name),
        commits=tuple(context.session.commits),
        usages={each.n: each.usage for each in store.usages(name)},
        holds=context.session.holds,
        context=context,
        sheet=store.conversation(name),
    )


def paged(store: "Records", conversation: str) -> Callable[[int], Entry]:
    """Entries by number, read by the page, of which a few are kept: whoever looks at one mostly looks at its neighbours."""
    pages: dict[int, tuple[Entry, ...]] = {}

    def read(n: int) -> Entry:
        page, place = divmod(n, PAGE)
        if place >= len(pages.get(page, ())):  # not read yet, or grown since
            while len(pages) >= PAGES:
                del pages[next(iter(pages))]
            pages[page] = tuple(store.entries(conversation, page * PAGE, (page + 1) * PAGE))
        return pages[page][place]

    return read


def of_address(address: str, count: Tokenizer) -> History:
    """A session of any known agent, or a conversation in a store of ours. Raises InputError for what cannot be read."""
    reading = Reading(source(address))
    if reading.format != stores.OWN:
        return _of_events(reading, count)
    place = own_address(address)
    assert place is not None
    with own_store(*place) as (store, sheet):
        return of_records(store, sheet.id)


def of_records(store: "Records", conversation: str) -> History:
    """A conversation of an open store."""
    sheet = store.conversation(conversation)
    entries, index = list(whole_record(store, sheet)), Index()
    for entry in entries:
        index.grow(entry)
    return History(
        title=sheet.title or sheet.id,
        format=stores.OWN,
        model=sheet.model,
        index=index,
        read=entries.__getitem__,
        commits=store.commits(conversation),
        usages={each.n: each.usage for each in store.usages(conversation)},
        holds=store.holds(conversation),
        sheet=sheet,
    )


def placing(setup: Setup, count: Tokenizer) -> Session:
    """A session that gives drafts their places in a record."""
    return Session(setup, weigh=lambda blocks: weigh(blocks, count, setup.rules.media), count=count)


def _of_events(reading: Reading, count: Tokenizer) -> History:
    """The record that a replay makes, and the agent's own compactions as commits where they happened."""
    session: Session | None = None
    window: Recorded | None = None
    entries, commits, usages, model = list[Entry](), list[Commit](), dict[int, Usage](), ""
    for event in reading.events:
        match event:
            case Draft():
                model = event.model or model
                if session is None or window is None:
                    rules = rules_for("", reading.model or DEFAULT_MODEL, "")
                    session = placing(Setup(budget=Budget(), rules=rules, policy=None), count)
                    window = Recorded(session.index, count)
                for entry in session.append(event).entries:
                    window.append(entry)
                    entries.append(entry)
                if event.usage is not None:
                    usages[entries[-1].n] = event.usage
            case Rewritten() if window is not None:
                before = window.view.tokens
                if edits := window.rewrite(event):
                    made = Commit(n=len(commits), entries=len(entries), policy="recorded", moment="recorded", reason=event.reason)
                    commits.append(replace(made, edits=edits, tokens_before=before, tokens_after=window.view.tokens))
            case _:
                pass
    return History(
        title=Path(reading.source.path).name,
        format=reading.format,
        model=model,
        index=session.index if session is not None else Index(),
        read=entries.__getitem__,
        commits=commits,
        usages=usages,
    )


class Occurrence(Struct, frozen=True, kw_only=True, gc=False):
    """A block that holds the words, with the first place of them."""

    at: At
    words: str


def find(history: History, words: str) -> tuple[Occurrence, ...]:
    """The newest blocks that hold the words, letter case aside, oldest first."""
    wanted = " ".join(words.split()).casefold()
    return tuple(islice(_occurrences(history, wanted), MOST))[::-1] if wanted else ()


def _occurrences(history: History, wanted: str) -> Iterator[Occurrence]:
    for entry in range(len(history.index) - 1, -1, -1):
        for number, block in reversed(list(enumerate(history.read(entry).blocks))):
            place = block.text.casefold().find(wanted)
            if place >= 0:
                start = max(0, place - _BEFORE)
                yield Occurrence(at=(entry, number), words=clean.line(block.text[start : start + _SHOWN]))
