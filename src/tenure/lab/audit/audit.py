"""The audit of one session: where its window went, and what each policy would have done to it.

The session is read once. It is played as it was recorded, then once for each policy; what its steps used is found once for all of them.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, structs

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies import UNBOUNDED, policy_named
from tenure.lab.audit.harms import Judging, Places
from tenure.lab.audit.held import Held
from tenure.lab.audit.lines import AuditLine, AuditOutput, RunLine
from tenure.lab.audit.recorded import Recording
from tenure.lab.audit.report import Audit, Run
from tenure.lab.audit.runs import Watching
from tenure.lab.bill import Billing
from tenure.lab.events import (
    BudgetLine,
    EntryLine,
    HarmLine,
    Head,
    Line,
    RecallLine,
    ReplayLine,
    SkippedLine,
    SourceFile,
    SummaryLine,
)
from tenure.lab.replay import Options, Source, replay

ENDLESS: Final = Budget(window=10**12)  # of the recorded agent's own window, whose limits were its own


class Asked(Struct, frozen=True, kw_only=True):
    """What to audit for. `policies` are names, without "none", which is always there."""

    policies: tuple[str, ...]
    budget: Budget
    model: str = ""  # empty: as the log says
    head_tokens: int | None = None  # o200k; None: what the log's own reports reveal

    def options(self, policy: str, head: int | Head | None) -> Options:
        """How to replay one policy."""
        budget = ENDLESS if policy == UNBOUNDED else self.budget
        return Options(budget=budget, policy=policy_named(policy), model=self.model, head=head)


def audit(source: Source, asked: Asked, tokenizer: Tokenizer, sha256: str | None = None) -> Iterator[AuditOutput]:
    """The lines of a session's audit, the last of which is its report. Raises InputError when the session cannot be read."""
    held = Held(source)
    digest = source.sha256() if sha256 is None else sha256
    lines = replay([held.source(digest)], asked.options(UNBOUNDED, asked.head_tokens), tokenizer)
    header = next(lines)
    assert isinstance(header, ReplayLine)
    yield _header(held, asked, header, digest)
    recording, first = Recording(header), _Playing(header, None)
    rest: list[AuditOutput] = [RunLine(**structs.asdict(header))]  # entries come first, once for all runs; the rest is little
    for line in lines:
        recording.take(line)
        if isinstance(line, EntryLine | SkippedLine):
            yield line
        rest += first.take(line)
    yield from rest
    places = recording.places()
    runs = [first.run(places)]
    judging = Judging(places.uses)
    for policy in asked.policies:
        lines = replay([held.source(digest)], asked.options(policy, header.head), tokenizer)
        header = next(lines)
        assert isinstance(header, ReplayLine)
        yield RunLine(**structs.asdict(header))
        playing = _Playing(header, judging.again())
        for line in lines:
            yield from playing.take(line)
        runs.append(playing.run(places))
    yield Audit(session=recording.session, window=recording.window(runs[0].series), runs=tuple(runs))


class _Playing:
    """One run as its lines come: watched, judged and billed. Mutable. Nobody needs what the recorded agent took away itself."""

    def __init__(self, header: ReplayLine, judging: Judging | None) -> None:
        self._judging = judging
        self._billing, self._watching = Billing(), Watching(header)
        self._took(header)

    def take(self, line: Line) -> Iterator[AuditOutput]:
        """The line, with what the steps missed and the recalls that this takes, as `bill.accounted` has them; without entries."""
        self._took(line)
        if isinstance(line, SummaryLine):
            bill, needs = self._billing.bill, self._watching.needs.counts
            verdicts = {verdict: needs[verdict] for verdict in ("visible", "routed", "lost")}
            line = structs.replace(line, needs=verdicts, recalls=bill.recalls, recalls_usd=bill.recall.usd)
        if not isinstance(line, EntryLine | SkippedLine):
            yield line
        for harm in self._judging.take(line) if self._judging is not None else ():
            yield harm
            yield from self._took(harm)

    def run(self, places: Places) -> Run:
        """What came of it."""
        return self._watching.run(self._billing.bill, places)

    def _took(self, line: Line | HarmLine) -> list[RecallLine]:
        self._watching.take(line)
        return list(self._billing.take(line))


def budget_line(budget: Budget) -> BudgetLine:
    """A budget as lines have it."""
    return BudgetLine(target=budget.target, ceiling=budget.ceiling, floor=budget.floor_of(budget.limit), window=budget.window)


def _header(held: Held, asked: Asked, header: ReplayLine, digest: str) -> AuditLine:
    return AuditLine(
        source=SourceFile(path=held.path, format=held.format, sha256=digest),
        policies=(UNBOUNDED, *asked.policies),
        budget=budget_line(asked.budget),
        model=asked.model,
        head_tokens=header.head_tokens,
        head=header.head,
    )
