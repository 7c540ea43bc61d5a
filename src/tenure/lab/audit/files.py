"""What a call does to files: which it shows, from which line on, and which it changes; and which lines of a file its result shows.

Told from the call's arguments by the tables that the policies and planners use. Of a shell's commands only those that do nothing but show one
file count as a read of it; what is behind a substitution, a loop or a program that is not listed is not followed.
"""

import posixpath
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.planners.handoff.facts import COMMANDED, COMMANDS, PATCHED, VERBS
from tenure.engine.policies.tiered import READS
from tenure.engine.record.objects import tool_name
from tenure.lab.harm.names import PATCHES
from tenure.lab.harm.use import COMMANDS as COMMAND_FIELDS

LONGEST: Final = 2_000  # characters of a command that are looked at

_SHOWING: Final = frozenset({"cat", "nl", "bat", "head", "tail", "sed"})
_SILENT: Final = frozenset({"cd", "export", "set", "source", "."})
_REMOVING: Final = frozenset({"rm", "unlink"})
_IN_PLACE: Final = frozenset({"sed", "perl"})
_OPERATORS: Final = frozenset({"&&", "||", ";", "|", "&", "\n", "|&", ";;"})
_WRITING: Final = frozenset({">", ">>", ">|", "&>"})
_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n)?(\d{1,9})")
_FROM = re.compile(r"\+(\d{1,9})")
_SPECIAL: Final = ("/dev/", "&")
_NOWHERE = re.compile(r"(?<!\s)\s*+[012]?>(?:&[012]|\s*/dev/null)")  # where errors go changes no file


class Showing(Struct, frozen=True, kw_only=True):
    """A file as a command shows it: from line `start`, at most `count` lines; None: to its end."""

    path: str
    start: int = 1
    count: int | None = None


class FileAccess(Struct, frozen=True, kw_only=True):
    """A call as files see it. `path` is the file that it is about, empty when it is about none."""

    path: str = ""
    shows: Showing | None = None
    changes: tuple[str, ...] = ()


def commanded(command: str) -> FileAccess:
    """What a command does to files, where that is plain. Linear in what is looked at."""
    try:
        lexer = shlex.shlex(_NOWHERE.sub(" ", _without_documents(command)), posix=True, punctuation_chars=";&|<>()\n")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        lexer.commenters = ""
        tokens = list(lexer)
    except ValueError:  # a quote that is not closed
        return FileAccess()
    parts, joins = _parts(tokens)
    folder = next((part[1] for part in parts if part[0] == "cd" and len(part) == 2), "")
    changes = tuple(
        _tidy(path) for path in dict.fromkeys(posixpath.join(folder, path) for part in parts for path in _changed(part))
    )
    shows = None if changes else _shown(parts, joins)
    if shows is not None:
        shows = replace(shows, path=_tidy(posixpath.join(folder, shows.path)))
    return FileAccess(path=shows.path if shows is not None else changes[0] if changes else "", shows=shows, changes=changes)


def _without_documents(command: str) -> str:
    """The command without the bodies of its here-documents."""
    text = command[:LONGEST]
    at = text.find("<<")
    return text if at < 0 else text[: end if (end := text.find("\n", at)) >= 0 else len(text)]


def _parts(tokens: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """The simple commands, and the operator that follows each."""
    parts: list[list[str]] = [[]]
    joins: list[str] = []
    for token in tokens:
        if token.strip("\n") == "" or token in _OPERATORS:
            if parts[-1]:
                joins.append(token)
                parts.append([])
        else:
            parts[-1].append(token)
    return (parts if parts[-1] else parts[:-1]), joins


def _changed(words: Sequence[str]) -> list[str]:
    found = [after for word, after in pairwise(words) if word in _WRITING and not after.startswith(_SPECIAL)]
    program, operands = words[0].rpartition("/")[2], [word for word in words[1:] if not word.startswith("-")]
    if program == "tee" or program in _REMOVING:
        found += operands
    elif program == "mv":
        found += operands if len(operands) == 2 else []
    elif program in _IN_PLACE and any(word.startswith("-i") or word == "-pi" for word in words[1:]):
        found += operands[1:]
    return found


def _shown(parts: Sequence[Sequence[str]], joins: Sequence[str]) -> Showing | None:
    """The one file that a command shows: every other part of it says nothing, or only picks lines of what it is handed."""
    loud = [(words, before) for words, before in zip(parts, ["", *joins], strict=False) if words[0] not in _SILENT]
    if not loud or any(before != "|" for _, before in loud[1:]):
        return None
    showing = _showing(loud[0][0])
    for words, _ in loud[1:]:
        lines = _picked(words)
        if showing is None or lines is None or words[-1] != _lines_word(words):
            return None
        showing = replace(showing, start=showing.start + lines[0] - 1, count=lines[1])
    return showing


def _showing(words: Sequence[str]) -> Showing | None:
    if words[0].rpartition("/")[2] not in _SHOWING or "<" in words:
        return None
    lines, skip = _picked(words), _lines_word(words)
    operands = [word for word in words[1:] if not word.startswith(("-", "+")) and word != skip]
    if len(operands) != 1 or lines is None or any(sign in operands[0] for sign in "*?$`("):
        return None
    return Showing(path=operands[0], start=lines[0], count=lines[1])


def _picked(words: Sequence[str]) -> tuple[int, int | None] | None:
    """The lines that a program shows of what it is handed: from which, and how many. None when it is none that only picks lines."""
    program, word = words[0].rpartition("/")[2], _lines_word(words)
    match program:
        case "sed":
            found = _LINES.fullmatch(word) if "-n" in words else None
            if found is None:
                return None
            start = int(found[1])
            return start, max(1, int(found[2] or start) - start + 1)
        case "head":
            found = _COUNT.fullmatch(word) or re.fullmatch(r"(\d{1,9})", word)
            return 1, int(found[1]) if found else 10
        case "tail":
            found = _FROM.fullmatch(word)
            return (int(found[1]), None) if found else None  # the end of a file of unknown length
        case "cat" | "nl" | "bat":
            return 1, None
        case _:
            return None


def _lines_word(words: Sequence[str]) -> str:
    """The word that says which lines: the script of sed, the number of head and tail; empty when there is none."""
    program = words[0].rpartition("/")[2]
    if program == "sed":
        return next((word for word in words[1:] if not word.startswith("-")), "")
    if program in ("head", "tail"):
        after = next((then for word, then in pairwise(words) if word == "-n"), "")
        return after or next((word for word in words[1:] if _COUNT.fullmatch(word)), "")
    return ""


PATH_CHARS: Final = 300  # of a longer path the end

_VIEW: Final = "view"  # what a tool of several commands calls reading
_FILES: Final = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file")
_STARTS: Final = ("offset", "start_line", "line_start", "startLine")
_ENDS: Final = ("end_line", "line_end", "endLine")
_PATCH = re.compile(rf"^\*\*\* (?:{'|'.join(PATCHED)}) File: ([^\n]{{1,300}})$", re.MULTILINE)
_MOST: Final = 2_000_000  # characters of arguments that are read


def access_of(tool: str, arguments: str) -> FileAccess:
    """What a call of `tool` does; nothing, when its arguments are no object of JSON."""
    found = _arguments(arguments)
    name = tool_name(tool)
    if patch := next((found[key] for key in PATCHES if isinstance(found.get(key), str) and "*** " in found[key]), ""):
        changes = tuple(dict.fromkeys(_tidy(path) for path in _PATCH.findall(patch)))
        return FileAccess(path=changes[0] if changes else "", changes=changes)
    path = _tidy(next((str(found[key]) for key in _FILES if isinstance(found.get(key), str) and found[key].strip()), ""))
    if not path:
        command = next((_text(found[key]) for key in COMMAND_FIELDS if key in found), "")
        return commanded(command) if command else FileAccess()
    if name in VERBS or (name in COMMANDED and found.get("command") in COMMANDS):
        return FileAccess(path=path, changes=(path,))
    if name in READS or (name in COMMANDED and found.get("command") == _VIEW):
        return FileAccess(path=path, shows=_range(path, found))
    return FileAccess(path=path)


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


EDGE: Final = 12  # lines at each end of a result among which the first and the last numbered one are looked for

_NUMBERED = re.compile(r"[ \t]{0,10}(\d{1,7})(?:→|\t|: ?|[ \t]*\|)")


def lines_shown(text: str, shows: Showing | None) -> range:
    """The lines, of a result that shows no file those of its own. Not empty."""
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    if shows is None:
        return range(1, len(lines) + 1)
    if (found := _numbered(lines)) is not None:
        return found
    count = len(lines) if shows.count is None else min(len(lines), shows.count)
    return range(shows.start, shows.start + max(1, count))


def _numbered(lines: list[str]) -> range | None:
    """The numbers that lines carry, where they are those of lines in a row; text may stand around them."""
    first = next(((at, number) for at in range(min(EDGE, len(lines))) if (number := _line_number(lines[at]))), None)
    last = next(
        ((at, number) for at in range(len(lines) - 1, max(-1, len(lines) - 1 - EDGE), -1) if (number := _line_number(lines[at]))),
        None,
    )
    if first is None or last is None or last[1] - first[1] != last[0] - first[0]:
        return None
    return range(first[1], last[1] + 1)


def _line_number(line: str) -> int:
    found = _NUMBERED.match(line)
    return int(found[1]) if found else 0
