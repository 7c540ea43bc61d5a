"""The window that a recorded agent had, its own compactions included.

The log tells what was said and where the agent rewrote its window; the provider's reports tell what each prompt really weighed. From both
the ratio between the provider's tokens and ours is learned, and how far off a prediction by it would have been.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Session, Setup
from tenure.engine.meter.ratio import Ratio
from tenure.engine.meter.tokens import FRAMING, Tokenizer, weigh
from tenure.engine.record.entry import Draft, Entry, ToolResult, Usage
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Drop, Edit, Remove, Replace
from tenure.engine.view.project import Projection
from tenure.lab.events import Head
from tenure.lab.heads import Report, head_of, middle
from tenure.logs.reader import Event, Rewritten

CLEARED: Final = "[Old tool result content cleared]"  # what Claude Code and OpenCode leave in place of a result


class Reported(Struct, frozen=True, kw_only=True):
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
        self.reports: list[Report] = []
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
        self.reports.append(Report(prompt=usage.prompt, counted=counted, stretch=self._stretch, grown=grown))
        self.ratio = self.ratio.learn(usage.prompt, counted)

    def reported(self) -> Reported | None:
        """All that was reported so far; None for nothing."""
        if not self._usages:
            return None
        return Reported(
            calls=len(self._usages),
            uncached=_sum(self._usages, "uncached"),
            cache_write=_sum(self._usages, "cache_write"),
            cache_read=_sum(self._usages, "cache_read"),
            output=_sum(self._usages, "output"),
            largest_prompt=max(usage.prompt for usage in self._usages),
            ratio=self.ratio.value,
            head=head_of(self.reports).provider_tokens,
            errors=tuple(sorted(self._errors)),
        )


def reports_of(events: Iterable[Event], model: str, tokenizer: Tokenizer) -> list[Report]:
    """The prompts that a session reports, beside its window as the log has it."""
    rules = rules_for("", model, "")
    setup = Setup(budget=Budget(), rules=rules, policy=None)
    session = Session(setup, weigh=lambda blocks: weigh(blocks, tokenizer, rules.media), count=tokenizer)
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


def learned_head(sessions: Iterable[Iterable[Event]], model: str, tokenizer: Tokenizer) -> Head:
    """The head that the reports of sessions reveal, which run as one. Reads them to their end."""
    return middle(head_of(reports_of(events, model, tokenizer)) for events in sessions)


def _sum(usages: Sequence[Usage], name: str) -> int:
    return sum(getattr(usage, name) for usage in usages)
