"""Which files a shell command shows or changes, as far as that is plain.

Many agents have no other tool. Only commands that do nothing but show one file count as a read of it; what is behind a substitution, a loop
or a program that is not listed is not followed.
"""

import posixpath
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

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


class Commanded(Struct, frozen=True, kw_only=True):
    """What a command does to files."""

    shows: Showing | None = None
    changes: tuple[str, ...] = ()


def commanded(command: str) -> Commanded:
    """What is plain about a command. Linear in what is looked at."""
    try:
        lexer = shlex.shlex(_NOWHERE.sub(" ", _said(command)), posix=True, punctuation_chars=";&|<>()\n")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        lexer.commenters = ""
        tokens = list(lexer)
    except ValueError:  # a quote that is not closed
        return Commanded()
    parts, joins = _parts(tokens)
    folder = next((part[1] for part in parts if part[0] == "cd" and len(part) == 2), "")
    changes = tuple(dict.fromkeys(posixpath.join(folder, path) for part in parts for path in _changed(part)))
    shows = None if changes else _shown(parts, joins)
    return Commanded(shows=shows and replace(shows, path=posixpath.join(folder, shows.path)), changes=changes)


def _said(command: str) -> str:
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
