"""Where tools keep their sessions (an edge).

What is known of each tool is a row of `PLACES`. Finding takes a listing of folders and no more; only stores that hold many sessions
(databases, and folders of small files) are asked what is in them. What a session is about is `glimpse`'s to say, for those that are shown.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG
from typing import Final

from msgspec import Struct

from tenure.errors import InputError
from tenure.logs.places import opencode_store, openhands_store
from tenure.logs.places.folders import holds, matches, moment, walk
from tenure.logs.places.here import Surroundings
from tenure.logs.places.stored import StoredSession, with_agents
from tenure.logs.places.stores import OWN, STORES
from tenure.logs.places.tenure_store import DAMAGED
from tenure.store.records import OWN_STORE


class FoundSession(Struct, frozen=True, kw_only=True):
    """A session in one of the places."""

    tool: str  # the reader's name; "" while only the content can tell
    path: Path
    size: int  # bytes, as packed; 0 for one that is not a file of its own
    modified: datetime  # UTC
    id: str = ""  # inside a store
    title: str = ""
    project: str = ""  # the folder it worked in, as far as the store says it
    agents: int = 0  # sub-agents, likewise
    messages: int = 0  # likewise

    @property
    def address(self) -> str:
        """What commands take."""
        return f"{self.path}#{self.id}" if self.id else str(self.path)


class SessionPlace(Struct, frozen=True, gc=False, kw_only=True):
    """Where a tool keeps its sessions."""

    tool: str
    folders: tuple[str, ...]  # see `Surroundings.folders`
    files: str  # glob below the folder; with a `/` at the end for folders, empty for the `folder` itself
    store: str = ""  # one of STORES: what is found holds many
    but: str = "\0"  # glob of names that are something else
    unsure: bool = False  # other files have such names too, so the content decides


_APPLICATIONS: Final = ("$XDG_CONFIG_HOME", "~/.config", "~/Library/Application Support", "$APPDATA", "~/AppData/Roaming")
_EDITORS: Final = (
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "VSCodium - Insiders",
    "Cursor",
    "Windsurf",
    "Trae",
    "Kiro",
)
_SERVERS: Final = (
    "~/.vscode-server/data",
    "~/.vscode-server-insiders/data",
    "~/.vscodium-server/data",
    "~/.cursor-server/data",
    "~/.windsurf-server/data",
    "~/.vscode-remote/data",
    "~/.local/share/code-server",
    "~/.var/app/com.visualstudio.code/config/Code",
    "~/.var/app/com.vscodium.codium/config/VSCodium",
)
_EXTENSIONS: Final = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")

# Where extensions of VS Code and its kin keep their files.
GLOBAL_STORAGE: Final = (
    *(f"{folder}/{editor}/User/globalStorage" for editor in _EDITORS for folder in _APPLICATIONS),
    *(f"{folder}/User/globalStorage" for folder in _SERVERS),
)

_CLAUDE: Final = ("$CLAUDE_CONFIG_DIR", "~/.claude", "$XDG_CONFIG_HOME/claude", "~/.config/claude")
_CODEX: Final = ("$CODEX_HOME", "~/.codex")
_SHARED: Final = ("$XDG_DATA_HOME", "~/.local/share")  # on every system, for tools that follow XDG to the letter
_LOCAL: Final = (*_SHARED, "~/Library/Application Support", "$LOCALAPPDATA", "~/AppData/Local")
_GOOSE: Final = (
    "$GOOSE_PATH_ROOT/data/sessions",
    "$XDG_DATA_HOME/goose/sessions",
    "~/.local/share/goose/sessions",
    "~/Library/Application Support/Block/goose/data/sessions",
    "~/Library/Application Support/Block.goose/sessions",
    "$APPDATA/Block/goose/data/sessions",
    "~/AppData/Roaming/Block/goose/data/sessions",
)
_OPENHANDS: Final = ("$OPENHANDS_PERSISTENCE_DIR", "~/.openhands", "~/.openhands-state", "TMP/openhands_file_store")
_CLINE: Final = ("$CLINE_DATA_DIR", "$CLINE_DIR/data", "~/.cline/data")


def _below(folders: Iterable[str], *ends: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{end}" for folder in folders for end in ends)


PLACES: Final = (
    SessionPlace(tool="claude-code", folders=_below(_CLAUDE, "projects"), files="*/*.jsonl", but="agent-*"),
    SessionPlace(
        tool="claude-code",  # of the desktop application
        folders=_below(_APPLICATIONS, "Claude/local-agent-mode-sessions"),
        files="**/projects/*/*.jsonl",
        but="agent-*",
    ),
    SessionPlace(tool="codex", folders=_below(_CODEX, "sessions"), files="**/rollout-*.jsonl"),
    SessionPlace(tool="codex", folders=_below(_CODEX, "sessions"), files="**/rollout-*.jsonl.zst"),
    SessionPlace(tool="codex", folders=_below(_CODEX, "archived_sessions"), files="rollout-*.jsonl"),
    SessionPlace(tool="codex", folders=_below(_CODEX, "archived_sessions"), files="rollout-*.jsonl.zst"),
    SessionPlace(
        tool="copilot-cli", folders=("$XDG_STATE_HOME/.copilot/session-state", "~/.copilot/session-state"), files="*/events.jsonl"
    ),
    SessionPlace(tool="copilot-cli", folders=("~/.copilot/session-state",), files="*.jsonl"),
    SessionPlace(tool="opencode", folders=("$OPENCODE_DB",), files="", store="opencode"),
    SessionPlace(tool="opencode", folders=_below(_LOCAL, "opencode"), files="opencode*.db", store="opencode"),
    SessionPlace(
        tool="opencode", folders=_below(_LOCAL, "kilo"), files="*.db", store="opencode"
    ),  # Kilo's CLI is built on OpenCode
    SessionPlace(tool="opencode", folders=_below(_LOCAL, "opencode", "kilo"), files="storage/", store="opencode"),
    SessionPlace(tool="opencode", folders=_below(_SHARED, "opencode/project"), files="*/storage/", store="opencode"),
    SessionPlace(tool="opencode", folders=("TMP",), files="opencode-session-*.json"),
    SessionPlace(tool="pi", folders=("$PI_CODING_AGENT_SESSION_DIR",), files="**/*.jsonl"),
    SessionPlace(tool="pi", folders=("$PI_CODING_AGENT_DIR/sessions", "~/.pi/agent/sessions"), files="**/*.jsonl"),
    SessionPlace(tool="gemini-cli", folders=("$GEMINI_CLI_HOME/.gemini/tmp", "~/.gemini/tmp"), files="*/chats/*.jsonl"),
    SessionPlace(tool="gemini-cli", folders=("$GEMINI_CLI_HOME/.gemini/tmp", "~/.gemini/tmp"), files="*/chats/*.json"),
    SessionPlace(tool="goose", folders=_GOOSE, files="sessions.db", store="goose"),
    SessionPlace(tool="goose", folders=(*_GOOSE, "~/.local/state/goose/sessions", "~/.config/goose/sessions"), files="*.jsonl"),
    SessionPlace(
        tool="cline",
        folders=_below(GLOBAL_STORAGE, *(f"{extension}/tasks" for extension in _EXTENSIONS)),
        files="*/api_conversation_history.json",
    ),
    SessionPlace(tool="cline", folders=_below(_CLINE, "tasks"), files="*/api_conversation_history.json"),
    SessionPlace(tool="cline", folders=("$CLINE_SESSION_DATA_DIR", *_below(_CLINE, "sessions")), files="*/*.messages.json"),
    SessionPlace(
        tool="openhands",
        folders=_below(_OPENHANDS, "conversations", "v1_conversations", "sessions"),
        files="*/",
        store="openhands",
    ),
    SessionPlace(tool="openhands", folders=_below(_OPENHANDS, "users"), files="*/conversations/*/", store="openhands"),
    SessionPlace(
        tool="mini-swe-agent",
        folders=(
            "$MSWEA_GLOBAL_CONFIG_DIR",
            "$XDG_CONFIG_HOME/mini-swe-agent",
            "~/.config/mini-swe-agent",
            "~/Library/Application Support/mini-swe-agent",
            "$LOCALAPPDATA/mini-swe-agent/mini-swe-agent",
            ".",
        ),
        files="*.traj.json",
    ),
    SessionPlace(tool="swe-agent", folders=("$SWE_AGENT_TRAJECTORY_DIR", "./trajectories"), files="**/*.traj"),
    SessionPlace(tool="specstory", folders=("PROJECT/.specstory/history",), files="*.md"),
    SessionPlace(tool="aider", folders=("$AIDER_CHAT_HISTORY_FILE",), files=""),
    SessionPlace(tool="aider", folders=("PROJECT", "UP"), files=".aider.chat.history.md"),
    SessionPlace(tool="atif", folders=("./jobs", "~/.cache/harbor/jobs"), files="**/agent/trajectory.json"),
    SessionPlace(tool="inspect", folders=("$INSPECT_LOG_DIR", "./logs"), files="**/*.eval"),
    SessionPlace(tool="inspect", folders=("$INSPECT_LOG_DIR", "./logs"), files="**/*.json", unsure=True),
    SessionPlace(tool=OWN, folders=("$XDG_STATE_HOME/tenure", "~/.local/state/tenure"), files=OWN_STORE, store=OWN),
    SessionPlace(tool=OWN, folders=(".",), files="*.db", store=OWN),
)


# Tools that moved sessions from an older place to a newer one and left the old ones behind; the newer stands first above.
MOVED: Final = frozenset({"opencode", "goose", "gemini-cli"})

# What is looked for below folders of the user's choice: anything that may be a session by its name.
ANYTHING: Final = tuple(
    f"*{end}{packed}"
    for end in (".jsonl", ".json", ".traj", ".eval", ".md", ".ndjson", ".log", ".txt")
    for packed in ("", ".xz", ".gz", ".zst")
)
DATABASES: Final = ("*.db", "*.sqlite", "*.sqlite3")

# Never gone into, and never opened, there: what others made, and what is nobody's business.
PASSED_OVER: Final = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "site-packages", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache"}
)
SECRETS: Final = frozenset(
    {"auth.json", ".credentials.json", "credentials.json", "oauth_creds.json", "mcp-oauth-tokens.json", "secrets.json"}
)


def usual_places(where: Surroundings, tool: str = "") -> list[FoundSession]:
    """The sessions in the places of every tool, or of one, newest first."""
    found: list[FoundSession] = []
    seen: set[tuple[str, str]] = set()
    for place in PLACES:
        if tool in ("", place.tool):
            for session in _in_place(where, place):
                known = (session.tool, session.id or session.path.stem)
                if session.tool not in MOVED or known not in seen:
                    found.append(session)
                    seen.add(known)
    return newest_first(found)


def newest_first(sessions: Iterable[FoundSession]) -> list[FoundSession]:
    """In the order in which they are listed."""
    return sorted(sessions, key=lambda session: (session.modified, session.address), reverse=True)


def below(folders: Iterable[Path]) -> list[FoundSession]:
    """What may be a session below folders (or is one of the files named), newest first; of files only the content can tell.

    Logs of sub-agents are left out where their session's log is there too. Raises InputError for a path that is not there.
    """
    found: list[FoundSession] = []
    for folder in folders:
        if not folder.exists():
            raise InputError(str(folder), "no such file or folder", "a folder to look in")
        for path in [str(folder)] if folder.is_file() else walk(str(folder), _is_store, PASSED_OVER):
            found += _anything(Path(path), sure=folder.is_file())
    there = {session.path for session in found}
    return newest_first(session for session in found if owner(session.path) not in there)


def owner(path: Path) -> Path | None:
    """The log of the session that a sub-agent's log belongs to, where the path tells: `S.jsonl` for `S/subagents/…/agent-7.jsonl`."""
    for folder in path.parents:
        if folder.name == "subagents":
            return folder.parent.with_name(folder.parent.name + ".jsonl")
    return None


def looked_in(where: Surroundings, tool: str = "") -> dict[str, list[Path]]:
    """For each tool the folders that its places mean on this machine, whether they are there or not."""
    found: dict[str, list[Path]] = {}
    for place in PLACES:
        if tool in ("", place.tool):
            folders = (folder for template in place.folders for folder in where.folders(template))
            found.setdefault(place.tool, []).extend(folders)
    return {name: list(dict.fromkeys(folders)) for name, folders in found.items()}


def _in_place(where: Surroundings, place: SessionPlace) -> Iterator[FoundSession]:
    seen: set[str] = set()
    for folder in dict.fromkeys(folder for template in place.folders for folder in where.folders(template)):
        with suppress(OSError, ValueError):
            real = os.path.realpath(folder)
            if real not in seen and os.path.exists(real):  # noqa: PTH110 - cheaper, and asked of hundreds
                seen.add(real)
                for path in matches(str(folder), place.files) if place.files else [str(folder)]:
                    if not fnmatchcase(os.path.basename(path), place.but):  # noqa: PTH119 - as above
                        yield from _held(place.tool, place.store, Path(path)) if place.store else _file(place, path)


def _file(place: SessionPlace, path: str) -> Iterator[FoundSession]:
    with suppress(OSError):  # gone or unreadable since it was listed
        status = os.stat(path)  # noqa: PTH116 - of thousands
        if status.st_size and S_ISREG(status.st_mode):
            tool = "" if place.unsure else place.tool
            yield FoundSession(tool=tool, path=Path(path), size=status.st_size, modified=moment(status.st_mtime))


def _held(tool: str, store: str, path: Path) -> Iterator[FoundSession]:
    """The sessions in a store; another program's, and one that cannot be read, holds none."""
    with suppress(InputError, OSError):
        held = with_agents(_sessions(store, path))
        written = moment(path.stat().st_mtime)
        for each in held:
            yield FoundSession(
                tool=tool,
                path=path,
                size=0,
                modified=moment(each.updated / 1000) if each.updated else written,
                id=each.id,
                title=each.title,
                project=each.project,
                agents=each.agents,
                messages=each.messages,
            )


def _sessions(store: str, path: Path) -> list[StoredSession]:
    """The sessions in a store; of the agent's own one that cannot be read, that it cannot."""
    try:
        return list(STORES[store].sessions(path))
    except InputError as error:
        if store != OWN or path.name != OWN_STORE:
            raise
        return [StoredSession(id="", title=f"{DAMAGED}: {error.found}")]


_BY_CONTENT: Final = SessionPlace(tool="", folders=(), files="", unsure=True)


def _anything(path: Path, *, sure: bool) -> Iterator[FoundSession]:
    if holds(path.is_dir) or any(fnmatchcase(path.name, pattern) for pattern in DATABASES):
        for name in STORES:
            if held := list(_held(name, name, path)):
                yield from held
                return
    elif sure or (path.name not in SECRETS and any(fnmatchcase(path.name, pattern) for pattern in ANYTHING)):
        yield from _file(_BY_CONTENT, str(path))


def _is_store(folder: str, folders: set[str]) -> bool:
    """Whether a folder with such folders in it is a store, or a session, and not a place of files."""
    if openhands_store.EVENTS in folders:
        return bool(openhands_store.count(Path(folder)))
    return "session" in folders and holds(lambda: opencode_store.is_storage(Path(folder)))
