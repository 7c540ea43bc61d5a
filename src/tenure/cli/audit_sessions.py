"""Which sessions an audit is of: files, stores, what lies below folders, or the user's own, the newest first."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from tenure.errors import InputError
from tenure.lab.audit.report import Unread
from tenure.lab.events import spelled
from tenure.logs.places.files import STDIN, open_session
from tenure.logs.places.first_sight import glimpse
from tenure.logs.places.here import Surroundings
from tenure.logs.places.places import FoundSession, below, usual_places
from tenure.logs.places.stores import store_of


class Chosen(Struct, frozen=True, kw_only=True):
    """Addresses in the order in which they are audited."""

    addresses: tuple[str, ...]
    unread: tuple[Unread, ...] = ()  # that are known already to be damaged
    passed_over: int = 0  # files below folders that are no sessions
    older: int = 0  # of the user's own sessions, that were not asked for


def chosen(names: Sequence[str], newest: int, where: Surroundings) -> Chosen:
    """What `names` mean: each a session, or a folder of sessions; without any the `newest` of the user's own."""
    if not names:
        found = usual_places(where)
        sessions = list(islice((each for each in found if glimpse(each) is not None), newest))
        older = len(found) - found.index(sessions[-1]) - 1 if sessions else 0
        return Chosen(addresses=tuple(each.address for each in sessions), older=older)
    addresses: dict[str, None] = {}
    unread: list[Unread] = []
    passed_over = 0
    for name in names:
        if not _is_folder(name):
            addresses[name] = None
            continue
        for found_, why in _sessions(below([Path(name)])):
            if why is None:
                addresses[found_.address] = None
            elif why:
                unread.append(Unread(path=spelled(found_.address), why=why))
            else:
                passed_over += 1
    return Chosen(addresses=tuple(addresses), unread=tuple(unread), passed_over=passed_over)


def _is_folder(name: str) -> bool:
    """Whether it is a folder of sessions, and not a session or a store that is one."""
    try:
        path = Path(name)
        return name != STDIN and path.is_dir() and not store_of(path)
    except (OSError, ValueError):
        return False


def _sessions(found: Iterable[FoundSession]) -> Iterable[tuple[FoundSession, str | None]]:
    """By address, each with None; or with why it cannot be read; or, of what is no session, with nothing."""
    for each in sorted(found, key=lambda session: session.address):
        if glimpse(each) is not None:
            yield each, None
            continue
        try:
            next(open_session(each.path), b"")
            yield each, ""
        except InputError as error:
            yield each, error.found
