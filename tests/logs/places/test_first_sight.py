import json
import lzma
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from made_up import Json, claude, everything, here, opencode_2_database, opencode_database, opencode_folder, put
from stored_drafts import store_drafts
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.logs.places.first_sight import START, Glimpse, glimpse
from tenure.logs.places.known_places import FoundSession, below, usual_places
from work import growth


def found(path: Path, tool: str = "") -> FoundSession:
    return FoundSession(tool=tool, path=path, size=path.stat().st_size, modified=datetime.fromtimestamp(0, UTC))


def test_the_first_human_words_and_the_folder_are_told_from_the_start(tmp_path: Path) -> None:
    path = put(tmp_path / "s.jsonl", claude("Mend the login test", cwd='/home/ada/"api"'))
    expected = Glimpse(tool="claude-code", words="Mend the login test", project='/home/ada/"api"')
    assert glimpse(found(path, "claude-code")) == expected
    assert glimpse(found(path)) == expected
    assert glimpse(found(put(tmp_path / "s.jsonl.xz", lzma.compress(path.read_bytes())))) == expected


def test_no_more_than_the_start_of_a_file_is_read(tmp_path: Path) -> None:
    filler = [{"type": "progress", "sessionId": "s", "uuid": "p", "data": "x" * 1000}] * 300
    late = put(tmp_path / "late.jsonl", [*filler, *claude("too late")])
    assert late.stat().st_size > START
    assert glimpse(found(late, "claude-code")) == Glimpse(tool="claude-code")
    long = put(tmp_path / "long.jsonl", [*claude("early"), *filler])
    seen = glimpse(found(long, "claude-code"))
    assert seen is not None
    assert seen.words == "early"


def test_what_is_no_session_by_its_content_is_none_and_what_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "package.json", {"name": "x"})
    assert glimpse(found(path)) is None
    assert glimpse(found(path, "codex")) == Glimpse(tool="codex")
    damaged = put(tmp_path / "x.jsonl.xz", lzma.compress(b"text" * 100)[:20])
    assert glimpse(found(damaged)) is None
    assert glimpse(found(damaged, "codex")) == Glimpse(tool="codex")
    gone = found(path, "codex")
    path.unlink()
    assert glimpse(gone) == Glimpse(tool="codex")


@pytest.mark.parametrize(
    "noise", [b"\0" * 400_000, b"[" * 300_000, b'{"type": "user", "cwd": "\\', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_noise_is_no_trouble(noise: bytes, tmp_path: Path) -> None:
    path = put(tmp_path / "noise.jsonl", noise)
    assert glimpse(found(path, "claude-code")) == Glimpse(tool="claude-code")
    glimpse(found(path))


def test_sub_agents_of_claude_code_are_counted_with_their_session(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/-w"
    put(folder / "s1.jsonl", claude("go", session="s1"), age=2)
    put(folder / "s2.jsonl", claude("go", session="s2"), age=1)
    put(folder / "s1/subagents/agent-a.jsonl", claude("sub", session="s1"))
    put(folder / "s1/subagents/workflows/w/agent-b.jsonl", claude("sub", session="s1"))
    put(folder / "agent-c.jsonl", "\n".join(json.dumps(line, separators=(",", ":")) for line in claude("sub", session="s2")))
    assert [seen.agents for each in usual_places(here(tmp_path)) if (seen := glimpse(each))] == [2, 1]


def test_sessions_and_sub_agents_in_one_folder_are_looked_at_in_linear_steps(tmp_path: Path) -> None:
    def glimpses(n: int) -> Callable[[], object]:
        folder = tmp_path / f"{n}/.claude/projects/-w"
        for number in range(n):
            put(folder / f"s{number}.jsonl", claude("go", session=f"s{number}"))
            put(folder / f"agent-{number}.jsonl", claude("sub", session=f"s{number}"))
        sessions = usual_places(here(tmp_path / str(n)))
        return lambda: [glimpse(each) for each in sessions]

    assert growth(glimpses, 25) < 6


def test_sub_agents_of_gemini_cli_are_counted_with_their_session(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini/tmp/api/chats"
    put(chats / "session-1.jsonl", [{"sessionId": "0f1e-2d", "projectHash": "h", "startTime": "t", "lastUpdated": "t"}])
    put(chats / "0f1e-2d/agent.jsonl", [{"sessionId": "x", "projectHash": "h", "kind": "subagent"}])
    (session,) = usual_places(here(tmp_path))
    seen = glimpse(session)
    assert seen is not None
    assert (seen.agents, seen.project) == (1, "api")
    put(tmp_path / ".gemini/tmp/api/.project_root", "/home/ada/api\n")
    seen = glimpse(session)
    assert seen is not None
    assert seen.project == "/home/ada/api"


@pytest.mark.parametrize("make", [opencode_database, opencode_folder])
def test_a_session_in_a_store_goes_by_its_title(make: object, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / ("opencode.db" if make is opencode_database else "storage"))
    (session,) = below([tmp_path])
    assert glimpse(session) == Glimpse(tool="opencode", words="Mend the login test", project="/home/ada/api", agents=1)


def test_a_session_without_a_title_goes_by_its_first_words(tmp_path: Path) -> None:
    rows: list[tuple[str, Json]] = [("user", {"text": "What is here?"})]
    opencode_2_database(tmp_path / "opencode.db", rows)
    (session,) = below([tmp_path])
    seen = glimpse(session)
    assert seen is not None
    assert seen.words == "What is here?"


def test_a_conversation_of_ours_goes_by_its_first_human_words(tmp_path: Path) -> None:
    path = tmp_path / "tenure.db"
    drafts = (
        Draft(role=Role.USER, blocks=(Text(text="# Rules", origin=Origin.HARNESS),)),
        Draft(role=Role.USER, blocks=(Text(text="Mend it.", origin=Origin.HUMAN),)),
    )
    store_drafts(path, drafts, o200k())
    before = everything(tmp_path)
    (session,) = below([path])
    assert glimpse(session) == Glimpse(tool="tenure", words="Mend it.", project=str(tmp_path))
    assert everything(tmp_path) == before
