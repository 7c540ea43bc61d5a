"""Listings: ls, ls -R, find, globs, tree, and the trees that agents' own tools print.

Whatever its form, a listing becomes its first lines and all of its entries by folder, with counts and names: a name costs a fifth of its path
and a tenth of its line of ls -l.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

from tenure.engine.clip.log import distinct_errors
from tenure.engine.clip.naming import Names
from tenure.engine.clip.shape import (
    GAP_ABOUT,
    NOTE_ABOUT,
    Note,
    Piece,
    Shaped,
    fitted,
    plural,
    ranges,
    stretches,
    take_first,
    weight,
)
from tenure.engine.record.entry import Count

SECTIONED: Final = 600  # lines by which sections are recognised
FEWEST: Final = 12  # entries
SHARE: Final = 0.95  # of the sample's lines that must be entries
FIRST: Final = 0.12  # of the room for the first lines: a glob's newest files come first
FIRST_LINES: Final = 10  # and at most so many, since all of them are named below
ERRORS: Final = 0.1  # of the room for what the tool complained of
LONGEST: Final = 500  # characters of an entry
EDGES: Final = 3  # lines at either end that may be the tool's own words

_LONG: Final = re.compile(r"[-dlbcpsD][-rwxsStTlL]{9}[.+@]?\s{1,20}\d")
_LONG_NAME: Final = re.compile(
    r"\s(?:[A-Z][a-z]{2}\s{1,3}\d{1,2}|\d{1,2}\s[A-Z][a-z]{2}|\d{4}-\d\d-\d\d)\s{1,3}(?:\d{1,2}:\d\d\S{0,14}(?: [+-]\d{4})?|\d{4})"
    r"\s{1,3}(?P<name>\S.{0,200})$"
)
_TOTAL: Final = re.compile(r"total \d[\d.,]*[KMGT]?")
_SECTION: Final = re.compile(r"(?P<path>[^\x00-\x1f]{1,400}):")
_BRANCH: Final = re.compile(
    r"(?P<indent>(?:[\u2502|][\s\u00a0]{1,3}|[\s\u00a0]{4}){0,64})(?:[\u251c\u2514][\u2500\u2501]{1,2}|[|`+\\]-{2,3})[\s\u00a0]?(?P<name>\S.*)"
)
_DASHED: Final = re.compile(r"(?P<indent>\s{0,128})- (?P<name>[^\s:*`][^:*`\x00-\x1f]{0,200}[/\w.)\]~-])")
_PATH: Final = re.compile(
    r"(?:[A-Za-z]:[\\/])?(?:[^\s:\x00-\x1f\"<>|;,(){}=*?]{1,400}|[^\s:\x00-\x1f\"<>|;=*?][^:\x00-\x1f\"<>|;=*?]{0,400}?)"
)
_URL: Final = re.compile(r"\w{2,10}://")
_EXTENSION: Final = re.compile(r".*[^/\\]\.\w{1,10}")
_SLASHED: Final = re.compile(r"[^\s]{0,200}[/\\]\S")
_DONE: Final = re.compile(r"\d[\d,]* director(?:y|ies)(?:, \d[\d,]* files?)?")


# How a listing is printed: a path on each line, `ls -l` perhaps in sections, `ls -R`, a drawn tree, or indented names with dashes.
_Form = Literal["paths", "long", "sections", "tree", "dashed"]


def fits(lines: Sequence[str]) -> bool:
    """Whether a sample of the lines is a listing in one of its forms; prose and code are none."""
    return _form(lines) is not None


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """Counts of every folder the room can name, and names in turns."""
    form = _form(lines)
    if form is None:
        return None
    paths, other = _read(lines, form)
    if not paths:
        return None
    pieces = fitted(lines, room, count, partial(_pieces, lines, form, Names(paths), other, distinct_errors(lines, other)))
    return None if pieces is None else Shaped(pieces=pieces, why="folders with counts and names")


# Recognising


def _form(lines: Sequence[str]) -> _Form | None:
    sample = [line for stretch in stretches(lines) for line in stretch]
    if len(sample) < FEWEST:
        return None
    enough = (len(sample) - EDGES) * SHARE
    most = max(FEWEST, enough)
    long = sum(1 for line in sample if _LONG.match(line))
    if long >= FEWEST and long + sum(1 for line in sample if _TOTAL.fullmatch(line) or _SECTION.fullmatch(line)) >= enough:
        return "long"
    if sum(1 for line in sample if _BRANCH.fullmatch(line)) >= most:
        return "tree"
    paths = sum(map(_is_path, sample))
    if paths >= most and sum(1 for line in sample if _SLASHED.match(line)) >= paths * 0.8:
        return "paths"
    if sum(map(_is_dashed, sample)) >= most and any(line.endswith("/") for line in sample):
        return "dashed"
    return "sections" if _is_sectioned(lines[:SECTIONED]) else None


def _is_path(line: str) -> bool:
    """Whether a line is one path and nothing else; with blanks inside only when it is rooted or ends in an extension."""
    if len(line) > LONGEST or not _PATH.fullmatch(line) or _URL.match(line):
        return False
    rooted = line.startswith(("/", "./", "../", "~/")) or line[1:3] == ":\\"
    return " " not in line or ((rooted or _EXTENSION.fullmatch(line) is not None) and not line.endswith((".", ",")))


def _is_dashed(line: str) -> bool:
    return len(line) <= 300 and _DASHED.fullmatch(line) is not None and line.count(" ") - (len(line) - len(line.lstrip())) <= 3


def _is_sectioned(sample: Sequence[str]) -> bool:
    """Whether sections `folder:` with short names follow one another, a blank line before each, as ls -R prints them."""
    heads = names = odd = 0
    for n, line in enumerate(sample):
        if line.endswith(":") and (n == 0 or not sample[n - 1]) and _SECTION.fullmatch(line) and _is_path(line[:-1]):
            heads += 1
            odd += line[0] not in "./~" and "/" not in line
        elif line:
            names += 1
            wordy = len(line) > 120 or line.endswith((":", ".", ",", ";")) or line.count(" ") > 4
            odd += wordy or line[0].isspace() or "/" in line[:-1]
    return heads >= 2 and names >= FEWEST and odd * 20 <= names


# Reading


def _read(lines: Sequence[str], form: _Form) -> tuple[list[str], list[int]]:
    """What is listed, as paths in order, and the lines that are the tool's own words."""
    match form:
        case "paths":
            return _read_paths(lines)
        case "long" | "sections":
            return _read_sections(lines)
        case "tree":
            return _read_branches(lines, _BRANCH)
        case "dashed":
            return _read_branches(lines, _DASHED)


def _read_paths(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    paths: list[str] = []
    other: list[int] = []
    edge = max(len(lines) - EDGES, EDGES)
    for n, line in enumerate(lines):
        if not line:
            continue
        if ": " in line or len(line) > LONGEST or ((n < EDGES or n >= edge) and not _is_path(line)):
            other.append(n)
        else:
            paths.append(line[2:] if line.startswith("./") and len(line) > 2 else line)
    return paths, other


def _read_sections(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Entries of ls under the path of their section; `.` and `..` are none."""
    paths: list[str] = []
    other: list[int] = []
    folder = before = ""
    for n, line in enumerate(lines):
        if not before and line.endswith(":") and _SECTION.fullmatch(line):
            folder = "" if line in (".:", "./:") else line[:-1].removeprefix("./").rstrip("/") + "/"
        elif line.startswith(("ls: ", "find: ", "tree: ")):
            other.append(n)
        elif long := _LONG_NAME.search(line[:LONGEST], 20) if _LONG.match(line) else None:
            name = long["name"].partition(" -> ")[0]
            if name not in (".", ".."):
                paths.append(f"{folder}{name}{'/' * (line[0] == 'd' and not name.endswith('/'))}")
        elif line and not _TOTAL.fullmatch(line) and not _DONE.fullmatch(line):
            paths.append(folder + line)
        before = line
    return paths, other


def _read_branches(lines: Sequence[str], entry: re.Pattern[str]) -> tuple[list[str], list[int]]:
    """Entries of a tree below the folders that they are indented under; a folder with entries is no path of its own."""
    paths: list[str] = []
    other: list[int] = []
    above: list[tuple[int, str]] = []  # indents of the folders that the line may lie in, and their paths
    waiting = ""  # the entry before, which is a folder if the next one is indented further
    width = -1
    for n, line in enumerate(lines):
        match = entry.fullmatch(line)
        if match is None:
            if line and not line.isspace():
                other.append(n)
            continue
        before, width = width, match.end("indent")
        if waiting and width > before:
            above.append((before, f"{waiting.rstrip('/')}/"))
        elif waiting:
            paths.append(waiting)
        while above and above[-1][0] >= width:
            above.pop()
        waiting = (above[-1][1] if above else "") + match["name"].rstrip()
    return ([*paths, waiting] if waiting else paths), other


# Choosing


def _pieces(
    lines: Sequence[str], form: _Form, names: Names, other: Sequence[int], errors: Sequence[int], budget: int
) -> tuple[Piece, ...]:
    """The first lines, errors, all entries by folder, then the tool's last words; of ls -l more lines where room is left."""
    last = len(lines) - EDGES
    kept = {n for n in other if (n < EDGES or n >= last) and weight(lines[n]) <= budget // 8}
    left = budget - sum(weight(lines[n]) for n in kept) - NOTE_ABOUT - GAP_ABOUT
    spare = int(left * ERRORS)
    for n in errors:
        cost = weight(lines[n]) + GAP_ABOUT
        if n not in kept and cost <= spare:
            spare -= cost
            left -= cost
            kept.add(n)
    left -= take_first(lines, range(min(FIRST_LINES, len(lines))), kept, int(left * FIRST))
    listed = names.within(left)
    if listed is None:
        return ()
    if form == "long" and listed.complete:
        take_first(lines, range(len(lines)), kept, left - sum(weight(line) + NOTE_ABOUT for line in listed.text.split("\n")))
    words = f", {plural(len(other), 'other line')}" if errors else ""
    note = Note(f"{plural(names.size, 'path')} in all{words}:\n{listed.text}", left_out=True)
    shown = ranges(kept)
    first = next((at for at, keep in enumerate(shown) if keep.start > 0), len(shown))
    return (*shown[:first], note, *shown[first:])
