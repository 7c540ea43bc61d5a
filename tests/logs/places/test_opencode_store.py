import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from made_up import (
    MESSAGES,
    SESSION,
    Json,
    everything,
    old_opencode_folder,
    opencode_2_database,
    opencode_database,
    opencode_folder,
    put,
)
from tenure.engine.record.entry import Block, Draft, Media, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.errors import InputError
from tenure.logs.detect import read
from tenure.logs.places.opencode_store import export, sessions
from tenure.logs.reader import Event, Rewritten, Skipped

STORES: dict[str, Callable[[Path], Path]] = {
    "storage": opencode_folder,
    "old": old_opencode_folder,
    "opencode.db": opencode_database,
}


def events(store: Path, session: str) -> list[Event]:
    reader, found = read(export(store, session))
    assert reader.name == "opencode"
    return list(found)


def blocks(found: list[Event]) -> list[Block]:
    return [block for event in found if isinstance(event, Draft) for block in event.blocks]


@pytest.mark.parametrize("kind", STORES)
def test_every_store_gives_the_session_that_opencode_would_export(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path / kind)
    found = events(store, "ses_1")
    assert [type(block) for block in blocks(found)] == [Text, Text, ToolCall, ToolResult, Text]
    assert [block.text for block in blocks(found) if isinstance(block, Text)] == [
        "Why does the login test fail?",
        "I look.",
        "A clock. Mended.",
    ]
    assert [event for event in found if not isinstance(event, Draft)] == []
    document = json.loads(b"".join(export(store, "ses_1")))
    assert document["info"]["directory"] == "/home/ada/api"
    assert [message["info"]["id"] for message in document["messages"]] == [message for message, _, _ in MESSAGES]
    assert {part["messageID"] for part in document["messages"][1]["parts"] if "messageID" in part} <= {"msg_2"}


@pytest.mark.parametrize("kind", STORES)
def test_sessions_are_listed_with_title_project_and_number_of_messages(kind: str, tmp_path: Path) -> None:
    listed = {session.id: session for session in sessions(STORES[kind](tmp_path / kind))}
    assert (listed["ses_1"].title, listed["ses_1"].project, listed["ses_1"].messages) == (
        "Mend the login test",
        "/home/ada/api",
        3,
    )
    assert listed["ses_1"].updated == 1_790_000_009_000
    if kind != "old":
        assert (listed["ses_2"].parent, listed["ses_2"].messages) == ("ses_1", 0)


@pytest.mark.parametrize("kind", STORES)
def test_reading_leaves_no_trace(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path / "in" / kind)
    before = everything(tmp_path)
    assert list(sessions(store))
    assert list(export(store, "ses_1"))
    assert everything(tmp_path) == before


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("session", ["ses_9", "../p1/ses_1", "", "*", "ses_1/../ses_1"])
def test_a_session_that_is_not_there_is_said(kind: str, session: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be the id|one of ses_"):
        list(export(STORES[kind](tmp_path / kind), session))


def test_what_opencode_writes_while_we_read_is_seen_once_it_is_there(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    writer = sqlite3.connect(path)
    writer.execute("UPDATE session SET title = 'Now' WHERE id = 'ses_1'")
    writer.commit()  # into the log beside the database
    assert {session.title for session in sessions(path)} == {"Now", "Look for clocks"}
    writer.close()


def test_a_log_that_was_left_behind_is_read_without_a_trace(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "a" / "opencode.db")
    writer = sqlite3.connect(path)
    writer.execute("UPDATE session SET title = 'In the log' WHERE id = 'ses_1'")
    writer.commit()
    copied = tmp_path / "b" / "opencode.db"
    copied.parent.mkdir()
    for end in ("", "-wal"):
        copied.with_name(copied.name + end).write_bytes(path.with_name(path.name + end).read_bytes())
    writer.close()
    before = everything(tmp_path)
    assert "In the log" in {session.title for session in sessions(copied)}
    assert everything(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough", b"SQLite format 3\0" + b"\xff" * 4080])
def test_what_is_no_database_of_opencode_is_said(content: bytes, tmp_path: Path) -> None:
    path = put(tmp_path / "opencode.db", content)
    with pytest.raises(InputError, match=r"opencode\.db"):
        list(sessions(path))
    with pytest.raises(InputError, match=r"opencode\.db"):
        list(export(path, "ses_1"))
    with pytest.raises(InputError, match="cannot be read"):
        list(sessions(tmp_path / "missing.db"))


def test_damage_costs_what_is_damaged(tmp_path: Path) -> None:
    storage = opencode_folder(tmp_path / "storage")
    put(storage / "message/ses_1/msg_1.json", b'{"id": "msg_1", "role": "us')
    put(storage / "part/msg_2/prt_2.json", b"\0" * 30)
    put(storage / "part/msg_3/prt_5.json", b'{"type": "text", "text": "caf\xe9 \\ud800 and\nmore"}')
    found = events(storage, "ses_1")
    assert [type(block) for block in blocks(found)] == [ToolCall, ToolResult, Text]
    assert next(block.text for block in blocks(found) if isinstance(block, Text)) == "caf\ufffd \ufffd and\nmore"
    said = " ".join(event.reason for event in found if isinstance(event, Skipped))
    assert "message" in said
    assert "damaged: prt_2.json" in said


def test_a_damaged_row_costs_that_row(tmp_path: Path) -> None:
    path = opencode_database(tmp_path / "opencode.db")
    writer = sqlite3.connect(path)
    writer.execute("UPDATE message SET data = '{\"role\"' WHERE id = 'msg_1'")
    writer.execute("UPDATE part SET data = x'ff00' WHERE id = 'prt_2'")
    writer.commit()
    writer.close()
    found = events(path, "ses_1")
    assert [type(block) for block in blocks(found)] == [ToolCall, ToolResult, Text]
    assert sum(isinstance(event, Skipped) for event in found) == 2


def test_a_session_of_opencode_2_reads_like_one_of_opencode_1(tmp_path: Path) -> None:
    done = {
        "status": "completed",
        "input": {"cmd": "ls"},
        "content": [{"type": "text", "text": "a.py"}, {"type": "text", "text": "b.py"}],
    }
    failed = {"status": "error", "input": {"cmd": "rm"}, "content": [], "error": {"type": "unknown", "message": "not allowed"}}
    asked = {"status": "running", "input": '{"cmd": "wa', "content": []}
    answer = {
        "model": {"id": "glm-5", "providerID": "z"},
        "tokens": {"input": 7, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 5}},
        "content": [
            {"type": "reasoning", "text": "Let me see."},
            {"type": "text", "text": "I list."},
            {"type": "tool", "id": "c1", "name": "shell", "state": done, "time": {"created": 1}},
            {"type": "tool", "id": "c2", "name": "shell", "state": failed, "time": {"created": 1}},
            {"type": "tool", "id": "c3", "name": "shell", "state": asked, "time": {"created": 1}},
        ],
    }
    image = {"mime": "image/png", "data": "iVBORw0KGgo=", "name": "x.png"}
    note = {"mime": "text/plain", "data": "aGVsbG8=", "name": "note.txt"}
    rows: list[tuple[str, Json]] = [
        ("model-switched", {"model": {"id": "glm-5"}}),
        ("user", {"text": "What is here?", "files": [image, note]}),
        ("system", {"text": "The tools have changed."}),
        ("shell", {"command": "git status", "output": {"output": "clean"}}),
        ("assistant", answer),
        ("idle", {"outcome": "succeeded"}),
    ]
    found = events(opencode_2_database(tmp_path / "opencode-next.db", rows), "ses_2x")
    user, system, shell, reply, result, refused = (event for event in found if isinstance(event, Draft))
    assert [type(block) for block in user.blocks] == [Text, Media, Text]
    assert user.blocks[0] == Text(text="What is here?", origin=Origin.HUMAN)
    assert user.blocks[2] == Text(text="Attached file: note.txt\n\nhello", origin=Origin.HARNESS)
    assert system.blocks == (Text(text="The tools have changed.", origin=Origin.HARNESS),)
    assert shell.blocks == (Text(text="Shell command: git status\n\nclean", origin=Origin.HARNESS),)
    assert [type(block) for block in reply.blocks] == [Thinking, Text, ToolCall, ToolCall, ToolCall]
    assert (reply.model, reply.usage) == ("glm-5", Usage(uncached=7, cache_write=5, cache_read=4, output=3))
    assert result.blocks == (ToolResult(call_id="c1", text="a.py\nb.py"),)
    assert refused.blocks == (ToolResult(call_id="c2", text="not allowed", error=True),)
    assert not [event for event in found if isinstance(event, Skipped)]


def test_a_compaction_of_opencode_2_leaves_its_checkpoint(tmp_path: Path) -> None:
    rows: list[tuple[str, Json]] = [
        ("user", {"text": "First."}),
        ("assistant", {"content": [{"type": "text", "text": "Yes."}]}),
        ("compaction", {"status": "failed", "error": {"message": "no"}}),
        ("compaction", {"status": "completed", "reason": "auto", "summary": "Said yes.", "recent": "nothing"}),
        ("user", {"text": "Second."}),
    ]
    found = events(opencode_2_database(tmp_path / "opencode.db", rows), "ses_2x")
    kinds = [type(event) for event in found]
    assert kinds == [Draft, Draft, Draft, Rewritten, Draft]
    checkpoint, rewritten = found[2], found[3]
    assert isinstance(checkpoint, Draft)
    assert isinstance(rewritten, Rewritten)
    assert (checkpoint.role, rewritten.drop_before) == (Role.USER, 2)
    assert isinstance(checkpoint.blocks[0], Text)
    assert "<summary>\nSaid yes.\n</summary>" in checkpoint.blocks[0].text
    assert checkpoint.blocks[0].origin is Origin.HARNESS


def test_what_a_newer_version_adds_is_said_and_costs_nothing_else(tmp_path: Path) -> None:
    rows: list[tuple[str, Json]] = [
        ("hologram", {"text": "?"}),
        ("user", {"text": "Still here.", "files": "three"}),
        ("assistant", {"content": [{"type": "text", "text": "Yes."}, {"type": "smell", "text": "roses"}]}),
    ]
    found = events(opencode_2_database(tmp_path / "opencode.db", rows), "ses_2x")
    assert [block.text for block in blocks(found) if isinstance(block, Text)] == ["Still here.", "Yes."]
    said = " ".join(event.reason for event in found if isinstance(event, Skipped))
    assert all(word in said for word in ("hologram", "files", "smell"))


def test_the_table_that_has_the_end_of_a_session_is_read(tmp_path: Path) -> None:
    copied: list[tuple[str, Json]] = [("user", {"text": "Copied."})]
    path = opencode_2_database(opencode_database(tmp_path / "opencode.db"), copied, session="ses_1")
    assert "Copied." in [block.text for block in blocks(events(path, "ses_1")) if isinstance(block, Text)]
    writer = sqlite3.connect(path)
    writer.execute("UPDATE session_message SET time_created = 1")  # no later than what OpenCode 1 holds
    writer.commit()
    writer.close()
    assert "Why does the login test fail?" in [block.text for block in blocks(events(path, "ses_1")) if isinstance(block, Text)]
    assert [session.id for session in sessions(path)].count("ses_1") == 1


def test_a_sheet_that_is_damaged_or_in_another_form_still_lists_the_session(tmp_path: Path) -> None:
    storage = opencode_folder(tmp_path / "storage")
    put(storage / "session/p1/ses_1.json", {**SESSION, "title": None, "time": "then"}, age=5)
    put(storage / "session/p1/ses_2.json", b"{", age=6)
    listed = {session.id: session for session in sessions(storage)}
    assert listed["ses_1"].messages == 3
    assert listed["ses_2"].updated == 1_000_006_000
    assert blocks(events(storage, "ses_1"))
    assert events(storage, "ses_2") == []
