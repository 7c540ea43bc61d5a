"""Diffs, clipped to what changed.

Every file stays named, then every hunk's head, then changed lines, shared fairly between files and within a file between hunks, then the
lines around them. Added and removed lines are counted by the hunks' own figures, so a removed line that reads `-- x` is no file head.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final

from msgspec import Struct

from tenure.engine.clip.filling import GAP_ABOUT, NOTE_ABOUT, fair, fitted, plural
from tenure.engine.clip.naming import Names
from tenure.engine.clip.selection import Selection, gaps, woven
from tenure.engine.clip.shape import Note, Piece, Shaped, weight
from tenure.engine.record.entry import Count

NAME: Final = "diff"
WHY: Final = "files with their counts and hunks first, then changed lines"

# What a line is; one byte each.
OUTSIDE, COMMIT, MESSAGE, FILE, MODE, MINOR, HUNK, ADDED, REMOVED, CONTEXT, BINARY = range(11)
CHANGED: Final = (ADDED, REMOVED)

NAMES: Final = 0.4  # of the room for names of files
ALL_NAMES: Final = 0.7  # when that is enough for every one
SAMPLE: Final = 3_000  # lines that `fits` looks at
SHARE_OF_DIFF: Final = 0.5  # of the lines looked at that must belong to a diff
LAST: Final = re.compile(  # files that tools write: their lines are shown after all others
    r"(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|Cargo\.lock|poetry\.lock|uv\.lock|Gemfile\.lock|composer\.lock"
    r"|go\.sum|[^/]{1,200}\.(?:min\.(?:js|css)|map|snap|svg))$|(?:^|/)(?:dist|vendor|node_modules|__snapshots__)/"
)

_GIT: Final = re.compile(r"diff --(?:git|cc|combined) ")
_NAMES: Final = re.compile(r"diff --(?:git \"?a/(.{1,1000}?)\"? \"?b/(.{1,1000}?)\"?|(?:cc|combined) (.{1,1000}))$")
_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_COMBINED: Final = re.compile(r"(@{3,20})(?: -\d{1,9}(?:,\d{1,9})?){2,20} \+\d{1,9}(?:,\d{1,9})? @{3,20}")
_COMMIT: Final = re.compile(r"commit [0-9a-f]{7,64}\b|tag \S{1,200}$|From [0-9a-f]{40} Mon Sep 17")
_ABOUT: Final = re.compile(
    r"(?:Author|AuthorDate|Commit|CommitDate|Date|Merge|Tagger|From|Subject|Reviewed-by):|notes:", re.IGNORECASE
)
_STAT: Final = re.compile(
    r" .{1,300} \| +(?:\d+ ?[+-]*|Bin\b.{0,80})$| \d+ files? changed\b| (?:create|delete) mode \d| rename .{1,300} \(\d+%\)$"
)
_MODE: Final = re.compile(
    r"(?:new|deleted) file mode |(?:old|new) mode |mode \d|rename (?:from|to) |copy (?:from|to) |Binary files .{1,2000} differ|GIT binary patch"
    r"|Submodule "
)
_MINOR: Final = re.compile(
    r"index [0-9a-f,]+\.\.[0-9a-f]+|similarity index |dissimilarity index |--- |\+\+\+ |(?:literal|delta) \d+$|Index: |={20,}$"
)


class Diff:
    """A diff, as a shape."""

    @property
    def name(self) -> str:
        """As markers print it."""
        return NAME

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether at least half of the first 3,000 lines belong to hunks, file heads and commits. Bullets in prose make no hunk."""
        patch = read(lines[:SAMPLE])
        if not patch.files:
            return False
        inside = len(patch.classes) - patch.classes.count(OUTSIDE)
        return inside >= SHARE_OF_DIFF * sum(1 for line in lines[:SAMPLE] if line and not line.isspace())

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """What changed, in `room` tokens; as many files as fit when not even their names do; None when not one does."""
        patch = read(lines)
        if not patch.files:
            return None
        costs = _costs(patch, room)
        names = _names(patch.files)
        heads = sum(weight(lines[file.start]) + GAP_ABOUT for file in patch.files)
        pieces = fitted(
            lines, room, count, lambda budget: _chosen(patch, costs, names if heads > budget * NAMES else None, budget)
        )
        return Shaped(pieces=pieces, why=WHY) if pieces else None


SHAPE: Final = Diff()


class File(Struct, frozen=True, gc=False):
    """One file's part of a diff: lines `start` to `stop`, its head first, its hunks' heads, and its exact counts."""

    path: str
    start: int
    stop: int
    hunks: tuple[int, ...]
    added: int
    removed: int


class Patch(Struct, frozen=True, kw_only=True):
    """What every line of a diff is, and its files in order."""

    lines: Sequence[str]
    classes: bytearray
    files: tuple[File, ...]


def read(lines: Sequence[str]) -> Patch:
    """Every line's class and every file's counts. Linear."""
    reader = _Reader(lines)
    at = 0
    while at < len(lines):
        at = reader.step(at)
    reader.close(len(lines))
    return Patch(lines=lines, classes=reader.classes, files=tuple(reader.files))


class _Reader:
    """Where in a diff the reading is: before any file, in a file's head, or after its hunks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.classes = bytearray(len(lines))
        self.files: list[File] = []
        self._path: str | None = None  # of the open file
        self._start = 0
        self._hunks: list[int] = []
        self._in_head = False  # of a file
        self._in_commit = False

    def step(self, at: int) -> int:
        """Read what begins at line `at`; the line after it."""
        line = self.lines[at]
        first = line[:1]
        if first == "@":
            if found := _HUNK.match(line):
                return self._hunk(at, int(found[1] or 1), int(found[2] or 1))
            if found := _COMBINED.match(line):
                return self._combined(at, len(found[1]) - 1)
        if first == "d" and _GIT.match(line):
            self._open(at, _path(line))
            return at + 1
        if first == "-" and self._is_plain_head(at):
            if not (self._in_head and self._path is not None):
                self._open(at, _plain_path(line, self.lines[at + 1]))
                self.classes[at + 1] = FILE
            else:
                self.classes[at : at + 2] = bytes((MINOR, MINOR))
            return at + 2
        return self._other(at, line)

    def close(self, at: int) -> None:
        """The open file ends before line `at`."""
        if self._path is None:
            return
        stop = at
        while stop > self._start + 1 and self.classes[stop - 1] in (OUTSIDE, COMMIT, MESSAGE):
            stop -= 1
        added, removed = (self.classes.count(kind, self._start, stop) for kind in CHANGED)
        self.files.append(File(self._path, self._start, stop, tuple(self._hunks), added, removed))
        self._path = None
        self._in_head = False

    def _open(self, at: int, path: str) -> None:
        self.close(at)
        self._path, self._start, self._hunks = path, at, []
        self._in_head, self._in_commit = True, False
        self.classes[at] = FILE

    def _is_plain_head(self, at: int) -> bool:
        """`--- x`, `+++ y` and a hunk: three lines that no content can be, since content has a sign before it."""
        lines = self.lines
        return (
            at + 2 < len(lines) and lines[at].startswith("--- ") and lines[at + 1].startswith("+++ ") and _is_hunk(lines[at + 2])
        )

    def _other(self, at: int, line: str) -> int:
        """A line outside hunks: of a file's head, of a commit's, or of something else."""
        if self._in_commit and (line[:4] == "    " or not line):
            self.classes[at] = MESSAGE
            return at + 1
        if self._in_head:
            kind = MINOR if _MINOR.match(line) else MODE if _MODE.match(line) else OUTSIDE
            if kind != OUTSIDE:
                self.classes[at] = kind
                return self._binary(at + 1) if line.startswith("GIT binary patch") else at + 1
            self._in_head = False
        if line[:1] in "ctF" and _COMMIT.match(line):
            self.close(at)
            self._in_commit = True
            self.classes[at] = COMMIT
        elif self._in_commit and _ABOUT.match(line):
            self.classes[at] = COMMIT
        elif (self._in_commit and line[:3] == "---") or (line[:1] == " " and _STAT.match(line)):
            self.classes[at] = MESSAGE
        elif line.startswith("Index: "):
            self.classes[at] = MINOR
        return at + 1

    def _binary(self, at: int) -> int:
        while at < len(self.lines) and not _GIT.match(self.lines[at]) and not _COMMIT.match(self.lines[at]):
            self.classes[at] = BINARY
            at += 1
        return at

    def _begin_hunk(self, at: int) -> None:
        """A hunk without a file before it, as `grep` leaves them, belongs to a file without a name."""
        if self._path is None:
            self._open(at, "")
        self._hunks.append(at)
        self._in_head = False
        self.classes[at] = HUNK

    def _hunk(self, at: int, old: int, new: int) -> int:
        """A hunk's lines. A diff that was filtered or cut breaks off early, so what begins the next part ends this one."""
        lines, classes = self.lines, self.classes
        self._begin_hunk(at)
        at += 1
        while at < len(lines) and (old > 0 or new > 0):
            first = lines[at][:1]
            if first == "+":
                classes[at] = ADDED
                new -= 1
            elif first == "-":
                if lines[at].startswith("--- ") and self._is_plain_head(at):
                    return at
                classes[at] = REMOVED
                old -= 1
            elif first == " " or lines[at] in ("", "\r"):
                if first != " " and at + 1 < len(lines) and _ends_hunk(lines[at + 1]):
                    return at
                classes[at] = CONTEXT
                old -= 1
                new -= 1
            elif first == "\\":
                classes[at] = CONTEXT
            else:
                return at
            at += 1
        if at < len(lines) and lines[at].startswith("\\ "):
            classes[at] = CONTEXT
            at += 1
        return at

    def _combined(self, at: int, parents: int) -> int:
        """A hunk of a merge: one column of signs for each parent."""
        lines, classes = self.lines, self.classes
        self._begin_hunk(at)
        at += 1
        while at < len(lines):
            signs = lines[at][:parents]
            if signs.strip(" +-"):
                if not signs.startswith("\\"):
                    return at
                classes[at] = CONTEXT
            elif not signs:
                return at
            else:
                classes[at] = ADDED if "+" in signs else REMOVED if "-" in signs else CONTEXT
            at += 1
        return at


def _is_hunk(line: str) -> bool:
    return bool(_HUNK.match(line) or _COMBINED.match(line))


def _ends_hunk(line: str) -> bool:
    return bool(_GIT.match(line) or _COMMIT.match(line) or _HUNK.match(line))


def _path(line: str) -> str:
    found = _NAMES.match(line.rstrip())
    return (found[2] or found[3]) if found else line.rstrip()[11:]


def _plain_path(old: str, new: str) -> str:
    """The new file's path; the old one's when the file was removed."""
    path = new[4:].split("\t")[0].rstrip()
    path = old[4:].split("\t")[0].rstrip() if path == "/dev/null" else path
    return path[2:] if path.startswith(("a/", "b/")) else path


# What is shown


class Costs(Struct, frozen=True, gc=False):
    """Estimated tokens of a file's changed lines, hunk by hunk; each hunk's only up to the room, for more is never shown."""

    hunks: tuple[int, ...]
    whole: int


def _costs(patch: Patch, room: int) -> tuple[Costs, ...]:
    found: list[Costs] = []
    for file in patch.files:
        hunks = tuple(_cost(patch, start, stop, room) for start, stop in _extents(file))
        found.append(Costs(hunks, sum(hunks)))
    return tuple(found)


def _extents(file: File) -> Iterator[tuple[int, int]]:
    """Each hunk's lines after its head."""
    for at, start in enumerate(file.hunks):
        yield start + 1, file.hunks[at + 1] if at + 1 < len(file.hunks) else file.stop


def _cost(patch: Patch, start: int, stop: int, room: int) -> int:
    cost = 0
    apart = True
    for at in range(start, stop):
        changed = patch.classes[at] in CHANGED
        if changed:
            cost += weight(patch.lines[at]) + (GAP_ABOUT if apart else 0)
            if cost > room * 4:
                break
        apart = not changed
    return cost


def _names(files: Sequence[File]) -> Names:
    """Every file once, with its changed lines in all commits."""
    changed: dict[str, int] = {}
    for file in files:
        path = (file.path if file.path.isprintable() else repr(file.path)) or "(a file without a name)"
        changed[path] = changed.get(path, 0) + file.added + file.removed
    return Names(list(changed), list(changed.values()), "changed line")


def _list(patch: Patch, names: Names, room: int) -> Note | None:
    """All files by name; in folders with counts where there are too many."""
    listed = names.within(int(room * ALL_NAMES))
    if listed is None or not listed.complete:
        listed = names.within(int(room * NAMES))
    if listed is None:
        return None
    sums = _signed(sum(file.added for file in patch.files), sum(file.removed for file in patch.files))
    more = "" if listed.complete else '; recall with pattern="^diff --git" names every one'
    return Note(f"{plural(names.size, 'file')} with {sums}, each with its changed lines{more}:\n{listed.text}")


def _chosen(patch: Patch, costs: Sequence[Costs], names: Names | None, room: int) -> tuple[Piece, ...]:
    """The diff in `room` estimated tokens; with a list of its files first where their heads are too many for it."""
    listed = _list(patch, names, room) if names else None
    if listed:
        room -= sum(weight(line) + NOTE_ABOUT for line in listed.text.split("\n"))
    selection = Selection(patch.lines, room)
    classes = patch.classes
    selection.spend(0.25 if listed else 0.5)
    named = _named(patch.files, selection)
    named_lines = {file.start for file in named}
    selection.spend(0.25)
    selection.take_any(_subjects(patch))
    selection.spend(0.25)
    selection.take_any(at for file in named for at in _of(classes, MODE, file.start, file.stop))
    selection.spend(0.1)
    selection.take_any(_outside(patch))
    selection.spend(0.3)
    selection.take_any(hunk for file in named for hunk in file.hunks)
    selection.spend(1)
    if not selection.used:
        return ()
    _changed(patch, costs, selection, named_lines)
    _around(patch, selection)
    selection.take_any(at for kind in (MESSAGE, COMMIT, OUTSIDE, CONTEXT, MINOR) for at in _of(classes, kind))
    runs = selection.runs()
    pieces = woven(runs, _notes(patch, runs))
    return (listed, *pieces) if listed else pieces


def _named(files: Sequence[File], selection: Selection) -> list[File]:
    """The files whose head is shown: those that people write first."""
    theirs = [file for file in files if LAST.search(file.path)]
    ours = [file for file in files if not LAST.search(file.path)] if theirs else files
    found: list[File] = []
    for file in (*ours, *theirs):
        if selection.full:
            break
        if selection.take(file.start):
            found.append(file)
    return found


def _of(classes: bytearray, kind: int, start: int = 0, stop: int | None = None) -> Iterator[int]:
    at = classes.find(kind, start, stop)
    while at >= 0:
        yield at
        at = classes.find(kind, at + 1, stop)


def _subjects(patch: Patch) -> Iterator[int]:
    """Each commit's id, and its subject: the first line of its message; the rest of its head after all of these."""
    rest: list[int] = []
    for at in _of(patch.classes, COMMIT):
        if not _COMMIT.match(patch.lines[at]):
            rest.append(at)
            continue
        yield at
        for line in range(at + 1, min(at + 12, len(patch.lines))):
            if patch.classes[line] == MESSAGE and patch.lines[line].strip():
                yield line
                break
    yield from rest
    yield from (at for at in _of(patch.classes, MESSAGE) if " changed" in patch.lines[at])


def _outside(patch: Patch) -> Iterator[int]:
    """What another command printed before and after: its last lines first, for there it says how it ended."""
    outside = [at for at in _of(patch.classes, OUTSIDE) if patch.lines[at].strip()]
    yield from outside[:-11:-1]
    yield from outside[:10]


def _changed(patch: Patch, costs: Sequence[Costs], selection: Selection, named: set[int]) -> None:
    """Changed lines: files that people write before those that tools write, each with a fair part of what is left."""
    shown = [at for at, file in enumerate(patch.files) if file.start in named]
    theirs = [at for at in shown if LAST.search(patch.files[at].path)]
    ours = [at for at in shown if not LAST.search(patch.files[at].path)] if theirs else shown
    for group in (ours, theirs):
        left = selection.room - selection.used
        parts = fair([costs[at].whole for at in group], left)
        for at, part in zip(group, parts, strict=True):
            for (start, stop), tokens in zip(_extents(patch.files[at]), fair(costs[at].hunks, part), strict=True):
                selection.allow(tokens)
                selection.take_all(chain((start - 1,), _changes(patch, start, stop)))
        selection.allow(selection.room)
        for at in group:  # what rounding left over
            if selection.full:
                break
            file = patch.files[at]
            selection.take_all(_changes(patch, file.start, file.stop))


def _changes(patch: Patch, start: int, stop: int) -> Iterator[int]:
    return (line for line in range(start, stop) if patch.classes[line] in CHANGED)


def _around(patch: Patch, selection: Selection) -> None:
    """Context next to changed lines that are shown, nearest first."""
    changed = [at for kind in CHANGED for at in _of(patch.classes, kind) if selection.has(at)]
    changed.sort()
    for distance in (1, 2, 3):
        for at in changed:
            if selection.full:
                return
            for near in (at - distance, at + distance):
                if 0 <= near < len(patch.classes) and patch.classes[near] == CONTEXT:
                    selection.take(near)


def _notes(patch: Patch, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Note]]:
    """For each gap that leaves changed lines or files out, how many; a file's whole count at its first such gap."""
    files = patch.files
    told = -1
    at = 0
    for start, stop in gaps(runs, len(patch.classes)):
        while at < len(files) and files[at].stop <= start:
            at += 1
        parts: list[str] = []
        if at < len(files) and files[at].start < start:
            end = min(stop, files[at].stop)
            added, removed = (patch.classes.count(kind, start, end) for kind in CHANGED)
            if added or removed:
                whole = _signed(files[at].added, files[at].removed)
                parts.append(_signed(added, removed) + (f" of the file's {whole}" if told != at else ""))
                told = at
        unnamed = (
            [file for file in islice(files, at, None) if start <= file.start < stop]
            if _holds_file(files, at, start, stop)
            else []
        )
        if unnamed:
            sums = _signed(sum(file.added for file in unnamed), sum(file.removed for file in unnamed))
            parts.append(f"{plural(len(unnamed), 'file')} with {sums}")
        rest = patch.classes.count(BINARY, start, stop)
        if rest:
            parts.append(f"{plural(rest, 'line')} of a binary patch")
        if parts:
            yield start, Note("; ".join(parts), left_out=True)


def _holds_file(files: Sequence[File], at: int, start: int, stop: int) -> bool:
    """Whether a file begins in the gap: the one at hand, or the one after it."""
    return any(start <= file.start < stop for file in files[at : at + 2])


def _signed(added: int, removed: int) -> str:
    return f"+{added:,} -{removed:,}"
