"""goose's database of sessions (an edge): `~/.local/share/goose/sessions/sessions.db`.

Gives each session as `goose session export --format json` would have, so that one reader serves both. Columns came over time;
what an older database has not is left out.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from tenure.errors import InputError
from tenure.logs.places.sqlite_file import DatabaseRows, reading
from tenure.logs.places.stored import StoredSession, column, listed
from tenure.logs.salvage import DamagedJson, decode

ALLOWED: Final = "goose's database of sessions"

_NEEDED: Final = {
    "sessions": frozenset({"id", "updated_at"}),
    "messages": frozenset({"session_id", "role", "content_json", "created_timestamp"}),
}

# What the document says of the session, by the names of the columns.
SHEET: Final = ("id", "working_dir", "session_type", "created_at", "updated_at", "provider_name", "parent_session_id")

_ROLES: Final = ("user", "assistant")  # goose itself passes over all others

_any: Final = msgspec.json.Decoder(Raw)
_encode: Final = msgspec.json.Encoder().encode


def sessions(database: Path) -> Iterator[StoredSession]:
    """The sessions of the database, newest first. Raises InputError for anything else."""
    with reading(database) as rows:
        has = _columns(rows, database)["sessions"]
        found = rows.select(
            f"SELECT s.id, {_title(has)}, s.updated_at, count(m.session_id), {_picked(has, 'working_dir', 'parent_session_id')} "  # noqa: S608
            "FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id ORDER BY s.updated_at DESC, s.id DESC"
        )
    for key, name, updated, count, folder, parent in found:
        yield StoredSession(
            id=column(key),
            title=column(name),
            updated=_moment(column(updated)).timestamp() * 1000,
            project=column(folder),
            parent=column(parent),
            messages=int(count),
        )


def export(database: Path, session: str) -> Iterator[bytes]:
    """One session as goose exports it, a message at a time. Raises InputError when the database does not hold it.

    What no parser can read of a message goes out as a text, which the reader reports as damage.
    """
    with reading(database) as rows:
        columns = _columns(rows, database)
        sheet = _sheet(rows, columns["sessions"], database, session)
        has = columns["messages"]
        found = rows.select(
            f"SELECT role, content_json, created_timestamp, {_picked(has, 'message_id', 'metadata_json', of='')} FROM messages "  # noqa: S608
            f"WHERE session_id = ? ORDER BY created_timestamp, {'id' if 'id' in has else 'rowid'}",
            session,
        )
    messages = (_message(*row) for row in found if column(row[0]) in _ROLES)
    yield from listed(sheet[:-1] + b',"conversation":', messages, b"}\n")


def _columns(rows: DatabaseRows, database: Path) -> dict[str, frozenset[str]]:
    found = {table: rows.columns(table) for table in _NEEDED}
    for table, needed in _NEEDED.items():
        if missing := needed - found[table]:
            raise InputError(str(database), f"no {', '.join(sorted(missing))} in a table {table!r}", ALLOWED)
    return found


def _picked(has: frozenset[str], *names: str, of: str = "s.") -> str:
    """Columns of a query, NULL for those that an older database has not."""
    return ", ".join(of + name if name in has else "NULL" for name in names)


def _title(has: frozenset[str]) -> str:
    """The name, which is called `description` in older databases and may be in either of newer ones."""
    parts = [f"nullif(s.{name}, '')" for name in ("name", "description") if name in has]
    return f"coalesce({', '.join(parts)}, '')" if parts else "''"


def _sheet(rows: DatabaseRows, has: frozenset[str], database: Path, session: str) -> bytes:
    names = [name for name in SHEET if name in has]
    wanted = ", ".join([*(f"s.{name}" for name in names), _title(has), _picked(has, "model_config_json")])
    found = rows.select(f"SELECT {wanted} FROM sessions s WHERE s.id = ?", session)  # noqa: S608 - columns out of a table here
    if not found:
        raise InputError(str(database), f"no session {session!r}", "the id of a session in it")
    *values, title, model = found[0]
    known = {name: None if value is None else column(value) for name, value in zip(names, values, strict=True)}
    return _encode({**known, "name": column(title), "model_config": _object(model)})


def _message(role: object, content: object, created: object, key: object, metadata: object) -> bytes:
    fields = {
        "id": None if key is None else column(key),
        "role": column(role),
        "created": created if isinstance(created, int | float) else 0,
        "content": _json(content),
        "metadata": _object(metadata),
    }
    return _encode(fields)


def _json(value: object) -> Raw | str | None:
    """The JSON in a column as it stands, None where there is none, and as a text where it is no JSON."""
    if value is None:
        return None
    raw = value if isinstance(value, bytes) else column(value).encode()
    try:
        return Raw(bytes(decode(raw, _any)))
    except DamagedJson:
        return raw.decode("utf-8", "replace")


def _object(value: object) -> Raw | None:
    found = _json(value)
    return found if isinstance(found, Raw) and bytes(found).lstrip().startswith(b"{") else None


def _moment(text: str) -> datetime:
    """SQLite's own form has no zone and means UTC; newer rows name theirs."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)
