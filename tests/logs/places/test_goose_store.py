import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.detect import read
from tenure.logs.places.goose_store import export, sessions
from tenure.logs.reader import Event, Skipped

NEW = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', user_set_name BOOLEAN DEFAULT FALSE,
    session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', total_tokens INTEGER, schedule_id TEXT,
    recipe_json TEXT, provider_name TEXT, model_config_json TEXT, goose_mode TEXT NOT NULL DEFAULT 'auto', parent_session_id TEXT);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER,
    metadata_json TEXT);
"""

OLD = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, description TEXT NOT NULL DEFAULT '', working_dir TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, extension_data TEXT DEFAULT '{}', total_tokens INTEGER, schedule_id TEXT, recipe_json TEXT);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL, timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER);
"""


def text(words: str) -> str:
    return json.dumps([{"type": "text", "text": words}])


def database(path: Path, schema: str = NEW, *, wal: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    if wal:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(schema)
    return connection


def filled(path: Path) -> None:
    with closing(database(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO sessions (id, name, description, working_dir, updated_at, parent_session_id, model_config_json) "
            "VALUES (?, ?, ?, '/w', ?, ?, ?)",
            [
                ("20260101_1", "", "Old name", "2026-01-01 10:00:00", None, None),
                ("20260102_1", "New name", "", "2026-01-02T10:00:00+02:00", "20260101_1", '{"model_name": "model-x"}'),
                ("20260100_1", "Empty", "", "soon", None, "{broken"),
            ],
        )
        shown = json.dumps(
            {"userVisible": True, "agentVisible": True, "inference": {"provider": "p", "requestedModel": "model-y"}}
        )
        call = {
            "type": "toolRequest",
            "id": "c",
            "toolCall": {"status": "success", "value": {"name": "shell", "arguments": {"command": "ls"}}},
        }
        result = {
            "type": "toolResponse",
            "id": "c",
            "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "a"}]}},
        }
        rows = [
            ("m2", "20260102_1", "assistant", json.dumps([call]), 1767348001, shown),
            ("m3", "20260102_1", "user", json.dumps([result]), 1767348001, None),
            ("m1", "20260102_1", "user", text("List the files."), 1767348000, "not json"),
            ("m4", "20260102_1", "assistant", "[{broken", 1767348002, shown),
            ("m5", "20260102_1", "system", text("passed over"), 1767348003, shown),
            ("m6", "20260102_1", "assistant", text("One: a."), 1767348004, None),
            ("m7", "20260101_1", "user", text("Elsewhere."), 1767261600, None),
        ]
        connection.executemany(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )


def exported(path: Path, session: str) -> list[Event]:
    reader, found = read(export(path, session))
    assert reader.name == "goose"
    return list(found)


def test_sessions_are_listed_newest_first(tmp_path: Path) -> None:
    filled(tmp_path / "sessions.db")
    found = {each.id: each for each in sessions(tmp_path / "sessions.db")}
    assert found["20260102_1"].title == "New name"
    assert found["20260101_1"].title == "Old name"
    assert found["20260102_1"].updated == datetime(2026, 1, 2, 8, tzinfo=UTC).timestamp() * 1000
    assert found["20260101_1"].updated == datetime(2026, 1, 1, 10, tzinfo=UTC).timestamp() * 1000
    assert found["20260100_1"].updated == 0
    assert (found["20260102_1"].parent, found["20260102_1"].project) == ("20260101_1", "/w")
    assert {key: each.messages for key, each in found.items()} == {"20260102_1": 6, "20260101_1": 1, "20260100_1": 0}
    assert list(found)[1:] == ["20260102_1", "20260101_1"]


def test_a_session_is_read_as_its_export(tmp_path: Path) -> None:
    filled(tmp_path / "sessions.db")
    found = exported(tmp_path / "sessions.db", "20260102_1")
    drafts = [event for event in found if isinstance(event, Draft)]
    assert [draft.blocks[0].text for draft in drafts] == ["List the files.", '{"command": "ls"}', "a", "One: a."]
    assert [draft.model for draft in drafts] == ["", "model-y", "", "model-x"]
    reasons = [event.reason for event in found if isinstance(event, Skipped)]
    assert any("20260101_1" in reason for reason in reasons)
    assert any("`content` left out" in reason for reason in reasons)


def test_a_session_without_messages_is_an_empty_one(tmp_path: Path) -> None:
    filled(tmp_path / "sessions.db")
    assert exported(tmp_path / "sessions.db", "20260100_1") == []


def test_a_database_of_the_first_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(database(path, OLD)) as connection, connection:
        connection.execute("INSERT INTO sessions (id, description, working_dir) VALUES ('s', 'Title', '/w')")
        connection.execute(
            "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES ('s', 'user', ?, 1)", (text("Hi."),)
        )
    (only,) = sessions(path)
    assert (only.title, only.messages) == ("Title", 1)
    assert [event.blocks[0].text for event in exported(path, "s") if isinstance(event, Draft)] == ["Hi."]


def test_a_database_in_use_is_read_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(database(path, wal=True)) as connection:
        connection.execute("INSERT INTO sessions (id, name, working_dir) VALUES ('s', 'Now', '/w')")
        connection.commit()
        before = sorted(tmp_path.iterdir())
        assert [each.title for each in sessions(path)] == ["Now"]
        assert sorted(tmp_path.iterdir()) == before
    before = sorted(tmp_path.iterdir())
    assert [each.title for each in sessions(path)] == ["Now"]
    assert sorted(tmp_path.iterdir()) == before


def test_anything_else_is_an_input_error(tmp_path: Path) -> None:
    other, plain, filled_path = tmp_path / "other.db", tmp_path / "plain.txt", tmp_path / "sessions.db"
    with closing(database(other, "CREATE TABLE sessions (id TEXT)")):
        pass
    plain.write_text("not a database, but long enough to be taken for one\n" * 100)
    filled(filled_path)
    for path in (other, plain, tmp_path, tmp_path / "missing.db"):
        with pytest.raises(InputError):
            list(sessions(path))
    with pytest.raises(InputError, match="no session 'nobody'"):
        list(export(filled_path, "nobody"))
