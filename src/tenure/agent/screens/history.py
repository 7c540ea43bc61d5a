"""A session as the viewer reads it: its record, and everything that changed what the model saw; plain search in it (an edge)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tenure.agent.screens import clean
from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import USUAL, Budget
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
from tenure.lab.replay import DEFAULT_MODEL, Reading
from tenure.logs.places import stores
from tenure.logs.reader import Rewritten
from tenure.store.soundness import whole_record

if TYPE_CHECKING:
    from tenure.context import Context
    from tenure.store.records import Conversation, Records

PAGE: Final = 32  # entries read at once from a store
PAGES: Final = 16


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
    limit: int = 0  # provider tokens; 0: none is known
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
        length = len(self.index) if call == self.calls else self.index.steps[call].entry
        if call == self.calls:
            return project(self.index, length, self.commits)
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
        limit=context.gauge.limit,
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
    if reading.format == stores.OWN:
        return _of_store(address)
    return _of_events(reading, count)


def of_records(store: "Records", conversation: str) -> History:
    """A conversation of an open store."""
    sheet = store.conversation(conversation)
    entries = list(whole_record(store, sheet))
    index = Index()
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
        limit=Budget.stored(sheet.budget, otherwise=USUAL).limit,
        sheet=sheet,
    )


def _of_store(address: str) -> History:
    found = own_address(address)
    assert found is not None
    with own_store(*found) as (store, sheet):
        return of_records(store, sheet.id)


def _of_events(reading: Reading, count: Tokenizer) -> History:
    """The record that a replay makes, and the agent's own compactions as commits where they happened."""
    placing: Session | None = None
    window: Recorded | None = None
    entries: list[Entry] = []
    commits: list[Commit] = []
    usages: dict[int, Usage] = {}
    model = ""
    for event in reading.events:
        match event:
            case Draft():
                model = event.model or model
                placing = placing or _placing(reading.model or DEFAULT_MODEL, count)
                window = window or Recorded(placing.index, count)
                for entry in placing.append(event).entries:
                    window.append(entry)
                    entries.append(entry)
                if event.usage is not None:
                    usages[entries[-1].n] = event.usage
            case Rewritten() if window is not None:
                commits.extend(_rewritten(window, event, len(commits), len(entries)))
            case _:
                pass
    return History(
        title=Path(reading.source.path).name,
        format=reading.format,
        model=model,
        index=placing.index if placing is not None else Index(),
        read=entries.__getitem__,
        commits=commits,
        usages=usages,
    )


def _rewritten(window: Recorded, event: Rewritten, n: int, length: int) -> Iterator[Commit]:
    before = window.view.tokens
    edits = window.rewrite(event)
    if edits:
        yield Commit(
            n=n,
            entries=length,
            policy="recorded",
            moment="recorded",
            reason=event.reason,
            tokens_before=before,
            tokens_after=window.view.tokens,
            edits=edits,
        )


def _placing(model: str, count: Tokenizer) -> Session:
    rules = rules_for("", model, "")
    setup = Setup(budget=Budget(), rules=rules, policy=None)
    return Session(setup, weigh=lambda blocks: weigh(blocks, count, rules.media), count=count)


MOST: Final = 500
_BEFORE: Final = 40  # characters shown before a match
_SHOWN: Final = 240


class Occurrence(Struct, frozen=True, kw_only=True, gc=False):
    """A block that holds the words, with the first place of them."""

    at: At
    words: str


def find(history: History, words: str) -> tuple[Occurrence, ...]:
    """The newest blocks that hold the words, letter case aside, oldest first."""
    wanted = " ".join(words.split()).casefold()
    return tuple(reversed(list(islice(_found(history, wanted), MOST)))) if wanted else ()


def _found(history: History, wanted: str) -> Iterator[Occurrence]:
    for entry in range(len(history.index) - 1, -1, -1):
        for number, block in reversed(list(enumerate(history.read(entry).blocks))):
            place = block.text.casefold().find(wanted)
            if place >= 0:
                start = max(0, place - _BEFORE)
                yield Occurrence(at=(entry, number), words=clean.line(block.text[start : start + _SHOWN]))
