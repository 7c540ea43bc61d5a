"""What N runs under several conditions came to, side by side. Pure: from outcomes and measures to a value that is printed and written as JSON.

Every figure has its mean and its spread; what counts tasks has its interval; what was not reported is not counted as nothing.
"""

from collections.abc import Iterable, Sequence
from math import sqrt

from msgspec import Struct

from tenure.lab.bench.measures import Measures
from tenure.lab.bench.outcome import TaskOutcome
from tenure.lab.intervals import wilson


class Spread(Struct, frozen=True, kw_only=True, gc=False):
    """A figure over runs. `sd` is the sample's standard deviation (n - 1); None of fewer than two."""

    n: int
    mean: float
    sd: float | None
    low: float
    high: float


class Rate(Struct, frozen=True, kw_only=True, gc=False):
    """So many of so many, with Wilson's interval at 95 %; `value` None of nothing."""

    hits: int
    of: int
    value: float | None
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread | None:
    """Mean and spread; None of no values."""
    found = list(values)
    if not found:
        return None
    mean = sum(found) / len(found)
    sd = sqrt(sum((each - mean) ** 2 for each in found) / (len(found) - 1)) if len(found) > 1 else None
    return Spread(n=len(found), mean=mean, sd=sd, low=min(found), high=max(found))


def rate(hits: int, of: int) -> Rate:
    """A share. Raises ValueError for hits that are not among them."""
    interval = wilson(hits, of)
    return Rate(hits=hits, of=of, value=hits / of if of else None, low=interval.low, high=interval.high)


VERSION = 1


class BenchRun(Struct, frozen=True, kw_only=True):
    """All tasks of a benchmark, once, under one condition. `sessions` are the measures of its sessions: one of an accumulating run, else one a task."""

    benchmark: str
    condition: str
    name: str
    model: str = ""
    ceiling: int = 0
    tasks: tuple[TaskOutcome, ...]
    sessions: tuple[Measures, ...] = ()

    @property
    def judged(self) -> tuple[TaskOutcome, ...]:
        """The tasks of which it is known whether they were solved."""
        return tuple(task for task in self.tasks if task.solved is not None)

    @property
    def processed(self) -> int:
        """Provider tokens of all prompts and replies, as reported or estimated."""
        return sum(task.usage.prompt + task.usage.output for task in self.tasks)


class Marks(Struct, frozen=True, kw_only=True):
    """Annotation over all runs of a condition: rates over what was declared and explored, spreads by run."""

    delimiters: Spread | None
    refused: Rate  # of all delimiters
    overhead_tokens: Spread | None  # o200k, of delimiters and their results
    overhead_calls: Spread | None  # of the model, made for annotation alone
    overhead_processed: Spread | None  # provider tokens that those took, and the standing words with every call
    overhead_share: float | None  # of all tokens processed, the mean
    overhead_usd: Spread | None
    declared: Spread | None
    mistyped: Rate  # of declared episodes
    expl_that_wrote: int
    act_that_changed_nothing: int
    left_open: int
    missing: Rate  # of the pairs of act and expl of which something was used
    explored: Spread | None  # calls that only looked
    again: Rate  # of those
    again_tokens: Spread | None  # o200k
    again_across: int  # of something that was read for an earlier task
    again_gone: int  # of something that had left the view
    recalls: Spread | None


class BenchRow(Struct, frozen=True, kw_only=True):
    """One benchmark under one condition."""

    benchmark: str
    condition: str
    models: tuple[str, ...]
    ceilings: tuple[int, ...]
    runs: int
    tasks: int  # in all runs
    solved: Rate  # of the judged ones
    solved_share: Spread | None  # by run
    ended: dict[str, int]  # why turns ended
    calls: Spread | None  # of the model
    processed: Spread | None  # provider tokens
    cached_share: float | None  # of all prompts
    usd: Spread | None
    unpriced: int
    seconds: Spread | None
    commits: Spread | None
    summaries: Spread | None
    marks: Marks


class BenchReport(Struct, frozen=True, kw_only=True):
    """Rows by benchmark and condition, in the order in which they were first met."""

    version: int = VERSION
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...] = ()


def report(runs: Sequence[BenchRun], notes: Iterable[str] = ()) -> BenchReport:
    """The runs, by benchmark and condition."""
    groups: dict[tuple[str, str], list[BenchRun]] = {}
    for run in runs:
        groups.setdefault((run.benchmark, run.condition), []).append(run)
    rows = tuple(_row(benchmark, condition, group) for (benchmark, condition), group in groups.items())
    return BenchReport(rows=rows, notes=tuple(notes))


def _row(benchmark: str, condition: str, runs: Sequence[BenchRun]) -> BenchRow:
    tasks = [task for run in runs for task in run.tasks]
    judged = [task for run in runs for task in run.judged]
    prompts = sum(task.usage.prompt for task in tasks)
    ended: dict[str, int] = {}
    for task in tasks:
        ended[task.reason] = ended.get(task.reason, 0) + 1
    return BenchRow(
        benchmark=benchmark,
        condition=condition,
        models=tuple(dict.fromkeys(run.model for run in runs if run.model)),
        ceilings=tuple(dict.fromkeys(run.ceiling for run in runs if run.ceiling)),
        runs=len(runs),
        tasks=len(tasks),
        solved=rate(sum(bool(task.solved) for task in judged), len(judged)),
        solved_share=spread(sum(bool(task.solved) for task in run.judged) / len(run.judged) for run in runs if run.judged),
        ended=ended,
        calls=spread(sum(task.calls for task in run.tasks) for run in runs),
        processed=spread(run.processed for run in runs),
        cached_share=sum(task.usage.cache_read for task in tasks) / prompts if prompts else None,
        usd=spread(sum((task.usd for task in run.tasks), 0.0) for run in runs),
        unpriced=sum(task.unpriced for task in tasks),
        seconds=spread(sum((task.seconds for task in run.tasks), 0.0) for run in runs),
        commits=spread(sum(task.commits for task in run.tasks) for run in runs),
        summaries=spread(sum(task.summaries for task in run.tasks) for run in runs),
        marks=_marks([run for run in runs if run.sessions]),
    )


def _marks(runs: Sequence[BenchRun]) -> Marks:
    sessions = [session for run in runs for session in run.sessions]
    overheads = [session.overhead for session in sessions]
    mistyped = [each for session in sessions for each in session.typing.mistyped]
    again = [each for session in sessions for each in session.explored.again]
    processed = [_overhead(run) for run in runs]
    in_all = sum(run.processed for run in runs)
    return Marks(
        delimiters=spread(sum(each.overhead.delimiters for each in run.sessions) for run in runs),
        refused=rate(sum(each.refused for each in overheads), sum(each.delimiters for each in overheads)),
        overhead_tokens=spread(sum(each.overhead.tokens for each in run.sessions) for run in runs),
        overhead_calls=spread(sum(each.overhead.replies for each in run.sessions) for run in runs),
        overhead_processed=spread(processed),
        overhead_share=sum(processed) / in_all if in_all else None,
        overhead_usd=spread(sum((each.overhead.replies_usd for each in run.sessions), 0.0) for run in runs),
        declared=spread(sum(each.typing.declared for each in run.sessions) for run in runs),
        mistyped=rate(len(mistyped), sum(session.typing.declared for session in sessions)),
        expl_that_wrote=sum(each.type == "expl" for each in mistyped),
        act_that_changed_nothing=sum(each.type == "act" for each in mistyped),
        left_open=sum(session.typing.open for session in sessions),
        missing=rate(
            sum(len(session.dependencies.missing) for session in sessions),
            sum(session.dependencies.used for session in sessions),
        ),
        explored=spread(sum(each.explored.looks for each in run.sessions) for run in runs),
        again=rate(len(again), sum(session.explored.looks for session in sessions)),
        again_tokens=spread(sum(each.explored.again_tokens for each in run.sessions) for run in runs),
        again_across=sum(each.across for each in again),
        again_gone=sum(each.gone for each in again),
        recalls=spread(sum(each.recalls for each in run.sessions) for run in runs),
    )


def _overhead(run: BenchRun) -> int:
    """Provider tokens that a run processed for annotation: the replies for it alone, and what stands in every request for it.

    The delimiters' own tokens, carried by later requests until they leave, are not in it.
    """
    alone = sum(session.overhead.replies_tokens for session in run.sessions)
    standing = sum(session.overhead.standing_tokens * (session.replies - session.overhead.replies) for session in run.sessions)
    return alone + standing
