"""Search hits, as grep, ripgrep and agents' own search tools print them.

Read are `path:line:text`, `path:line:column:text`, `path-line-context` with `--` between groups, `path(line):` headings over `line:text`
or `Line 12: text`, `line:text` of one file, counts (`path:3`), and file names under "Found 12 files". What only looks like it - access logs,
paths before times, compiler messages, stack traces, addresses with ports - is told apart by what a search always has: line numbers
without leading zeros that ascend within a file.
"""

import heapq
import re
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tenure.engine.clip.filling import GAP_ABOUT, NOTE_ABOUT, fitted, plural, runs
from tenure.engine.clip.log import distinct_errors
from tenure.engine.clip.naming import Names, name_weight, parted
from tenure.engine.clip.shape import Note, Piece, Shaped, weight
from tenure.engine.record.entry import Count

SAMPLE: Final = 200  # lines in a row, at the beginning, the middle and the end, by which a text is recognised
FEWEST: Final = 6  # lines that are hits, context or headings
SHARE: Final = 0.9  # of the sample's lines that must be so
WITH_CONTEXT: Final = 0.6  # of the room for bare hits where the search printed context; the rest goes to the context of the first
WITHOUT_NAMES: Final = 0.25  # of the room for hits when even the names do not fit
LONGEST: Final = 0.25  # of the room for one line: a minified file's hit is counted, not shown
MOST: Final = 0.2  # of the room for the lines with the highest counts, in a list of counts
TOP: Final = 40  # such lines, at most
PATIENCE: Final = 400  # lines that do not fit before the room counts as full
TOGETHER: Final = 256  # lines of a list of counts that are read at once where they are all alike
ERRORS: Final = 6  # of the tool's complaints, one of each kind
EDGES: Final = 4  # lines at either end that may be the tool's own words

# A path: no control characters, no colon but a drive's, not a bare number; with blanks inside only when it ends in an extension.
_PATH: Final = r"(?:[A-Za-z]:[\\/])?(?=[^:\n]{0,60}[A-Za-z_])(?:[^\s:\x00-\x1f\"'`<>|(){},;=]{1,300}|[^\s:\x00-\x1f][^:\x00-\x1f]{0,300}\.[A-Za-z]\w{0,9})"
_HIT: Final = re.compile(rf"(?P<path>{_PATH}):(?P<line>[1-9]\d{{0,8}}):")
_CONTEXT: Final = re.compile(
    r"(?P<path>[^\s:\x00-\x1f][^:\x00-\x1f]{0,300}?(?:\.[A-Za-z]\w{0,9}|/[A-Za-z]+))-(?P<line>[1-9]\d{0,8})-"
)
_COUNT: Final = re.compile(rf"(?P<path>{_PATH}):(?P<n>0|[1-9]\d{{0,8}})")
_NUMBERED: Final = re.compile(r"\s{0,4}(?:L|Line )?(?P<line>[1-9]\d{0,8})(?P<sign>[:-])")
_HEADING: Final = re.compile(rf"(?:File: )?(?P<path>{_PATH}):?")
_FOUND: Final = re.compile(r"Found \d[\d,]* (?:total )?(?:matches|match|files?|results?|occurrences?|lines?)\b.*", re.IGNORECASE)
_FOUND_FILES: Final = re.compile(r"Found [\d,]+ files?\b[^:]*:?", re.IGNORECASE)
_BINARY: Final = re.compile(r"(?:grep: |rg: )?[Bb]inary file (?P<path>.{1,300}) matches\.?")

# What a hit's line holds after its path when it is no hit: a time of day, an address's port, a compiler's message.
_TIME: Final = re.compile(r"\d{1,2}:[0-5]\d:[0-5]\d(?![\d:])")
_HOST: Final = re.compile(r"(?:\w+://|(?:\d{1,3}\.){3}\d{1,3}|localhost\b|\[)")
_MESSAGE: Final = re.compile(
    r"\d+:(?:\d+:)? ?(?:fatal )?(?:error|warning|note|info|hint|remark|[A-Z]{1,5}\d{2,5})\b"
    r"|\d+:\d+: \S",
    re.IGNORECASE,
)


class Mode(Enum):
    """How a search was printed."""

    PATHED = "path on each line"
    HEADED = "path above its lines"
    ALONE = "lines of one file"
    COUNTED = "counts"
    FILES = "file names"


class File:
    """What was found in one file, by line numbers of the text."""

    __slots__ = ("context", "heading", "hits", "n", "path")

    def __init__(self, path: str, heading: int = -1) -> None:
        self.path = path
        self.heading = heading
        self.hits: list[int] = []
        self.context = 0  # lines
        self.n = 0  # in a list of counts, the count; elsewhere the hits


class Found(Struct, frozen=True, kw_only=True):
    """A search's output, read."""

    mode: Mode
    files: tuple[File, ...]  # those with hits, in order
    context: bytes  # per line: 1 where it is context
    other: tuple[int, ...]  # lines that are the tool's own words


class Search:
    """Every file, with as many of its hits as the room holds, in turns."""

    name = "search hits"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether a sample of the lines is a search's output in one of its modes."""
        return _mode(lines) is not None

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """First hits of every file, then second ones, and so on; context where room is left; names and counts of all others."""
        mode = _mode(lines)
        if mode is None:
            return None
        if mode in (Mode.COUNTED, Mode.FILES):
            listed = _read_listed(lines, mode)
            pieces = fitted(lines, room, count, lambda budget: listed.choose(lines, budget)) if listed.paths else None
            why = "every file" if listed.all_named else "folders with counts"
            return None if pieces is None else Shaped(pieces=pieces, why=why)
        found = _read(lines, mode)
        if not found.files:
            return None
        hits = _Hits(lines, found, int(room * LONGEST))
        pieces = fitted(lines, room, count, hits.choose)
        if pieces is None:
            return None
        every = hits.all_named
        return Shaped(
            pieces=pieces,
            why="every file named, first hits where there is room" if every else "folders with counts, and first hits",
        )


# Recognising -------------------------------------------------------------------------------------------------------------------------


def _mode(lines: Sequence[str]) -> Mode | None:
    stretches = _stretches(lines)
    total = sum(map(len, stretches))
    if total < FEWEST:
        return None
    checks = (
        (Mode.PATHED, _pathed),
        (Mode.COUNTED, _counted),
        (Mode.FILES, _only_files),
        (Mode.HEADED, _headed),
        (Mode.ALONE, _alone),
    )
    return next((mode for mode, holds in checks if holds(stretches)), None)


def _stretches(lines: Sequence[str]) -> list[list[str]]:
    """Up to three stretches of lines, blank ones left out."""
    if len(lines) <= 3 * SAMPLE:
        return [[line for line in lines if line and not line.isspace()]]
    middle = len(lines) // 2
    parts = (lines[:SAMPLE], lines[middle : middle + SAMPLE], lines[-SAMPLE:])
    return [[line for line in part if line and not line.isspace()] for part in parts]


def _pathed(stretches: Sequence[Sequence[str]]) -> bool:
    hits = kin = false = 0
    numbers: dict[str, list[int]] = {}
    total = sum(map(len, stretches))
    for stretch in stretches:
        runs_: dict[str, list[int]] = {}
        for line in stretch:
            match = _HIT.match(line)
            if match is not None and not _is_context(line, match):
                hits += 1
                false += _is_false(line, match)
                runs_.setdefault(match["path"], []).append(int(match["line"]))
            elif _CONTEXT.match(line) or line == "--" or _FOUND.fullmatch(line) or _BINARY.fullmatch(line):
                kin += 1
        for path, found in runs_.items():
            numbers.setdefault(path, []).extend(found)
    if not hits or hits + kin < max(FEWEST, (total - EDGES) * SHARE) or false > hits * 0.2:
        return False
    return _ascend(numbers.values())


def _is_context(line: str, hit: re.Match[str]) -> bool:
    """Whether the colons are in the text of a line of context."""
    context = _CONTEXT.match(line)
    return context is not None and context.end("path") < hit.end("path")


def _is_false(line: str, hit: re.Match[str]) -> bool:
    rest = line[hit.start("line") : hit.start("line") + 80]
    return bool(_TIME.match(rest) or _MESSAGE.match(rest) or _HOST.match(line))


def _ascend(files: Iterable[Sequence[int]]) -> bool:
    """Whether line numbers grow within each file, as a search prints them and a log does not."""
    steps = back = still = 0
    for numbers in files:
        for before, after in pairwise(numbers):
            steps += 1
            back += after < before
            still += after == before
    return back * 20 <= steps and (still * 2 <= steps or steps < 3)


def _counted(stretches: Sequence[Sequence[str]]) -> bool:
    paths: list[str] = []
    kin = 0
    for stretch in stretches:
        for line in stretch:
            if (match := _COUNT.fullmatch(line)) is not None and not _HOST.match(line) and _pathlike(match["path"]):
                paths.append(match["path"])
            elif _FOUND.fullmatch(line):
                kin += 1
    total = sum(map(len, stretches))
    return len(paths) >= max(FEWEST, (total - EDGES) * SHARE - kin) and len(set(paths)) == len(paths)


def _only_files(stretches: Sequence[Sequence[str]]) -> bool:
    first = stretches[0][0] if stretches[0] else ""
    if not _FOUND_FILES.fullmatch(first):
        return False
    rest = [line for stretch in stretches for line in stretch][1:]
    good = sum(1 for line in rest if _pathlike(line) and _HEADING.fullmatch(line))
    return good >= max(FEWEST, (len(rest) - 2) * SHARE)


def _headed(stretches: Sequence[Sequence[str]]) -> bool:
    headings = hits = kin = 0
    numbers: list[list[int]] = []
    for stretch in stretches:
        under = False
        for line in stretch:
            if (match := _NUMBERED.match(line)) is not None and (under or not headings):
                hits += match["sign"] == ":"
                kin += match["sign"] == "-"
                if numbers:
                    numbers[-1].append(int(match["line"]))
            elif _is_heading(line):
                headings += 1
                under = True
                numbers.append([])
            elif line in ("--", "---") or _FOUND.fullmatch(line):
                kin += 1
        numbers.append([])
    total = sum(map(len, stretches))
    filled = sum(1 for found in numbers if found)
    if headings == 0 or hits < headings * 0.5 or filled < headings * 0.8:
        return False
    return headings + hits + kin >= max(FEWEST, (total - EDGES) * SHARE) and _ascend(numbers)


def _alone(stretches: Sequence[Sequence[str]]) -> bool:
    numbers: list[list[int]] = []
    total = sum(map(len, stretches))
    good = hits = 0
    for stretch in stretches:
        found: list[int] = []
        for line in stretch:
            if (match := _NUMBERED.match(line)) is not None and line[0].isdigit() and not _TIME.match(line):
                found.append(int(match["line"]))
                hits += match["sign"] == ":"
                good += 1
            elif line == "--":
                good += 1
        numbers.append(found)
    if not hits or good < max(FEWEST, (total - 1) * 0.97):
        return False
    steps = [after - before for found in numbers for before, after in pairwise(found)]
    return all(step > 0 for step in steps) and any(step > 1 for step in steps)  # a list numbered 1, 2, 3 is none


def _is_heading(line: str) -> bool:
    match = _HEADING.fullmatch(line)
    return match is not None and _pathlike(match["path"])


def _pathlike(text: str) -> bool:
    """Whether a name alone is plainly a path: a separator without blanks around, or an extension."""
    text = text.strip()
    return bool(text) and len(text) <= 400 and not _HOST.match(text) and bool(_PATHLIKE.fullmatch(text))


_PATHLIKE: Final = re.compile(
    r"(?:[A-Za-z]:)?(?:[^\s:]*[/\\][^:]*[^\s:/\\]|[^:/\\]*\.[A-Za-z]\w{0,9}|Makefile|Dockerfile|LICENSE|README)"
)


# Reading -----------------------------------------------------------------------------------------------------------------------------


def _read(lines: Sequence[str], mode: Mode) -> Found:
    match mode:
        case Mode.PATHED:
            return _read_pathed(lines)
        case Mode.HEADED:
            return _read_headed(lines)
        case Mode.ALONE:
            return _read_alone(lines)
        case Mode.COUNTED | Mode.FILES:
            raise AssertionError(mode)  # lists of files are read by _read_listed


def _read_pathed(lines: Sequence[str]) -> Found:
    files: dict[str, File] = {}
    context = bytearray(len(lines))
    other: list[int] = []
    hit, beside = "\0", "\0"  # how a line of the file at hand begins
    at = 0
    file = File("")
    around: dict[str, int] = {}  # lines of context by path
    for n, line in enumerate(lines):
        if line.startswith(hit) and line[at : at + 1].isdigit():
            file.hits.append(n)
        elif line.startswith(beside) and line[at : at + 1].isdigit():
            context[n] = 1
            file.context += 1
        elif (match := _HIT.match(line)) is not None and not _is_context(line, match):
            path = match["path"]
            file = files.get(path) or files.setdefault(path, File(path))
            file.hits.append(n)
            hit, beside, at = path + ":", path + "-", len(path) + 1
        elif (match := _CONTEXT.match(line)) is not None:
            context[n] = 1
            around[match["path"]] = around.get(match["path"], 0) + 1
        elif (match := _BINARY.fullmatch(line)) is not None:
            path = match["path"].strip("\"'")
            files.setdefault(path, File(path)).hits.append(n)
        elif line and line != "--":
            other.append(n)
    for path, n in around.items():
        if (owner := files.get(path)) is not None:
            owner.context += n
    return Found(
        mode=Mode.PATHED, files=_counted_files(_merged(list(files.values()))), context=bytes(context), other=tuple(other)
    )


def _merged(files: list[File]) -> list[File]:
    """One file where some lines name it in full and others from the working folder, as Claude Code's Grep does."""
    relative = {file.path: file for file in files if not file.path.startswith("/")}
    kept: list[File] = []
    root = ""
    for file in files:
        path = file.path
        twin = None
        if path.startswith("/") and relative:
            if root and path.startswith(root):
                twin = relative.get(path[len(root) :])
            elif not root:
                start = path.find("/") + 1
                while start and (twin := relative.get(path[start:])) is None:
                    start = path.find("/", start) + 1
                root = path[:start] if twin is not None and path.count("/", start) else ""
        if twin is None:
            kept.append(file)
        else:
            twin.hits = sorted((*twin.hits, *file.hits))
            twin.context += file.context
    return kept


def _counted_files(files: Iterable[File]) -> tuple[File, ...]:
    kept = [file for file in files if file.hits]
    for file in kept:
        file.n = len(file.hits)
    return tuple(kept)


def _read_headed(lines: Sequence[str]) -> Found:
    files: list[File] = []
    context = bytearray(len(lines))
    other: list[int] = []
    file: File | None = None
    for n, line in enumerate(lines):
        if file is not None and (match := _NUMBERED.match(line)) is not None:
            if match["sign"] == ":":
                file.hits.append(n)
            else:
                context[n] = 1
                file.context += 1
        elif _is_heading(line) and not _FOUND.fullmatch(line):
            match = _HEADING.fullmatch(line)
            file = File(match["path"] if match else line, heading=n)
            files.append(file)
        elif line and not line.isspace() and line not in ("--", "---"):
            other.append(n)
    return Found(mode=Mode.HEADED, files=_counted_files(files), context=bytes(context), other=tuple(other))


def _read_alone(lines: Sequence[str]) -> Found:
    file = File("")
    context = bytearray(len(lines))
    other: list[int] = []
    for n, line in enumerate(lines):
        match = _NUMBERED.match(line)
        if match is None:
            if line and line != "--":
                other.append(n)
        elif match["sign"] == ":":
            file.hits.append(n)
        else:
            context[n] = 1
            file.context += 1
    return Found(mode=Mode.ALONE, files=_counted_files([file]), context=bytes(context), other=tuple(other))


def _read_listed(lines: Sequence[str], mode: Mode) -> "_Listed":
    listed = _Listed()
    for first in range(0, len(lines), TOGETHER):
        some = lines[first : first + TOGETHER]
        if mode is not Mode.COUNTED or not _all_counts(some, first, listed):
            _add_listed(some, first, listed, counted=mode is Mode.COUNTED)
    return listed


def _all_counts(lines: Sequence[str], first: int, listed: "_Listed") -> bool:
    """Adds lines that are all counts above 0 with plain paths; false, and nothing added, when one is anything else."""
    parts = [line.rpartition(":") for line in lines]
    numbers = [number for _, _, number in parts]
    digits = "".join(numbers)
    if (
        not (digits.isdecimal() and digits.isascii())
        or min(map(len, numbers)) < 1
        or max(map(len, numbers)) > 9
        or "0" in numbers
    ):
        return False
    paths = [path for path, _, _ in parts]
    if not all("/" in path for path in paths) or any(line[0] in "Ff" and _FOUND.fullmatch(line) for line in lines):
        return False
    listed.paths += paths
    listed.places += range(first, first + len(lines))
    listed.counts += map(int, numbers)
    return True


def _add_listed(lines: Sequence[str], first: int, listed: "_Listed", *, counted: bool) -> None:
    for n, line in enumerate(lines, first):
        path, _, number = line.rpartition(":") if counted else (line, "", "1")
        good = number.isdecimal() and len(number) <= 9 and number.isascii()
        if not good or not ("/" in path or _pathlike(path)) or (line[0] in "Ff" and _FOUND.fullmatch(line)):
            if line and not line.isspace():
                listed.other.append(n)
        elif number == "0":
            listed.empty += 1
        else:
            listed.paths.append(path)
            listed.places.append(n)
            if counted:
                listed.counts.append(int(number))


# Choosing ----------------------------------------------------------------------------------------------------------------------------


class _Listed:
    """A list of files, with their counts or without: worked out once, then chosen from."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.counts: list[int] = []  # none in a list of names alone
        self.places: list[int] = []  # lines of the text
        self.other: list[int] = []
        self.empty = 0
        self.all_named = True
        self.names: Names | None = None

    def choose(self, lines: Sequence[str], budget: int) -> tuple[Piece, ...]:
        """The tool's own words, the files with most, and all files by folder."""
        if self.names is None:
            self.names = Names(self.paths, self.counts)
        edges = [n for n in self.other if (n < EDGES or n >= len(lines) - EDGES) and weight(lines[n]) <= budget // 8]
        left = budget - sum(weight(lines[n]) + 2 for n in edges) - 24
        most = int(left * MOST) if self.counts else 0
        listed = self.names.within(left - most)
        if listed is None:
            return ()
        self.all_named = listed.complete
        kept = set(edges)
        for at in heapq.nlargest(TOP, range(len(self.counts)), key=self.counts.__getitem__):
            most -= weight(lines[self.places[at]]) + GAP_ABOUT
            if most < 0:
                break
            kept.add(self.places[at])
        what = (
            f"{plural(sum(self.counts), 'hit')} in {plural(len(self.paths), 'file')}"
            if self.counts
            else plural(len(self.paths), "file")
        )
        none = f", none in {plural(self.empty, 'other file')}" if self.empty else ""
        words = Note(f"{what}{none}, by folder:\n{listed.text}")
        ranges = runs(sorted(kept))
        after = len(lines) - EDGES
        return (*(keep for keep in ranges if keep.start < after), words, *(keep for keep in ranges if keep.start >= after))


class _Hits:
    """What one choice after another needs to know of a search, worked out once."""

    def __init__(self, lines: Sequence[str], found: Found, longest: int) -> None:
        self.lines = lines
        self.found = found
        self.longest = longest
        self.all_named = True
        self.words = [name_weight(parted(file.path)[1], file.n) for file in found.files]
        folders = {parted(file.path)[0] for file in found.files}
        self.names = sum(self.words) + sum(min(weight(folder), 24) + 1 for folder in folders)
        self.everything: Names | None = None
        self.order = _by_turns(found.files)
        last = len(lines) - EDGES
        errors = {
            n for n in distinct_errors(lines, found.other[: 4 * PATIENCE])[:ERRORS] if weight(lines[n]) <= longest // ERRORS
        }
        self.edges = [n for n in found.other if n in errors or ((n < EDGES or n >= last) and weight(lines[n]) <= longest // 2)]
        self.inner = len(found.other) - len(self.edges)

    def choose(self, budget: int) -> tuple[Piece, ...]:
        """Pieces of about `budget` of estimated weight: names first, then hits in turns, then context."""
        lines, found = self.lines, self.found
        left = budget - sum(weight(lines[n]) + 2 for n in self.edges) - 24
        if left <= 0:
            return ()
        tight = found.mode is not Mode.ALONE and self.names > left
        listed = self._all_listed(int(left * (1 - WITHOUT_NAMES))) if tight else None
        if tight and listed is None:
            return ()
        left -= 0 if found.mode is Mode.ALONE else self.names if listed is None else sum(map(weight, listed.text.split("\n")))
        kept = set(self.edges)
        around = 1 in found.context
        bare, spent = self._in_turns(int(left * WITH_CONTEXT) if around else left, names_given=not tight)
        kept.update(bare)
        if around:
            kept.update(self._context(bare, left - spent))
        return self._pieces(kept, listed)

    def _in_turns(self, budget: int, *, names_given: bool) -> tuple[list[int], int]:
        """First hits of the files, then second ones; a file's turn ends where a hit of it does not fit."""
        lines, found = self.lines, self.found
        context = found.context
        taken: list[int] = []
        active = list(self.order)
        spent = turn = refused = 0
        while active:
            going: list[int] = []
            for at in active:
                file = found.files[at]
                line = file.hits[turn]
                weighs = weight(lines[line])
                near = turn and file.hits[turn - 1] == line - 1
                cost = weighs + (0 if near else GAP_ABOUT if line + 1 < len(context) and context[line + 1] else 2)
                if not turn:
                    cost += (weight(lines[file.heading]) if file.heading >= 0 else 0) + (
                        NOTE_ABOUT + 8 if len(file.hits) > 1 else 0
                    )
                    cost -= self.words[at] if names_given else 0
                if weighs > self.longest or spent + cost > budget:
                    refused += 1
                    if refused > PATIENCE:
                        return taken, spent
                    continue
                spent += cost
                taken.append(line)
                if turn + 1 < len(file.hits):
                    going.append(at)
            active = going
            turn += 1
        return taken, spent

    def _context(self, hits: Sequence[int], budget: int) -> list[int]:
        """Lines printed around hits, hit by hit in the order they were taken: whole contexts first, then the lines nearest to a hit."""
        context, lines = self.found.context, self.lines
        taken: set[int] = set()
        for hit in hits:
            reach: list[int] = []
            for step in (-1, 1):
                n = hit + step
                while 0 <= n < len(context) and context[n] and n not in taken:
                    reach.append(n)
                    n += step
            cost = sum(weight(lines[n]) for n in reach) - GAP_ABOUT
            if reach and cost <= budget:
                budget -= cost
                taken.update(reach)
        for hit in hits:
            for step in (1, -1):
                n = hit + step
                while 0 <= n < len(context) and context[n] and n not in taken and weight(lines[n]) <= budget:
                    budget -= weight(lines[n])
                    taken.add(n)
                    n += step
        return list(taken)

    def _pieces(self, kept: set[int], listed: Note | None) -> tuple[Piece, ...]:
        found, lines = self.found, self.lines
        unshown: list[File] = []
        said: dict[int, str] = {}
        there = [[n for n in file.hits if n in kept] for file in found.files]
        kept.update(file.heading for file, shown in zip(found.files, there, strict=True) if shown and file.heading >= 0)
        kept |= self._single_gaps(kept)
        for file, shown in zip(found.files, there, strict=True):
            if not shown:
                unshown.append(file)
            elif rest := len(file.hits) - len(shown):
                said[self._end(shown[-1], kept)] = f"{plural(rest, 'more hit')} in this file"
        pieces: list[Piece] = [Note(self._summary())]
        tail = (
            found.other[-1] if found.other and found.other[-1] in kept and found.other[-1] >= len(lines) - EDGES else len(lines)
        )
        self.all_named = listed is None
        if unshown and listed is None:
            listed = self._unshown(unshown)
        for keep in runs(sorted(kept)):
            start = keep.start
            if listed is not None and start >= min(tail, len(lines) - EDGES) and keep.stop > tail:
                pieces.append(listed)
                listed = None
            for stop in range(start + 1, keep.stop + 1):
                if (note := said.get(stop - 1)) is not None:
                    pieces.extend((type(keep)(start, stop), Note(note, left_out=True)))
                    start = stop
            if start < keep.stop:
                pieces.append(type(keep)(start, keep.stop))
        if listed is not None:
            pieces.append(listed)
        return tuple(pieces)

    def _single_gaps(self, kept: set[int]) -> set[int]:
        """Lone lines left out that weigh less than the words that would stand for them; hits are counted elsewhere and stay out."""
        lines, found = self.lines, self.found
        lone = {n + 1 for n in kept if n + 2 in kept and n + 1 not in kept}
        return {n for n in lone if (found.context[n] or lines[n] in ("", "--", "---")) and weight(lines[n]) <= GAP_ABOUT}

    def _end(self, line: int, kept: set[int]) -> int:
        """The last line of the context kept after a hit, so that a note does not stand inside it."""
        context = self.found.context
        while line + 1 < len(context) and context[line + 1] and line + 1 in kept:
            line += 1
        return line

    def _summary(self) -> str:
        found = self.found
        hits = sum(file.n for file in found.files)
        parts: list[str] = []
        if found.mode is Mode.ALONE:
            parts.append(f"{plural(hits, 'hit')} in one file")
        else:
            parts.append(f"{plural(hits, 'hit')} in {plural(len(found.files), 'file')}")
        if around := sum(found.context):
            parts.append(f"{plural(around, 'line')} of context")
        if self.inner:
            parts.append(plural(self.inner, "other line"))
        return ", ".join(parts)

    def _unshown(self, unshown: Sequence[File]) -> Note:
        """Every file without a line, with its count."""
        hits = sum(file.n for file in unshown)
        few = f"{plural(hits, 'hit')} in " if hits else ""
        more = "more " if len(unshown) < len(self.found.files) else ""
        names = Names([file.path for file in unshown], [file.n for file in unshown])
        return Note(f"{few}{plural(len(unshown), f'{more}file')}:\n{names.every()}")

    def _all_listed(self, budget: int) -> Note | None:
        """All files, shown or not, as far as they can be named; the counts of their folders add up to the whole."""
        if self.everything is None:
            files = self.found.files
            self.everything = Names([file.path for file in files], [file.n for file in files])
        listed = self.everything.within(budget)
        return Note(f"all files by folder:\n{listed.text}") if listed is not None else None


def _by_turns(files: Sequence[File]) -> list[int]:
    """The first file of each folder, then the others: folders have their turns as files have."""
    seen: set[str] = set()
    first: list[int] = []
    later: list[int] = []
    for at, file in enumerate(files):
        folder, _ = parted(file.path)
        (later if folder in seen else first).append(at)
        seen.add(folder)
    return first + later
