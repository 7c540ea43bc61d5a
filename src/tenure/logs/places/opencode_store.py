"""How the stores of OpenCode are read (an edge): a folder of small files, later a database. Where they lie is in `known_places`.

Both give what `opencode export` would have written, so that one reader serves all three. A folder (`storage`) holds a file for each session,
message and part. In a database (`opencode.db`, another for each release channel) messages and parts are rows; OpenCode 2 writes whole messages
into `session_message` instead, in another form, which is brought into the older one here.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field

from tenure.errors import InputError
from tenure.logs.json_files import LONGEST_LINE
from tenure.logs.opencode_two import translated
from tenure.logs.places.files import read_file
from tenure.logs.places.folders import matches
from tenure.logs.places.sqlite_file import DatabaseRows, reading
from tenure.logs.places.stored import StoredSession, column, json_file, json_value, listed
from tenure.logs.salvage import DamagedJson, decode

ALLOWED: Final = "OpenCode's `storage` folder or its database"

_ID: Final = re.compile(r"[\w-]{1,128}")  # what can be an id, and cannot leave the folder


class _StoreTime(Struct, frozen=True, gc=False, omit_defaults=True):
    created: float = 0
    updated: float = 0


class _OpenCodeSheet(Struct, frozen=True, gc=False, omit_defaults=True):
    """The session itself, in the words of the export."""

    id: str = ""
    project: str = field(default="", name="projectID")
    directory: str | None = ""
    title: str | None = ""
    parent: str | None = field(default=None, name="parentID")
    version: str | None = ""
    time: _StoreTime = _StoreTime()

    def stored(self, id_: str, messages: int) -> StoredSession:
        return StoredSession(
            id=id_,
            title=self.title or "",
            updated=self.time.updated or self.time.created,
            project=self.directory or "",
            parent=self.parent or "",
            messages=messages,
        )


class _Layout(NamedTuple):
    """Where a folder keeps what: globs of files, `{session}` and `{message}` being ids."""

    sessions: str
    session: str
    messages: str
    parts: str


# The folder as it is, and as it was before sessions were told apart by project (July 2025).
LAYOUTS: Final = (
    _Layout("session/*/*.json", "session/*/{session}.json", "message/{session}/*.json", "part/{message}/*.json"),
    _Layout(
        "session/info/*.json",
        "session/info/{session}.json",
        "session/message/{session}/*.json",
        "session/part/{session}/{message}/*.json",
    ),
)

# The tables that may hold sessions, the newer first: OpenCode 2 copies the old ones into its own.
SHEETS: Final = ("session_v2", "session")
COLUMNS: Final = ("id", "project_id", "directory", "title", "parent_id", "version", "time_created", "time_updated")

# What makes one message of OpenCode 2 that the older tables have not: its talk went on there.
_WENT_ON: Final = """
    SELECT 1 FROM session_message WHERE session_id = ? AND type IN ('user', 'assistant')
    AND time_created > (SELECT coalesce(max(time_created), -1) FROM message WHERE session_id = ?) LIMIT 1
"""

_encode: Final = msgspec.json.Encoder().encode


def is_storage(folder: Path) -> bool:
    """Whether a folder is laid out as OpenCode's."""
    return any((folder / layout.messages.partition("/{")[0]).is_dir() for layout in LAYOUTS)


def sessions(store: Path) -> Iterator[StoredSession]:
    """The sessions of a storage folder or a database, in no order. Raises InputError for anything else."""
    if store.is_dir():
        yield from _in_folder(store)
    else:
        with reading(store) as rows:
            yield from _in_database(rows, str(store))


def export(store: Path, session: str) -> Iterator[bytes]:
    """One session as `opencode export` writes it, a message at a time. Raises InputError when the store does not hold it.

    A message or part that cannot be read leaves a stand-in that the reader reports.
    """
    if not _ID.fullmatch(session):
        raise InputError(str(store), f"{session!r} cannot be the id of a session", "an id such as ses_…")
    if store.is_dir():
        yield from _written(*_from_folder(store, session))
        return
    with reading(store) as rows:
        yield from _written(*_from_database(rows, session, str(store)))


def _written(sheet: bytes, messages: Iterable[bytes]) -> Iterator[bytes]:
    return listed(b'{"info": ' + sheet + b', "messages": ', messages, b"}\n")


def _message(info: bytes, parts: Iterable[tuple[str, bytes]]) -> bytes:
    """A message with its parts, by their names; for one that is damaged a part of a type that no version knows, so that it is said."""
    given = (part or _encode({"type": f"damaged: {name}"}) for name, part in parts)
    return b'{"info": ' + info + b', "parts": [' + b", ".join(given) + b"]}"


def _missing(where: str, session: str, there: Iterable[StoredSession]) -> InputError:
    ids = sorted((each.id for each in there), reverse=True)
    some = "one of " + ", ".join(ids[:3]) + ("…" if len(ids) > 3 else "")
    return InputError(where, f"no session {session!r}", some if ids else "a store that holds sessions")


# A folder.


def _in_folder(folder: Path) -> Iterator[StoredSession]:
    layout = _layout(folder)
    for path in _files(folder, layout.sessions):
        sheet = _OpenCodeSheet()
        with suppress(OSError):
            sheet = _OpenCodeSheet(time=_StoreTime(updated=path.stat().st_mtime * 1000))
            with suppress(DamagedJson, InputError):
                sheet = decode(read_file(path, LONGEST_LINE), _OpenCodeSheet)
        yield sheet.stored(path.stem, len(_files(folder, layout.messages, session=path.stem)))


def _layout(folder: Path) -> _Layout:
    """How a folder is laid out; the newer version's globs would match the older one's files too."""
    return LAYOUTS[(folder / "session" / "info").is_dir()]


def _from_folder(folder: Path, session: str) -> tuple[bytes, Iterator[bytes]]:
    layout = _layout(folder)
    for path in _files(folder, layout.session, session=session):
        sheet = _read(path) or _encode(_OpenCodeSheet(id=session, project=path.parent.name))
        return sheet, _messages_of_folder(folder, layout, session)
    raise _missing(str(folder), session, _in_folder(folder))


def _messages_of_folder(folder: Path, layout: _Layout, session: str) -> Iterator[bytes]:
    for path in _files(folder, layout.messages, session=session):
        if info := _read(path):
            parts = _files(folder, layout.parts, session=session, message=path.stem)
            yield _message(info, ((part.name, _read(part)) for part in parts))
        else:
            yield _encode(f"damaged: {path.name}")


def _files(folder: Path, pattern: str, **ids: str) -> list[Path]:
    """Files in the order of their names, which begin with the time."""
    if not all(_ID.fullmatch(each) for each in ids.values()):
        return []
    return sorted(Path(path) for path in matches(str(folder), pattern.format(**ids)))


def _read(path: Path) -> bytes:
    """A JSON file without the indentation that only the file has, or nothing when it holds none."""
    held = json_file(path)
    with suppress(msgspec.DecodeError, UnicodeDecodeError):  # of what only the lenient parser reads
        return msgspec.json.format(held, indent=-1) if b"\n" in held else held
    return held


# A database.


def _in_database(rows: DatabaseRows, where: str) -> Iterator[StoredSession]:
    tables = [table for table in SHEETS if rows.columns(table)]
    if not tables:
        raise InputError(where, "no table `session`", ALLOWED)
    seen: set[str] = set()
    for sheet in chain.from_iterable(_sheets(rows, table) for table in tables):
        if sheet.id not in seen:
            seen.add(sheet.id)
            table = _table_of(rows, sheet.id)
            count = rows.select(f"SELECT count(*) FROM {table} WHERE session_id = ?", sheet.id)[0][0] if table else 0  # noqa: S608
            yield sheet.stored(sheet.id, count)


def _sheets(rows: DatabaseRows, table: str, session: str = "") -> Iterator[_OpenCodeSheet]:
    there = rows.columns(table)
    picked = ", ".join(name if name in there else f"NULL AS {name}" for name in COLUMNS)
    where, values = (" WHERE id = ?", (session,)) if session else ("", ())
    for row in rows.select(f"SELECT {picked} FROM {table}{where}", *values):  # noqa: S608 - names from our own tables
        id_, project, directory, title, parent, version = map(column, row[:6])
        created, updated = (float(each) if isinstance(each, int | float) else 0.0 for each in row[6:])
        yield _OpenCodeSheet(id_, project, directory, title, parent or None, version, _StoreTime(created, updated or created))


def _from_database(rows: DatabaseRows, session: str, where: str) -> tuple[bytes, Iterator[bytes]]:
    tables = (table for table in SHEETS if rows.columns(table))
    sheet = next(chain.from_iterable(_sheets(rows, table, session) for table in tables), None)
    if sheet is None:
        raise _missing(where, session, _in_database(rows, where))
    return _encode(sheet), (_newer if _table_of(rows, session) == "session_message" else _older)(rows, session)


def _table_of(rows: DatabaseRows, session: str) -> str:
    """The table that holds all of the session's talk; both may hold it, and then only one has its end."""
    older, newer = bool(rows.columns("message")), bool(rows.columns("session_message"))
    if not (older and newer):
        return "message" if older else "session_message" if newer else ""
    if not rows.select("SELECT 1 FROM message WHERE session_id = ? LIMIT 1", session):
        return "session_message"
    went_on = rows.columns("session_v2") and rows.select(_WENT_ON, session, session)
    return "session_message" if went_on else "message"


def _older(rows: DatabaseRows, session: str) -> Iterator[bytes]:
    for id_, data in rows.each("SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", session):
        name, info = column(id_), json_value(_bytes(data))
        if info.startswith(b"{"):
            inner = info[1:-1].strip()
            named = _encode({"id": name, "sessionID": session})[:-1] + (b"," + inner if inner else b"") + b"}"
            parts = rows.select("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", name)
            yield _message(named, ((column(part_id), json_value(_bytes(part))) for part_id, part in parts))
        else:
            yield _encode(f"damaged: {name}")


def _newer(rows: DatabaseRows, session: str) -> Iterator[bytes]:
    order = "seq" if "seq" in rows.columns("session_message") else "time_created, id"
    query = f"SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY {order}"  # noqa: S608
    for id_, kind, data in rows.each(query, session):
        try:
            yield from translated(column(kind), _bytes(data), session)
        except DamagedJson:
            yield _encode(f"damaged: {column(id_)}")


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value or "").encode()
