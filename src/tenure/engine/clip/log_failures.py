"""The failures of a log, each with its trace.

Where a failure begins its form says; where it ends, the layout of its language's traces: Python, JavaScript, Java, Go, Rust, compilers.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.clip.log_lines import (
    ERROR,
    FAILED_NAME,
    LONGEST,
    OTHER,
    SUMMARY,
    TRACE,
    UNSURE,
    WARNING,
    ZEROS,
    bare,
    class_of_form,
    classified,
    errors_in_long_lines,
    forms_of,
    level_of,
    plain_start,
    roughly,
    stamp,
    telling,
)

AT_ONCE: Final = 64  # forms; fewer are all looked at closely
LOOKED: Final = 2_400  # telling forms that are looked at closely; a clip shows some hundred lines
MANY: Final = 500  # failures of one form that are told apart; more are counted
KNOWN: Final = 20_000  # forms that are remembered
LEADER_WINDOW: Final = 60  # lines before a Go test's verdict that its output is searched in

# What a line is to the one above it: a message with a time and a level, one that begins no deeper, part of it.
ALONE, APART, JOINED = range(3)

# What belongs to the failure above it though it is not indented below it.
_CONTINUES: Final = re.compile(
    r"\s*(?:at [\w$<.*/(\[]|File \"|\.\.\. \d+ more|Caused by:|Suppressed:|\d+ *\||\||[-=]+> |= (?:note|help)|\^+|~+\^|E {2,}|>  "
    r"|note: |help: |goroutine \d|created by |During handling of|The above exception|stack backtrace|[\u276f\u203a] ?\S|\[signal |left: |right: "
    r"|[-+] (?:Expected|Received)|Expected|Received|assertion )"
)
_TRACE_OF_PYTHON: Final = "Traceback (most recent call"
_CHAINED: Final = re.compile(r"\s*(?:During handling of|The above exception)")
_HEADER: Final = re.compile(r"_{3,} .{1,300} _{3,}$")
_RULE: Final = re.compile(r"={3,}|_{3,} .{1,300} _{3,}$")
_GO_OUTPUT: Final = re.compile(r"\s*(?:=== |--- |PASS|FAIL|ok\s)")
_PLACE: Final = re.compile(r"^\S{1,300}[:(]\d{1,9}(?:[:,]\d{1,9})?\)?:?\s*")
_VERDICT: Final = re.compile(
    r"--- FAIL|● |not ok\b|E {2}|error\[|(?:.{1,300}[:)-] )?(?:fatal )?error(?: TS\d+)?: |[✗✘✖×] |panic: |assert|\d+:\d+\s+error|.{0,100}panicked"
    r"|.{0,80}\b(?:AssertionError|SyntaxError|TypeError|NameError|ImportError|ModuleNotFoundError|ReferenceError|AttributeError)\b"
)
_BLANK: Final = ("", " ", "\t")
_CLOCK: Final = re.compile(r"\d:\d\d:\d\d")
_VARYING: Final = re.compile(r"'[^']{0,200}'|\u2018[^\u2019]{0,200}\u2019|\"[^\"]{0,200}\"|0x[0-9a-fA-F]+|\b[0-9a-f]{8,64}\b|\d+")


class Block(Struct, frozen=True, gc=False):
    """A failure or warning and what belongs to it: lines `start` to `stop`, the one that names it, and what makes it the same as another."""

    start: int
    stop: int
    head: int
    verdict: bool  # of a test, an assertion or a compiler, rather than a logged message
    kind: str  # numbers, quoted words and times blanked out
    exact: str  # times blanked out; of a message with a time, which says the same with other numbers, its kind


class Reading(Struct, frozen=True, kw_only=True):
    """What every line of a log is, and its failures in order."""

    lines: Sequence[str]
    classes: bytearray
    blocks: tuple[Block, ...]
    warnings: tuple[Block, ...]
    summaries: tuple[int, ...]
    failed_names: tuple[int, ...]
    uncounted: Mapping[str, int]  # by kind: failures and warnings beyond `MANY` alike, of which there are no blocks
    roughly: bool  # whether some lines were classed by their words alone
    error_at: Mapping[int, int]  # by line: the character at which the error begins in a line that is long
    plain: bytes  # 1 for each line that a left-over room may show: no passing test, no failure


def read(lines: Sequence[str]) -> Reading:
    """Every line's class, and the failures and warnings with their traces. Linear.

    A log repeats itself: lines of one form are looked at once. In one that does not, `LOOKED` telling forms are looked at closely, and
    the lines of all others are of the class that their words suggest.
    """
    forms = forms_of(lines)
    close, rough = _classes(lines, forms)
    reader = _Reader(lines, forms)
    classes = reader.classes
    long = errors_in_long_lines(lines)
    sure: dict[bytes, int] = {}  # by form and which digits are zero
    for at in _telling(forms, close, rough, long):
        if at < reader.end:
            continue
        like = forms[at]
        found = close.get(like, OTHER)
        if found == UNSURE:
            exact = lines[at][:LONGEST].encode("utf-8", "surrogatepass").translate(ZEROS) if b"level" not in like else b""
            found = sure.get(exact) if exact else None
            if found is None:
                found = sure[exact] = classified(bare(lines[at]))
                sure.pop(b"", None)
                if len(sure) > KNOWN:
                    sure.clear()
        if found:
            reader.take(at, found)
        elif like in rough:
            classes[at] = rough[like]
        elif like.startswith(b"___"):
            reader.section(at)
        elif at in long:
            reader.take(at, ERROR)
    return reader.reading(roughly=bool(rough), long=long)


def _classes(lines: Sequence[str], forms: Sequence[bytes]) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """The class of each telling form: of those looked at closely, and of those told by their words alone."""
    firsts = dict(zip(reversed(forms), range(len(forms) - 1, -1, -1), strict=True))
    places = telling(lines, sorted(firsts.values())) if len(firsts) > AT_ONCE else sorted(firsts.values())
    rough: dict[bytes, int] = {}
    if len(places) > LOOKED:
        rough = {forms[at]: roughly(lines[at]) for at in places}
        places = list(_worth_a_look(places, forms, rough))
    close: dict[bytes, int] = {}
    for at in places:
        rough.pop(forms[at], None)
        if found := class_of_form(lines[at]):
            close[forms[at]] = found
    return close, rough


def _worth_a_look(places: Sequence[int], forms: Sequence[bytes], rough: Mapping[bytes, int]) -> Iterator[int]:
    """The last of too many telling lines, the first that speak of failure, and the first others."""
    share = LOOKED // 4
    left = {True: 2 * share, False: share}
    for at in places[:-share]:
        bad = rough[forms[at]] == ERROR
        if left[bad]:
            left[bad] -= 1
            yield at
    yield from places[-share:]


def _telling(
    forms: Sequence[bytes], close: Mapping[bytes, int], rough: Mapping[bytes, int], long: Mapping[int, int]
) -> Iterator[int]:
    """Lines of forms that tell something, ruled headings, and long lines with an error far inside."""
    found = (at for at, like in enumerate(forms) if like in close or like in rough or like.startswith(b"___"))
    return merge(found, (at for at in long if forms[at] not in close and forms[at] not in rough)) if long else found


class _Reader:
    """What was found so far, up to line `end`."""

    def __init__(self, lines: Sequence[str], forms: Sequence[bytes]) -> None:
        self.lines = lines
        self._forms = forms
        self.end = 0
        self.classes = bytearray(len(lines))
        self.blocks: list[Block] = []
        self.warnings: list[Block] = []
        self.summaries: list[int] = []
        self.failed_names: list[int] = []
        self._samenesses: dict[bytes, _Sameness] = {}  # by form: a log repeats itself
        self._own: dict[bytes, int] = {}  # by form: what a line is to the one above it
        self._last = len(lines) - LOOKED // 4  # from here on all is looked at closely
        self._roughly = False
        self._times: Counter[bytes] = Counter()  # how often each form was a failure or warning
        self._uncounted: Counter[str] = Counter()  # by kind: those beyond `MANY` of one form

    def take(self, at: int, kind: int) -> None:
        """Line `at` is of a class of its own."""
        if kind in (ERROR, WARNING):
            if self.lines[at].startswith("___") and self.section(at):
                return
            if len(self.blocks) + len(self.warnings) > LOOKED and at < self._last:
                self.classes[at] = TRACE if _TRACE_OF_PYTHON in self.lines[at] else kind  # its exception is counted
                self._roughly = True
            elif self._stands_alone(at):
                like = self._forms[at]
                self._times[like] += 1
                if self._times[like] > MANY and (same := self._samenesses.get(like)) is not None and at < self._last:
                    self.classes[at] = kind
                    self._uncounted[same.kind] += 1
                else:
                    self._add(kind, at, at + 1, at)
            else:
                start, stop, head = _extent(self.lines, at)
                self._add(kind, max(start, self.end), stop, head)
            return
        self.classes[at] = kind
        if kind == SUMMARY:
            self.summaries.append(at)
        elif kind == FAILED_NAME:
            self.failed_names.append(at)
            if self.blocks and at - self.blocks[-1].stop < 3:  # some runners name the test under its failure
                self.blocks[-1] = replace(self.blocks[-1], verdict=True)

    def section(self, at: int) -> bool:
        """A pytest failure under its ruled heading, named by its first `E` line; false when it holds none: then it is no failure."""
        if not _HEADER.match(self.lines[at][:LONGEST]):
            return False
        head = 0
        stop = at + 1
        while stop < len(self.lines) and not _RULE.match(self.lines[stop][:LONGEST]):
            if not head and self.lines[stop].startswith("E  "):
                head = stop
            stop += 1
        if head:
            self._add(ERROR, at, stop, head)
        return bool(head)

    def _stands_alone(self, at: int) -> bool:
        """Whether the next line begins a message of its own, which is seen faster than where a trace ends."""
        line = self.lines[at]
        if at + 1 >= len(self.lines) or "--- FAIL: " in line or "panic: " in line or _TRACE_OF_PYTHON in line:
            return False
        if self.lines[at + 1][:1] in _BLANK:
            return False
        like = self._forms[at + 1]
        own = self._own.get(like)
        if own is None:
            start = plain_start(self.lines[at + 1])
            message = stamp(start)
            said = start[message:]
            own = (
                ALONE
                if message and level_of(said, said.lower())
                else JOINED
                if indented(said) or _CONTINUES.match(said)
                else APART
            )
            if len(self._own) < KNOWN:
                self._own[like] = own
        return own == ALONE or (own == APART and not line[:LONGEST].rstrip().endswith(":"))

    def _add(self, kind: int, start: int, stop: int, head: int) -> None:
        self.classes[start:stop] = bytes((TRACE,)) * (stop - start)
        self.classes[head] = kind
        line = self.lines[head]
        like = self._forms[head]
        same = self._samenesses.get(like)
        if same is None:
            said = bare(line).strip()
            promised = bare(self.lines[head + 1]).strip() if said.endswith(":") and head + 1 < len(self.lines) else ""
            same = _sameness(said, promised, bool(_CLOCK.search(line, 0, 120)))
            if not promised and len(self._samenesses) < KNOWN:
                self._samenesses[like] = same
        exact = same.kind if same.timed else f"{bare(line).strip()} {same.promised}"
        block = Block(start, stop, head, same.verdict, same.kind, exact)
        (self.blocks if kind == ERROR else self.warnings).append(block)
        self.end = stop

    def reading(self, *, roughly: bool, long: Mapping[int, int]) -> Reading:
        """All of it."""
        return Reading(
            error_at=long,
            uncounted=self._uncounted,
            roughly=roughly or self._roughly,
            lines=self.lines,
            classes=self.classes,
            blocks=tuple(self.blocks),
            warnings=tuple(self.warnings),
            summaries=tuple(self.summaries),
            failed_names=tuple(self.failed_names),
            plain=bytes(self.classes.translate(_PLAIN)),
        )


_PLAIN: Final = bytes(int(kind in (OTHER, SUMMARY, FAILED_NAME)) for kind in range(256))


class _Sameness(Struct, frozen=True, gc=False):
    """What makes a failure the same as another."""

    kind: str
    verdict: bool
    timed: bool
    promised: str  # the next line, where the first ends in a colon and announces it


def _sameness(said: str, promised: str, timed: bool) -> _Sameness:
    whole = f"{said} {promised}" if promised else said
    return _Sameness(_VARYING.sub("#", _PLACE.sub("", whole)), bool(_VERDICT.match(said)), timed, promised)


def indented(line: str) -> int:
    """How deep a line begins."""
    return len(line) - len(line.lstrip()) if line[:1] in _BLANK else 0


# How far a failure goes


def _extent(lines: Sequence[str], at: int) -> tuple[int, int, int]:
    """Where the failure that line `at` begins starts and stops, and which of its lines names it."""
    said = bare(lines[at])
    if _TRACE_OF_PYTHON in said:
        return _python_trace(lines, at)
    if said.startswith("panic: "):
        return at, _go_panic(lines, at), at
    start = _go_output(lines, at) if "--- FAIL: " in said else at
    return start, _continued(lines, at + 1, indented(said), said.endswith(":") and " " in said), at


def _continued(lines: Sequence[str], at: int, indent: int, promised: bool) -> int:
    """The end of the lines from `at` on that are indented deeper or continue a trace, single blank lines between them included.

    `promised`: the line before ended in a colon, so that the next one is meant. A line with a time and a level is a message of its own.
    """
    end = at
    blank = False
    while at < len(lines):
        start = plain_start(lines[at])
        message = stamp(start)
        said = start[message:].rstrip()
        if not said:
            if blank:
                break
            blank = True
        elif (promised or indented(said) > indent or _CONTINUES.match(said)) and not (message and level_of(said, said.lower())):
            promised = blank = False
            end = at + 1
        else:
            break
        at += 1
    return end


def _python_trace(lines: Sequence[str], at: int) -> tuple[int, int, int]:
    """A traceback to its exception, with those chained to it; the last exception names it."""
    start, head = at, at
    while True:
        margin = _margin(lines, at)
        at += 1
        while at < len(lines) and bare(lines[at])[margin : margin + 1] in ("", " ", "\t", "|"):
            at += 1
        if at >= len(lines):
            return start, at, head
        head = at
        at = _continued(lines, at + 1, margin, False)
        ahead = at
        while ahead < len(lines) and ahead - at < 5 and (not bare(lines[ahead]) or _CHAINED.match(bare(lines[ahead]))):
            ahead += 1
        if ahead < len(lines) and ahead > at and _TRACE_OF_PYTHON in bare(lines[ahead]):
            at = ahead
            continue
        return start, at, head


def _margin(lines: Sequence[str], at: int) -> int:
    """How many characters stand before each line of the traceback that begins at line `at`: it may be quoted or indented."""
    said = bare(lines[at])
    before = said[: max(0, said.find("Traceback"))]
    return len(before) if at + 1 < len(lines) and bare(lines[at + 1]).startswith(before) else 0


def _go_panic(lines: Sequence[str], at: int) -> int:
    """The end of a Go panic: its message and every goroutine."""
    blank = 0
    at += 1
    while at < len(lines):
        said = bare(lines[at])
        blank = blank + 1 if not said else 0
        if blank > 1 or said.startswith(("exit status", "FAIL")):
            break
        if said and not lines[at - 1].strip() and not _CONTINUES.match(said):
            break
        at += 1
    return at


def _go_output(lines: Sequence[str], at: int) -> int:
    """Where the output of the Go test that failed at line `at` begins: `go test -v` prints it before the verdict."""
    start = at
    while start and at - start < LEADER_WINDOW and not _GO_OUTPUT.match(lines[start - 1][:LONGEST]):
        start -= 1
    return start if start and lines[start - 1].lstrip().startswith("===") else at
