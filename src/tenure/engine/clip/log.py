"""Logs of builds, tests and services, clipped to what went wrong.

What a reader of a log wants first: whether it failed, the first failure of each kind with its trace and place, how it ended. Failures are
read by form, never by a word alone: a passing test called `test_error`, `0 errors` and `"error": null` are none.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress
from typing import Final

from tenure.engine.clip import diff
from tenure.engine.clip.log_failures import Block, LogReading
from tenure.engine.clip.log_lines import (
    ERROR,
    FAILED_NAME,
    LONGEST,
    PASSED,
    PROGRESS,
    TRACE,
    WARNING,
    bare,
    indented,
    plain_start,
)
from tenure.engine.clip.shape import Note, Piece, Selection, Shaped, fitted, gaps, plural
from tenure.engine.record.entry import Count

WHY: Final = "failures with their traces, summaries, distinct warnings, both ends"
WHY_CALM: Final = "summaries, distinct warnings, both ends"
ROUGHLY: Final = "; it has thousands of different messages, and most are counted by their words alone"

LEFT_OUT: Final = (  # how a gap's note counts them; what remains is "other lines"
    (ERROR, "error", "errors"),
    (FAILED_NAME, "name of a failed test", "names of failed tests"),
    (TRACE, "trace line", "trace lines"),
    (WARNING, "warning", "warnings"),
    (PASSED, "passing test", "passing tests"),
    (PROGRESS, "progress line", "progress lines"),
)

SAMPLE: Final = 400  # lines looked at by `fits` at each end and in the middle
SHORT: Final = 12  # lines of a trace that is shown whole or, where it does not fit, by worth
TRACE_WINDOW: Final = 400  # lines of one trace that are ranked; the middle of a longer one is never shown
KINDS: Final = 12  # of failures, from which the last of all goes before the first of each kind: it is often why all stopped
PARTS: Final = 6  # of the room: what is quoted of one failure's line that is too long
LEADER_WINDOW: Final = 60  # lines that the file name over an indented message is searched in

_DECISIVE: Final = re.compile(  # lines inside a trace that name cause or place
    r"\s*(?:E {2,}\S|> {2,}\S|>? *\d+ *\| .{0,200}|[-=]+> \S|Expected|Received|expected|actual|left:|right:|Caused by:|[\u276f] \S|[-+] \S"
    r"|[\w./\\-]{1,200}:\d+(?::\d+)?: |[\w./\\-]{1,200}\.go:\d+|panic: |assertion )|.{0,200}\b[A-Z]\w{0,60}(?:Error|Exception)(?=: |:?$)"
)
# `fits`
_NUMBERED: Final = re.compile(r"\s*\d+(?:→|\t|\|)")
_PROSE: Final = re.compile(r"#{1,6} (?!Subtest)[A-Z*`]|```|[-*] \*\*|\| ?:?-{3,}")
_CODE: Final = re.compile(
    r"\s*(?:def |class |import |from \S+ import|return\b|const |let |var |function |func |if [(\w]|} else|elif |else:|for [(\w]|while |try:|try \{"
    r"|except\b|catch\b|public |private |protected |static |export |async |await |#include|#define|package \w+;?$|use \w+::|fn |pub |impl |struct "
    r"|type \w+|//|/\*|\* |@\w+|</?\w+)|.*[{};,(]\s*$"
)
_RUNNER: Final = re.compile(
    r"=+ (?:test session starts|.{1,200} in [\d.]+s(?: \(.{1,20}\))?) =+$|(?:FAILED|ERROR|PASSED) \S{1,300}::|--- (?:PASS|FAIL|SKIP): \w|=== RUN |(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\)|\[)"
    r"|\s*(?:not )?ok \d+\b|1\.\.\d+$|Tests?(?: Suites| Files)?:?\s+\d+ (?:passed|failed|skipped)|test result: |test \S+ \.\.\. (?:ok|FAILED|ignored)"
    r"|Ran \d+ tests? in|Tests run: \d|\[\w+\] BUILD |BUILD (?:SUCCESSFUL|FAILED|SUCCESS)|FAILURE: Build failed|\s*\d+ (?:passing|failing)\b"
    r"|.{1,200}: error: |(?:.{1,200}: )?(?:fatal )?error: |error\[\w+\]|.{1,200}[:)] (?:- )?error TS\d+|\s+\d+:\d+\s+(?:error|warning)\s|npm (?:ERR!|error|WARN|warn)"
    r"|make(?:\[\d+\])?: |\[(?:ERROR|INFO|WARNING)\] |Exit code \d|✖ \d+ problem|Found \d+ (?:error|warning)|\S+::\S+ (?:PASSED|FAILED|ERROR|SKIPPED)"
    r"|\S+ [.FEsxX]+\s+\[ *\d+%\]$|\[ *\d+%\] (?:Building|Linking)|\s+Compiling \S+ v\d|> Task :|\[ +(?:OK|RUN|FAILED|PASSED) *\]"
    r"|\S{1,200}:\d+:\d+ (?:lint|parse|format)|[\w./-]{1,200}:\d+:\d+: \w|test_\w+ \(.{1,200}\) \.\.\. |\s*[✓✔✗✘] \S"
)
_FAILED_COMMAND: Final = re.compile(r"Exit code [1-9]")
_STRUCTURED: Final = re.compile(
    r"(?:[^\t]{1,80}\t[^\t]{1,80}\t\ufeff?)?(?:[\w.-]{1,40} +\| )?"
    r"(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ,]|\[?\d\d:\d\d:\d\d\b|(?:time|ts|level)=\S|\[?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\b[\]:\s]"
    r"|\w{3} [ \d]\d \d\d:\d\d:\d\d |[IWEF]\d{4} \d\d:\d\d|\{.{0,400}\"(?:level|severity|lvl)\"\s?:|\[\w{2,20}\] \d+ +- |.{0,60} - (?:INFO|DEBUG|WARN|ERROR))"
)
_FAULT: Final = re.compile(
    r"Traceback \(most recent call last\)|\s+at .{1,200}:\d+:\d+\)?$|\s+at [\w.$]+\(\w+\.\w+:\d+\)|panic: |goroutine \d+ \[|Exception in thread"
    r"|thread '.{1,100}' panicked|[\w.]{0,80}(?:Error|Exception): |fatal: "
)


def fits(lines: Sequence[str]) -> bool:
    """Whether this is a log, judged by at most 1,200 of its lines; never for a file that was read, prose, a diff or one JSON value."""
    whole = [plain_start(line) for line in _sample(lines) if line and not line.isspace()]
    sample = [bare(line) for line in whole]
    if len(sample) < 5 or _is_document(whole) or diff.fits(lines):
        return False
    runner = _matches(_RUNNER, sample)
    structured = _matches(_STRUCTURED, whole)
    if structured * 3 >= len(sample) or runner * 3 >= len(sample):
        return True
    code = _matches(_CODE, sample)
    ends = _matches(_RUNNER, (*sample[:5], *sample[-25:]))
    if (ends > (code * 5 >= len(sample)) and code * 2 < len(sample)) or (_FAILED_COMMAND.match(sample[0]) and runner > 1):
        return True
    return (runner + structured + _matches(_FAULT, sample)) * 20 >= len(sample) and code * 5 < len(sample)


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """What went wrong, in `room` tokens; None when nothing telling was found, or not one telling line fits."""
    log = LogReading(lines)
    if not any(log.classes):
        return None
    pieces = fitted(
        lines, room, count, partial(_pieces, log, Ranking(log.blocks, log.uncounted), Ranking(log.warnings, log.uncounted))
    )
    why = WHY if log.blocks else WHY_CALM
    return Shaped(pieces=pieces, why=f"{why}{ROUGHLY if log.roughly else ''}") if pieces else None


# Recognising


def _matches(pattern: re.Pattern[str], lines: Sequence[str]) -> int:
    return sum(1 for line in lines if pattern.match(line))


def _sample(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= 3 * SAMPLE:
        return lines
    middle = (len(lines) - SAMPLE) // 2
    return (*lines[:SAMPLE], *lines[middle : middle + SAMPLE], *lines[-SAMPLE:])


def source_share(lines: Sequence[str]) -> float:
    """How many of a sample's lines look like program code."""
    sample = [line[:LONGEST] for line in _sample(lines) if line and not line.isspace()]
    return _matches(_CODE, sample) / max(len(sample), 1)


def _is_document(sample: Sequence[str]) -> bool:
    """Whether these are lines of a file that was read, of prose with headings and fences, or of one JSON value."""
    json = sample[0][:1] in ("{", "[") and len(sample[0]) < 3
    return json or _matches(_NUMBERED, sample) * 2 >= len(sample) or _matches(_PROSE, sample) * 25 >= len(sample)


# Choosing


class Ranking:
    """Failures or warnings in the order of their worth: one of each kind first."""

    def __init__(self, blocks: Sequence[Block], uncounted: Mapping[str, int]) -> None:
        self.blocks = blocks  # as they came
        self.heads = [block.head for block in blocks]
        self.counts = Counter(block.kind for block in blocks)
        texts: set[str] = set()
        kinds: set[str] = set()
        self.first: list[Block] = []  # of each kind; verdicts before messages
        self.more: list[Block] = []  # that differ from those in a number or a name
        self.again: list[Block] = []  # word for word
        for block in blocks:
            (self.again if block.exact in texts else self.more if block.kind in kinds else self.first).append(block)
            texts.add(block.exact)
            kinds.add(block.kind)
        for kind in kinds & uncounted.keys():
            self.counts[kind] += uncounted[kind]
        self.first.sort(key=lambda block: not block.verdict)


def _pieces(log: LogReading, errors: Ranking, warnings: Ranking, room: int) -> tuple[Piece, ...]:
    """The log in `room` estimated tokens: a share for each thing that matters, in order, then again without shares."""
    selection = Selection(log.lines, room)
    selection.spend(0.15)
    selection.take_any(_speaking(log, range(len(log.lines) - 1, -1, -1), 3))
    selection.take_any(reversed(log.summaries[-12:]))
    selection.take_any(_speaking(log, range(len(log.lines)), 2))
    if len(errors.first) > KINDS:
        selection.spend(0.15)
        take_traces(log, selection, take_failures(log, selection, errors.blocks[-1:]), 0.15)
    selection.spend(0.35)
    first = take_failures(log, selection, errors.first)
    selection.spend(0.35)
    take_traces(log, selection, first, 0.25)
    selection.spend(0.15)
    selection.take_any(log.failed_names)
    selection.spend(0.1)
    take_failures(log, selection, warnings.first)
    selection.spend(0.1)
    selection.take_any(reversed(log.summaries))
    for blocks in (errors.first, errors.more):
        selection.spend(1)
        take_traces(log, selection, take_failures(log, selection, blocks), 1)
    selection.take_any(log.failed_names)
    for blocks in (warnings.first, warnings.more, errors.again):
        selection.spend(1)
        take_traces(log, selection, take_failures(log, selection, blocks), 1)
    if not selection.used:
        return ()
    _fill(log, selection, first)
    return selection.pieces(notes(log, selection.runs(), (errors, warnings)))


def take_failures(log: LogReading, selection: Selection, blocks: Sequence[Block]) -> list[Block]:
    """The line that names each failure, with the file over it where it stands indented under one; the failures so shown."""
    chosen: list[Block] = []
    for block in blocks:
        if selection.full:
            break
        if selection.take(block.head):
            selection.take(block.start)
            _take_leader(log, selection, block)
            chosen.append(block)
        elif selection.quote(block.head, log.error_at.get(block.head, 0), selection.room // PARTS):
            chosen.append(block)
    return chosen


def _take_leader(log: LogReading, selection: Selection, block: Block) -> None:
    """The line that an indented message stands under: linters name the file once, over all its messages."""
    indent = indented(bare(log.lines[block.start]))
    for at in range(block.start - 1, max(-1, block.start - LEADER_WINDOW), -1) if indent else ():
        text = bare(log.lines[at])
        if text and indented(text) < indent:
            selection.take(at)
            return


def take_traces(log: LogReading, selection: Selection, blocks: Sequence[Block], share: float) -> None:
    """Each failure's trace: what names cause and place first, then what is nearest to it. One trace takes at most `share` of the room."""
    left = selection.left
    for block in blocks:
        if left < 2:
            return
        before = selection.used
        selection.allow(min(left, int(selection.room * share)))
        if block.stop - block.start > SHORT or not selection.take_all(range(block.start, block.stop)):
            window: Sequence[int] = range(block.start, block.stop)
            if len(window) > TRACE_WINDOW:
                window = (*window[: TRACE_WINDOW // 2], *window[-TRACE_WINDOW // 2 :])
            decisive = [at for at in window if _DECISIVE.match(bare(log.lines[at]))]
            if selection.take_all(decisive):
                selection.take_all(_outwards(window, sorted({block.head, *decisive})))
        left -= selection.used - before


def _outwards(window: Sequence[int], near: Sequence[int]) -> list[int]:
    """Ascending lines by their distance to one of `near`."""
    distances: list[tuple[int, int]] = []
    at = 0
    for line in window:
        while at + 1 < len(near) and abs(near[at + 1] - line) <= abs(near[at] - line):
            at += 1
        distances.append((abs(near[at] - line), line))
    return [line for _, line in sorted(distances)]


def _speaking(log: LogReading, order: Sequence[int], lines: int) -> Iterator[int]:
    """The first few lines in that order that say something; passing tests do not."""
    speaking = [at for at in order[:20] if log.classes[at] not in (PASSED, PROGRESS) and log.lines[at].strip()]
    yield from speaking[:lines]


def _fill(log: LogReading, selection: Selection, blocks: Sequence[Block]) -> None:
    """What is left of the room: lines beside the first failures, then the end, then the beginning; never passing tests."""
    selection.spend(0.3)
    for block in blocks:
        if selection.full:
            break
        before = range(block.start - 1, max(-1, block.start - 4), -1)
        after = range(block.stop, min(len(log.lines), block.stop + 2))
        selection.take_all(at for at in chain(before, after) if log.plain[at])
    selection.spend(1)
    selection.allow(int(selection.left * 0.65))
    selection.take_all(compress(range(len(log.lines) - 1, -1, -1), reversed(log.plain)))
    selection.spend(1)
    selection.take_all(compress(range(len(log.lines)), log.plain))


def notes(log: LogReading, runs: Sequence[tuple[int, int]], kinds: Sequence[Ranking]) -> Iterator[tuple[int, Note]]:
    """Where lines are left out, how many of each class; and after a shown failure or warning, how often it comes again unseen."""
    for ranking in kinds:
        for place, more in _unseen(ranking, runs):
            yield place, Note(f"{more:,} more like the one above left out")
    for start, stop in gaps(runs, len(log.lines)):
        counts = [(log.classes.count(kind, start, stop), one, many) for kind, one, many in LEFT_OUT]
        parts = [plural(n, one, many) for n, one, many in counts if n]
        rest = stop - start - sum(n for n, _, _ in counts)
        if parts:  # of plain lines the clip's own words say enough
            yield start, Note(", ".join([*parts, plural(rest, "other line")] if rest else parts), left_out=True)


def _unseen(ranking: Ranking, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The line after the first shown one of each kind, and how many of its kind are not shown."""
    places: dict[str, int] = {}
    seen = Counter[str]()
    for start, stop in runs:
        for block in ranking.blocks[bisect_left(ranking.heads, start) : bisect_left(ranking.heads, stop)]:
            places.setdefault(block.kind, max(block.head + 1, min(block.stop, stop)))
            seen[block.kind] += 1
    for kind, place in places.items():
        if ranking.counts[kind] > seen[kind]:
            yield place, ranking.counts[kind] - seen[kind]


def distinct_errors(lines: Sequence[str], places: Sequence[int]) -> list[int]:
    """Of the lines at these places one of each kind that looks like an error."""
    if not places:
        return []
    reading = LogReading([lines[at] for at in places])
    return sorted(places[block.head] for block in Ranking(reading.blocks, reading.uncounted).first)
