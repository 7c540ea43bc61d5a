"""Runs out of folders: outcomes, the sessions beside them, and what the harness said; and any stored session, measured (an edge: it reads files).

A folder is one run. Every `outcome.json` below it is a task; whether it was solved is what its own check said, else what the harness wrote beside it.

What N runs under several conditions came to, side by side. Pure: from outcomes and measures to a value that is printed and written as JSON.

Every figure has its mean and its spread; what counts tasks has its interval; what was not reported is not counted as nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.index import Index
from tenure.errors import InputError, StoreError
from tenure.lab.bench.harnesses.swe_bench import resolved_in
from tenure.lab.bench.measures import Measures, measure
from tenure.lab.bench.play import FILE, TaskOutcome, read_outcome
from tenure.lab.intervals import wilson
from tenure.lab.loading import load, own_address, own_store, source
from tenure.store.records import Records


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

    @property
    def overhead(self) -> int:
        """Provider tokens that were processed for annotation: the replies for it alone, and what stands in every request for it.

        The delimiters' own tokens, carried by later requests until they leave, are not in it.
        """
        return sum(
            session.overhead.replies_tokens + session.overhead.standing_tokens * (session.replies - session.overhead.replies)
            for session in self.sessions
        )


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
    judged = [task for task in tasks if task.solved is not None]
    prompts = sum(task.usage.prompt for task in tasks)
    return BenchRow(
        benchmark=benchmark,
        condition=condition,
        models=tuple(dict.fromkeys(run.model for run in runs if run.model)),
        ceilings=tuple(dict.fromkeys(run.ceiling for run in runs if run.ceiling)),
        runs=len(runs),
        tasks=len(tasks),
        solved=rate(sum(bool(task.solved) for task in judged), len(judged)),
        solved_share=spread(sum(bool(task.solved) for task in run.judged) / len(run.judged) for run in runs if run.judged),
        ended=dict(Counter(task.reason for task in tasks)),
        processed=spread(run.processed for run in runs),
        cached_share=sum(task.usage.cache_read for task in tasks) / prompts if prompts else None,
        unpriced=sum(task.unpriced for task in tasks),
        marks=_marks([run for run in runs if run.sessions]),
        **{
            name: spread(sum(getattr(task, name) for task in run.tasks) for run in runs)
            for name in ("calls", "usd", "seconds", "commits", "summaries")
        },
    )


def _marks(runs: Sequence[BenchRun]) -> Marks:
    sessions = [session for run in runs for session in run.sessions]
    mistyped = [each for session in sessions for each in session.typing.mistyped]
    again = [each for session in sessions for each in session.explored.again]
    overhead, processed = sum(run.overhead for run in runs), sum(run.processed for run in runs)

    def by_run(value: Callable[[Measures], float]) -> Spread | None:
        return spread(sum(map(value, run.sessions)) for run in runs)

    def total(value: Callable[[Measures], int]) -> int:
        return sum(map(value, sessions))

    return Marks(
        delimiters=by_run(lambda each: each.overhead.delimiters),
        refused=rate(total(lambda each: each.overhead.refused), total(lambda each: each.overhead.delimiters)),
        overhead_tokens=by_run(lambda each: each.overhead.tokens),
        overhead_calls=by_run(lambda each: each.overhead.replies),
        overhead_processed=spread(run.overhead for run in runs),
        overhead_share=overhead / processed if processed else None,
        overhead_usd=by_run(lambda each: each.overhead.replies_usd),
        declared=by_run(lambda each: each.typing.declared),
        mistyped=rate(len(mistyped), total(lambda each: each.typing.declared)),
        expl_that_wrote=sum(each.type == "expl" for each in mistyped),
        act_that_changed_nothing=sum(each.type == "act" for each in mistyped),
        left_open=total(lambda each: each.typing.open),
        missing=rate(total(lambda each: len(each.dependencies.missing)), total(lambda each: each.dependencies.used)),
        explored=by_run(lambda each: each.explored.looks),
        again=rate(len(again), total(lambda each: each.explored.looks)),
        again_tokens=by_run(lambda each: each.explored.again_tokens),
        again_across=sum(each.across for each in again),
        again_gone=sum(each.gone for each in again),
        recalls=by_run(lambda each: each.recalls),
    )


DEEPEST: Final = 8  # folders from a run's to an outcome's
VERDICTS: Final = ("result.json", "results.json")  # Harbor's of a trial; terminal-bench's
UPWARDS: Final = 4  # folders above an outcome in which a verdict may lie
LARGEST: Final = 50_000_000  # bytes of a verdict


class GatheredRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, and what could not be read."""

    runs: tuple[BenchRun, ...]
    notes: tuple[str, ...] = ()


def runs_in(folder: Path, count: Tokenizer, *, benchmark: str = "", resolved: frozenset[str] | None = None) -> GatheredRuns:
    """The runs in a folder: one for each condition that its outcomes name. Raises InputError where there is no outcome.

    `resolved` names the tasks that were solved, where a harness says so in one report of its own (SWE-bench).
    """
    notes: list[str] = []
    found: dict[str, list[tuple[Path, TaskOutcome]]] = {}
    for path in _outcomes(folder):
        try:
            outcome = read_outcome(path)
        except InputError as error:
            notes.append(str(error))
            continue
        if resolved is not None:
            outcome = replace(outcome, solved=outcome.task in resolved)
        elif outcome.solved is None:
            outcome = replace(outcome, solved=_verdict(path, folder))
        found.setdefault(outcome.condition, []).append((path, outcome))
    if not found:
        raise InputError(str(folder), f"no {FILE} below it", "the folder of a run")
    runs = tuple(_run(folder, benchmark or folder.name, condition, tasks, count, notes) for condition, tasks in found.items())
    return GatheredRuns(runs=runs, notes=tuple(notes))


def measure_conversation(store: Records, session: str, count: Tokenizer) -> Measures:
    """All measures of a stored conversation. Raises InputError for one that is not there."""
    entries = list(store.entries(store.conversation(session).id))
    index = Index()
    for entry in entries:
        index.grow(entry)
    spent: Mapping[int, Spent] = {each.n: each.spent for each in store.usages(session)}
    return measure(index, entries.__getitem__, count, commits=store.commits(session), spent=spent)


def _outcomes(folder: Path) -> Iterator[Path]:
    """The outcomes below a folder, by name. Links are not followed."""
    return iter(
        sorted(path for path in folder.rglob(FILE) if path.is_file() and len(path.relative_to(folder).parts) <= DEEPEST + 1)
    )


def _run(
    folder: Path, benchmark: str, condition: str, tasks: list[tuple[Path, TaskOutcome]], count: Tokenizer, notes: list[str]
) -> BenchRun:
    """One run. Of an accumulating session the copy that knows most is measured, once."""
    newest: dict[str, tuple[Path, TaskOutcome]] = {}
    for path, outcome in tasks:
        held = newest.get(outcome.session)
        if held is None or outcome.last > held[1].last:
            newest[outcome.session] = (path, outcome)
    sessions = [each for path, outcome in newest.values() if (each := _session(path, outcome, count, notes)) is not None]
    outcomes = tuple(outcome for _, outcome in tasks)
    return BenchRun(
        benchmark=benchmark,
        condition=condition,
        name=folder.name,
        model=outcomes[0].model,
        ceiling=outcomes[0].ceiling,
        tasks=outcomes,
        sessions=tuple(sessions),
    )


def _session(path: Path, outcome: TaskOutcome, count: Tokenizer, notes: list[str]) -> Measures | None:
    from tenure.store.store import Store

    file = (path.parent / outcome.store).resolve()
    if not file.is_file():
        notes.append(f"{path}: its session {outcome.store} is not there; the annotation of {outcome.task} is not measured")
        return None
    try:
        with Store(f"sqlite:///{file}", read_only=True) as store:
            return measure_conversation(store, outcome.session, count)
    except (InputError, StoreError) as error:
        notes.append(f"{file}: {error}")
        return None


def _verdict(path: Path, top: Path) -> bool | None:
    """What the harness said, in a file above the outcome and not above the run; None where it has not said."""
    for folder in [*path.parents][:UPWARDS]:
        for name in VERDICTS:
            if (folder / name).is_file() and (said := _said(folder / name)) is not None:
                return said
        if folder == top:
            break
    return None


def _said(path: Path) -> bool | None:
    """A trial's verdict: `verifier_result.rewards.reward` (Harbor; solved from 1 on), or `is_resolved` (terminal-bench)."""
    try:
        if path.stat().st_size > LARGEST:
            return None
        found = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    fields = _object(found)
    if isinstance(resolved := fields.get("is_resolved"), bool):
        return resolved
    rewards = _object(_object(fields.get("verifier_result")).get("rewards"))
    reward = rewards.get("reward")
    return reward >= 1 if isinstance(reward, int | float) else None


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def measure_stored(address: str, count: Tokenizer) -> Measures:
    """The measures of a session: `path`, or `path#id` of a store of many. Raises InputError for one that is not there."""
    found = own_address(address)
    if found is None:
        loaded = load([source(address)], count)
        return measure(loaded.index, loaded.read, count)
    with own_store(*found) as (store, sheet):
        return measure_conversation(store, sheet.id, count)


def report_of(
    folders: Iterable[tuple[Path, str]], count: Tokenizer, notes: Iterable[str] = (), *, resolved: Path | None = None
) -> BenchReport:
    """The report of the runs in these folders, each with its benchmark's name; `resolved` is SWE-bench's report of solved instances."""
    solved = resolved_in(resolved) if resolved is not None else None
    runs: list[BenchRun] = []
    every = [*notes]
    for folder, benchmark in folders:
        found = runs_in(folder, count, benchmark=benchmark, resolved=solved)
        runs += [replace(run, name=str(folder)) for run in found.runs]
        every += found.notes
    return report(runs, every)
