"""The failures of a log, each with its trace.

Where a failure begins its form says; where it ends, the layout of its language's traces: Python, JavaScript, Java, Go, Rust, compilers.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.clip import log_lines
from tenure.engine.clip.log_lines import (
    ERROR,
    FAILED_NAME,
    LONGEST,
    OTHER,
    SUMMARY,
    TRACE,
    UNSURE,
    WARNING,
    bare,
    indented,
    level_of,
    stamp,
)

AT_ONCE: Final = 64  # forms; fewer are all looked at closely
LOOKED: Final = 2_400  # telling forms that are looked at closely; a clip shows some hundred lines
MANY: Final = 500  # failures of one form that are told apart; more are counted
KNOWN: Final = 20_000  # forms that are remembered
LEADER_WINDOW: Final = 60  # lines before a Go test's verdict that its output is searched in

# What a line is to the one above it: a message with a time and a level, one that begins no deeper, part of it.
ALONE, APART, JOINED = range(3)
_PLAIN: Final = bytes(int(kind in (OTHER, SUMMARY, FAILED_NAME)) for kind in range(256))

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


class Sameness(Struct, frozen=True, gc=False):
    """What makes a failure the same as another."""

    kind: str
    verdict: bool
    timed: bool
    promised: str  # the next line, where the first ends in a colon and announces it


class LogReading:
    """What every line of a log is, and its failures and warnings with their traces, in order. Linear.

    A log repeats itself: lines of one form are looked at once. In one that does not, `LOOKED` telling forms are looked at closely, and
    the lines of all others are of the class that their words suggest.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.classes = bytearray(len(lines))
        self.blocks: list[Block] = []
        self.warnings: list[Block] = []
        self.summaries: list[int] = []
        self.failed_names: list[int] = []
        self.uncounted: Counter[str] = (
            Counter()
        )  # by kind: failures and warnings beyond `MANY` alike, of which there are no blocks
        self.error_at = log_lines.errors_in_long_lines(
            lines
        )  # by line: the character at which the error begins in a line that is long
        self._forms = log_lines.forms_of(lines)
        self._close: dict[bytes, int] = {}  # the class of telling forms looked at closely
        self._rough: dict[bytes, int] = {}  # the class of other telling forms, by their words
        self._exact: dict[bytes, int] = {}  # the class of lines whose numbers decide, by form and which digits are zero
        self._samenesses: dict[bytes, Sameness] = {}  # by form
        self._relations: dict[bytes, int] = {}  # by form: what a line is to the one above it
        self._times: Counter[bytes] = Counter()  # how often each form was a failure or warning
        self._end = 0  # up to which line all is read
        self._last = len(lines) - LOOKED // 4  # from here on all is looked at closely
        self._classify_forms()
        self.roughly = bool(self._rough)  # whether some lines were classed by their words alone
        self._read()
        self.plain = bytes(
            self.classes.translate(_PLAIN)
        )  # 1 for each line that a left-over room may show: no passing test, no failure

    def _classify_forms(self) -> None:
        forms = self._forms
        firsts = sorted(dict(zip(reversed(forms), range(len(forms) - 1, -1, -1), strict=True)).values())
        places = log_lines.telling(self.lines, firsts) if len(firsts) > AT_ONCE else firsts
        if len(places) > LOOKED:
            self._rough = {forms[at]: log_lines.roughly(self.lines[at]) for at in places}
            places = list(self._worth_a_look(places))
        for at in places:
            self._rough.pop(forms[at], None)
            if kind := log_lines.class_of_form(self.lines[at]):
                self._close[forms[at]] = kind

    def _worth_a_look(self, places: Sequence[int]) -> Iterator[int]:
        """The last of too many telling lines, the first that speak of failure, and the first others."""
        share = LOOKED // 4
        left = {True: 2 * share, False: share}
        for at in places[:-share]:
            bad = self._rough[self._forms[at]] == ERROR
            if left[bad]:
                left[bad] -= 1
                yield at
        yield from places[-share:]

    def _read(self) -> None:
        forms, close, rough, long = self._forms, self._close, self._rough, self.error_at
        telling = (at for at, form in enumerate(forms) if form in close or form in rough or form.startswith(b"___"))
        for at in merge(telling, (at for at in long if forms[at] not in close and forms[at] not in rough)) if long else telling:
            if at < self._end:
                continue
            form = forms[at]
            kind = close.get(form, OTHER)
            if kind == UNSURE:
                kind = self._sure(at, form)
            if kind:
                self._take(at, kind)
            elif form in rough:
                self.classes[at] = rough[form]
            elif form.startswith(b"___"):
                self._section(at)
            elif at in long:
                self._take(at, ERROR)

    def _sure(self, at: int, form: bytes) -> int:
        """The class of a line whose numbers decide."""
        line = self.lines[at]
        if b"level" in form:
            return log_lines.classified(bare(line))
        exact = line[:LONGEST].encode("utf-8", "surrogatepass").translate(log_lines.ZEROS)
        if exact not in self._exact:
            if len(self._exact) >= KNOWN:
                self._exact.clear()
            self._exact[exact] = log_lines.classified(bare(line))
        return self._exact[exact]

    def _take(self, at: int, kind: int) -> None:
        """Line `at` is of a class of its own."""
        if kind in (ERROR, WARNING):
            self._take_failure(at, kind)
            return
        self.classes[at] = kind
        if kind == SUMMARY:
            self.summaries.append(at)
        elif kind == FAILED_NAME:
            self.failed_names.append(at)
            if self.blocks and at - self.blocks[-1].stop < 3:  # some runners name the test under its failure
                self.blocks[-1] = replace(self.blocks[-1], verdict=True)

    def _take_failure(self, at: int, kind: int) -> None:
        if self.lines[at].startswith("___") and self._section(at):
            return
        if len(self.blocks) + len(self.warnings) > LOOKED and at < self._last:
            self.classes[at] = TRACE if _TRACE_OF_PYTHON in self.lines[at] else kind  # its exception is counted
            self.roughly = True
            return
        if not self._stands_alone(at):
            start, stop, head = _extent(self.lines, at)
            self._add(kind, max(start, self._end), stop, head)
            return
        form = self._forms[at]
        self._times[form] += 1
        if self._times[form] > MANY and form in self._samenesses and at < self._last:
            self.classes[at] = kind
            self.uncounted[self._samenesses[form].kind] += 1
        else:
            self._add(kind, at, at + 1, at)

    def _section(self, at: int) -> bool:
        """A pytest failure under its ruled heading, named by its first `E` line; false when it holds none: then it is no failure."""
        lines = self.lines
        if not _HEADER.match(lines[at][:LONGEST]):
            return False
        stop = next((stop for stop in range(at + 1, len(lines)) if _RULE.match(lines[stop][:LONGEST])), len(lines))
        head = next((line for line in range(at + 1, stop) if lines[line].startswith("E  ")), 0)
        if head:
            self._add(ERROR, at, stop, head)
        return bool(head)

    def _stands_alone(self, at: int) -> bool:
        """Whether the next line begins a message of its own, which is seen faster than where a trace ends."""
        line, following = self.lines[at], self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if "--- FAIL: " in line or "panic: " in line or _TRACE_OF_PYTHON in line or following[:1] in log_lines.BLANK:
            return False
        form = self._forms[at + 1]
        relation = self._relations.get(form)
        if relation is None:
            start = log_lines.plain_start(following)
            message = stamp(start)
            text = start[message:]
            joined = indented(text) or _CONTINUES.match(text)
            relation = ALONE if message and level_of(text, text.lower()) else JOINED if joined else APART
            if len(self._relations) < KNOWN:
                self._relations[form] = relation
        return relation == ALONE or (relation == APART and not line[:LONGEST].rstrip().endswith(":"))

    def _add(self, kind: int, start: int, stop: int, head: int) -> None:
        self.classes[start:stop] = bytes((TRACE,)) * (stop - start)
        self.classes[head] = kind
        form = self._forms[head]
        same = self._samenesses.get(form)
        if same is None:
            same = self._sameness(head)
            if not same.promised and len(self._samenesses) < KNOWN:
                self._samenesses[form] = same
        exact = same.kind if same.timed else f"{bare(self.lines[head]).strip()} {same.promised}"
        block = Block(start, stop, head, same.verdict, same.kind, exact)
        (self.blocks if kind == ERROR else self.warnings).append(block)
        self._end = stop

    def _sameness(self, head: int) -> Sameness:
        text = bare(self.lines[head]).strip()
        promised = bare(self.lines[head + 1]).strip() if text.endswith(":") and head + 1 < len(self.lines) else ""
        kind = _VARYING.sub("#", _PLACE.sub("", f"{text} {promised}" if promised else text))
        return Sameness(kind, bool(_VERDICT.match(text)), bool(_CLOCK.search(self.lines[head], 0, 120)), promised)


# How far a failure goes


def _extent(lines: Sequence[str], at: int) -> tuple[int, int, int]:
    """Where the failure that line `at` begins starts and stops, and which of its lines names it."""
    text = bare(lines[at])
    if _TRACE_OF_PYTHON in text:
        return _python_trace(lines, at)
    if text.startswith("panic: "):
        return at, _go_panic(lines, at), at
    start = _go_output(lines, at) if "--- FAIL: " in text else at
    return start, _continued(lines, at + 1, indented(text), text.endswith(":") and " " in text), at


def _continued(lines: Sequence[str], at: int, indent: int, promised: bool) -> int:
    """The end of the lines from `at` on that are indented deeper or continue a trace, single blank lines between them included.

    `promised`: the line before ended in a colon, so that the next one is meant. A line with a time and a level is a message of its own.
    """
    end = at
    blank = False
    while at < len(lines):
        start = log_lines.plain_start(lines[at])
        message = stamp(start)
        text = start[message:].rstrip()
        if not text:
            if blank:
                break
            blank = True
        elif (promised or indented(text) > indent or _CONTINUES.match(text)) and not (message and level_of(text, text.lower())):
            promised = blank = False
            end = at + 1
        else:
            break
        at += 1
    return end


def _python_trace(lines: Sequence[str], at: int) -> tuple[int, int, int]:
    """A traceback to its exception, with those chained to it; the last exception names it."""
    start = head = at
    while True:
        margin = _margin(lines, at)
        at += 1
        while at < len(lines) and bare(lines[at])[margin : margin + 1] in ("", " ", "\t", "|"):
            at += 1
        if at >= len(lines):
            return start, at, head
        head = at
        at = ahead = _continued(lines, at + 1, margin, False)
        while ahead < len(lines) and ahead - at < 5 and (not bare(lines[ahead]) or _CHAINED.match(bare(lines[ahead]))):
            ahead += 1
        if not (at < ahead < len(lines) and _TRACE_OF_PYTHON in bare(lines[ahead])):
            return start, at, head
        at = ahead


def _margin(lines: Sequence[str], at: int) -> int:
    """How many characters stand before each line of the traceback that begins at line `at`: it may be quoted or indented."""
    text = bare(lines[at])
    before = text[: max(0, text.find("Traceback"))]
    return len(before) if at + 1 < len(lines) and bare(lines[at + 1]).startswith(before) else 0


def _go_panic(lines: Sequence[str], at: int) -> int:
    """The end of a Go panic: its message and every goroutine."""
    blank = 0
    for line in range(at + 1, len(lines)):
        text = bare(lines[line])
        blank = blank + 1 if not text else 0
        if blank > 1 or text.startswith(("exit status", "FAIL")):
            return line
        if text and not lines[line - 1].strip() and not _CONTINUES.match(text):
            return line
    return len(lines)


def _go_output(lines: Sequence[str], at: int) -> int:
    """Where the output of the Go test that failed at line `at` begins: `go test -v` prints it before the verdict."""
    start = at
    while start and at - start < LEADER_WINDOW and not _GO_OUTPUT.match(lines[start - 1][:LONGEST]):
        start -= 1
    return start if start and lines[start - 1].lstrip().startswith("===") else at
