"""Sessions as sources: other tools' files, and records of our own. Promise: nothing is lost; nothing is written."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.errors import InputError
from tenure.evals.replay import Source
from tenure.files import STDIN, open_session
from tenure.lifecycle.budget import Budget
from tenure.lifecycle.session import Session, Setup
from tenure.meter.tokens import Tokenizer, weigh
from tenure.record.entry import Draft, Entry
from tenure.record.index import Index
from tenure.rules.tables import rules_for
from tenure.sessions.detect import read
from tenure.sessions.reader import Event, Rewritten, Skipped
from tenure.store.records import Conversation

OWN: Final = "tenure"  # the format of a record of ours
_SQLITE: Final = b"SQLite format 3\0"


class Loaded(Struct, frozen=True):
    """A session as a record: its facts and its entries by number."""

    formats: tuple[str, ...]
    models: tuple[str, ...]
    index: Index
    entries: Sequence[Entry]
    skipped: tuple[Skipped, ...]
    rewritten: tuple[Rewritten, ...]

    def read(self, number: int) -> Entry:
        """The entry of that number."""
        return self.entries[number]


def source(path: str) -> Source:
    """A session file, packed or not, `-` for standard input, or a store of our own (its newest conversation).

    Raises InputError at once when it cannot be opened.
    """
    if path == STDIN:
        held = b"".join(open_session(path))
        return Source(path, _events(lambda: iter((held,)), "standard input"), lambda: sha256(held).hexdigest())
    chunks = open_session(path)
    first = next(chunks, b"")
    if first.startswith(_SQLITE):
        return Source(path, lambda: (OWN, iter(_own(path))))
    return Source(path, _events(lambda: open_session(path), path), lambda: _digest(open_session(path)))


def load(sources: Iterable[Source], tokenizer: Tokenizer) -> Loaded:
    """The record that a replay of the same sources makes, entries kept."""
    session: Session | None = None
    entries: list[Entry] = []
    formats: list[str] = []
    models: dict[str, None] = {}
    skipped: list[Skipped] = []
    rewritten: list[Rewritten] = []
    for each in sources:
        format_, events = each.events()
        formats.append(format_)
        for event in events:
            match event:
                case Draft():
                    models |= {event.model: None} if event.model else {}
                    session = session or _session(event.model, tokenizer)
                    entries += session.append(event).entries
                case Skipped():
                    skipped.append(event)
                case Rewritten():
                    rewritten.append(event)
    index = session.index if session else Index()
    return Loaded(tuple(formats), tuple(models), index, entries, tuple(skipped), tuple(rewritten))


def _session(model: str, tokenizer: Tokenizer) -> Session:
    rules = rules_for("", model, "")
    return Session(
        Setup(budget=Budget(), rules=rules, policy=None),
        weigh=lambda blocks: weigh(blocks, tokenizer, rules.media),
        count=tokenizer,
    )


def _events(chunks: Callable[[], Iterator[bytes]], path: str) -> Callable[[], tuple[str, Iterator[Event]]]:
    def opened() -> tuple[str, Iterator[Event]]:
        reader, events = read(chunks(), path)
        return reader.name, events

    return opened


def _own(path: str) -> Iterator[Event]:
    """The newest conversation of a store, as drafts."""
    from tenure.store.store import Store

    with Store(f"sqlite:///{Path(path).resolve()}") as store:
        found = store.conversations()
        if not found:
            raise InputError(path, "the store holds no conversation", "at least one")
        reported = {observed.n: observed for observed in store.usages(found[0].id)}
        for entry in store.entries(found[0].id):
            usage = reported[entry.n].usage if entry.n in reported else None
            yield Draft(
                role=entry.role,
                blocks=entry.blocks,
                dialect=entry.dialect,
                payload=entry.payload,
                at=entry.at,
                model=entry.model,
                usage=usage,
                line=entry.n + 1,
            )


def _digest(chunks: Iterable[bytes]) -> str:
    """The hash of the unpacked bytes; of a damaged archive, of those there are."""
    digest = sha256()
    with suppress(InputError):
        for chunk in chunks:
            digest.update(chunk)
    return digest.hexdigest()


def store_drafts(path: Path, drafts: Iterable[Draft], tokenizer: Tokenizer) -> None:
    """Keep messages as the one conversation of a new store."""
    from tenure.store.store import Store

    session = _session("", tokenizer)
    with Store(f"sqlite:///{path}") as store:
        held = store.create(Conversation(id="session", title=path.stem))
        store.append(held.id, [entry for draft in drafts for entry in session.append(draft).entries])
