"""What one replay came to: its bill, its window, and what its later steps missed.

A `Measuring` takes a replay's lines in order and watches for harm beside it; nothing is kept but sums, so the longest session costs no memory
beyond the detector's own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from tenure.engine.lifecycle.budget import Budget
from tenure.lab.bill import Billing
from tenure.lab.events import CallLine, CommitLine, HarmLine, Limits, Line, Measured, Misses, SummaryLine
from tenure.lab.harm.live import Watch

_NO_SUMMARY = "a replay that ended without its summary"


class Tally:
    """Needs counted by verdict, and the calls that missed something. Mutable."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._calls = 0
        self._last = -1

    def take(self, harm: HarmLine) -> None:
        """One more need; those of a call come together."""
        self._verdicts[harm.verdict] += 1
        if harm.verdict != "visible" and harm.call != self._last:
            self._calls, self._last = self._calls + 1, harm.call

    @property
    def misses(self) -> Misses:
        """What was counted so far."""
        found = self._verdicts
        return Misses(visible=found["visible"], routed=found["routed"], lost=found["lost"], calls=self._calls)


class Measuring:
    """One replay measured as its lines come. Mutable."""

    def __init__(self) -> None:
        self._watch, self._billing, self._tally = Watch(), Billing(), Tally()
        self._commits = self._breaks = self._sent = self._view_tokens = 0
        self._summary: SummaryLine | None = None

    def take(self, line: Line) -> Iterator[HarmLine]:
        """What the line shows to have been needed of what had left. Amortised O(blocks and needs of the line)."""
        self._bill(line)
        match line:
            case CallLine():
                self._breaks += line.shared_prefix_tokens < self._sent
                self._sent = line.view_tokens
                self._view_tokens += line.view_tokens
            case CommitLine():
                self._commits += line.moment not in ("admission", "recorded")
            case SummaryLine():
                self._summary = line
            case _:
                pass
        for harm in self._watch.take(line):
            self._bill(harm)
            if harm.part != "thinking":
                self._tally.take(harm)
                yield harm

    @property
    def measured(self) -> Measured:
        """The sums; of a replay whose last line was taken."""
        summary = self._summary
        assert summary is not None, _NO_SUMMARY
        return Measured(
            sessions=1,
            entries=summary.entries,
            calls=summary.calls,
            record_tokens=summary.record_tokens,
            view_tokens=self._view_tokens,
            peak_view_tokens=summary.peak_view_tokens,
            commits=self._commits,
            prefix_breaks=self._breaks,
            bill=self._billing.bill,
            misses=self._tally.misses,
            evicted_tokens=summary.evicted_tokens,
            evicted_by_kind=summary.evicted_by_kind,
            unmet=summary.unmet,
            violations=summary.violations,
        )

    def _bill(self, line: Line | HarmLine) -> None:
        for _ in self._billing.take(line):
            pass  # recalls are in the bill


def measured(lines: Iterable[Line]) -> Measured:
    """A replay's lines summed up."""
    measuring = Measuring()
    for line in lines:
        for _ in measuring.take(line):
            pass
    return measuring.measured


def limits_of(budget: Budget, *, unbounded: int) -> Limits:
    """A budget as rows state it; a window of `unbounded` tokens is none."""
    floor = budget.floor_of(budget.limit) if budget.limit < unbounded else None
    return Limits(
        target=budget.target,
        ceiling=budget.ceiling,
        floor=floor,
        window=budget.window if budget.window < unbounded else None,
    )
