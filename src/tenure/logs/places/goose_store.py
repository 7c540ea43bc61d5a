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
from tenure.logs.places.stored import StoredSession
from tenure.logs.salvage import DamagedJson, decode

ALLOWED: Final = "goose's database of sessions"

_NEEDED: Final = {
    "sessions": frozenset({"id", "updated_at"}),
    "messages": frozenset({"session_id", "role", "content_json", "created_timestamp"}),
}

# What the document says of the session: its name there, and the column.
SHEET: Final = {
    "id": "id",
    "working_dir": "working_dir",
    "session_type": "session_type",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "provider_name": "provider_name",
    "parent_session_id": "parent_session_id",
}

_ROLES: Final = ("user", "assistant")  # goose itself passes over all others

_any: Final = msgspec.json.Decoder(Raw)
_encode: Final = msgspec.json.Encoder().encode


def sessions(database: Path) -> Iterator[StoredSession]:
    """The sessions of the database, newest first. Raises InputError for anything else."""
    with reading(database) as rows:
        columns = _columns(rows, database)
        title = _title(columns)
        more = ", ".join(f"s.{name}" if name in columns["sessions"] else "NULL" for name in ("working_dir", "parent_session_id"))
        found = rows.select(
            f"SELECT s.id, {title}, s.updated_at, count(m.session_id), {more} FROM sessions s "  # noqa: S608 - columns of a table here
            "LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id ORDER BY s.updated_at DESC, s.id DESC"
        )
    for key, name, updated, count, folder, parent in found:
        yield StoredSession(
            id=_text(key),
            title=_text(name),
            updated=_moment(_text(updated)).timestamp() * 1000,
            project=_text(folder),
            parent=_text(parent),
            messages=int(count),
        )


def export(database: Path, session: str) -> Iterator[bytes]:
    """One session as goose exports it, a message at a time. Raises InputError when the database does not hold it.

    What no parser can read of a message goes out as a text, which the reader reports as damage.
    """
    with reading(database) as rows:
        sheet = _sheet(rows, database, session)
        has = _columns(rows, database)["messages"]
        extra = ", ".join(name if name in has else "NULL" for name in ("message_id", "metadata_json"))
        tie = "id" if "id" in has else "rowid"
        found = rows.select(
            f"SELECT role, content_json, created_timestamp, {extra} FROM messages WHERE session_id = ? "  # noqa: S608 - as above
            f"ORDER BY created_timestamp, {tie}",
            session,
        )
    yield sheet[:-1] + b',"conversation":['
    comma = b"\n"
    for role, content, created, key, metadata in found:
        if _text(role) in _ROLES:
            yield comma + _message(_text(role), content, created, key, metadata)
            comma = b",\n"
    yield b"\n]}\n"


def _columns(rows: DatabaseRows, database: Path) -> dict[str, frozenset[str]]:
    found = {table: rows.columns(table) for table in _NEEDED}
    for table, needed in _NEEDED.items():
        if missing := needed - found[table]:
            raise InputError(str(database), f"no {', '.join(sorted(missing))} in a table {table!r}", ALLOWED)
    return found


def _title(columns: dict[str, frozenset[str]]) -> str:
    """The name, which is called `description` in older databases and may be in either of newer ones."""
    parts = [f"nullif(s.{name}, '')" for name in ("name", "description") if name in columns["sessions"]]
    return f"coalesce({', '.join(parts)}, '')" if parts else "''"


def _sheet(rows: DatabaseRows, database: Path, session: str) -> bytes:
    """What is known of the session, as a JSON object."""
    columns = _columns(rows, database)
    names = [name for name, column in SHEET.items() if column in columns["sessions"]]
    config = "s.model_config_json" if "model_config_json" in columns["sessions"] else "NULL"
    wanted = ", ".join([*(f"s.{SHEET[name]}" for name in names), _title(columns), config])
    found = rows.select(f"SELECT {wanted} FROM sessions s WHERE s.id = ?", session)  # noqa: S608 - columns out of a table here
    if not found:
        raise InputError(str(database), f"no session {session!r}", "the id of a session in it")
    *values, title, model = found[0]
    known = {name: None if value is None else _text(value) for name, value in zip(names, values, strict=True)}
    return _encode({**known, "name": _text(title), "model_config": _object(model)})


def _message(role: str, content: object, created: object, key: object, metadata: object) -> bytes:
    fields = {
        "id": None if key is None else _text(key),
        "role": role,
        "created": created if isinstance(created, int | float) else 0,
        "content": _json(content),
        "metadata": _object(metadata),
    }
    return _encode(fields)


def _json(value: object) -> Raw | str | None:
    """The JSON in a column as it stands, None where there is none, and as a text where it is no JSON."""
    if value is None:
        return None
    raw = value if isinstance(value, bytes) else _text(value).encode()
    try:
        return Raw(bytes(decode(raw, _any)))
    except DamagedJson:
        return raw.decode("utf-8", "replace")


def _object(value: object) -> Raw | None:
    """The object in a column of little weight, None for anything else."""
    found = _json(value)
    return found if isinstance(found, Raw) and bytes(found).lstrip().startswith(b"{") else None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _moment(text: str) -> datetime:
    """SQLite's own form has no zone and means UTC; newer rows name theirs."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)
