"""The audit of a session, and of many: where its window went, and what each policy would have done to it.

A session is read once. It is played as it was recorded, then once for each policy; what its steps used is found once for all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import IO, Final

from msgspec import Struct, structs

import tenure
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies import UNBOUNDED, policy_named
from tenure.engine.record.entry import Draft
from tenure.engine.record.visible import json_of
from tenure.errors import InputError
from tenure.lab.audit.kept import AuditCache
from tenure.lab.audit.recorded import Recording
from tenure.lab.audit.report import VERSION, Audit, AuditLine, AuditOutput, PolicyRun, RunLine, UnreadSession
from tenure.lab.audit.runs import Playback
from tenure.lab.bill import Billing, accounted
from tenure.lab.events import BudgetLine, EntryLine, HeadTokens, ReplayLine, SkippedLine, SourceFile, spelled
from tenure.lab.harm.watch import Watch
from tenure.lab.loading import source
from tenure.lab.marks import MarkBook, marked
from tenure.lab.replay import Options, SessionSource, replay
from tenure.logs.reader import Event, Skipped

ENDLESS: Final = Budget(window=10**12)  # of the recorded agent's own window, whose limits were its own


class AuditRequest(Struct, frozen=True, kw_only=True):
    """What to audit for. `policies` are names, without "none", which is always there."""

    policies: tuple[str, ...]
    budget: Budget
    model: str = ""  # empty: as the log says
    head_tokens: int | None = None  # o200k; None: what the log's own reports reveal
    marks: str = ""  # hash of the marks that are read beside the sessions

    def options(self, policy: str, head: int | HeadTokens | None) -> Options:
        """How to replay one policy."""
        budget = ENDLESS if policy == UNBOUNDED else self.budget
        return Options(budget=budget, policy=policy_named(policy), model=self.model, head=head)


def audit(source: SessionSource, asked: AuditRequest, tokenizer: Tokenizer, sha256: str | None = None) -> Iterator[AuditOutput]:
    """The lines of a session's audit, the last of which is its report. Raises InputError when the session cannot be read."""
    held = Held(source)
    digest = source.sha256() if sha256 is None else sha256
    file = SourceFile(path=held.path, format=held.format, sha256=digest)
    recording: Recording | None = None
    runs: list[PolicyRun] = []
    for policy in (UNBOUNDED, *asked.policies):
        known = recording.head if recording is not None else asked.head_tokens
        lines = replay([held.source(digest)], asked.options(policy, known), tokenizer)
        header = next(lines)
        assert isinstance(header, ReplayLine)
        later: list[AuditOutput] = [RunLine(**structs.asdict(header))]
        if recording is None:
            yield _header(asked, header, file)
            recording = Recording(header)
        else:
            yield later.pop()
        # Entries come first, once for all runs, so that the little that the first run has besides waits. No uses are known in it: nobody needs
        # what the recorded agent took away itself.
        playback, billing = Playback(header), Billing()
        lines = accounted(chain((header,), lines), Watch(recording.places.uses), billing)
        next(lines)
        for line in lines:
            playback.take(line)
            if not runs:
                recording.take(line)
            if isinstance(line, EntryLine | SkippedLine) is not bool(runs):
                yield line
            elif not runs:
                later.append(line)
        yield from later
        runs.append(playback.run(billing.bill, recording.places))
    assert recording is not None
    yield Audit(session=recording.session, window=recording.window(runs[0].series), runs=tuple(runs))


class Held:
    """The events of a source. Raises InputError when it cannot be read, or holds no message."""

    def __init__(self, source: SessionSource) -> None:
        self._source = source
        self.format, events = source.events()
        self._events: list[Event] = list(events)
        self.path = spelled(source.path)
        if not any(isinstance(event, Draft) for event in self._events):
            lost = next((event for event in self._events if isinstance(event, Skipped)), None)
            why = "" if lost is None else f" (left out: line {lost.line}: {lost.reason})"
            raise InputError(self.path, f"a session without a message{why}", "at least one")

    def source(self, sha256: str) -> SessionSource:
        """For one replay. It takes its messages from memory, and what it then reads to see that nothing is lost from the file."""
        readings: Iterator[Callable[[], tuple[str, Iterator[Event]]]] = iter([lambda: (self.format, iter(self._events))])
        return structs.replace(
            self._source, path=self.path, events=lambda: next(readings, self._source.events)(), sha256=lambda: sha256
        )


def budget_line(budget: Budget) -> BudgetLine:
    """A budget as lines have it."""
    return BudgetLine(target=budget.target, ceiling=budget.ceiling, floor=budget.floor_of(budget.limit), window=budget.window)


def _header(asked: AuditRequest, header: ReplayLine, file: SourceFile) -> AuditLine:
    return AuditLine(
        source=file,
        policies=(UNBOUNDED, *asked.policies),
        budget=budget_line(asked.budget),
        model=asked.model,
        head_tokens=header.head_tokens,
        head=header.head,
    )


Note = Callable[[AuditOutput], None]


class Auditor:
    """Audits session after session in the same way: from what is kept where it can, and keeping what it makes.

    All lines go to `out` where there is one; `note` hears of each as it is made. Mutable only in what is kept.
    """

    def __init__(
        self,
        asked: AuditRequest,
        tokenizer: Tokenizer,
        *,
        kept: AuditCache | None = None,
        fresh: bool = False,
        out: IO[bytes] | None = None,
        marks: MarkBook | None = None,
    ) -> None:
        self._marks = marks
        self._asked, self._tokenizer = asked, tokenizer
        self._kept, self._fresh = kept, fresh
        self._out = out
        self.reused = 0

    def each(self, addresses: Iterable[str], note: Note) -> Iterator[Audit | UnreadSession]:
        """What became of each session, in the order of the addresses."""
        for address in addresses:
            try:
                yield self._one(self._opened(address), note)
            except InputError as error:
                allowed = f", expected {error.allowed}" if error.allowed else ""
                yield UnreadSession(path=spelled(address), why=f"{error.found}{allowed}")

    def _opened(self, address: str) -> SessionSource:
        """A session, with its marks where it has any."""
        one = source(address)
        marks = self._marks.of(one) if self._marks is not None else ()
        return marked(one, marks, self._tokenizer) if marks else one

    def _one(self, one: SessionSource, note: Note) -> Audit:
        next(one.events()[1], None)  # what is no session is refused before all its bytes are read for their digest
        digest = one.sha256()
        kept = self._kept if digest else None  # a store of our own has no bytes to know it by
        if kept is None:
            return self._made(one, digest, note, self._out)
        key = key_of(one.path, digest, self._asked)
        known = None if self._fresh else kept.report(key)
        if known is not None and (self._out is None or kept.has_lines(key)):
            self.reused += 1
            report = known
        elif self._out is None:
            report = self._made(one, digest, note, None)
        else:
            with kept.lines(key) as spool:
                report = self._made(one, digest, note, spool)
        if self._out is not None:
            kept.copy_lines(key, self._out)
        if report is not known and one.sha256() == digest:  # not of a session that went on meanwhile
            kept.keep(key, report)
        return report

    def _made(self, one: SessionSource, digest: str, note: Note, out: IO[bytes] | None) -> Audit:
        report: Audit | None = None
        for line in audit(one, self._asked, self._tokenizer, digest):
            if out is not None:
                out.write(json_of(line) + b"\n")
            note(line)
            if isinstance(line, Audit):
                report = line
        assert report is not None
        return report


KEPT: Final = 2  # of what is kept: a report of another one is made again, though its readers would not mind


def key_of(address: str, digest: str, asked: AuditRequest) -> str:
    """By what an audit is found again: the session's bytes and address, what was asked, and who audited."""
    return sha256(json_of((VERSION, KEPT, tenure.__version__, spelled(address), digest, asked))).hexdigest()[:40]
