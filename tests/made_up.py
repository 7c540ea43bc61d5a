"""Homes, trees and databases as the tools leave them, made up."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from tenure.logs.places.here import Surroundings

Json = Mapping[str, object]

SHEET = """
CREATE TABLE {table} (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL,
    title TEXT, version TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
"""
OPENCODE_1 = (
    SHEET.format(table="session")
    + """
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL,
    data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
"""
)
OPENCODE_2 = (
    SHEET.format(table="session_v2")
    + """
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, seq INTEGER NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
"""
)


def here(home: Path, **environment: str) -> Surroundings:
    current = home / "code"
    current.mkdir(parents=True, exist_ok=True)
    return Surroundings(home=home, current=current, environment=environment, temporary=home / "tmp")


def put(path: Path, content: str | bytes | Json | Iterable[Json], age: int = 0) -> Path:
    """A file of that many seconds after a million; objects as JSON, several as lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str | bytes):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, Mapping):
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(each) + "\n" for each in content), encoding="utf-8")
    os.utime(path, (1_000_000 + age, 1_000_000 + age))
    return path


def claude(words: str, cwd: str = "/w", session: str = "s") -> list[Json]:
    user = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": session, "cwd": cwd}
    answer = {"type": "assistant", "uuid": "a", "parentUuid": "u", "sessionId": session, "cwd": cwd}
    said = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    return [{**user, "message": {"role": "user", "content": words}}, {**answer, "message": said}]


# One session of OpenCode 1: what it is, and its messages with their parts.
SESSION: Json = {
    "id": "ses_1",
    "slug": "kind-river",
    "projectID": "p1",
    "directory": "/home/ada/api",
    "title": "Mend the login test",
    "version": "1.2.0",
    "time": {"created": 1_790_000_000_000, "updated": 1_790_000_009_000},
}
USER: Json = {"role": "user", "time": {"created": 1_790_000_000_000}, "agent": "build"}
ASSISTANT: Json = {
    "role": "assistant",
    "time": {"created": 1_790_000_001_000},
    "modelID": "gpt-5",
    "providerID": "openai",
    "tokens": {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 3, "write": 0}},
}
TOOL: Json = {
    "type": "tool",
    "callID": "call_1",
    "tool": "read",
    "state": {
        "status": "completed",
        "input": {"path": "login.py"},
        "output": "1: def login():",
        "title": "",
        "time": {"start": 1, "end": 2},
    },
}
MESSAGES: tuple[tuple[str, Json, tuple[tuple[str, Json], ...]], ...] = (
    ("msg_1", USER, (("prt_1", {"type": "text", "text": "Why does the login test fail?"}),)),
    ("msg_2", ASSISTANT, (("prt_2", {"type": "text", "text": "I look."}), ("prt_3", TOOL), ("prt_4", {"type": "step-finish"}))),
    ("msg_3", ASSISTANT, (("prt_5", {"type": "text", "text": "A clock. Mended."}),)),
)


def opencode_folder(storage: Path) -> Path:
    put(storage / "session/p1/ses_1.json", SESSION)
    put(storage / "session/p1/ses_2.json", {**SESSION, "id": "ses_2", "parentID": "ses_1", "title": "Look for clocks"})
    for message, info, parts in MESSAGES:
        put(storage / f"message/ses_1/{message}.json", {"id": message, "sessionID": "ses_1", **info})
        for part, content in parts:
            put(storage / f"part/{message}/{part}.json", {"id": part, "sessionID": "ses_1", "messageID": message, **content})
    return storage


def old_opencode_folder(storage: Path) -> Path:
    put(storage / "session/info/ses_1.json", SESSION)
    for message, info, parts in MESSAGES:
        put(storage / f"session/message/ses_1/{message}.json", {"id": message, "sessionID": "ses_1", **info})
        for part, content in parts:
            path = storage / f"session/part/ses_1/{message}/{part}.json"
            put(path, {"id": part, "sessionID": "ses_1", "messageID": message, **content})
    return storage


def opencode_database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with_child = ((SESSION, None), ({**SESSION, "id": "ses_2", "title": "Look for clocks"}, "ses_1"))
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript(OPENCODE_1)
    for sheet, parent in with_child:
        _sheet(database, "session", sheet, parent)
    at = 1_790_000_000_000
    for number, (message, info, parts) in enumerate(MESSAGES):
        row = (message, "ses_1", at + number, at + number, json.dumps(info))
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        for part, content in parts:
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", (part, message, "ses_1", at, at, json.dumps(content)))
    database.commit()
    database.close()
    return path


def opencode_2_database(path: Path, rows: Iterable[tuple[str, Json]], session: str = "ses_2x") -> Path:
    """Sessions of OpenCode 2; in a database of OpenCode 1 beside what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.executescript(OPENCODE_2)
    _sheet(database, "session_v2", {**SESSION, "id": session, "title": None}, None)
    for number, (kind, data) in enumerate(rows):
        at = 1_790_000_100_000 + number
        values = (f"msg_n{9 - number}", session, kind, number, at, at, json.dumps({"time": {"created": at}, **data}))
        database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    database.commit()
    database.close()
    return path


def goose_database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, updated_at TIMESTAMP);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);
        INSERT INTO sessions VALUES ('20260301_1', 'Bake bread', '/home/ada/bread', '2026-03-01 10:00:00');
        INSERT INTO messages VALUES (1, '20260301_1', 'user', '[{"type": "text", "text": "How?"}]', 1772359200);
        """
    )
    database.close()
    return path


def _sheet(database: sqlite3.Connection, table: str, sheet: Json, parent: str | None) -> None:
    values = (
        sheet["id"],
        "p1",
        parent,
        "slug",
        sheet["directory"],
        sheet["title"],
        "1.2.0",
        1_790_000_000_000,
        1_790_000_009_000,
    )
    database.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below, with size and time, to see that nothing changed."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def padded(path: Path, content: Iterable[Json], age: int) -> Path:
    """A file whose size does not depend on where it is made, whatever paths it names."""
    put(path, content)
    return put(path, path.read_bytes().ljust(-(-path.stat().st_size // 10_000) * 10_000, b"\n"), age)


def home_of_ada(home: Path) -> Surroundings:
    """A home with sessions of several tools, all of one morning but for the oldest."""
    where, minute = here(home), 60
    api, site = str(home / "code/api"), str(home / "code/the-site-of-the-observatory/front")
    projects = home / ".claude/projects"
    path = projects / "-home-ada-work-api/5f0c2b1e-6f0d-4b7e-9a53-0d9f4f1f2c11.jsonl"
    padded(path, claude("Fix the flaky login test, and say why it was flaky.\n\nThe log is in logs/ci.log.", api), 300 * minute)
    put(path.with_suffix("") / "subagents/agent-1.jsonl", claude("Read the log."))
    put(path.with_suffix("") / "subagents/agent-2.jsonl", claude("Find other tests with clocks."))
    long = projects / "-home-ada-work-the-site-of-the-observatory-front/0b5d8c77-1c5b-4f0e-8a43-6f1e0c1d2e33.jsonl"
    lines = [
        *claude("夜空のページを日本語に訳して、見出しはそのままにしてください。ボタンの文字も訳してください。", site),
        *claude("x" * 90_000),
    ]
    padded(long, lines, 250 * minute)
    header = {"type": "session", "version": 3, "id": "p1", "timestamp": "1970-01-12T17:00:00Z", "cwd": api}
    said = {
        "type": "message",
        "id": "a",
        "parentId": None,
        "message": {"role": "user", "content": "Explain [bold]\x1b[2Jthe cache\x07[/bold]"},
    }
    padded(home / ".pi/agent/sessions/--home-ada--/1970-01-12T17-00-00_p1.jsonl", [header, said], 200 * minute)
    cline = home / "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1790000000000"
    put(cline / "api_conversation_history.json", [{"role": "user", "content": "?"}], 100 * minute)
    storage = opencode_folder(home / ".local/share/opencode/storage")
    put(
        storage / "session/p1/ses_1.json",
        {**SESSION, "directory": api, "time": {"created": 0, "updated": (1_000_000 + 50 * minute) * 1000}},
    )
    put(home / ".codex/archived_sessions/rollout-1969-11-20T08-00-00-0199.jsonl", "{}\n" * 500, -60 * 86_400)
    return where
