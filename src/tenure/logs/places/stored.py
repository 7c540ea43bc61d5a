"""Sessions that are not files of their own: many in one database or folder."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace


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
    roots = {session.id: _root(session.id, parents) for session in held}
    agents: dict[str, int] = {}
    for session, root in roots.items():
        agents[root] = agents.get(root, 0) + (root != session)
    return [replace(session, agents=agents.get(session.id, 0)) for session in held if roots[session.id] == session.id]


def _root(session: str, parents: Mapping[str, str]) -> str:
    """The session that started this one, and so on; itself when its parent is not there, or it is its own."""
    start, seen = session, {session}
    while (parent := parents.get(session, "")) in parents:
        if parent in seen:
            return start
        seen.add(parent)
        session = parent
    return session
