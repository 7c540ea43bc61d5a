"""Where OpenCode keeps its sessions while they are alive (an edge): a folder of small files, later a database.

Both give what `opencode export` would have written, so that one reader serves all three. A folder (`storage`) holds a file for each session,
message and part. In a database (`opencode.db`, another for each release channel) messages and parts are rows; OpenCode 2 writes whole messages
into `session_message` instead, in another form, which is brought into the older one here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.errors import InputError
from tenure.logs.json_files import LONGEST_LINE
from tenure.logs.opencode_two import translated
from tenure.logs.places.files import read_file
from tenure.logs.places.folders import matches
from tenure.logs.places.sqlite_file import DatabaseRows, reading
from tenure.logs.places.stored import StoredSession
from tenure.logs.salvage import DamagedJson, decode, decode_with_source, utf8

ALLOWED: Final = "OpenCode's `storage` folder or its database"

_ID: Final = re.compile(r"[\w-]{1,128}")  # what can be an id, and cannot leave the folder


class _OpencodeStoreTime(Struct, frozen=True, gc=False, omit_defaults=True):
    created: float = 0
    updated: float = 0


class _OpencodeStoreSheet(Struct, frozen=True, gc=False, omit_defaults=True):
    """The session itself, in the words of the export."""

    id: str = ""
    projectID: str = ""  # noqa: N815 - OpenCode's own names, here and below
    directory: str | None = ""
    title: str | None = ""
    parentID: str | None = None  # noqa: N815
    version: str | None = ""
    time: _OpencodeStoreTime = _OpencodeStoreTime()


class _Layout(Struct, frozen=True, gc=False):
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

# What makes one message of OpenCode 2 that the older tables have not: its talk went on there.
_WENT_ON: Final = """
    SELECT 1 FROM session_message WHERE session_id = ? AND type IN ('user', 'assistant')
    AND time_created > (SELECT coalesce(max(time_created), -1) FROM message WHERE session_id = ?) LIMIT 1
"""

_sheet: Final = msgspec.json.Decoder(_OpencodeStoreSheet)
_any: Final = msgspec.json.Decoder(Raw)
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
    yield b'{"info": ' + sheet + b', "messages": ['
    comma = b"\n"
    for message in messages:
        yield comma + message
        comma = b",\n"
    yield b"\n]}\n"


def _message(info: bytes, parts: Iterable[bytes]) -> bytes:
    return b'{"info": ' + info + b', "parts": [' + b", ".join(parts) + b"]}"


def _stand_in(name: str) -> bytes:
    """For a part that is damaged: one of a type that no version knows, so that it is said."""
    return _encode({"type": f"damaged: {name}"})


# A folder.


def _in_folder(folder: Path) -> Iterator[StoredSession]:
    layout = _layout(folder)
    for path in _files(folder, layout.sessions):
        yield _told(_sheet_in(path), path.stem, len(_files(folder, layout.messages, session=path.stem)))


def _layout(folder: Path) -> _Layout:
    """How a folder is laid out; the newer version's globs would match the older one's files too."""
    return LAYOUTS[(folder / "session" / "info").is_dir()]


def _sheet_in(path: Path) -> _OpencodeStoreSheet:
    """What the file of a session says; of a damaged one only when it was written."""
    with suppress(OSError):
        sheet = _OpencodeStoreSheet(time=_OpencodeStoreTime(updated=path.stat().st_mtime * 1000))
        with suppress(DamagedJson, InputError):
            sheet = decode(read_file(path, LONGEST_LINE), _sheet)
        return sheet
    return _OpencodeStoreSheet()


def _told(sheet: _OpencodeStoreSheet, id_: str, messages: int) -> StoredSession:
    return StoredSession(
        id=id_,
        title=sheet.title or "",
        updated=sheet.time.updated or sheet.time.created,
        project=sheet.directory or "",
        parent=sheet.parentID or "",
        messages=messages,
    )


def _from_folder(folder: Path, session: str) -> tuple[bytes, Iterator[bytes]]:
    layout = _layout(folder)
    for path in _files(folder, layout.session, session=session):
        sheet = _read(path) or _encode(_OpencodeStoreSheet(id=session, projectID=path.parent.name))
        return sheet, _messages_of_folder(folder, layout, session)
    raise InputError(str(folder), f"no session {session!r}", _choice(each.id for each in _in_folder(folder)))


def _messages_of_folder(folder: Path, layout: _Layout, session: str) -> Iterator[bytes]:
    for path in _files(folder, layout.messages, session=session):
        if info := _read(path):
            parts = _files(folder, layout.parts, session=session, message=path.stem)
            yield _message(info, (_read(part) or _stand_in(part.name) for part in parts))
        else:
            yield _encode(f"damaged: {path.name}")


def _files(folder: Path, pattern: str, **ids: str) -> list[Path]:
    """Files in the order of their names, which begin with the time."""
    if not all(_ID.fullmatch(each) for each in ids.values()):
        return []
    return sorted(Path(path) for path in matches(str(folder), pattern.format(**ids)))


def _read(path: Path) -> bytes:
    """A JSON file without the indentation that only the file has, or nothing when it holds none."""
    with suppress(InputError):
        held = _json(read_file(path, LONGEST_LINE))
        with suppress(msgspec.DecodeError, UnicodeDecodeError):  # of what only the lenient parser reads
            return msgspec.json.format(held, indent=-1) if b"\n" in held else held
        return held
    return b""


# A database.


def _in_database(rows: DatabaseRows, where: str) -> Iterator[StoredSession]:
    tables = [table for table in SHEETS if rows.columns(table)]
    if not tables:
        raise InputError(where, "no table `session`", ALLOWED)
    seen: set[str] = set()
    for table in tables:
        for sheet in _sheets(rows, table):
            if sheet.id not in seen:
                seen.add(sheet.id)
                yield _told(sheet, sheet.id, _count(rows, sheet.id))


def _sheets(rows: DatabaseRows, table: str, session: str = "") -> Iterator[_OpencodeStoreSheet]:
    there = rows.columns(table)
    names = ("id", "project_id", "directory", "title", "parent_id", "version", "time_created", "time_updated")
    picked = ", ".join(name if name in there else f"NULL AS {name}" for name in names)
    where, values = (" WHERE id = ?", (session,)) if session else ("", ())
    for row in rows.select(f"SELECT {picked} FROM {table}{where}", *values):  # noqa: S608 - names from our own tables
        id_, project, directory, title, parent, version = (_text(each) for each in row[:6])
        created, updated = (float(each) if isinstance(each, int | float) else 0.0 for each in row[6:])
        yield _OpencodeStoreSheet(
            id_, project, directory, title, parent or None, version, _OpencodeStoreTime(created, updated or created)
        )


def _count(rows: DatabaseRows, session: str) -> int:
    table = _table_of(rows, session)
    return rows.select(f"SELECT count(*) FROM {table} WHERE session_id = ?", session)[0][0] if table else 0  # noqa: S608


def _from_database(rows: DatabaseRows, session: str, where: str) -> tuple[bytes, Iterator[bytes]]:
    tables = [table for table in SHEETS if rows.columns(table)]
    sheet = next(chain.from_iterable(_sheets(rows, table, session) for table in tables), None)
    if sheet is None:
        raise InputError(where, f"no session {session!r}", _choice(each.id for each in _in_database(rows, where)))
    read: Callable[[DatabaseRows, str], Iterator[bytes]] = _newer if _table_of(rows, session) == "session_message" else _older
    return _encode(sheet), read(rows, session)


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
        name = _text(id_)
        if info := _with(_json(_bytes(data)), id=name, sessionID=session):
            found = rows.select("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", name)
            yield _message(info, (_json(_bytes(part)) or _stand_in(_text(part_id)) for part_id, part in found))
        else:
            yield _encode(f"damaged: {name}")


def _newer(rows: DatabaseRows, session: str) -> Iterator[bytes]:
    order = "seq" if "seq" in rows.columns("session_message") else "time_created, id"
    query = f"SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY {order}"  # noqa: S608
    for id_, kind, data in rows.each(query, session):
        try:
            yield from translated(_text(kind), _bytes(data), session)
        except DamagedJson:
            yield _encode(f"damaged: {_text(id_)}")


# What both have in common.


def _json(raw: bytes) -> bytes:
    """The JSON value in `raw`, as it is where the reader can mend it, or nothing when there is none."""
    try:
        return decode_with_source(utf8(raw), _any)[2].strip()
    except DamagedJson:
        return b""


def _with(value: bytes, **fields: str) -> bytes:
    """A JSON object with more members in front; nothing when it is no object."""
    inner = value.strip()[1:-1].strip()
    if not value.strip().startswith(b"{"):
        return b""
    return _encode(fields)[:-1] + (b"," + inner if inner else b"") + b"}"


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value or "").encode()


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value if value is not None else "")


def _choice(ids: Iterable[str]) -> str:
    """Some of the ids that are there."""
    found = sorted(ids, reverse=True)
    return ("one of " + ", ".join(found[:3]) + ("…" if len(found) > 3 else "")) if found else "a store that holds sessions"
