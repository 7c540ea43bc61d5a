"""One policy over a session, told from the lines of its replay."""

from collections import Counter
from collections.abc import Iterable

from tenure.engine.view.edit import Drop, Replace, Restore
from tenure.lab.audit.harms import Needs, Places
from tenure.lab.audit.removals import NOT_OWN, Attributed, Ends
from tenure.lab.audit.report import Run
from tenure.lab.audit.series import Stack, Thinned
from tenure.lab.audit.standing import Standing
from tenure.lab.events import (
    Bill,
    CallLine,
    CommitLine,
    EntryLine,
    HarmLine,
    Line,
    RecallLine,
    ReplayLine,
    SummaryLine,
    UnmetLine,
)


class Watching:
    """A run in the making. Mutable; of the lines it keeps no more than a report lists."""

    def __init__(self, header: ReplayLine) -> None:
        self._header = header
        self._standing, self._stack, self._thinned = Standing(), Stack(), Thinned()
        self._objects: list[tuple[tuple[str, ...], ...]] = []  # of the blocks of each entry
        self.needs = Needs()
        self._commits = Ends()
        self._made = self._left = self._peak = self._unmet = 0
        self._evicted: Counter[str] = Counter()
        self._held_by: dict[str, int] = {}
        self._violations: tuple[str, ...] = ()

    def take(self, line: Line | HarmLine | RecallLine) -> None:
        """The next line of the replay, or of what was missed."""
        match line:
            case EntryLine():
                self._entry(line)
            case CommitLine():
                self._commit(line)
            case CallLine():
                self._thinned.call(line, self._stack.tokens)
                self._peak = max(self._peak, line.uncached + line.cache_write + line.cache_read)
            case UnmetLine():
                self._held_by = self._held_by or {name: tokens for name, tokens in line.held_by.items() if tokens}
                self._unmet += 1
            case HarmLine():
                self.needs.take(line)
            case SummaryLine():
                self._violations = line.violations
            case _:
                return

    def run(self, bill: Bill, places: Places) -> Run:
        """What came of it."""
        header = self._header
        return Run(
            policy=header.policy,
            settings=header.settings,
            budget=header.budget,
            bill=bill,
            commits=self._commits.kept,
            commits_made=self._made,
            series=self._thinned.series,
            harms=places.harms(self.needs),
            peak=self._peak,
            left=self._left,
            evicted=dict(_largest(self._evicted.items())),
            unmet=self._unmet,
            unmet_held_by=self._held_by,
            violations=self._violations,
        )

    def _entry(self, line: EntryLine) -> None:
        self._stack.entry(line)
        self._objects.append(tuple([block.objects or () for block in line.blocks]))
        for change in self._standing.entry(line):
            self._stack.take(change)

    def _commit(self, line: CommitLine) -> None:
        own = line.moment not in NOT_OWN
        gone = Attributed(line.actions)
        for edit, change in self._standing.commit(line):
            self._stack.take(change)
            if isinstance(edit, Drop | Replace | Restore):
                gone.take((edit.entry, edit.block), self._objects[edit.entry][edit.block], change.before - change.after)
                self._evicted[self._stack.kind(change)] += own * (change.before - change.after)
        self._made += own
        self._left += own * (line.tokens_before - line.tokens_after)
        self._commits.take(gone.removal(line))


def _largest(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(((name, count) for name, count in counts if count), key=lambda item: (-item[1], item[0]))
