import os
from pathlib import Path

import pytest

from made_up import claude, everything, goose_database, here, opencode_database, opencode_folder, put
from stored_drafts import store_drafts
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.errors import InputError
from tenure.logs.detect import READERS
from tenure.logs.places.first_sight import Glimpse, glimpse
from tenure.logs.places.known_places import PLACES, STORES, FoundSession, below, usual_places

# A file in each kind of place, with the tool it is of.
FILES = {
    ".claude/projects/-w/5f0c.jsonl": "claude-code",
    ".config/claude/projects/-w/6a1d.jsonl": "claude-code",
    "Library/Application Support/Claude/local-agent-mode-sessions/a/b/.claude/projects/-w/7b2e.jsonl": "claude-code",
    ".codex/sessions/2026/03/01/rollout-1.jsonl": "codex",
    ".codex/sessions/2026/03/01/rollout-2.jsonl.zst": "codex",
    ".codex/archived_sessions/rollout-0.jsonl": "codex",
    "tmp/opencode-session-ses_1-1f.json": "opencode",
    ".pi/agent/sessions/--w--/s2.jsonl": "pi",
    ".gemini/tmp/api/chats/session-1.json": "gemini-cli",
    ".gemini/tmp/api/chats/session-2.jsonl": "gemini-cli",
    ".local/share/goose/sessions/20260301_1.jsonl": "goose",
    "AppData/Roaming/Block/goose/data/sessions/20260301_2.jsonl": "goose",
    ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/17/api_conversation_history.json": "cline",
    "Library/Application Support/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks/18/api_conversation_history.json": "cline",
    ".vscode-server/data/User/globalStorage/kilocode.kilo-code/tasks/19/api_conversation_history.json": "cline",
    ".cline/data/tasks/20/api_conversation_history.json": "cline",
    ".cline/data/sessions/21/21.messages.json": "cline",
    ".config/mini-swe-agent/last_mini_run.traj.json": "mini-swe-agent",
    "code/one.traj.json": "mini-swe-agent",
    "code/trajectories/ada/run/task/task.traj": "swe-agent",
    "code/.specstory/history/2026-03-01_10-00Z-login.md": "specstory",
    "code/.aider.chat.history.md": "aider",
    ".aider.chat.history.md": "aider",
    "code/jobs/j/t/agent/trajectory.json": "atif",
    "code/logs/2026-03-01_task.eval": "inspect",
    "code/logs/2026-03-01_task.json": "",
}
# What lies beside them and is no session.
BESIDE = (
    ".claude/projects/-w/agent-1.jsonl",
    ".claude/projects/-w/5f0c/subagents/agent-2.jsonl",
    ".claude/settings.json",
    ".codex/history.jsonl",
    ".codex/auth.json",
    ".gemini/tmp/api/logs.json",
    ".gemini/tmp/api/chats/1f/agent.jsonl",
    ".local/share/opencode/auth.json",
    ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/17/ui_messages.json",
    "code/README.md",
    "code/package.json",
    "code/other.db",
)


def addresses(found: list[FoundSession], home: Path) -> dict[str, str]:
    return {session.address.removeprefix(f"{home}/"): session.tool for session in found}


def test_every_tool_s_sessions_are_found_and_nothing_else(tmp_path: Path) -> None:
    for name in (*FILES, *BESIDE):
        put(tmp_path / name, "{}")
    found = usual_places(here(tmp_path))
    assert addresses(found, tmp_path) == FILES
    assert {session.size for session in found} == {2}


def test_the_newest_come_first(tmp_path: Path) -> None:
    for age, name in ((3, "3"), (9, "9"), (1, "1"), (5, "5")):
        put(tmp_path / f".codex/sessions/rollout-{name}.jsonl", "{}", age)
    assert [session.path.stem[-1] for session in usual_places(here(tmp_path))] == ["9", "5", "3", "1"]


def test_a_home_without_sessions_has_none(tmp_path: Path) -> None:
    assert usual_places(here(tmp_path / "nobody")) == []


def test_tools_are_told_where_to_keep_sessions_by_variables(tmp_path: Path) -> None:
    put(tmp_path / "c/projects/-w/1.jsonl", "{}")
    put(tmp_path / "x/sessions/rollout-1.jsonl", "{}")
    put(tmp_path / "code/evals/a.eval", "{}")
    put(tmp_path / "notes/aider.md", "{}")
    opencode_database(tmp_path / "data/opencode/opencode.db")
    where = here(
        tmp_path,
        CLAUDE_CONFIG_DIR="~/c",
        CODEX_HOME=str(tmp_path / "x"),
        INSPECT_LOG_DIR="evals",
        AIDER_CHAT_HISTORY_FILE=str(tmp_path / "notes/aider.md"),
        XDG_DATA_HOME=str(tmp_path / "data"),
        GOOSE_PATH_ROOT="s3://bucket/goose",
    )
    assert sorted(addresses(usual_places(where), tmp_path).values()) == ["aider", "claude-code", "codex", "inspect", "opencode"]


def test_a_place_that_two_names_lead_to_is_listed_once(tmp_path: Path) -> None:
    put(tmp_path / ".claude/projects/-w/1.jsonl", "{}")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/claude").symlink_to(tmp_path / ".claude")
    assert len(usual_places(here(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / ".claude")))) == 1


def test_loops_locked_folders_dead_links_and_pipes_are_passed_over(tmp_path: Path) -> None:
    sessions = tmp_path / ".codex/sessions"
    put(sessions / "2026/rollout-1.jsonl", "{}")
    put(sessions / "rollout-empty.jsonl", "")
    (sessions / "2026/loop").symlink_to(sessions)
    (sessions / "rollout-dead.jsonl").symlink_to(tmp_path / "nothing")
    os.mkfifo(sessions / "rollout-pipe.jsonl")
    put(sessions / "locked/rollout-2.jsonl", "{}")
    (sessions / "locked").chmod(0)
    try:
        found = usual_places(here(tmp_path))
        assert {session.path.name for session in found} <= {"rollout-1.jsonl", "rollout-2.jsonl"}  # a superuser sees the second
        assert sum(session.path.name == "rollout-1.jsonl" for session in found) == 1
        assert len(below([sessions])) == len(found)
    finally:
        (sessions / "locked").chmod(0o700)


def test_sessions_in_a_store_have_an_address_inside_it_and_sub_agents_are_counted(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / ".local/share/opencode/opencode.db")
    (found,) = usual_places(here(tmp_path))
    assert found.address == f"{database}#ses_1"
    assert (found.tool, found.title, found.project, found.messages, found.agents) == (
        "opencode",
        "Mend the login test",
        "/home/ada/api",
        3,
        1,
    )


def test_a_session_that_moved_into_the_database_is_listed_there_alone(tmp_path: Path) -> None:
    database = opencode_database(tmp_path / ".local/share/opencode/opencode.db")
    opencode_folder(tmp_path / ".local/share/opencode/storage")
    put(tmp_path / ".gemini/tmp/api/chats/session-1.json", "{}")
    put(tmp_path / ".gemini/tmp/api/chats/session-1.jsonl", "{}")
    found = usual_places(here(tmp_path))
    assert sorted(session.path.name for session in found) == ["opencode.db", "session-1.jsonl"]
    database.unlink()
    assert f"{tmp_path}/.local/share/opencode/storage#ses_1" in {session.address for session in usual_places(here(tmp_path))}


def test_sessions_of_goose_are_found_in_its_database_and_not_again_in_the_file_they_came_from(tmp_path: Path) -> None:
    database = goose_database(tmp_path / ".local/share/goose/sessions/sessions.db")
    put(tmp_path / ".local/share/goose/sessions/20260301_1.jsonl", "{}")
    (found,) = usual_places(here(tmp_path))
    assert (found.address, found.title, found.messages) == (f"{database}#20260301_1", "Bake bread", 1)
    assert found.modified.isoformat() == "2026-03-01T10:00:00+00:00"
    assert glimpse(found) == Glimpse(tool="goose", words="Bake bread", project="/home/ada/bread")


def test_conversations_of_openhands_are_folders(tmp_path: Path) -> None:
    put(tmp_path / ".openhands/conversations/1f/events/event-00000-a.json", "{}")
    put(tmp_path / ".openhands/conversations/1f/base_state.json", "{}")
    put(tmp_path / ".openhands/sessions/2a/events/0.json", "{}")
    put(tmp_path / ".openhands/sessions/empty/metadata.json", "{}")
    assert addresses(usual_places(here(tmp_path)), tmp_path) == {
        ".openhands/conversations/1f": "openhands",
        ".openhands/sessions/2a": "openhands",
    }


def test_conversations_in_a_store_of_ours_are_listed_without_opening_it_as_one(tmp_path: Path) -> None:
    work = tmp_path / "code"
    work.mkdir()
    said = Draft(role=Role.USER, blocks=(Text(text="Mend it.", origin=Origin.HUMAN),))
    store_drafts(work / "tenure.db", [said], o200k())
    put(work / "other.db", b"SQLite format 3\0 and then nothing that a database is made of")
    before = everything(tmp_path)
    (found,) = usual_places(here(tmp_path))
    assert (found.tool, found.id, found.messages) == ("tenure", "session", 1)
    assert everything(tmp_path) == before


def test_what_lies_beside_the_work_is_found_in_projects_that_other_tools_know(tmp_path: Path) -> None:
    for tool, name in enumerate(("a", "b", "c")):
        put(tmp_path / name / ".specstory/history/s.md", "# s", age=tool)
    put(tmp_path / ".claude.json", {"projects": {str(tmp_path / "a"): {"allowedTools": []}, "not/absolute": {}}, "other": 1})
    put(tmp_path / ".gemini/projects.json", {"projects": {str(tmp_path / "b"): "b"}})
    put(tmp_path / ".codex/config.toml", f'[projects."{tmp_path / "c"}"]\ntrust_level = "trusted"\n')
    assert [session.path.parts[-4] for session in usual_places(here(tmp_path))] == ["c", "b", "a"]
    for broken in (".claude.json", ".gemini/projects.json", ".codex/config.toml"):
        put(tmp_path / broken, b'{"projects": [')
    assert usual_places(here(tmp_path)) == []


def test_finding_opens_no_file_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        put(tmp_path / name, "{}")
    before, where = everything(tmp_path), here(tmp_path)

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", opened)
    assert len(usual_places(where)) == len(FILES)
    monkeypatch.undo()
    assert everything(tmp_path) == before


def test_only_the_places_of_one_tool_are_looked_in_when_asked(tmp_path: Path) -> None:
    for name in FILES:
        put(tmp_path / name, "{}")
    assert {session.tool for session in usual_places(here(tmp_path), "codex")} == {"codex"}


def test_below_a_folder_anything_may_be_a_session_but_what_others_made_and_secrets(tmp_path: Path) -> None:
    put(tmp_path / "a/log.jsonl.gz", "x", age=1)
    put(tmp_path / "a/deep/notes.md", "x", age=2)
    put(tmp_path / "s.jsonl", claude("go"), age=3)
    put(tmp_path / "s/subagents/agent-1.jsonl", claude("sub"))
    put(tmp_path / "alone/subagents/agent-2.jsonl", claude("sub"), age=4)
    put(tmp_path / "oh/events/0.json", "{}")
    opencode_folder(tmp_path / "storage")
    for other in ("node_modules/x.json", ".git/x.json", "a/auth.json", "a/picture.png", "a/x.db"):
        put(tmp_path / other, "{}")
    found = addresses(below([tmp_path]), tmp_path)
    assert found == {
        "a/log.jsonl.gz": "",
        "a/deep/notes.md": "",
        "s.jsonl": "",
        "alone/subagents/agent-2.jsonl": "",
        "oh": "openhands",
        "storage#ses_1": "opencode",
    }
    assert addresses(below([tmp_path / "a/picture.png"]), tmp_path) == {"a/picture.png": ""}
    with pytest.raises(InputError, match="no such file or folder"):
        below([tmp_path / "missing"])


def test_a_listing_of_thousands_is_quick_work(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/-w"
    folder.mkdir(parents=True)
    for number in range(3000):
        (folder / f"{number}.jsonl").write_bytes(b"{}")
    assert len(usual_places(here(tmp_path))) == 3000


def test_each_place_names_a_reader_and_each_store_can_be_listed() -> None:
    names = {reader.name for reader in READERS} | {"tenure"}
    assert {place.tool for place in PLACES} <= names
    assert {place.store for place in PLACES} - {""} <= set(STORES)
