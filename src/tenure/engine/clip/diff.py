"""Diffs, clipped to what changed.

Every file stays named, then every hunk's head, then changed lines, shared fairly between files and within a file between hunks, then the
lines around them. Added and removed lines are counted by the hunks' own figures, so a removed line that reads `-- x` is no file head.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Final

from msgspec import Struct

from tenure.engine.clip.naming import Names
from tenure.engine.clip.shape import GAP_ABOUT, NOTE_ABOUT, Note, Piece, Selection, Shaped, fair, fitted, gaps, plural, weight
from tenure.engine.record.entry import Count

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


class FileDiff(Struct, frozen=True, gc=False):
    """One file's part of a diff: lines `start` to `stop`, its head first, its hunks' heads, and its exact counts."""

    path: str
    start: int
    stop: int
    hunks: tuple[int, ...]
    added: int
    removed: int

    @property
    def is_generated(self) -> bool:
        """Whether a tool writes the file."""
        return LAST.search(self.path) is not None

    def hunk_lines(self) -> Iterator[tuple[int, int]]:
        """Each hunk's lines after its head."""
        yield from ((start + 1, stop) for start, stop in pairwise((*self.hunks, self.stop)))


class Patch(Struct, frozen=True, kw_only=True):
    """What every line of a diff is, and its files in order."""

    lines: Sequence[str]
    classes: bytearray
    files: tuple[FileDiff, ...]

    def of(self, *kinds: int, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """The lines of these kinds, kind by kind."""
        for kind in kinds:
            at = self.classes.find(kind, start, stop)
            while at >= 0:
                yield at
                at = self.classes.find(kind, at + 1, stop)

    def changes(self, start: int, stop: int) -> Iterator[int]:
        """The changed lines between two."""
        return (line for line in range(start, stop) if self.classes[line] in CHANGED)


def fits(lines: Sequence[str]) -> bool:
    """Whether at least half of the first 3,000 lines belong to hunks, file heads and commits. Bullets in prose make no hunk."""
    patch = read(lines[:SAMPLE])
    if not patch.files:
        return False
    inside = len(patch.classes) - patch.classes.count(OUTSIDE)
    return inside >= SHARE_OF_DIFF * sum(1 for line in lines[:SAMPLE] if line and not line.isspace())


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """What changed, in `room` tokens; as many files as fit when not even their names do; None when not one does."""
    patch = read(lines)
    if not patch.files:
        return None
    costs = [[_cost(patch, start, stop, room) for start, stop in file.hunk_lines()] for file in patch.files]
    heads = sum(weight(lines[file.start]) + GAP_ABOUT for file in patch.files)
    pieces = fitted(lines, room, count, partial(_pieces, patch, costs, _names(patch.files), heads))
    return Shaped(pieces=pieces, why=WHY) if pieces else None


# Reading


def read(lines: Sequence[str]) -> Patch:
    """Every line's class and every file's counts. Linear."""
    reader = _DiffReader(lines)
    at = 0
    while at < len(lines):
        at = reader.step(at)
    reader.close(len(lines))
    return Patch(lines=lines, classes=reader.classes, files=tuple(reader.files))


class _DiffReader:
    """Where in a diff the reading is: before any file, in a file's head, or after its hunks."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.classes = bytearray(len(lines))
        self.files: list[FileDiff] = []
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
            if match := _HUNK.match(line):
                return self._hunk(at, int(match[1] or 1), int(match[2] or 1))
            if match := _COMBINED.match(line):
                return self._combined(at, len(match[1]) - 1)
        if first == "d" and _GIT.match(line):
            names = _NAMES.match(line.rstrip())
            self._open(at, (names[2] or names[3]) if names else line.rstrip()[11:])
            return at + 1
        if first == "-" and self._is_plain_head(at):
            if self._in_head and self._path is not None:
                self.classes[at : at + 2] = bytes((MINOR, MINOR))
            else:
                self._open(at, _plain_path(line, self.lines[at + 1]))
                self.classes[at + 1] = FILE
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
        self.files.append(FileDiff(self._path, self._start, stop, tuple(self._hunks), added, removed))
        self._path = None
        self._in_head = False

    def _open(self, at: int, path: str) -> None:
        self.close(at)
        self._path, self._start, self._hunks = path, at, []
        self._in_head, self._in_commit = True, False
        self.classes[at] = FILE

    def _is_plain_head(self, at: int) -> bool:
        """`--- x`, `+++ y` and a hunk: three lines that no content can be, since content has a sign before it."""
        old, new, hunk = (*self.lines[at : at + 3], "", "")[:3]
        return old.startswith("--- ") and new.startswith("+++ ") and bool(_HUNK.match(hunk) or _COMBINED.match(hunk))

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

    def _begin_hunk(self, at: int) -> int:
        """A hunk without a file before it, as `grep` leaves them, belongs to a file without a name."""
        if self._path is None:
            self._open(at, "")
        self._hunks.append(at)
        self._in_head = False
        self.classes[at] = HUNK
        return at + 1

    def _hunk(self, at: int, old: int, new: int) -> int:
        """A hunk's lines. A diff that was filtered or cut breaks off early, so what begins the next part ends this one."""
        lines, classes = self.lines, self.classes
        at = self._begin_hunk(at)
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
        at = self._begin_hunk(at)
        while at < len(self.lines):
            signs = self.lines[at][:parents]
            if not signs or (signs.strip(" +-") and not signs.startswith("\\")):
                break
            comment = signs.startswith("\\")
            self.classes[at] = CONTEXT if comment else ADDED if "+" in signs else REMOVED if "-" in signs else CONTEXT
            at += 1
        return at


def _ends_hunk(line: str) -> bool:
    return bool(_GIT.match(line) or _COMMIT.match(line) or _HUNK.match(line))


def _plain_path(old: str, new: str) -> str:
    """The new file's path; the old one's when the file was removed."""
    path = new[4:].split("\t")[0].rstrip()
    path = old[4:].split("\t")[0].rstrip() if path == "/dev/null" else path
    return path[2:] if path.startswith(("a/", "b/")) else path


# Choosing


def _cost(patch: Patch, start: int, stop: int, room: int) -> int:
    """Estimated tokens of a hunk's changed lines, up to some times the room, for more is never shown."""
    cost = 0
    before = -1
    for at in patch.changes(start, stop):
        cost += weight(patch.lines[at]) + (GAP_ABOUT if before != at - 1 else 0)
        before = at
        if cost > room * 4:
            break
    return cost


def _names(files: Sequence[FileDiff]) -> Names:
    """Every file once, with its changed lines in all commits."""
    changed: dict[str, int] = {}
    for file in files:
        path = (file.path if file.path.isprintable() else repr(file.path)) or "(a file without a name)"
        changed[path] = changed.get(path, 0) + file.added + file.removed
    return Names(list(changed), list(changed.values()), "changed line")


def _file_list(patch: Patch, names: Names, room: int) -> Note | None:
    """All files by name; in folders with counts where there are too many."""
    listed = names.within(int(room * ALL_NAMES))
    if listed is None or not listed.complete:
        listed = names.within(int(room * NAMES))
    if listed is None:
        return None
    more = "" if listed.complete else '; recall with pattern="^diff --git" names every one'
    return Note(f"{plural(names.size, 'file')} with {_sums(patch.files)}, each with its changed lines{more}:\n{listed.text}")


def _pieces(patch: Patch, costs: Sequence[Sequence[int]], names: Names, heads: int, room: int) -> tuple[Piece, ...]:
    """The diff in `room` estimated tokens; with a list of its files first where their heads are too many for it."""
    listed = _file_list(patch, names, room) if heads > room * NAMES else None
    if listed:
        room -= sum(weight(line) + NOTE_ABOUT for line in listed.text.split("\n"))
    selection = Selection(patch.lines, room)
    selection.spend(0.25 if listed else 0.5)
    heads_of = sorted(patch.files, key=lambda file: file.is_generated)
    selection.take_any(file.start for file in heads_of)
    named = [file for file in heads_of if selection.has(file.start)]
    selection.spend(0.25)
    selection.take_any(_subjects(patch))
    selection.spend(0.25)
    selection.take_any(at for file in named for at in patch.of(MODE, start=file.start, stop=file.stop))
    selection.spend(0.1)
    outside = [at for at in patch.of(OUTSIDE) if patch.lines[at].strip()]  # another command's words; the last say how it ended
    selection.take_any((*outside[:-11:-1], *outside[:10]))
    selection.spend(0.3)
    selection.take_any(hunk for file in named for hunk in file.hunks)
    selection.spend(1)
    if not selection.used:
        return ()
    shown = [(file, cost) for file, cost in zip(patch.files, costs, strict=True) if selection.has(file.start)]
    for generated in (False, True):
        _take_changes(patch, [(file, cost) for file, cost in shown if file.is_generated == generated], selection)
    _take_context(patch, selection)
    selection.take_any(patch.of(MESSAGE, COMMIT, OUTSIDE, CONTEXT, MINOR))
    pieces = selection.pieces(_notes(patch, selection.runs()))
    return (listed, *pieces) if listed else pieces


def _subjects(patch: Patch) -> Iterator[int]:
    """Each commit's id, and its subject: the first line of its message; the rest of its head after all of these."""
    rest: list[int] = []
    for at in patch.of(COMMIT):
        if not _COMMIT.match(patch.lines[at]):
            rest.append(at)
            continue
        yield at
        near = range(at + 1, min(at + 12, len(patch.lines)))
        yield from [line for line in near if patch.classes[line] == MESSAGE and patch.lines[line].strip()][:1]
    yield from rest
    yield from (at for at in patch.of(MESSAGE) if " changed" in patch.lines[at])


def _take_changes(patch: Patch, files: Sequence[tuple[FileDiff, Sequence[int]]], selection: Selection) -> None:
    """Changed lines, each file with a fair part of what is left, and each of its hunks with a fair part of that."""
    parts = fair([sum(costs) for _, costs in files], selection.room - selection.used)
    for (file, costs), part in zip(files, parts, strict=True):
        for (start, stop), tokens in zip(file.hunk_lines(), fair(costs, part), strict=True):
            selection.allow(tokens)
            selection.take_all(chain((start - 1,), patch.changes(start, stop)))
    selection.allow(selection.room)
    for file, _ in files:  # what rounding left over
        if selection.full:
            break
        selection.take_all(patch.changes(file.start, file.stop))


def _take_context(patch: Patch, selection: Selection) -> None:
    """Context next to changed lines that are shown, nearest first."""
    changed = sorted(at for at in patch.of(*CHANGED) if selection.has(at))
    for at, distance in ((at, distance) for distance in (1, 2, 3) for at in changed):
        if selection.full:
            return
        for near in (at - distance, at + distance):
            if 0 <= near < len(patch.classes) and patch.classes[near] == CONTEXT:
                selection.take(near)


def _notes(patch: Patch, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Note]]:
    """For each gap that leaves changed lines or files out, how many; a file's whole count at its first such gap."""
    files, starts = patch.files, [file.start for file in patch.files]
    counted = -1
    for start, stop in gaps(runs, len(patch.classes)):
        first, last = bisect_left(starts, start), bisect_left(starts, stop)
        parts: list[str] = []
        if first and files[first - 1].stop > start:
            file = files[first - 1]
            added, removed = (patch.classes.count(kind, start, min(stop, file.stop)) for kind in CHANGED)
            if added or removed:
                parts.append(_signed(added, removed) + (f" of the file's {_sums((file,))}" if counted != first - 1 else ""))
                counted = first - 1
        if last > first:
            parts.append(f"{plural(last - first, 'file')} with {_sums(files[first:last])}")
        if binary := patch.classes.count(BINARY, start, stop):
            parts.append(f"{plural(binary, 'line')} of a binary patch")
        if parts:
            yield start, Note("; ".join(parts), left_out=True)


def _sums(files: Iterable[FileDiff]) -> str:
    changes = [(file.added, file.removed) for file in files]
    return _signed(sum(added for added, _ in changes), sum(removed for _, removed in changes))


def _signed(added: int, removed: int) -> str:
    return f"+{added:,} -{removed:,}"
