"""Search hits, as grep, ripgrep and agents' own search tools print them.

Read are `path:line:text`, `path:line:column:text`, `path-line-context` with `--` between groups, `path(line):` headings over `line:text`
or `Line 12: text`, `line:text` of one file, counts (`path:3`), and file names under "Found 12 files". What only looks like it - access logs,
paths before times, compiler messages, stack traces, addresses with ports - is told apart by what a search always has: line numbers
without leading zeros that ascend within a file.
"""

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final, Literal

from tenure.engine.clip.log import distinct_errors
from tenure.engine.clip.naming import Names, name_weight, parted
from tenure.engine.clip.shape import GAP_ABOUT, NOTE_ABOUT, Keep, Note, Piece, Shaped, fitted, plural, ranges, stretches, weight
from tenure.engine.record.entry import Count

FEWEST: Final = 6  # lines that are hits, context or headings
SHARE: Final = 0.9  # of the sample's lines that must be so
WITH_CONTEXT: Final = 0.6  # of the room for bare hits where the search printed context; the rest goes to the context of the first
WITHOUT_NAMES: Final = 0.25  # of the room for hits when even the names do not fit
LONGEST: Final = 0.25  # of the room for one line: a minified file's hit is counted, not shown
MOST: Final = 0.2  # of the room for the lines with the highest counts, in a list of counts
TOP: Final = 40  # such lines, at most
PATIENCE: Final = 400  # lines that do not fit before the room counts as full
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
_PATHLIKE: Final = re.compile(  # a name that is plainly a path: a separator without blanks around, or an extension
    r"(?:[A-Za-z]:)?(?:[^\s:]*[/\\][^:]*[^\s:/\\]|[^:/\\]*\.[A-Za-z]\w{0,9}|Makefile|Dockerfile|LICENSE|README)"
)

# What a hit's line holds after its path when it is no hit: a time of day, an address's port, a compiler's message.
_TIME: Final = re.compile(r"\d{1,2}:[0-5]\d:[0-5]\d(?![\d:])")
_HOST: Final = re.compile(r"(?:\w+://|(?:\d{1,3}\.){3}\d{1,3}|localhost\b|\[)")
_MESSAGE: Final = re.compile(
    r"\d+:(?:\d+:)? ?(?:fatal )?(?:error|warning|note|info|hint|remark|[A-Z]{1,5}\d{2,5})\b"
    r"|\d+:\d+: \S",
    re.IGNORECASE,
)


# How a search is printed: a path on each line, or above its lines; lines of one file; counts; or file names alone.
_Form = Literal["pathed", "headed", "one file", "counts", "files"]
_Stretches = Sequence[Sequence[str]]


def fits(lines: Sequence[str]) -> bool:
    """Whether a sample of the lines is a search's output in one of its forms."""
    return _form(lines) is not None


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """First hits of every file, then second ones, and so on; context where room is left; names and counts of all others."""
    form = _form(lines)
    if form is None:
        return None
    if form in ("counts", "files"):
        listed = _FileList(lines, counted=form == "counts")
        pieces = fitted(lines, room, count, listed.pieces) if listed.paths else None
        return Shaped(pieces=pieces, why="every file" if listed.all_named else "folders with counts") if pieces else None
    output = _read_pathed(lines) if form == "pathed" else _read_numbered(lines, headed=form == "headed")
    if not output.files:
        return None
    hits = _Hits(lines, output, int(room * LONGEST))
    pieces = fitted(lines, room, count, hits.pieces)
    why = "every file named, first hits where there is room" if hits.all_named else "folders with counts, and first hits"
    return Shaped(pieces=pieces, why=why) if pieces else None


# Recognising


def _form(lines: Sequence[str]) -> _Form | None:
    sample = stretches(lines)
    total = sum(map(len, sample))
    if total < FEWEST:
        return None
    if _is_pathed(sample, total):
        return "pathed"
    if _is_counted(sample, total):
        return "counts"
    if _is_file_names([line for stretch in sample for line in stretch]):
        return "files"
    if _is_headed(sample, total):
        return "headed"
    return "one file" if _is_one_file(sample, total) else None


def _is_pathed(sample: _Stretches, total: int) -> bool:
    hits = kin = false = 0
    numbers: dict[str, list[int]] = {}
    for line in (line for stretch in sample for line in stretch):
        if (match := _hit(line)) is not None:
            hits += 1
            rest = line[match.start("line") : match.start("line") + 80]
            false += bool(_TIME.match(rest) or _MESSAGE.match(rest) or _HOST.match(line))
            numbers.setdefault(match["path"], []).append(int(match["line"]))
        elif _CONTEXT.match(line) or line == "--" or _FOUND.fullmatch(line) or _BINARY.fullmatch(line):
            kin += 1
    enough = hits and hits + kin >= max(FEWEST, (total - EDGES) * SHARE) and false <= hits * 0.2
    return bool(enough) and _ascend(numbers.values())


def _hit(line: str) -> re.Match[str] | None:
    """A line that names its path and number; not one of context with colons in its text."""
    hit = _HIT.match(line)
    context = _CONTEXT.match(line) if hit else None
    return None if hit and context and context.end("path") < hit.end("path") else hit


def _ascend(files: Iterable[Sequence[int]]) -> bool:
    """Whether line numbers grow within each file, as a search prints them and a log does not."""
    steps = [after - before for numbers in files for before, after in pairwise(numbers)]
    back, still = sum(step < 0 for step in steps), steps.count(0)
    return back * 20 <= len(steps) and (still * 2 <= len(steps) or len(steps) < 3)


def _is_counted(sample: _Stretches, total: int) -> bool:
    paths: list[str] = []
    kin = 0
    for line in (line for stretch in sample for line in stretch):
        if (match := _COUNT.fullmatch(line)) is not None and not _HOST.match(line) and _is_pathlike(match["path"]):
            paths.append(match["path"])
        elif _FOUND.fullmatch(line):
            kin += 1
    return len(paths) >= max(FEWEST, (total - EDGES) * SHARE - kin) and len(set(paths)) == len(paths)


def _is_file_names(sample: Sequence[str]) -> bool:
    if not _FOUND_FILES.fullmatch(sample[0]):
        return False
    good = sum(1 for line in sample[1:] if _is_pathlike(line) and _HEADING.fullmatch(line))
    return good >= max(FEWEST, (len(sample) - 3) * SHARE)


def _is_headed(sample: _Stretches, total: int) -> bool:
    headings = hits = kin = 0
    numbers: list[list[int]] = []
    for stretch in sample:
        under = False
        for line in stretch:
            if (under or not headings) and (match := _NUMBERED.match(line)) is not None:
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
    if headings == 0 or hits < headings * 0.5 or sum(map(bool, numbers)) < headings * 0.8:
        return False
    return headings + hits + kin >= max(FEWEST, (total - EDGES) * SHARE) and _ascend(numbers)


def _is_one_file(sample: _Stretches, total: int) -> bool:
    steps: list[int] = []
    good = hits = 0
    for stretch in sample:
        good += sum(line == "--" for line in stretch)
        matches = [match for line in stretch if line[0].isdigit() and not _TIME.match(line) and (match := _NUMBERED.match(line))]
        good += len(matches)
        hits += sum(match["sign"] == ":" for match in matches)
        steps += [int(after["line"]) - int(before["line"]) for before, after in pairwise(matches)]
    if not hits or good < max(FEWEST, (total - 1) * 0.97):
        return False
    return all(step > 0 for step in steps) and any(step > 1 for step in steps)  # a list numbered 1, 2, 3 is none


def _is_heading(line: str) -> bool:
    match = _HEADING.fullmatch(line)
    return match is not None and _is_pathlike(match["path"])


def _is_pathlike(text: str) -> bool:
    text = text.strip()
    return 0 < len(text) <= 400 and not _HOST.match(text) and _PATHLIKE.fullmatch(text) is not None


# Reading


@dataclass(slots=True)
class _FileHits:
    """The lines of the text that are hits in one file."""

    path: str
    heading: int = -1
    hits: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class _Output:
    """A search's output, read: files with hits in order, and the other lines."""

    files: Sequence[_FileHits]
    context: bytearray  # per line: 1 where it is context
    other: Sequence[int]  # lines that are the tool's own words


def _read_pathed(lines: Sequence[str]) -> _Output:
    files: dict[str, _FileHits] = {}
    context = bytearray(len(lines))
    other: list[int] = []
    hit, beside = "\0", "\0"  # how a line of the file at hand begins
    at = 0
    file = _FileHits("")
    for n, line in enumerate(lines):
        if line.startswith(hit) and line[at : at + 1].isdigit():
            file.hits.append(n)
        elif line.startswith(beside) and line[at : at + 1].isdigit():
            context[n] = 1
        elif (match := _hit(line)) is not None:
            path = match["path"]
            file = files.setdefault(path, _FileHits(path))
            file.hits.append(n)
            hit, beside, at = path + ":", path + "-", len(path) + 1
        elif _CONTEXT.match(line):
            context[n] = 1
        elif (match := _BINARY.fullmatch(line)) is not None:
            path = match["path"].strip("\"'")
            files.setdefault(path, _FileHits(path)).hits.append(n)
        elif line and line != "--":
            other.append(n)
    return _Output(_merged(list(files.values())), context, other)


def _merged(files: Sequence[_FileHits]) -> list[_FileHits]:
    """One file where some lines name it in full and others from the working folder, as Claude Code's Grep does."""
    relative = {file.path: file for file in files if not file.path.startswith("/")}
    kept: list[_FileHits] = []
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
    return kept


def _read_numbered(lines: Sequence[str], *, headed: bool) -> _Output:
    """Lines with their numbers, below the headings of their files or all of one file."""
    files: list[_FileHits] = [] if headed else [_FileHits("")]
    context = bytearray(len(lines))
    other: list[int] = []
    for n, line in enumerate(lines):
        if files and (match := _NUMBERED.match(line)) is not None:
            if match["sign"] == ":":
                files[-1].hits.append(n)
            else:
                context[n] = 1
        elif headed and _is_heading(line) and not _FOUND.fullmatch(line):
            match = _HEADING.fullmatch(line)
            files.append(_FileHits(match["path"] if match else line, heading=n))
        elif line and line != "--" and not (headed and (line.isspace() or line == "---")):
            other.append(n)
    return _Output([file for file in files if file.hits], context, other)


# Choosing


class _FileList:
    """A list of files, with their counts or without: read once, then chosen from."""

    def __init__(self, lines: Sequence[str], *, counted: bool) -> None:
        self.lines = lines
        self.paths: list[str] = []
        self.all_named = True
        self._counts: list[int] = []  # none in a list of names alone
        self._places: list[int] = []  # lines of the text
        self._other: list[int] = []
        self._empty = 0
        for n, line in enumerate(lines):
            path, _, number = line.rpartition(":") if counted else (line, "", "1")
            good = number.isdecimal() and len(number) <= 9 and number.isascii()
            if not good or not ("/" in path or _is_pathlike(path)) or (line[0] in "Ff" and _FOUND.fullmatch(line)):
                if line and not line.isspace():
                    self._other.append(n)
            elif number == "0":
                self._empty += 1
            else:
                self.paths.append(path)
                self._places.append(n)
                self._counts += [int(number)] * counted
        self._names = Names(self.paths, self._counts)

    def pieces(self, budget: int) -> tuple[Piece, ...]:
        """The tool's own words, the files with most, and all files by folder."""
        lines, counts = self.lines, self._counts
        after = len(lines) - EDGES
        edges = [n for n in self._other if (n < EDGES or n >= after) and weight(lines[n]) <= budget // 8]
        left = budget - sum(weight(lines[n]) + 2 for n in edges) - 24
        most = int(left * MOST) if counts else 0
        listed = self._names.within(left - most)
        if listed is None:
            return ()
        self.all_named = listed.complete
        kept = set(edges)
        for at in heapq.nlargest(TOP, range(len(counts)), key=counts.__getitem__):
            most -= weight(lines[self._places[at]]) + GAP_ABOUT
            if most < 0:
                break
            kept.add(self._places[at])
        what = f"{plural(sum(counts), 'hit')} in {_files(self.paths)}" if counts else _files(self.paths)
        none = f", none in {plural(self._empty, 'other file')}" if self._empty else ""
        words = Note(f"{what}{none}, by folder:\n{listed.text}")
        shown = ranges(kept)
        return (*(keep for keep in shown if keep.start < after), words, *(keep for keep in shown if keep.start >= after))


class _Hits:
    """What one choice after another needs to know of a search, worked out once."""

    def __init__(self, lines: Sequence[str], output: _Output, longest: int) -> None:
        self.lines, self.files, self.context, self.other = lines, output.files, output.context, output.other
        self.longest = longest
        self.all_named = True
        self.is_one_file = output.files[0].path == ""
        self.names = [name_weight(parted(file.path)[1], len(file.hits)) for file in self.files]
        folders = {parted(file.path)[0] for file in self.files}
        self.all_names = sum(self.names) + sum(min(weight(folder), 24) + 1 for folder in folders)
        self.last = len(lines) - EDGES
        some = distinct_errors(lines, self.other[: 4 * PATIENCE])[:ERRORS]
        errors = {n for n in some if weight(lines[n]) <= longest // ERRORS}
        edge = longest // 2
        self.edges = [n for n in self.other if n in errors or ((n < EDGES or n >= self.last) and weight(lines[n]) <= edge)]

    def pieces(self, budget: int) -> tuple[Piece, ...]:
        """Pieces of about `budget` of estimated weight: names first, then hits in turns, then context."""
        left = budget - sum(weight(self.lines[n]) + 2 for n in self.edges) - 24
        if left <= 0:
            return ()
        listed = None
        tight = not self.is_one_file and self.all_names > left
        if tight:
            names = self._everything.within(int(left * (1 - WITHOUT_NAMES)))
            if names is None:
                return ()
            listed = Note(f"all files by folder:\n{names.text}")
            left -= sum(map(weight, listed.text.split("\n")))
        elif not self.is_one_file:
            left -= self.all_names
        around = 1 in self.context
        hits, spent = self._in_turns(int(left * WITH_CONTEXT) if around else left, names_given=not tight)
        kept = {*self.edges, *hits, *(self._context(hits, left - spent) if around else ())}
        return self._woven(kept, listed)

    @cached_property
    def _everything(self) -> Names:
        return Names([file.path for file in self.files], [len(file.hits) for file in self.files])

    @cached_property
    def _order(self) -> list[int]:
        """The first file of each folder, then the others: folders have their turns as files have."""
        folders = [parted(file.path)[0] for file in self.files]
        firsts = set({folder: at for at, folder in reversed(list(enumerate(folders)))}.values())
        return sorted(range(len(folders)), key=lambda at: at not in firsts)

    def _in_turns(self, budget: int, *, names_given: bool) -> tuple[list[int], int]:
        """First hits of the files, then second ones; a file's turn ends where a hit of it does not fit."""
        lines, context = self.lines, self.context
        chosen: list[int] = []
        active: Sequence[int] = self._order
        spent = turn = refused = 0
        while active:
            going: list[int] = []
            for at in active:
                file = self.files[at]
                line = file.hits[turn]
                weighs = weight(lines[line])
                near = turn and file.hits[turn - 1] == line - 1
                cost = weighs + (0 if near else GAP_ABOUT if line + 1 < len(context) and context[line + 1] else 2)
                if not turn:
                    cost += weight(lines[file.heading]) if file.heading >= 0 else 0
                    cost += NOTE_ABOUT + 8 if len(file.hits) > 1 else 0
                    cost -= self.names[at] if names_given else 0
                if weighs > self.longest or spent + cost > budget:
                    refused += 1
                    if refused > PATIENCE:
                        return chosen, spent
                    continue
                spent += cost
                chosen.append(line)
                if turn + 1 < len(file.hits):
                    going.append(at)
            active = going
            turn += 1
        return chosen, spent

    def _context(self, hits: Sequence[int], budget: int) -> set[int]:
        """Lines printed around hits, hit by hit in the order they were taken: whole contexts first, then the lines nearest to a hit."""
        chosen: set[int] = set()
        for hit in hits:
            reach = [*self._beside(hit, -1, chosen), *self._beside(hit, 1, chosen)]
            cost = sum(weight(self.lines[n]) for n in reach) - GAP_ABOUT
            if reach and cost <= budget:
                budget -= cost
                chosen.update(reach)
        for hit in hits:
            for step in (1, -1):
                for n in self._beside(hit, step, chosen):
                    if weight(self.lines[n]) > budget:
                        break
                    budget -= weight(self.lines[n])
                    chosen.add(n)
        return chosen

    def _beside(self, hit: int, step: int, chosen: set[int]) -> Iterator[int]:
        """Lines of context from a hit on, up to the first that is taken."""
        n = hit + step
        while 0 <= n < len(self.context) and self.context[n] and n not in chosen:
            yield n
            n += step

    def _woven(self, kept: set[int], listed: Note | None) -> tuple[Piece, ...]:
        """Kept lines with the notes between them: what is left out of a file, and the files without a line."""
        shown = [[n for n in file.hits if n in kept] for file in self.files]
        kept.update(file.heading for file, hits in zip(self.files, shown, strict=True) if hits and file.heading >= 0)
        kept |= self._lone_gaps(kept)
        more: dict[int, str] = {}  # by line
        for file, hits in zip(self.files, shown, strict=True):
            if hits and (rest := len(file.hits) - len(hits)):
                more[self._end(hits[-1], kept)] = f"{plural(rest, 'more hit')} in this file"
        unshown = [file for file, hits in zip(self.files, shown, strict=True) if not hits]
        self.all_named = listed is None
        if unshown and listed is None:
            listed = self._file_names(unshown)
        tail = self.other[-1] if self.other and self.other[-1] in kept and self.other[-1] >= self.last else len(self.lines)
        pieces: list[Piece] = [Note(self._summary())]
        for keep in ranges(kept):
            start = keep.start
            if listed is not None and start >= min(tail, self.last) and keep.stop > tail:
                pieces.append(listed)
                listed = None
            for line in range(start, keep.stop):
                if line in more:
                    pieces += (Keep(start, line + 1), Note(more[line], left_out=True))
                    start = line + 1
            if start < keep.stop:
                pieces.append(Keep(start, keep.stop))
        return (*pieces, listed) if listed is not None else tuple(pieces)

    def _lone_gaps(self, kept: set[int]) -> set[int]:
        """Lone lines left out that weigh less than the words that would stand for them; hits are counted elsewhere and stay out."""
        lone = (n + 1 for n in kept if n + 2 in kept and n + 1 not in kept)
        lines = self.lines
        return {n for n in lone if (self.context[n] or lines[n] in ("", "--", "---")) and weight(lines[n]) <= GAP_ABOUT}

    def _end(self, line: int, kept: set[int]) -> int:
        """The last line of the context kept after a hit, so that a note does not stand inside it."""
        while line + 1 < len(self.context) and self.context[line + 1] and line + 1 in kept:
            line += 1
        return line

    def _summary(self) -> str:
        where = "one file" if self.is_one_file else _files(self.files)
        parts = [f"{plural(sum(len(file.hits) for file in self.files), 'hit')} in {where}"]
        if around := sum(self.context):
            parts.append(f"{plural(around, 'line')} of context")
        if inner := len(self.other) - len(self.edges):
            parts.append(plural(inner, "other line"))
        return ", ".join(parts)

    def _file_names(self, files: Sequence[_FileHits]) -> Note:
        """Every file without a line, with its count."""
        counts = [len(file.hits) for file in files]
        more = "more " if len(files) < len(self.files) else ""
        names = Names([file.path for file in files], counts)
        return Note(f"{plural(sum(counts), 'hit')} in {plural(len(files), f'{more}file')}:\n{names.every()}")


def _files(files: Sequence[object]) -> str:
    return plural(len(files), "file")
