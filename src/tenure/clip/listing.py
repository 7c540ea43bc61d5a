"""Listings: ls, ls -R, find, globs, tree, and the trees that agents' own tools print. Promise: every folder counts what it holds.

A list of paths becomes its first lines and a tree of folders with counts and names, because a name costs a fifth of its path. What is
printed as a tree, or in sections by folder, keeps its own lines: folders before files, and entries of every folder in turns.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final

from tenure.clip.filling import GAP_ABOUT, NOTE_ABOUT, fitted, plural, runs
from tenure.clip.naming import Names
from tenure.clip.shape import Count, Keep, Note, Piece, Shaped, weight

SAMPLE: Final = 200  # lines in a row, at the beginning, the middle and the end, by which a text is recognised
FEWEST: Final = 12  # entries
SHARE: Final = 0.95  # of the sample's lines that must be entries
FIRST: Final = 0.12  # of the room for the first lines of a list of paths: a glob's newest files come first
FIRST_LINES: Final = 10  # and at most so many, since all of them are named below
NAMES: Final = 0.4  # of the room for bare names of what ls -l lists beyond the lines shown: a name costs a fifth of its line
FOLDERS: Final = 0.5  # of the room for the lines of folders, in trees and sections
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


class Folder:
    """A folder of a listing that keeps its own lines, by line numbers of the text."""

    __slots__ = ("depth", "entries", "files", "folders", "line", "parent")

    def __init__(self, line: int, depth: int, parent: "Folder | None") -> None:
        self.line = line  # the one that names it; -1 when none does
        self.depth = depth
        self.parent = parent
        self.entries: list[int] = []  # lines of what is not itself a folder with entries here
        self.files = 0  # entries of it and of the folders below, once all are read
        self.folders = 0


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
        if mode is Mode.PATHS:
            paths, other = _read_paths(lines)
            if not paths:
                return None
            names = Names(paths)
            pieces = fitted(lines, room, count, lambda budget: _tree_of(lines, names, len(paths), other, budget))
        else:
            top, folders = _read_folders(lines, mode)
            pieces = fitted(lines, room, count, lambda budget: _own_lines(lines, mode, top, folders, budget))
        return None if pieces is None else Shaped(pieces=pieces, why="folders with counts and first names")


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
    if len(line) > 500 or not _PATH.fullmatch(line) or _URL.match(line):
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


# Lists of paths ----------------------------------------------------------------------------------------------------------------------


def _read_paths(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Paths, and the lines that are none: the tool's own words."""
    edge = max(len(lines) - EDGES, EDGES)
    other = [n for n in (*range(min(EDGES, len(lines))), *range(edge, len(lines))) if lines[n] and not _is_path(lines[n])]
    other += [n for n in range(EDGES, edge) if len(lines[n]) > 500]
    odd = set(other)
    paths = [line for n, line in enumerate(lines) if line and n not in odd]
    return [path[2:] if path.startswith("./") and len(path) > 2 else path for path in paths], other


def _tree_of(lines: Sequence[str], names: Names, total: int, other: Sequence[int], budget: int) -> tuple[Piece, ...]:
    """The first lines, then all paths by folder, then the tool's last words."""
    edges = [n for n in other if (n < EDGES or n >= len(lines) - EDGES) and weight(lines[n]) <= budget // 8]
    left = budget - sum(weight(lines[n]) for n in edges) - NOTE_ABOUT - 10
    head: list[int] = []
    first = int(left * FIRST)
    for n, line in enumerate(lines[:FIRST_LINES]):
        first -= weight(line)
        if first < 0 or (n in other and n not in edges):
            break
        head.append(n)
        left -= weight(line)
    listed = names.within(left)
    if listed is None:
        return ()
    words = Note(f"{plural(total, 'path')} in all:\n{listed.text}", left_out=True)
    start = runs(sorted({*head, *(n for n in edges if n < EDGES)}))
    end = runs([n for n in edges if n >= EDGES and n not in head])
    return (*start, words, *end)


# Listings that keep their own lines -----------------------------------------------------------------------------------------------------


def _read_folders(lines: Sequence[str], mode: Mode) -> tuple[list[int], list[Folder]]:
    """The tool's own words, and folders in order, those without a line of their own first."""
    other: list[int] = []
    if mode in (Mode.LONG, Mode.SECTIONS):
        folders = _read_sections(lines, other)
    else:
        folders = _read_branches(lines, _BRANCH if mode is Mode.TREE else _DASHED, other)
    for folder in reversed(folders):
        folder.files += len(folder.entries)
        if folder.parent is not None:
            folder.parent.files += folder.files
            folder.parent.folders += folder.folders + 1
    return other, folders


def _read_sections(lines: Sequence[str], other: list[int]) -> list[Folder]:
    root = Folder(-1, 0, None)
    folders = [root]
    blank = True
    for n, line in enumerate(lines):
        if not line:
            blank = True
            continue
        if blank and line.endswith(":") and _SECTION.fullmatch(line):
            folders.append(Folder(n, line.count("/"), root))
        elif _TOTAL.fullmatch(line) or _DONE.fullmatch(line):
            other.append(n)
        else:
            folders[-1].entries.append(n)
        blank = False
    return folders


def _read_branches(lines: Sequence[str], form: re.Pattern[str], other: list[int]) -> list[Folder]:
    root = Folder(-1, 0, None)
    folders = [root]
    above: list[tuple[int, Folder]] = []  # indents of the folders that the line may lie in
    widths: list[int] = [-1] * len(lines)
    known: dict[str, int] = {}  # widths of indents: there are few
    for n, line in enumerate(lines):
        before, bar, _ = line.partition("\u2500")
        if bar and (width := known.get(before, -1)) >= 0:
            widths[n] = width
        elif (match := form.fullmatch(line)) is not None:
            widths[n] = match.end("indent")
            if bar and len(before) == widths[n] + 1:
                known[before] = widths[n]
        elif line and not line.isspace():
            other.append(n)
    following = -1
    holds = bytearray(len(lines))  # 1 where the next entry is indented further: a folder with entries
    for n in range(len(lines) - 1, -1, -1):
        if widths[n] >= 0:
            holds[n] = following > widths[n]
            following = widths[n]
    for n, width in enumerate(widths):
        if width < 0:
            continue
        while above and above[-1][0] >= width:
            above.pop()
        parent = above[-1][1] if above else root
        if holds[n]:
            folder = Folder(n, parent.depth + 1, parent)
            folders.append(folder)
            above.append((width, folder))
        else:
            parent.entries.append(n)
    return folders


def _own_lines(
    lines: Sequence[str], mode: Mode, other: Sequence[int], folders: Sequence[Folder], budget: int
) -> tuple[Piece, ...]:
    """Lines of folders, the shallow ones first, then entries of the kept folders in turns."""
    edges = [n for n in other if (n < EDGES or n >= len(lines) - EDGES) and weight(lines[n]) <= budget // 8]
    left = budget - sum(weight(lines[n]) for n in edges) - NOTE_ABOUT - 16
    kept = set(edges)
    shown: list[Folder] = []
    reserve = left - int(left * FOLDERS) if len(folders) > 1 else 0
    for folder in sorted(folders, key=_depth):
        if folder.line >= 0:
            if folder.parent is not None and folder.parent.line >= 0 and folder.parent.line not in kept:
                continue
            cost = weight(lines[folder.line]) + NOTE_ABOUT + 8
            if left - cost < reserve:
                break
            left -= cost
            kept.add(folder.line)
        shown.append(folder)
    shown.sort(key=_line)
    active = [folder for folder in shown if folder.entries]
    names = int(left * NAMES) if mode is Mode.LONG else 0
    left -= names
    turn = 0
    taken: dict[int, int] = {}
    while active:
        going: list[Folder] = []
        for folder in active:
            line = folder.entries[turn]
            cost = weight(lines[line]) + (0 if line - 1 in kept else GAP_ABOUT // 2)
            if cost > left:
                continue
            left -= cost
            kept.add(line)
            taken[folder.line] = turn + 1
            if turn + 1 < len(folder.entries):
                going.append(folder)
        active = going
        turn += 1
    if not kept - set(edges):
        return ()
    return _with_counts(lines, folders, shown, kept, taken, _names(lines, shown, taken, names))


def _names(lines: Sequence[str], shown: Sequence[Folder], taken: dict[int, int], budget: int) -> dict[int, str]:
    """Bare names of entries beyond those taken, by the line of their folder, in turns."""
    names: dict[int, list[str]] = {}
    active = [folder for folder in shown if len(folder.entries) > taken.get(folder.line, 0)] if budget else []
    turn = 0
    while active:
        going: list[Folder] = []
        for folder in active:
            at = taken.get(folder.line, 0) + turn
            match = _LONG_NAME.search(lines[folder.entries[at]][:400], 20)
            budget -= weight(match["name"]) if match is not None else 0
            if budget < 0:
                return {line: ", ".join(found) for line, found in names.items()}
            if match is not None:
                names.setdefault(folder.line, []).append(match["name"])
            if at + 1 < len(folder.entries):
                going.append(folder)
        active = going
        turn += 1
    return {line: ", ".join(found) for line, found in names.items()}


def _with_counts(
    lines: Sequence[str],
    folders: Sequence[Folder],
    shown: Sequence[Folder],
    kept: set[int],
    taken: dict[int, int],
    names: dict[int, str],
) -> tuple[Piece, ...]:
    """The kept lines with what each folder has beyond them."""
    seen = {folder.line for folder in shown}
    hidden: dict[int, list[int]] = {}  # by the nearest shown folder: folders and entries below it that are not shown
    for folder in folders:
        owner: Folder | None = folder
        while owner is not None and owner.line not in seen:
            owner = owner.parent
        rest = hidden.setdefault(owner.line if owner is not None else -1, [0, 0])
        rest[0] += folder.line not in seen
        rest[1] += len(folder.entries) - taken.get(folder.line, 0)
    said: dict[int, list[str]] = {}
    for folder in shown:
        below, entries = hidden.get(folder.line, (0, 0))
        if below or entries:
            last = folder.entries[taken[folder.line] - 1] if taken.get(folder.line) else folder.line
            named_ = _title(lines[folder.line]) if folder.line >= 0 else ""
            said.setdefault(last, []).append(_more(below, entries, named_, names.get(folder.line, "")))
    total = sum(len(folder.entries) for folder in folders)
    folders_ = sum(1 for folder in folders if folder.line >= 0)
    summary = plural(total, "entry", "entries") + (f" and {plural(folders_, 'folder')} with entries" if folders_ else "")
    pieces: list[Piece] = [Note(summary)]
    if -1 in said:
        pieces.append(Note("\n".join(said[-1])))
    for keep in runs(sorted(kept)):
        start = keep.start
        for stop in range(start + 1, keep.stop + 1):
            if (words := said.get(stop - 1)) is not None:
                pieces.extend((Keep(start, stop), Note("\n".join(words), left_out=True)))
                start = stop
        if start < keep.stop:
            pieces.append(Keep(start, keep.stop))
    return tuple(pieces)


def _more(folders: int, entries: int, where: str, names: str) -> str:
    parts = [plural(entries, "more entry", "more entries")] if entries else []
    if folders:
        parts.append(plural(folders, "more folder"))
    place = f" below {where}" if where and folders else f" in {where}" if where else ""
    return " and ".join(parts) + place + (f", among them {names}" if names else "")


def _title(line: str) -> str:
    """A folder's name, from the line that names it."""
    match = _BRANCH.fullmatch(line) or _DASHED.fullmatch(line)
    return (match["name"] if match is not None else line.rstrip(":"))[:120]


def _depth(folder: Folder) -> int:
    return folder.depth


def _line(folder: Folder) -> int:
    return folder.line
