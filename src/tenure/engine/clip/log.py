"""Logs of builds, tests and services, clipped to what went wrong.

What a reader of a log wants first: whether it failed, the first failure of each kind with its trace and place, how it ended. Failures are
read by form, never by a word alone: a passing test called `test_error`, `0 errors` and `"error": null` are none.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from tenure.engine.clip import diff
from tenure.engine.clip.filling import fitted, plural
from tenure.engine.clip.log_failures import Block, Reading, indented, read
from tenure.engine.clip.log_lines import ERROR, FAILED_NAME, LONGEST, PASSED, PROGRESS, TRACE, WARNING, bare, plain_start
from tenure.engine.clip.selection import Selection, gaps, woven
from tenure.engine.clip.shape import Note, Piece, Shaped
from tenure.engine.record.entry import Count

NAME: Final = "log"
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


class Log:
    """A log, as a shape."""

    @property
    def name(self) -> str:
        """As markers print it."""
        return NAME

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether this is a log, judged by at most 1,200 of its lines; never for a file that was read, prose, a diff or one JSON value."""
        whole = [plain_start(line) for line in _sample(lines) if line and not line.isspace()]
        sample = [bare(line) for line in whole]
        if len(sample) < 5 or _is_document(whole) or diff.SHAPE.fits(lines):
            return False
        runner = sum(1 for line in sample if _RUNNER.match(line))
        structured = sum(1 for line in whole if _STRUCTURED.match(line))
        if structured * 3 >= len(sample) or runner * 3 >= len(sample):
            return True
        code = sum(1 for line in sample if _CODE.match(line))
        ends = sum(1 for line in (*sample[:5], *sample[-25:]) if _RUNNER.match(line))
        if (ends > (code * 5 >= len(sample)) and code * 2 < len(sample)) or (_FAILED_COMMAND.match(sample[0]) and runner > 1):
            return True
        faults = sum(1 for line in sample if _FAULT.match(line))
        return (runner + structured + faults) * 20 >= len(sample) and code * 5 < len(sample)

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """What went wrong, in `room` tokens; None when nothing telling was found, or not one telling line fits."""
        log = read(lines)
        if not any(log.classes):
            return None
        pieces = fitted(
            lines, room, count, partial(_chosen, log, ranked(log.blocks, log.uncounted), ranked(log.warnings, log.uncounted))
        )
        why = WHY if log.blocks else WHY_CALM
        return Shaped(pieces=pieces, why=f"{why}{ROUGHLY if log.roughly else ''}") if pieces else None


SHAPE: Final = Log()


# What is shown


class Ranking(Struct, frozen=True, gc=False):
    """Failures or warnings in the order of their worth."""

    first: tuple[Block, ...]  # of each kind; verdicts before messages
    more: tuple[Block, ...]  # that differ from those in a number or a name
    again: tuple[Block, ...]  # word for word
    blocks: tuple[Block, ...]  # all of them, as they came
    heads: tuple[int, ...]  # their lines
    counts: dict[str, int]  # by kind


def ranked(blocks: tuple[Block, ...], uncounted: Mapping[str, int]) -> Ranking:
    """Failures or warnings, one of each kind first."""
    counts: dict[str, int] = {}
    texts: set[str] = set()
    first: list[Block] = []
    more: list[Block] = []
    again: list[Block] = []
    for block in blocks:
        (again if block.exact in texts else more if block.kind in counts else first).append(block)
        counts[block.kind] = counts.get(block.kind, 0) + 1
        texts.add(block.exact)
    for kind in counts.keys() & uncounted.keys():
        counts[kind] += uncounted[kind]
    first.sort(key=lambda block: not block.verdict)
    heads = tuple(block.head for block in blocks)
    return Ranking(tuple(first), tuple(more), tuple(again), blocks, heads, counts)


def _chosen(log: Reading, errors: Ranking, warnings: Ranking, room: int) -> tuple[Piece, ...]:
    """The log in `room` estimated tokens: a share for each thing that matters, in order, then again without shares."""
    selection = Selection(log.lines, room)
    selection.spend(0.15)
    selection.take_any(_telling(log, range(len(log.lines) - 1, -1, -1), 3))
    selection.take_any(reversed(log.summaries[-12:]))
    selection.take_any(_telling(log, range(len(log.lines)), 2))
    if len(errors.first) > KINDS:
        selection.spend(0.15)
        failure_traces(log, selection, failure_lines(log, selection, errors.blocks[-1:]), 0.15)
    selection.spend(0.35)
    first = failure_lines(log, selection, errors.first)
    selection.spend(0.35)
    failure_traces(log, selection, first, 0.25)
    selection.spend(0.15)
    selection.take_any(log.failed_names)
    selection.spend(0.1)
    failure_lines(log, selection, warnings.first)
    selection.spend(0.1)
    selection.take_any(reversed(log.summaries))
    for blocks in (errors.first, errors.more):
        selection.spend(1)
        failure_traces(log, selection, failure_lines(log, selection, blocks), 1)
    selection.take_any(log.failed_names)
    for blocks in (warnings.first, warnings.more, errors.again):
        selection.spend(1)
        failure_traces(log, selection, failure_lines(log, selection, blocks), 1)
    if not selection.used:
        return ()
    _fill(log, selection, first)
    runs = selection.runs()
    return woven(runs, (*notes(log, runs, (errors, warnings)), *selection.quotations()))


def failure_lines(log: Reading, selection: Selection, blocks: Sequence[Block]) -> list[Block]:
    """The line that names each failure, with the file over it where it stands indented under one; the failures so shown."""
    found: list[Block] = []
    for block in blocks:
        if selection.full:
            break
        if selection.take(block.head):
            selection.take(block.start)
            _lead(log, selection, block)
            found.append(block)
        elif selection.quote(block.head, log.error_at.get(block.head, 0), selection.room // PARTS):
            found.append(block)
    return found


def _lead(log: Reading, selection: Selection, block: Block) -> None:
    """The line that an indented message stands under: linters name the file once, over all its messages."""
    indent = indented(bare(log.lines[block.start]))
    if not indent:
        return
    for at in range(block.start - 1, max(-1, block.start - LEADER_WINDOW), -1):
        said = bare(log.lines[at])
        if said and indented(said) < indent:
            selection.take(at)
            return


def failure_traces(log: Reading, selection: Selection, blocks: Sequence[Block], share: float) -> None:
    """Each failure's trace: what names cause and place first, then what is nearest to it. One trace takes at most `share` of the room."""
    left = selection.left
    for block in blocks:
        if left < 2:
            return
        before = selection.used
        selection.allow(min(left, int(selection.room * share)))
        if block.stop - block.start > SHORT or not selection.take_all(range(block.start, block.stop)):
            decisive = [at for at in _window(block) if _DECISIVE.match(bare(log.lines[at]))]
            if selection.take_all(decisive):
                selection.take_all(_outwards(block, decisive))
        left -= selection.used - before


def _window(block: Block) -> Sequence[int]:
    half = TRACE_WINDOW // 2
    if block.stop - block.start <= TRACE_WINDOW:
        return range(block.start, block.stop)
    return (*range(block.start, block.start + half), *range(block.stop - half, block.stop))


def _outwards(block: Block, decisive: Sequence[int]) -> list[int]:
    """The block's lines by their distance to a decisive one or to the head."""
    near = sorted({block.head, *decisive})
    found: list[tuple[int, int]] = []
    at = 0
    for line in _window(block):
        while at + 1 < len(near) and abs(near[at + 1] - line) <= abs(near[at] - line):
            at += 1
        found.append((abs(near[at] - line), line))
    return [line for _, line in sorted(found)]


def _telling(log: Reading, order: Sequence[int], lines: int) -> Iterator[int]:
    """The first few lines in that order that say something; passing tests do not."""
    for at in order[:20]:
        if lines and log.classes[at] not in (PASSED, PROGRESS) and log.lines[at].strip():
            lines -= 1
            yield at


def _fill(log: Reading, selection: Selection, blocks: Sequence[Block]) -> None:
    """What is left of the room: lines beside the first failures, then the end, then the beginning; never passing tests."""
    selection.spend(0.3)
    for block in blocks:
        if selection.full:
            break
        before = range(block.start - 1, max(-1, block.start - 4), -1)
        after = range(block.stop, min(len(log.lines), block.stop + 2))
        selection.take_all(at for at in (*before, *after) if log.plain[at])
    selection.spend(1)
    selection.allow(int(selection.left * 0.65))
    selection.take_all(_backwards(log.plain))
    selection.spend(1)
    selection.take_all(_forwards(log.plain))


def _backwards(plain: bytes) -> Iterator[int]:
    at = plain.rfind(1)
    while at >= 0:
        yield at
        at = plain.rfind(1, 0, at)


def _forwards(plain: bytes) -> Iterator[int]:
    at = plain.find(1)
    while at >= 0:
        yield at
        at = plain.find(1, at + 1)


def notes(log: Reading, runs: Sequence[tuple[int, int]], kinds: Sequence[Ranking]) -> Iterator[tuple[int, Note]]:
    """Where lines are left out, how many of each class; and after a shown failure or warning, how often it comes again unseen."""
    for ranked in kinds:
        for place, more in _unseen(ranked, runs):
            yield place, Note(f"{more:,} more like the one above left out")
    for start, stop in gaps(runs, len(log.lines)):
        parts = _left_out(log.classes, start, stop)
        if parts:
            yield start, Note(", ".join(parts), left_out=True)


def _left_out(classes: bytearray, start: int, stop: int) -> list[str]:
    """The lines of a gap by class; nothing when all are plain, for then the clip's own words do."""
    parts: list[str] = []
    rest = stop - start
    for kind, one, many in LEFT_OUT:
        found = classes.count(kind, start, stop)
        if found:
            parts.append(plural(found, one, many))
            rest -= found
    return [*parts, plural(rest, "other line")] if parts and rest else parts


def _unseen(ranked: Ranking, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The line after the first shown one of each kind, and how many of its kind are not shown."""
    places: dict[str, int] = {}
    seen: dict[str, int] = {}
    for start, stop in runs:
        for at in range(bisect_left(ranked.heads, start), bisect_left(ranked.heads, stop)):
            block = ranked.blocks[at]
            places.setdefault(block.kind, max(block.head + 1, min(block.stop, stop)))
            seen[block.kind] = seen.get(block.kind, 0) + 1
    for kind, place in places.items():
        if ranked.counts[kind] > seen[kind]:
            yield place, ranked.counts[kind] - seen[kind]


def distinct_errors(lines: Sequence[str], places: Sequence[int]) -> list[int]:
    """Of the lines at these places one of each kind that looks like an error."""
    if not places:
        return []
    reading = read([lines[at] for at in places])
    return sorted(places[block.head] for block in ranked(reading.blocks, reading.uncounted).first)


# Whether it is a log


def _sample(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= 3 * SAMPLE:
        return lines
    middle = (len(lines) - SAMPLE) // 2
    return (*lines[:SAMPLE], *lines[middle : middle + SAMPLE], *lines[-SAMPLE:])


def source_share(lines: Sequence[str]) -> float:
    """How many of a sample's lines look like program code."""
    sample = [line for line in _sample(lines) if line and not line.isspace()]
    return sum(1 for line in sample if _CODE.match(line[:LONGEST])) / max(len(sample), 1)


def _is_document(sample: Sequence[str]) -> bool:
    """Whether these are lines of a file that was read, of prose with headings and fences, or of one JSON value."""
    numbered = sum(1 for line in sample if _NUMBERED.match(line))
    prose = sum(1 for line in sample if _PROSE.match(line))
    json = sample[0][:1] in ("{", "[") and len(sample[0]) < 3
    return numbered * 2 >= len(sample) or prose * 25 >= len(sample) or json
