"""All tasks of a corpus one after another in one conversation under one budget (CWL paper, section 6.2).

What a step misses is told apart: of its own task, or of tasks before it, and of these those that its task depends on. A recorded agent never
saw the tasks before its own, so a need that only they held is one it could have answered from there, not one that it did.

Recorded sessions as the tasks of one long conversation: their order, their times, and which depend on which.

Every rule here is mechanical and stands in docs/protocols.md; a task says all that is needed to lay it into a conversation again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, ToolCall
from tenure.lab.events import BudgetLine, CallLine, EditTarget, EntryLine, HarmLine, Line
from tenure.lab.harm.names import AnchorForm, names_of
from tenure.lab.loading import source
from tenure.lab.measured import AccumulatingRun, Misses, TaskMisses
from tenure.lab.protocols.runs import USUAL, Conditions, Measuring, Tally, limits, options, without_head
from tenure.lab.replay import replay
from tenure.lab.source import SessionSource

GAP_S: Final = 60.0  # from the last message of a task to the first of the next
HUMAN_TOKENS: Final = 20_000  # words of people that one conversation holds, unless a single task has more
SHARED_NAMES: Final = 5  # that a task has in common with one it depends on
RARE_TASKS: Final = 3  # that may name what is still rare
RARE_SHARE: Final = 0.25  # of a project's tasks, where that is more
_TELLING: Final = frozenset(
    {AnchorForm.PATH, AnchorForm.URL, AnchorForm.ID, AnchorForm.HASH}
)  # a bare file name or number may be anybody's
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ConversationTask(Struct, frozen=True, kw_only=True, tag="task", tag_field="type"):
    """A recorded session as a part of a conversation."""

    conversation: int
    number: int  # in its conversation
    source: str  # its address
    project: str  # the folder it lies in
    started: str  # ISO 8601, as the log says; empty where it does not
    lasted_s: float
    shift_s: float  # added to every time of the log
    entries: int
    calls: int  # answers of the model
    tokens: int
    human_tokens: int
    depends_on: tuple[int, ...] = ()  # numbers of earlier tasks of its conversation

    def as_source(self) -> SessionSource:
        """The session with its times moved. Raises InputError when it cannot be opened."""
        by = timedelta(seconds=self.shift_s)
        return without_head(source(self.source)).changed(
            lambda events: (_at(event, by) if isinstance(event, Draft) else event for event in events)
        )


class _ReadSession(Struct, frozen=True, kw_only=True):
    """A session as it was read: the task it will be, and what its agent named."""

    task: ConversationTask
    names: frozenset[str]


def layout_of(
    addresses: Iterable[str], tokenizer: Tokenizer, *, human_tokens: int | None = HUMAN_TOKENS, gap_s: float = GAP_S
) -> tuple[tuple[ConversationTask, ...], ...]:
    """The tasks of each conversation, in order. One pass over the sources. Raises InputError when one cannot be read.

    Tasks come by project, within one by when they began, then by address. A conversation ends before the task with which its people's words
    would weigh more than `human_tokens`; None: there is only one. Sessions without an answer of a model are left out.
    """
    every = [_seen(address, tokenizer) for address in addresses]
    every.sort(key=lambda each: (each.task.project, each.task.started, each.task.source))
    rare = _rare(every)
    found: list[tuple[ConversationTask, ...]] = []
    for group in _grouped([each for each in every if each.task.calls], human_tokens):
        found.append(tuple(_placed(group, rare, len(found), gap_s)))
    return tuple(found)


def _seen(address: str, tokenizer: Tokenizer) -> _ReadSession:
    entries = calls = tokens = human = 0
    times: list[datetime] = []
    started = ""
    names: set[str] = set()
    _, events = without_head(source(address)).events()
    for event in events:
        if not isinstance(event, Draft):
            continue
        entries += 1
        calls += event.role is Role.ASSISTANT
        for block in event.blocks:
            weight = tokenizer(block.text)
            tokens += weight
            human += weight if block.origin is Origin.HUMAN else 0
            names.update(_names(block))
        if (at := _time(event.at)) is not None:
            started = started or event.at
            times.append(at)
    return _ReadSession(
        task=ConversationTask(
            conversation=0,
            number=0,
            source=address,
            project=str(PurePath(address.rpartition("#")[0] or address).parent),
            started=started,
            lasted_s=(max(times) - times[0]).total_seconds() if times else 0.0,
            shift_s=0.0,
            entries=entries,
            calls=calls,
            tokens=tokens,
            human_tokens=human,
        ),
        names=frozenset(names),
    )


def _names(block: Block) -> Iterator[str]:
    """What an agent named in it; what tools return names too much, and what people paste is a suite's own form."""
    if isinstance(block, ToolCall) or (isinstance(block, Text) and block.origin is Origin.MODEL):
        yield from (anchor.text for anchor in names_of("", block.text) if anchor.form in _TELLING)


def _rare(every: Iterable[_ReadSession]) -> frozenset[str]:
    """Names of one project only, in few of its tasks: what all of them name is the suite's form, or the machine's."""
    sizes = Counter(each.task.project for each in every)
    holders: dict[str, Counter[str]] = {}
    for each in every:
        for name in each.names:
            holders.setdefault(name, Counter())[each.task.project] += 1
    return frozenset(
        name
        for name, projects in holders.items()
        if len(projects) == 1
        and all(tasks <= max(RARE_TASKS, sizes[project] * RARE_SHARE) for project, tasks in projects.items())
    )


def _grouped(seen: Iterable[_ReadSession], human_tokens: int | None) -> Iterator[list[_ReadSession]]:
    group: list[_ReadSession] = []
    held = 0
    for each in seen:
        if group and human_tokens is not None and held + each.task.human_tokens > human_tokens:
            yield group
            group, held = [], 0
        group.append(each)
        held += each.task.human_tokens
    if group:
        yield group


def _placed(group: Sequence[_ReadSession], rare: frozenset[str], conversation: int, gap_s: float) -> Iterator[ConversationTask]:
    """Numbered, timed one after another, with what each depends on. O(names that tasks have in common)."""
    holders: dict[str, list[int]] = {}
    clock: float | None = None  # seconds, when the task before ended
    for number, each in enumerate(group):
        shared: Counter[int] = Counter()
        for name in each.names & rare:
            earlier = holders.setdefault(name, [])
            shared.update(earlier)
            earlier.append(number)
        task = each.task
        began = _time(task.started)
        shift = 0.0
        if began is not None:
            own = (began - _START).total_seconds()
            begins = own if clock is None else clock + gap_s
            shift, clock = begins - own, begins + task.lasted_s
        yield replace(
            task,
            conversation=conversation,
            number=number,
            shift_s=shift,
            depends_on=tuple(sorted(other for other, names in shared.items() if names >= SHARED_NAMES)),
        )


def _at(draft: Draft, by: timedelta) -> Draft:
    at = _time(draft.at)
    if at is None:
        return draft
    try:
        return replace(draft, at=(at + by).isoformat().replace("+00:00", "Z"))
    except OverflowError:
        return replace(draft, at="")


def _time(at: str) -> datetime | None:
    """A time; one without a zone is in UTC, on every machine."""
    try:
        found = datetime.fromisoformat(at) if at else None
        if found is None:
            return None
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # no time, or one before or after all times
        return None


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
    budget: BudgetLine,
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
        **{name: sum((getattr(task, name) for task in every), Misses()) for name in _PARTS},
        tasks=every,
    )


# What a task missed: of its own entries, of entries of earlier tasks alone, and of those what it depends on.
_PARTS: Final = ("own", "across", "dependent")


class _Parting:
    """The needs of a replay, by the task whose step needed them and the tasks that held them. Mutable."""

    def __init__(self, tasks: Sequence[ConversationTask]) -> None:
        self.measuring = Measuring()
        self._tasks = tasks
        self._tallies = [{name: Tally() for name in _PARTS} for _ in tasks]
        self._paid = [0.0] * len(tasks)  # USD of their calls
        self._sources: list[int] = []  # by entry
        self._usd = 0.0  # of the call whose answer comes next

    def take(self, line: Line) -> None:
        """The next line of the replay."""
        match line:
            case CallLine():
                self._usd = line.usd
            case EntryLine():
                self._sources.append(line.source)
                self._paid[line.source] += self._usd
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
                usd=usd,
                **{name: tally.misses for name, tally in tallies.items()},
            )
            for task, usd, tallies in zip(self._tasks, self._paid, self._tallies, strict=True)
        )

    def _missed(self, harm: HarmLine | EditTarget) -> None:
        needing = self._sources[harm.entry]
        holding = {self._sources[entry] for entry, _ in harm.held}
        tallies = self._tallies[needing]
        if needing in holding:
            tallies["own"].take(harm)
            return
        tallies["across"].take(harm)
        if holding & set(self._tasks[needing].depends_on):
            tallies["dependent"].take(harm)
