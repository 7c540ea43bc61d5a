"""Names of what a policy can act on, and the handles a view prints.

An object id is `kind:name`: `user:3` (a human turn and what was done for it), `step:17` (one model reply with its results), `read:12`
(the 12th call of the tool `read` with its result), `episode:locate-auth`, `skill:release` (what its last load brought), `entry:40` (one
record entry; `entry:40/1` its block 1), `spill:3fa9c2e1d0aa` (a whole output that is kept in a file, by the start of its hash).
A handle adds the start of an entry's hash, so it resolves in forks and built conversations too: `read:12@3fa9`.
"""

import re
from typing import Final

from msgspec import Struct

from tenure.errors import InputError

RESERVED: Final = frozenset({"user", "episode", "skill", "step", "entry", "function", "conversation", "spill"})
HASH_CHARS: Final = 4  # enough to tell an object from its namesake in another fork; longer prefixes are accepted

LONGEST: Final = 400  # characters of a handle

_HANDLE = re.compile(r"(?P<object>.+?)(?:@(?P<hash>[0-9a-f]{4,64}))?")
_UNSAFE = re.compile(r"[^\w.\-]+")
_ALLOWED: Final = "a handle such as read:12@3fa9, user:3, step:17, episode:locate-auth, skill:release or entry:40"


class Handle(Struct, frozen=True, kw_only=True, gc=False):
    """A parsed handle. `hash` is empty when none was given."""

    object: str
    hash: str = ""

    @property
    def kind(self) -> str:
        """What comes before the first colon."""
        return self.object.partition(":")[0]

    @property
    def name(self) -> str:
        """What comes after the first colon."""
        return self.object.partition(":")[2]

    def __str__(self) -> str:
        return f"{self.object}@{self.hash}" if self.hash else self.object


def tool_key(tool: str) -> str:
    """A tool's name as objects use it: lower case, no colon, and in the long form where the plain one is taken."""
    key = _UNSAFE.sub("_", tool.lower()) or "tool"
    return f"function:{key}" if key in RESERVED else key


def tool_name(tool: str) -> str:
    """A tool's name as tables of tools have it: like `tool_key`, never in the long form, without the server it came from."""
    return tool_key(tool).removeprefix("function:").rpartition("__")[2]


def parse_handle(text: str) -> Handle:
    """The handle that a model or a person wrote; long forms (`function:read:12`, `conversation:user:3`) are shortened.

    Raises InputError when it has no `kind:name` shape.
    """
    match = _HANDLE.fullmatch(text.strip().strip("[]`\"'")) if len(text) <= LONGEST else None
    object_ = match["object"] if match else ""
    kind, colon, name = object_.partition(":")
    if match is None or not (kind and colon and name):
        raise InputError("handle", repr(text[:LONGEST]), _ALLOWED)
    first, colon, rest = name.partition(":")
    if colon and rest and (kind == "conversation" or (kind == "function" and first not in RESERVED)):
        object_ = name
    return Handle(object=object_, hash=match["hash"] or "")
