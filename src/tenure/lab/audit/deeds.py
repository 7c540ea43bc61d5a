"""What a call does to files: which it shows, from which line on, and which it changes.

Told from the call's arguments by the tables that the policies and planners use; a command of a shell by `shell`.
"""

import posixpath
import re
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tenure.engine.planners.handoff.facts import COMMANDED, COMMANDS, PATCHED, VERBS
from tenure.engine.policies.tiered import READS
from tenure.engine.record.objects import tool_name
from tenure.lab.audit.shell import Showing, commanded
from tenure.lab.harm.names import PATCHES
from tenure.lab.harm.use import COMMANDS as COMMAND_FIELDS

PATH_CHARS: Final = 300  # of a longer path the end

_VIEW: Final = "view"  # what a tool of several commands calls reading
_FILES: Final = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file")
_STARTS: Final = ("offset", "start_line", "line_start", "startLine")
_ENDS: Final = ("end_line", "line_end", "endLine")
_PATCH = re.compile(rf"^\*\*\* (?:{'|'.join(PATCHED)}) File: ([^\n]{{1,300}})$", re.MULTILINE)
_MOST: Final = 2_000_000  # characters of arguments that are read


class Deed(Struct, frozen=True, kw_only=True):
    """A call as files see it. `path` is the file that it is about, empty when it is about none."""

    path: str = ""
    shows: Showing | None = None
    changes: tuple[str, ...] = ()


def deed_of(tool: str, arguments: str) -> Deed:
    """What a call of `tool` does; nothing, when its arguments are no object of JSON."""
    found = _arguments(arguments)
    name = tool_name(tool)
    if patch := next((found[key] for key in PATCHES if isinstance(found.get(key), str) and "*** " in found[key]), ""):
        changes = tuple(dict.fromkeys(_tidy(path) for path in _PATCH.findall(patch)))
        return Deed(path=changes[0] if changes else "", changes=changes)
    path = _tidy(next((str(found[key]) for key in _FILES if isinstance(found.get(key), str) and found[key].strip()), ""))
    if not path:
        return _of_command(found)
    if name in VERBS or (name in COMMANDED and found.get("command") in COMMANDS):
        return Deed(path=path, changes=(path,))
    if name in READS or (name in COMMANDED and found.get("command") == _VIEW):
        return Deed(path=path, shows=_range(path, found))
    return Deed(path=path)


def _of_command(found: dict[str, Any]) -> Deed:
    command = next((_text(found[key]) for key in COMMAND_FIELDS if key in found), "")
    done = commanded(command) if command else None
    if done is None:
        return Deed()
    shows = done.shows
    if shows is not None:
        shows = msgspec.structs.replace(shows, path=_tidy(shows.path))
    changes = tuple(_tidy(path) for path in done.changes)
    path = shows.path if shows is not None else changes[0] if changes else ""
    return Deed(path=path, shows=shows, changes=changes)


def _range(path: str, found: dict[str, Any]) -> Showing:
    """The lines that a read asks for, as far as its arguments say so in numbers."""
    view = found.get("view_range")
    if isinstance(view, list):
        ends = [number for number in cast(list[object], view) if isinstance(number, int)]
        start, end = (ends[0], ends[1]) if len(ends) == 2 else (1, -1)
    else:
        start, end = _number(found, _STARTS) or 1, _number(found, _ENDS) or -1
    start = max(1, start)
    count = _number(found, ("limit",)) or (end - start + 1 if end >= start else None)
    return Showing(path=path, start=start, count=count)


def _number(found: dict[str, Any], names: tuple[str, ...]) -> int:
    """The first of several arguments that is a whole number above 0."""
    for name in names:
        value = found.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9:
            return value
    return 0


def _text(value: object) -> str:
    """A command as text; of one that is given as words the script that its shell is handed."""
    if isinstance(value, list):
        words = [str(word) for word in cast(list[object], value)]
        return words[-1] if len(words) > 1 and words[-2] in ("-c", "-lc") else " ".join(words)
    return value if isinstance(value, str) else ""


def _arguments(text: str) -> dict[str, Any]:
    if len(text) > _MOST:
        return {}
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _tidy(path: str) -> str:
    """A path in one spelling: no `./`, no `..` that can be undone."""
    path = path.strip().replace("\\", "/")[-PATH_CHARS:]
    return posixpath.normpath(path) if path else ""
