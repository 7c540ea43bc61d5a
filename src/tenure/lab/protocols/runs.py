"""One replay measured, its bill, its window, what its later steps missed, under the conditions that are the same for all: prices, head, what of a log.

Nothing is kept of a replay but sums, so the longest session costs no memory beyond the detector's own.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, Role
from tenure.lab.bill import Billing
from tenure.lab.events import At, BudgetLine, CallLine, CommitLine, EditTarget, HarmLine, Line, SummaryLine, fields_in
from tenure.lab.harm.watch import Watch
from tenure.lab.measured import IsolatedRun, Measured, Misses
from tenure.lab.replay import Options, replay
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event, Rewritten


class Tally:
    """Needs counted by verdict, the calls that missed something and the objects of which it was missed, and edits. Mutable."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._calls: set[int] = set()
        self._objects: set[str | At] = set()

    def take(self, harm: HarmLine | EditTarget) -> None:
        """One more need or edit; what was only thought is not counted."""
        if isinstance(harm, EditTarget):
            self._counts["edits"] += 1
            self._counts["broken_edits"] += not harm.whole
        elif harm.part != "thinking":
            self._counts[harm.verdict] += 1
            self._counts["listed"] += harm.listed
            if harm.verdict != "visible":
                self._calls.add(harm.call)
                self._objects.add(harm.objects[-1] if harm.objects else harm.held[-1])

    @property
    def misses(self) -> Misses:
        """What was counted so far."""
        return Misses(calls=len(self._calls), objects=len(self._objects), **self._counts)


class Measuring:
    """One replay measured as its lines come. Mutable."""

    def __init__(self) -> None:
        self._watch, self._billing, self._tally = Watch(), Billing(), Tally()
        self._commits = self._breaks = self._sent = self._view_tokens = 0
        self._summary: SummaryLine | None = None

    def take(self, line: Line) -> Iterator[HarmLine | EditTarget]:
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
            self._tally.take(harm)
            yield harm

    @property
    def measured(self) -> Measured:
        """The sums; of a replay whose last line was taken."""
        summary = self._summary
        assert summary is not None, "a replay that ended without its summary"
        return Measured(
            **fields_in(summary, Measured, commits=self._commits),
            sessions=1,
            view_tokens=self._view_tokens,
            prefix_breaks=self._breaks,
            bill=self._billing.bill,
            misses=self._tally.misses,
        )

    def _bill(self, line: Line | HarmLine | EditTarget) -> None:
        for _ in self._billing.take(line):
            pass  # recalls are in the bill


def measured(lines: Iterable[Line]) -> Measured:
    """A replay's lines summed up."""
    measuring = Measuring()
    for line in lines:
        for _ in measuring.take(line):
            pass
    return measuring.measured


UNBOUNDED: Final = 10**9  # tokens: a window that nothing fills
WINDOW: Final = 267_000  # of which 80,000 are "approximately 30 %" (CWL paper, section 5): where its uncapped sessions end
CEILINGS: Final[tuple[int | None, ...]] = (50_000, 80_000, 120_000, 160_000, WINDOW, None)


class Conditions(Struct, frozen=True, kw_only=True):
    """Under what all runs are replayed.

    Prices are those of one `model`, tokens are o200k counts as they are (nothing is learned from a log's own reports, which are of another
    window), the head stands for system prompts and tools, and what the recorded agents did to their own windows is left out: they saw all
    they said, and every policy starts from the same record.
    """

    model: str = "claude-sonnet-4-5"
    cache_life: str = "5m"  # the provider's default, whatever a log's own requests asked for
    head_tokens: int = 20_000  # CWL paper, section 6.1: what the prompt and tools of a coding agent weigh
    faithful: bool = False  # peers' rules without our protection


USUAL: Final = Conditions()


def options(policy: Policy | None, budget: Budget, conditions: Conditions = USUAL) -> Options:
    """How a run is replayed."""
    return Options(
        budget=budget,
        policy=policy,
        model=conditions.model,
        cache_life=conditions.cache_life,
        head=conditions.head_tokens,
        learn=False,
        faithful=conditions.faithful and policy is not None,
    )


def unbounded(source: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    """The lines of a session from which nothing leaves, in o200k tokens."""
    return replay([source], Options(budget=Budget(window=UNBOUNDED), policy=None, learn=False), tokenizer)


def budget_of(ceiling: int | None, *, floor: int | None = None) -> Budget:
    """A ceiling that is kept at once, down to `floor` (None: the usual share of it), and no other limit; None: no limit at all."""
    return Budget(ceiling=ceiling, floor=floor, window=UNBOUNDED)


def limits(budget: Budget) -> BudgetLine:
    """A budget as rows state it; a window of UNBOUNDED tokens is none."""
    line = BudgetLine.of(budget)
    return replace(
        line,
        floor=line.floor if budget.limit < UNBOUNDED else None,
        window=line.window if budget.window < UNBOUNDED else None,
    )


def without_head(source: SessionSource) -> SessionSource:
    """A source without its system messages, for which the head stands, and without what its agent did to its own window."""

    def is_left_out(event: Event) -> bool:
        return isinstance(event, Rewritten) or (isinstance(event, Draft) and event.role is Role.SYSTEM)

    return source.changed(lambda events: (event for event in events if not is_left_out(event)))


def isolated(
    source: SessionSource, policy: Policy | None, budget: Budget, tokenizer: Tokenizer, *, conditions: Conditions = USUAL
) -> IsolatedRun:
    """The whole session under the budget; `policy` None evicts nothing. Raises InputError when the source cannot be read."""
    return IsolatedRun(
        source=source.path,
        policy=policy.name if policy else "none",
        budget=limits(budget),
        head_tokens=conditions.head_tokens,
        measured=measured(replay([without_head(source)], options(policy, budget, conditions), tokenizer)),
    )
