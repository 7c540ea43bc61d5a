"""What a session is about, told from its start (an edge)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import Draft, Origin, Text
from tenure.errors import InputError
from tenure.logs.detect import HEAD, detect
from tenure.logs.places import tenure_store
from tenure.logs.places.files import open_session
from tenure.logs.places.folders import entries, matches
from tenure.logs.places.known_places import FoundSession
from tenure.logs.places.stores import OWN, STORES
from tenure.logs.reader import Reader

START: Final = 256 * 2**10  # bytes


class Glimpse(Struct, frozen=True, kw_only=True):
    """A session at first sight; empty where its start does not say."""

    tool: str = ""  # the reader's name
    words: str = ""  # its title, or the first that a human said
    project: str = ""  # the folder it worked in
    agents: int = 0  # sub-agents whose logs stand beside it


def glimpse(found: FoundSession) -> Glimpse | None:
    """What `found` is about; None for a file that turns out to be no session. One that cannot be read says nothing of itself."""
    seen: Glimpse | None = None
    with suppress(InputError, OSError):
        for start in () if _titled(found) and found.project else _starts(_chunks(found)):
            reader = detect(start[:HEAD])
            if not (found.tool or reader):
                return None
            seen = _known(found, start, reader)
            if seen.words:
                return seen
    return seen or (_known(found, b"", None) if found.tool else None)


def _titled(found: FoundSession) -> bool:
    return bool(found.title and not _UNTITLED.match(found.title))


def _known(found: FoundSession, start: bytes, reader: Reader | None) -> Glimpse:
    tool = found.tool or (reader.name if reader else "")
    said = _first_words(reader, start) if reader else ""
    return Glimpse(
        tool=tool,
        words=(found.title if _titled(found) else said)
        or (tenure_store.first_words(found.path, found.id) if tool == OWN else ""),
        project=found.project or _project(tool, found.path, start),
        agents=found.agents or (AGENTS[tool](found.path, start) if tool in AGENTS else 0),
    )


_UNTITLED: Final = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")  # what OpenCode calls a session that has no title yet


def _chunks(found: FoundSession) -> Iterator[bytes]:
    inside = found.id or found.path.is_dir()
    return STORES[found.tool].export(found.path, found.id) if inside and found.tool in STORES else open_session(found.path)


def _starts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The start of a session: a little, which mostly is enough, then all that is read; up to where it is damaged."""
    held, tried = b"", False
    try:
        for chunk in chunks:
            held += chunk[: START - len(held)]
            if not tried and len(held) >= HEAD:
                tried = True
                yield held[:HEAD]
            if len(held) == START:
                break
    except InputError:
        if not held:
            raise
    if not tried or len(held) > HEAD:
        yield held


def _first_words(reader: Reader, start: bytes) -> str:
    with suppress(InputError):
        drafts = (event for event in reader.read(iter((start,))) if isinstance(event, Draft))
        texts = (
            block.text for draft in drafts for block in draft.blocks if isinstance(block, Text) and block.origin is Origin.HUMAN
        )
        return next((text for text in texts if text.strip()), "")
    return ""


def _project(tool: str, path: Path, start: bytes) -> str:
    if tool in _BESIDE:
        return _BESIDE[tool](path)
    if tool in _SAYS and (found := _SAYS[tool].search(start)):
        with suppress(msgspec.MsgspecError, ValueError):
            return msgspec.json.decode(b'"' + found[1] + b'"', type=str)
    return ""


def _member(name: str) -> "re.Pattern[bytes]":
    """A member of the JSON; inside a string its quotes would be escaped."""
    return re.compile(rb'"' + name.encode() + rb'"\s*:\s*"((?:[^"\\]|\\.){1,4096}+)"')


# Where the start of a log says which folder the session worked in: a member of its JSON, or a line for the model.
_SAYS: Final[Mapping[str, "re.Pattern[bytes]"]] = {
    "claude-code": _member("cwd"),
    "codex": _member("cwd"),
    "copilot-cli": _member("cwd"),
    "pi": _member("cwd"),
    "opencode": _member("directory"),
    "goose": _member("working_dir"),
    "openhands": _member("working_dir"),
    "cline": re.compile(rb"Current (?:Working|Workspace) Directory \(((?:[^()\\\"]|\\\\){1,1024}+)\)"),
}


def _gemini_project(path: Path) -> str:
    """What Gemini CLI notes in the folder that it keeps for a project; else the name it gave that."""
    if path.parent.name != "chats":
        return ""
    folder = path.parents[1]
    note = folder / ".project_root"
    with suppress(OSError):
        if note.is_file():
            with note.open("rb") as file:
                return file.read(4096).decode("utf-8", "replace").strip()
    return "" if re.fullmatch(r"[0-9a-f]{64}", folder.name) else folder.name


# Tools whose sessions lie in the project, or in a folder that names it.
_BESIDE: Final[Mapping[str, Callable[[Path], str]]] = {
    "specstory": lambda path: str(path.parents[2]) if len(path.parents) > 2 and path.parents[1].name == ".specstory" else "",
    "aider": lambda path: str(path.parent) if path.name.startswith(".aider") else "",
    "gemini-cli": _gemini_project,
    OWN: lambda path: str(path.parent),
}


def _claude_agents(path: Path, _: bytes) -> int:
    """In a folder by the name of the session; once, beside it, with its id within."""
    own = sum(1 for _ in matches(str(path.with_suffix("") / "subagents"), "**/agent-*.jsonl"))
    with suppress(OSError):
        return own + _agents_in(str(path.parent), path.parent.stat().st_mtime_ns)[path.stem]
    return own


@lru_cache(maxsize=4)
def _agents_in(folder: str, _changed: int) -> Counter[str]:
    """How many logs of sub-agents a folder holds, by the id of their session; asked once for all sessions in it."""
    agents = (entry.path for entry in entries(folder) if entry.name.startswith("agent-"))
    return Counter(id_.decode("utf-8", "replace") for path in agents for id_ in set(_CLAUDE_SESSION.findall(_start(path))))


def _gemini_agents(path: Path, start: bytes) -> int:
    """In a folder by the session's id, beside it."""
    found = _SESSION.search(start)
    return sum(1 for _ in matches(str(path.parent / found[1].decode()), "*.json*")) if found else 0


_CLAUDE_SESSION: Final = re.compile(rb'"sessionId":"([^"\\]*)"')
_SESSION: Final = re.compile(rb'"sessionId"\s*:\s*"([\w-]{1,128})"')

# Tools that keep the logs of sub-agents beside the session's.
AGENTS: Final[Mapping[str, Callable[[Path, bytes], int]]] = {"claude-code": _claude_agents, "gemini-cli": _gemini_agents}


def _start(path: str, most: int = 4096) -> bytes:
    with suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123 - of hundreds
        return file.read(most)
    return b""
