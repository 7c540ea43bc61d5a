"""Listings: ls, ls -R, find, globs, tree, and the trees that agents' own tools print.

Whatever its form, a listing becomes its first lines and all of its entries by folder, with counts and names: a name costs a fifth of its path
and a tenth of its line of ls -l.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

from msgspec import Struct

from tenure.engine.clip.filling import GAP_ABOUT, NOTE_ABOUT, fitted, plural, runs
from tenure.engine.clip.log import distinct_errors
from tenure.engine.clip.naming import Names
from tenure.engine.clip.shape import Note, Piece, Shaped, weight
from tenure.engine.record.entry import Count

SAMPLE: Final = 200  # lines in a row, at the beginning, the middle and the end, by which a text is recognised
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


class Mode(Enum):
    """How a listing was printed."""

    PATHS = "a path on each line"
    LONG = "ls -l, perhaps in sections"
    SECTIONS = "ls -R"
    TREE = "tree"
    DASHED = "indented names with dashes"


class Listing:
    """Folders with counts, and as many names as the room holds."""

    name = "listing"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether a sample of the lines is a listing in one of its modes; prose and code are none."""
        return _mode(lines) is not None

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """Counts of every folder the room can name, and names in turns."""
        mode = _mode(lines)
        if mode is None:
            return None
        entries = _read(lines, mode)
        if not entries.paths:
            return None
        names = Names(entries.paths)
        pieces = fitted(lines, room, count, lambda budget: _chosen(lines, mode, entries, names, budget))
        return None if pieces is None else Shaped(pieces=pieces, why="folders with counts and names")


# Recognising -------------------------------------------------------------------------------------------------------------------------


def _mode(lines: Sequence[str]) -> Mode | None:
    sample = _sampled(lines)
    if len(sample) < FEWEST:
        return None
    enough = (len(sample) - EDGES) * SHARE
    long = sum(1 for line in sample if _LONG.match(line))
    if long >= FEWEST and long + sum(1 for line in sample if _TOTAL.fullmatch(line) or _SECTION.fullmatch(line)) >= enough:
        return Mode.LONG
    if sum(1 for line in sample if _BRANCH.fullmatch(line)) >= max(FEWEST, enough):
        return Mode.TREE
    paths = sum(1 for line in sample if _is_path(line))
    if paths >= max(FEWEST, enough) and sum(1 for line in sample if _SLASHED.match(line)) >= paths * 0.8:
        return Mode.PATHS
    if sum(1 for line in sample if _is_dashed(line)) >= max(FEWEST, enough) and any(line.endswith("/") for line in sample):
        return Mode.DASHED
    return Mode.SECTIONS if _sections(lines) else None


def _sampled(lines: Sequence[str]) -> list[str]:
    if len(lines) > 3 * SAMPLE:
        middle = len(lines) // 2
        lines = (*lines[:SAMPLE], *lines[middle : middle + SAMPLE], *lines[-SAMPLE:])
    return [line for line in lines if line and not line.isspace()]


def _is_path(line: str) -> bool:
    """Whether a line is one path and nothing else; with blanks inside only when it is rooted or ends in an extension."""
    if len(line) > LONGEST or not _PATH.fullmatch(line) or _URL.match(line):
        return False
    if " " not in line:
        return True
    return bool(
        line.startswith(("/", "./", "../", "~/")) or line[1:3] == ":\\" or _EXTENSION.fullmatch(line)
    ) and not line.endswith((".", ","))


def _is_dashed(line: str) -> bool:
    return len(line) <= 300 and _DASHED.fullmatch(line) is not None and line.count(" ") - (len(line) - len(line.lstrip())) <= 3


def _sections(lines: Sequence[str]) -> bool:
    """Whether sections `folder:` with short names follow one another, a blank line before each, as ls -R prints them."""
    sample = lines[: 3 * SAMPLE]
    heads = names = odd = 0
    for n, line in enumerate(sample):
        if line.endswith(":") and (n == 0 or not sample[n - 1]) and _SECTION.fullmatch(line) and _is_path(line[:-1]):
            heads += 1
            odd += line[0] not in "./~" and "/" not in line
        elif line:
            names += 1
            odd += (
                len(line) > 120
                or line[0].isspace()
                or line.endswith((":", ".", ",", ";"))
                or line.count(" ") > 4
                or "/" in line[:-1]
            )
    return heads >= 2 and names >= FEWEST and odd * 20 <= names


# Reading -----------------------------------------------------------------------------------------------------------------------------


class Entries(Struct, frozen=True, kw_only=True):
    """What a listing lists, as paths in order, and the lines that are the tool's own words."""

    paths: list[str]
    other: list[int]
    errors: list[int]  # of these one of each kind that looks like an error


def _read(lines: Sequence[str], mode: Mode) -> Entries:
    paths: list[str] = []
    other: list[int] = []
    match mode:
        case Mode.PATHS:
            _read_paths(lines, paths, other)
        case Mode.LONG | Mode.SECTIONS:
            _read_sections(lines, paths, other)
        case Mode.TREE | Mode.DASHED:
            _read_branches(lines, _BRANCH if mode is Mode.TREE else _DASHED, paths, other)
    return Entries(paths=paths, other=other, errors=distinct_errors(lines, other))


def _read_paths(lines: Sequence[str], paths: list[str], other: list[int]) -> None:
    edge = max(len(lines) - EDGES, EDGES)
    for n, line in enumerate(lines):
        if not line:
            continue
        if ": " in line or len(line) > LONGEST or ((n < EDGES or n >= edge) and not _is_path(line)):
            other.append(n)
        else:
            paths.append(line[2:] if line.startswith("./") and len(line) > 2 else line)


def _read_sections(lines: Sequence[str], paths: list[str], other: list[int]) -> None:
    """Entries of ls under the path of their section; `.` and `..` are none."""
    folder = ""
    blank = True
    for n, line in enumerate(lines):
        if not line:
            blank = True
            continue
        if blank and line.endswith(":") and _SECTION.fullmatch(line):
            folder = "" if line in (".:", "./:") else line[:-1].removeprefix("./").rstrip("/") + "/"
        elif _TOTAL.fullmatch(line) or _DONE.fullmatch(line):
            pass
        elif line.startswith(("ls: ", "find: ", "tree: ")):
            other.append(n)
        elif long := _LONG_NAME.search(line[:LONGEST], 20) if _LONG.match(line) else None:
            name = long["name"].partition(" -> ")[0]
            if name not in (".", ".."):
                paths.append(f"{folder}{name}{'/' * (line[0] == 'd' and not name.endswith('/'))}")
        else:
            paths.append(folder + line)
        blank = False


def _read_branches(lines: Sequence[str], form: re.Pattern[str], paths: list[str], other: list[int]) -> None:
    """Entries of a tree below the folders that they are indented under; a folder with entries is no path of its own."""
    above: list[tuple[int, str]] = []  # indents of the folders that the line may lie in, and their paths
    waiting = ""  # the entry before, which is a folder if the next one is indented further
    width = -1
    for n, line in enumerate(lines):
        match = form.fullmatch(line)
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
    if waiting:
        paths.append(waiting)


# Choosing ----------------------------------------------------------------------------------------------------------------------------


def _chosen(lines: Sequence[str], mode: Mode, entries: Entries, names: Names, budget: int) -> tuple[Piece, ...]:
    """The first lines, errors, all entries by folder, then the tool's last words; of ls -l more lines where room is left."""
    last = len(lines) - EDGES
    kept = {n for n in entries.other if (n < EDGES or n >= last) and weight(lines[n]) <= budget // 8}
    left = budget - sum(weight(lines[n]) for n in kept) - NOTE_ABOUT - GAP_ABOUT
    spare = int(left * ERRORS)
    for n in entries.errors:
        cost = weight(lines[n]) + GAP_ABOUT
        if n not in kept and cost <= spare:
            spare -= cost
            left -= cost
            kept.add(n)
    left -= _first(lines, kept, int(left * FIRST), FIRST_LINES)
    listed = names.within(left)
    if listed is None:
        return ()
    if mode is Mode.LONG and listed.complete:
        _first(lines, kept, left - sum(weight(line) + NOTE_ABOUT for line in listed.text.split("\n")), len(lines))
    errors = f", {plural(len(entries.other), 'other line')}" if entries.errors else ""
    words = Note(f"{plural(names.size, 'path')} in all{errors}:\n{listed.text}", left_out=True)
    ranges = runs(sorted(kept))
    first = next((at for at, keep in enumerate(ranges) if keep.start > 0), len(ranges))
    return (*ranges[:first], words, *ranges[first:])


def _first(lines: Sequence[str], kept: set[int], budget: int, most: int) -> int:
    """Takes lines from the beginning as far as they fit, and at most so many; what they weigh."""
    spent = 0
    for n, line in enumerate(lines[:most]):
        if n in kept:
            continue
        if spent + weight(line) > budget:
            break
        spent += weight(line)
        kept.add(n)
    return spent
