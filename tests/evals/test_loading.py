"""Addresses of sessions."""

import json
import os
import threading
from pathlib import Path

import pytest

from tenure.errors import InputError
from tenure.evals.loading import load, source, store_drafts
from tenure.meter.tokens import o200k
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
    return [entry.blocks[0].text for entry in load([source(address)], o200k()).entries]


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


def test_a_conversation_of_a_store_is_addressed_by_its_id(tmp_path: Path) -> None:
    store_drafts(tmp_path / "own.db", [human("Hello."), reply("Hi.")], o200k())
    assert texts(f"{tmp_path}/own.db#session") == texts(f"{tmp_path}/own.db") == ["Hello.", "Hi."]
    with pytest.raises(InputError, match=r"'other'.*'session'"):
        texts(f"{tmp_path}/own.db#other")


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
