"""Sessions as sources: other tools' files, and records of our own.

An address is a path, `-` for standard input, or `PATH#ID` for one of several conversations in a file: a sub-agent's, or one of a store's.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

from msgspec import Struct

from tenure.engine.lifecycle.accounts import Accounts, reopen
from tenure.engine.lifecycle.budget import USUAL, Budget
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.ledger import Ledger
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.entry import Draft, Entry
from tenure.engine.record.index import Index
from tenure.engine.record.recall import Original
from tenure.errors import Damaged, InputError, StoreError
from tenure.lab.events import fields_in
from tenure.lab.recorded import Recorded, ReportedUsage
from tenure.lab.source import DEFAULT_MODEL, Reading, SessionSource, session_for
from tenure.logs.detect import HEAD, read
from tenure.logs.places import stores
from tenure.logs.places.files import STDIN, open_session
from tenure.logs.places.stores import store_of
from tenure.logs.reader import Event, Rewritten, Skipped, SubAgent
from tenure.store.records import Conversation, Lost, conversation_named
from tenure.store.soundness import checked, damage_in, in_place_of
from tenure.store.spills import Spills

if TYPE_CHECKING:
    from tenure.store.store import Store

_OF_MANY: Final = ("opencode", "goose")  # stores in which a session has an id


class Loaded(Struct, frozen=True):
    """A session as a record: its facts and its entries by number."""

    formats: tuple[str, ...]
    models: tuple[str, ...]
    index: Index
    entries: Sequence[Entry]
    skipped: tuple[Skipped, ...]
    rewritten: tuple[Rewritten, ...]
    agents: tuple[SubAgent, ...]
    reported: ReportedUsage | None  # None when the log holds no usage

    def read(self, number: int) -> Entry:
        """The entry of that number."""
        return self.entries[number]


def source(address: str) -> SessionSource:
    """A session: see the module's docstring. Raises InputError at once when it cannot be opened."""
    path, inner = _parted(address)
    if not _seekable(path):
        held = _held(open_session(path), path)
        return SessionSource(address, _events(lambda: iter((held,)), path, inner), lambda: sha256(held).hexdigest())
    match store_of(Path(path)):
        case stores.OWN:
            return SessionSource(address, lambda: (stores.OWN, iter(_own(path, inner))), tenant=lambda: _tenant(path, inner))
        case "":
            pass
        case tool:
            return _stored(tool, Path(path), inner, address)
    next(open_session(path), b"")
    return SessionSource(address, _events(lambda: open_session(path), path, inner), lambda: _digest(open_session(path)))


def _held(chunks: Iterator[bytes], path: str) -> bytes:
    """All that a pipe gives. Raises InputError at once when it does not begin like a session: it may have no end."""
    start = b""
    while len(start) < HEAD and (chunk := next(chunks, b"")):
        start += chunk
    read((start,), _name(path))
    return b"".join((start, *chunks))


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path


def spills_of(address: str) -> Spills:
    """Where the outputs of a session are that its record does not hold whole; nowhere for a session that is not in a store of our own."""
    path, _ = _parted(address)
    return Spills.beside(path if _seekable(path) and store_of(Path(path)) == stores.OWN else None)


def sources_of(address: str) -> Iterator[Original]:
    """The records that a conversation in a store of our own was built from, nearest first; none of any other session."""
    path, id_ = _parted(address)
    if not _seekable(path) or store_of(Path(path)) != stores.OWN:
        return
    with own_store(path, id_) as (store, sheet):
        while sheet.parent:
            is_built = not sheet.forked_at
            sheet = store.conversation(sheet.parent)
            if is_built:
                entries = list(store.entries(sheet.id))
                index = Index()
                for entry in entries:
                    index.grow(entry)
                yield Original(index, entries.__getitem__, is_own=False)


def _stored(tool: str, path: Path, inner: str, address: str) -> SessionSource:
    """A session in another tool's store; what is no store of many has nothing but sub-agents inside."""
    id_, agent = (inner, "") if tool in _OF_MANY else ("", inner)

    def chunks() -> Iterator[bytes]:
        return stores.chunks(tool, path, id_)

    next(chunks(), b"")
    return SessionSource(address, _events(chunks, address, agent), lambda: _digest(chunks()))


def _parted(address: str) -> tuple[str, str]:
    """The path and what is meant inside it; a file's own name may hold the sign between them."""
    path, sign, inner = address.rpartition("#")
    whole = not sign or not inner or address == STDIN or _exists(address) or not (_exists(path) or path == STDIN)
    return (address, "") if whole else (path, inner)


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _seekable(path: str) -> bool:
    """Whether the file can be read as often as needed; a pipe gives its bytes once."""
    return path != STDIN and (not _exists(path) or Path(path).is_file() or Path(path).is_dir())


def load(sources: Iterable[SessionSource], tokenizer: Tokenizer) -> Loaded:
    """The record that a replay of the same sources makes, entries kept."""
    session: Session | None = None
    entries: list[Entry] = []
    formats: list[str] = []
    models: dict[str, None] = {}
    skipped: list[Skipped] = []
    rewritten: list[Rewritten] = []
    agents: list[SubAgent] = []
    recorded: Recorded | None = None
    readings = [Reading(source, number) for number, source in enumerate(sources)]
    named = next((reading.model for reading in readings if reading.model), DEFAULT_MODEL)
    for reading in readings:
        formats.append(reading.format)
        if recorded is not None:
            recorded.begin_source(len(entries))
        for event in reading.events:
            match event:
                case Draft():
                    models |= {event.model: None} if event.model else {}
                    session = session or session_for(named, tokenizer, tenant=reading.source.tenant())
                    recorded = recorded or Recorded(session.index, tokenizer)
                    recorded.learn(event.usage)
                    for entry in session.append(event).entries:
                        recorded.append(entry)
                        entries.append(entry)
                case Skipped():
                    skipped.append(event)
                case Rewritten():
                    rewritten.append(event)
                    if recorded is not None:
                        recorded.rewrite(event)
                case SubAgent():
                    agents.append(event)
                case _:
                    assert_never(event)
    return Loaded(
        formats=tuple(formats),
        models=tuple(models),
        index=session.index if session else Index(),
        entries=entries,
        skipped=tuple(skipped),
        rewritten=tuple(rewritten),
        agents=tuple(agents),
        reported=recorded and recorded.reported(),
    )


def kept_ledger(address: str, tokenizer: Tokenizer) -> Ledger | None:
    """The ledger of a conversation in a store of our own; None for a session of another kind, which has only what its log reports."""
    found = own_address(address)
    if found is None:
        return None
    with own_store(*found) as (store, held):
        budget = Budget.stored(held.budget, otherwise=USUAL)
        session = session_for(held.model, tokenizer, budget=budget, tenant=held.tenant)
        accounts = Accounts(session, model=held.model)
        reports = {each.n: each.spent for each in store.usages(held.id)}
        commits, helped = store.commits(held.id), store.asides(held.id)
        with damage_in(store, held.id):
            reopen(session, accounts, store.entries(held.id), commits, reports, helped, forked_at=held.forked_at)
        return accounts.ledger


def _events(chunks: Callable[[], Iterator[bytes]], path: str, agent: str) -> Callable[[], tuple[str, Iterator[Event]]]:
    def opened() -> tuple[str, Iterator[Event]]:
        reader, events = read(chunks(), _name(path), agent)
        return reader.name, events

    return opened


def own_address(address: str) -> tuple[str, str] | None:
    """The path of a store of our own and the conversation meant in it, empty for the newest; None for any other address."""
    path, inner = _parted(address)
    if address == STDIN or not _exists(path) or not Path(path).is_file() or store_of(Path(path)) != stores.OWN:
        return None
    return path, inner


@contextmanager
def own_store(path: str, id_: str) -> "Generator[tuple[Store, Conversation]]":
    """A store of our own, and a conversation in it; without an id the newest. Raises InputError for what cannot be read, as for any other file."""
    from tenure.store.store import Store

    file = Path(path).resolve()
    try:
        with Store(f"sqlite:///{file}", read_only=True) as store:
            yield store, conversation_named(store, path, id_)
    except StoreError as error:
        raise InputError(path, f"cannot be read back: {str(error).removeprefix(f'{file}: ')}") from error


def _own(path: str, id_: str) -> Iterator[Event]:
    """A conversation of a store, as drafts. In place of a message that is lost stands one that says so, and the rest keeps its numbers."""
    with own_store(path, id_) as (store, sheet):
        reported = {observed.n: observed for observed in store.usages(sheet.id)}
        for entry in checked(sheet.tenant, store.salvaged(sheet)):
            if isinstance(entry, Lost):
                yield Skipped(line=entry.n + 1, bytes=0, reason=str(Damaged(entry.what, path, sheet.id)))
                yield in_place_of(entry)
                continue
            usage = reported[entry.n].usage if entry.n in reported else None
            yield Draft(**fields_in(entry, Draft, usage=usage, source=0, line=entry.n + 1))


def _tenant(path: str, id_: str) -> str:
    """Whose conversation it is: its chain begins with that, and so do the hashes in handles."""
    with own_store(path, id_) as (_, sheet):
        return sheet.tenant


def _digest(chunks: Iterable[bytes]) -> str:
    """The hash of the unpacked bytes; of a damaged archive, of those there are."""
    digest = sha256()
    with suppress(InputError):
        for chunk in chunks:
            digest.update(chunk)
    return digest.hexdigest()
