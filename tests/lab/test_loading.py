"""Addresses of sessions."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from made_up import everything, goose_database, old_opencode_folder, opencode_database, opencode_folder, put
from stored_drafts import store_drafts
from tenure import Budget, Context
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Text, ToolResult
from tenure.errors import InputError
from tenure.lab.events import EntryLine
from tenure.lab.loading import kept_ledger, load, source
from tenure.lab.replay import Options, replay
from tenure.testing.builders import human, reply


def log(path: Path) -> Path:
    """A Claude Code log with the conversation of a sub-agent in it."""
    rows = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Find it."}},
        {"type": "user", "uuid": "s1", "isSidechain": True, "agentId": "ag", "message": {"role": "user", "content": "Search."}},
    ]
    path.write_text("\n".join(json.dumps({"sessionId": "s"} | row) for row in rows))
    return path


def texts(address: str) -> list[str]:
    blocks = (block for entry in load([source(address)], o200k()).entries for block in entry.blocks)
    return [block.text for block in blocks if isinstance(block, Text | ToolResult)]


def test_a_sub_agent_is_addressed_behind_its_file(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl")
    assert texts(str(path)) == ["Find it."]
    assert texts(f"{path}#ag") == ["Search."]


def test_a_name_that_holds_the_sign_is_a_name(tmp_path: Path) -> None:
    path = log(tmp_path / "log#ag.jsonl")
    assert texts(str(path)) == ["Find it."]
    assert texts(f"{path}#ag") == ["Search."]


@pytest.mark.parametrize("address", ["log.jsonl#nobody", "none.jsonl#ag", "log.jsonl#"])
def test_what_is_not_there_is_refused_by_name(address: str, tmp_path: Path) -> None:
    log(tmp_path / "log.jsonl")
    with pytest.raises(InputError, match=r"nobody|none\.jsonl|log\.jsonl#"):
        texts(str(tmp_path / address))


def test_an_agents_session_is_read_from_its_store_with_the_handles_that_it_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with Context(dialect="openai-chat", store=f"sqlite:///{path}", tenant="/home/me/project") as context:
        context.extend([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}])
        shown = context.session.index.handle("user:1", 0)
    found = source(str(path))
    loaded = load([found], o200k())
    assert loaded.index.handle("user:1", 0) == shown
    lines = replay([found], Options(budget=Budget(), policy=None), o200k())
    assert [line.id for line in lines if isinstance(line, EntryLine)] == [entry.id for entry in loaded.entries]
    assert kept_ledger(str(path), o200k()) is not None


def test_a_conversation_of_a_store_is_addressed_by_its_id(tmp_path: Path) -> None:
    store_drafts(tmp_path / "own.db", [human("Hello."), reply("Hi.")], o200k())
    assert texts(f"{tmp_path}/own.db#session") == texts(f"{tmp_path}/own.db") == ["Hello.", "Hi."]
    with pytest.raises(InputError, match=r"'other'.*'session'"):
        texts(f"{tmp_path}/own.db#other")


MENDED = ["Why does the login test fail?", "I look.", "1: def login():", "A clock. Mended."]
BREAD = ["How?"]


def openhands(folder: Path) -> Path:
    for number, words in enumerate(("Bake.", "Done.")):
        source = "agent" if number else "user"
        event = {
            "id": number,
            "source": source,
            "action": "message",
            "args": {"content": words},
            "timestamp": "2026-03-01T09:00:00",
        }
        put(folder / f"events/{number}.json", event)
    return folder


@pytest.mark.parametrize(
    ("make", "address", "wanted"),
    [
        (opencode_folder, "#ses_1", MENDED),
        (opencode_folder, "", MENDED),
        (old_opencode_folder, "#ses_1", MENDED),
        (opencode_database, "#ses_1", MENDED),
        (opencode_database, "", MENDED),
        (goose_database, "#20260301_1", BREAD),
        (goose_database, "", BREAD),
        (openhands, "", ["Bake.", "Done."]),
    ],
)
def test_a_session_in_a_store_is_read_by_its_address(
    make: Callable[[Path], Path], address: str, wanted: list[str], tmp_path: Path
) -> None:
    path = make(tmp_path / "store")
    before = everything(tmp_path)
    assert texts(f"{path}{address}") == wanted
    assert everything(tmp_path) == before


@pytest.mark.parametrize("make", [opencode_folder, opencode_database, goose_database])
def test_a_session_that_a_store_does_not_hold_is_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ses_9"):
        texts(f"{make(tmp_path / 'store')}#ses_9")


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE bookmarks (id)")
    with pytest.raises(InputError, match=r"another program's database, expected a store of tenure, opencode, goose"):
        texts(str(tmp_path / "other.db"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once_and_kept(tmp_path: Path) -> None:
    data, pipe = log(tmp_path / "log.jsonl").read_bytes(), tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    chosen = source(str(pipe))
    writer.join()
    assert [len(load([chosen], o200k()).entries) for _ in range(2)] == [1, 1]
    assert len(chosen.sha256()) == 64
