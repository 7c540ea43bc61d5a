"""Sessions that are not files of their own: many in one database or folder, each given out as a document."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tenure.errors import InputError
from tenure.logs.json_files import LONGEST_LINE
from tenure.logs.places.files import read_file
from tenure.logs.salvage import DamagedJson, decode_with_source, utf8

_any: Final = msgspec.json.Decoder(Raw)


class StoredSession(Struct, frozen=True, kw_only=True):
    """A session inside a store, as its cover sheet says."""

    id: str
    title: str = ""
    updated: float = 0  # milliseconds since 1970; 0 where only the file can tell
    project: str = ""  # the folder it worked in
    parent: str = ""  # the session that started it as a sub-agent
    messages: int = 0
    agents: int = 0  # sub-agents, and those of sub-agents


def with_agents(sessions: Iterable[StoredSession]) -> list[StoredSession]:
    """The sessions that no other one in the store started, with the number of those that came of it."""
    held = list(sessions)
    parents = {session.id: session.parent for session in held}
    agents = dict.fromkeys(parents, 0)
    roots: list[StoredSession] = []
    for session in held:
        root, seen = session.id, {session.id}
        while (parent := parents.get(root, "")) in parents and parent not in seen:
            seen.add(parent)
            root = parent
        if parent in seen or root == session.id:  # one of a circle is nobody's
            roots.append(session)
        else:
            agents[root] += 1
    return [replace(session, agents=agents[session.id]) for session in roots]


def column(value: object) -> str:
    """The text in a column; empty for none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


def json_value(raw: bytes) -> bytes:
    """The JSON value in `raw`, as it is where the reader can mend it, or nothing when there is none."""
    try:
        return decode_with_source(utf8(raw), _any)[2].strip()
    except DamagedJson:
        return b""


def json_file(path: Path) -> bytes:
    """The JSON value in a file, or nothing when it cannot be read, holds none or is too large."""
    with suppress(InputError):
        return json_value(read_file(path, LONGEST_LINE))
    return b""


def listed(start: bytes, items: Iterable[bytes], end: bytes) -> Iterator[bytes]:
    """JSON values as an array between `start` and `end`, a value at a time."""
    yield start + b"["
    comma = b"\n"
    for item in items:
        yield comma + item
        comma = b",\n"
    yield b"\n]" + end
