"""The window that a recorded agent had, its own compactions included, and what its provider reported of it.

The log tells what was said and where the agent rewrote its window; the provider's reports tell what each prompt weighed. From both the ratio between the
provider's tokens and ours is learned, how far off a prediction by it would have been, and how large the head is that the log leaves out (system prompt
and tools). What a report has more than the log holds is the head, and whatever else the log leaves out. The head stands in every prompt, so the smallest
stretch between two compactions counts: a session that was begun elsewhere reports its history too, until it is compacted.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import accumulate, groupby
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.ledger import add
from tenure.engine.meter.ratio import ASSUMED, SMALLEST, Ratio, is_credible
from tenure.engine.meter.tokens import FRAMING, Tokenizer
from tenure.engine.record.entry import Draft, Entry, ToolResult, Usage
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Drop, Edit, Remove, Replace
from tenure.engine.view.project import Projection
from tenure.lab.events import HeadTokens, fields_in
from tenure.lab.source import session_for
from tenure.logs.reader import Event, Rewritten

CLEARED: Final = "[Old tool result content cleared]"  # what Claude Code and OpenCode leave in place of a result
FIRST: Final = (
    5  # reports of a stretch that size the head: the first alone may be of a warm-up, or from before the tools were there
)
MOST: Final = 4_000_000  # provider tokens: no model takes more
RATIOS: Final = (0.25, 4.0)  # provider tokens per o200k token that can be: beyond, the reports are no sizes of prompts


class PromptReport(Struct, frozen=True, kw_only=True):
    """A reported prompt beside what the log holds of it."""

    prompt: int  # provider tokens
    counted: int  # o200k tokens
    stretch: int  # compactions and clearings before it
    grown: int = 0  # o200k tokens since the report before; 0 where nothing can be said of that


class ReportedUsage(Struct, frozen=True, kw_only=True):
    """What a provider reported over a session, and how well the learned ratio foretold it."""

    calls: int  # that reported a prompt
    uncached: int
    cache_write: int
    cache_read: int
    output: int
    largest_prompt: int
    ratio: float  # provider tokens per o200k token
    head: int  # provider tokens of system prompt and tools that the log leaves out
    errors: tuple[float, ...]  # per call but the first, |foretold - reported| / reported, ascending

    def error_at(self, share: float) -> float:
        """The error that `share` of the calls (0 to 1) stay within."""
        return self.errors[min(len(self.errors) - 1, int(share * len(self.errors)))] if self.errors else 0.0


class Recorded:
    """The recorded agent's window as it grows. Mutable; the index is the session's own."""

    def __init__(self, index: Index, count: Tokenizer) -> None:
        self.view = Projection(index)
        self.ratio = Ratio()
        self.reports: list[PromptReport] = []
        self._stretch = 0  # compactions and clearings so far
        self._cleared = count(CLEARED)
        self._base = 0  # entries before the present source
        self._results: dict[str, tuple[int, int]] = {}
        self._usages: list[Usage] = []
        self._errors: list[float] = []

    def begin_source(self, length: int) -> None:
        """The next entries come from another file, whose reader counts its messages from 0; `length` entries came before."""
        self._base = length
        self._results.clear()

    def append(self, entry: Entry) -> None:
        """An entry that was said."""
        self.view.grow(entry.n)
        for number, block in enumerate(entry.blocks):
            if isinstance(block, ToolResult):
                self._results[block.call_id] = (entry.n, number)

    def edits(self, view: Projection, event: Rewritten) -> tuple[Edit, ...]:
        """What a recorded compaction or clearing means for `view`: its own window, or one that something had left already."""
        stop = self._base + event.drop_before
        kept = {self._base + number for number in event.kept}
        found: list[Edit] = []
        if event.drop_before:
            gone = (row for row in view.rows() if self._base <= row.entry < stop and row.entry not in kept)
            found += [Drop(entry=row.entry, block=block) for row in gone for block in row.blocks]
            found += [Remove(key=insert.key) for insert in view.inserts if self._base <= insert.before_entry <= stop]
        for at in (self._results[call_id] for call_id in event.cleared if call_id in self._results):
            if view.shows(*at) and not (at[0] < stop and event.drop_before and at[0] not in kept):
                found.append(Replace(entry=at[0], block=at[1], text=CLEARED, tokens=self._cleared + FRAMING * (at[1] == 0)))
        return tuple(found)

    def rewrite(self, event: Rewritten) -> tuple[Edit, ...]:
        """Change its own window as the agent did.

        The next report says nothing of the ratio: a compaction takes along what the log never held, and brings files and reminders that the
        log does not hold either.
        """
        edits = self.edits(self.view, event)
        self.view.apply(edits)
        if edits:
            self.ratio = replace(self.ratio, reported=0)
            self._stretch += 1
        return edits

    def learn(self, usage: Usage | None) -> None:
        """What the provider reported for the call that saw the window as it now is."""
        if usage is None or not usage.prompt:
            return
        counted = self.view.tokens
        if self._usages:
            self._errors.append(abs(self.ratio.provider_tokens(counted) - usage.prompt) / usage.prompt)
        self._usages.append(usage)
        before = self.reports[-1] if self.reports and self.reports[-1].stretch == self._stretch else None
        grown = counted - before.counted if before is not None else 0
        self.reports.append(PromptReport(prompt=usage.prompt, counted=counted, stretch=self._stretch, grown=grown))
        self.ratio = self.ratio.learn(usage.prompt, counted)

    def reported(self) -> ReportedUsage | None:
        """All that was reported so far; None for nothing."""
        if not self._usages:
            return None
        return ReportedUsage(
            calls=len(self._usages),
            **fields_in(reduce(add, self._usages), ReportedUsage),
            largest_prompt=max(usage.prompt for usage in self._usages),
            ratio=self.ratio.value,
            head=head_of(self.reports).provider_tokens,
            errors=tuple(sorted(self._errors)),
        )


def reports_of(events: Iterable[Event], model: str, tokenizer: Tokenizer) -> list[PromptReport]:
    """The prompts that a session reports, beside its window as the log has it."""
    session = session_for(model, tokenizer)
    recorded = Recorded(session.index, tokenizer)
    for event in events:
        match event:
            case Draft():
                recorded.learn(event.usage)
                for entry in session.append(event).entries:
                    recorded.append(entry)
            case Rewritten():
                recorded.rewrite(event)
            case _:
                pass
    return recorded.reports


def head_of(reports: Iterable[PromptReport]) -> HeadTokens:
    """What the reports of one session reveal. The least of what the first of each stretch leave over, in the middle."""
    true = [report for report in reports if is_credible(report.prompt, report.counted, MOST)]
    ratio = ratio_of(true)
    if not true or not RATIOS[0] <= ratio <= RATIOS[1]:
        return HeadTokens()
    stretches = [list(each)[:FIRST] for _, each in groupby(true, key=lambda report: report.stretch)]
    sized = [(median(report.prompt - ratio * report.counted for report in each), len(each)) for each in stretches]
    size, count = min([each for each in sized if each[0] > 0], default=(0.0, sized[0][1]))
    return HeadTokens(tokens=round(size / ratio), origin="reported", provider_tokens=round(size), reports=count, ratio=ratio)


def ratio_of(reports: Iterable[PromptReport]) -> float:
    """Provider tokens per o200k token: the middle growth of a prompt from one report to the next, by weight.

    As `tenure.engine.meter.ratio` learns it, but of the whole session at once. Where something left in between, there is no growth.
    """
    growths = [(1.0, ASSUMED)]
    before = 0
    for report in reports:
        gained = report.prompt - before
        if report.grown >= SMALLEST and gained > 0:
            growths.append((gained / report.grown, report.grown))
        before = report.prompt
    growths.sort()
    half = sum(weight for _, weight in growths) / 2
    reached = accumulate(weight for _, weight in growths)
    return next(ratio for (ratio, _), below in zip(growths, reached, strict=True) if below >= half)


def learned_head(sessions: Iterable[Iterable[Event]], model: str, tokenizer: Tokenizer) -> HeadTokens:
    """The head of sessions that run as one: the middle one of those that their reports reveal. Reads them to their end; the ratio of several is not one."""
    heads = (head_of(reports_of(events, model, tokenizer)) for events in sessions)
    known = sorted((head for head in heads if head.reports), key=lambda head: head.tokens)
    if len(known) < 2:
        return known[0] if known else HeadTokens()
    return replace(known[(len(known) - 1) // 2], ratio=0.0)
