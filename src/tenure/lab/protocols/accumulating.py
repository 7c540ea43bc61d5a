"""All tasks of a corpus one after another in one conversation under one budget (CWL paper, section 6.2).

What a step misses is told apart: of its own task, or of tasks before it, and of these those that its task depends on. A recorded agent never
saw the tasks before its own, so a need that only they held is one it could have answered from there, not one that it did.
"""

from collections.abc import Iterable, Sequence

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.lab.events import AccumulatingRun, CallLine, EditTarget, EntryLine, HarmLine, Limits, Line, Misses, TaskMisses
from tenure.lab.protocols.runs import USUAL, Conditions, Measuring, Tally, limits, options
from tenure.lab.protocols.tasks import ConversationTask
from tenure.lab.replay import replay


def accumulating(
    tasks: Sequence[ConversationTask],
    policy: Policy | None,
    budget: Budget,
    tokenizer: Tokenizer,
    *,
    conditions: Conditions = USUAL,
) -> AccumulatingRun:
    """One conversation under the budget; `policy` None evicts nothing. Raises InputError when a source cannot be read."""
    lines = replay([task.as_source() for task in tasks], options(policy, budget, conditions), tokenizer)
    return run_of(lines, tasks, policy.name if policy else "none", limits(budget), conditions)


def run_of(
    lines: Iterable[Line],
    tasks: Sequence[ConversationTask],
    policy: str,
    budget: Limits,
    conditions: Conditions = USUAL,
    *,
    variant: str = "",
) -> AccumulatingRun:
    """A replay of the tasks as a run; the sources of its lines are the tasks in order."""
    parting = _Parting(tasks)
    for line in lines:
        parting.take(line)
    every = parting.tasks()
    return AccumulatingRun(
        policy=policy,
        variant=variant,
        budget=budget,
        head_tokens=conditions.head_tokens,
        measured=parting.measuring.measured,
        own=sum((task.own for task in every), Misses()),
        across=sum((task.across for task in every), Misses()),
        dependent=sum((task.dependent for task in every), Misses()),
        tasks=every,
    )


class _OfTask:
    """The needs of one task. Mutable."""

    def __init__(self) -> None:
        self.usd = 0.0
        self.own, self.across, self.dependent = Tally(), Tally(), Tally()


class _Parting:
    """The needs of a replay, by the task whose step needed them and the tasks that held them. Mutable."""

    def __init__(self, tasks: Sequence[ConversationTask]) -> None:
        self.measuring = Measuring()
        self._tasks = tasks
        self._found = [_OfTask() for _ in tasks]
        self._sources: list[int] = []  # by entry
        self._usd = 0.0  # of the call whose answer comes next

    def take(self, line: Line) -> None:
        """The next line of the replay."""
        match line:
            case CallLine():
                self._usd = line.usd
            case EntryLine():
                self._sources.append(line.source)
                self._found[line.source].usd += self._usd
                self._usd = 0.0
            case _:
                pass
        for harm in self.measuring.take(line):
            self._missed(harm)

    def tasks(self) -> tuple[TaskMisses, ...]:
        """What was found, in order."""
        return tuple(
            TaskMisses(
                conversation=task.conversation,
                task=task.number,
                source=task.source,
                usd=found.usd,
                own=found.own.misses,
                across=found.across.misses,
                dependent=found.dependent.misses,
            )
            for task, found in zip(self._tasks, self._found, strict=True)
        )

    def _missed(self, harm: HarmLine | EditTarget) -> None:
        needing = self._sources[harm.entry]
        holding = {self._sources[entry] for entry, _ in harm.held}
        found = self._found[needing]
        if needing in holding:
            found.own.take(harm)
            return
        found.across.take(harm)
        if holding & set(self._tasks[needing].depends_on):
            found.dependent.take(harm)
