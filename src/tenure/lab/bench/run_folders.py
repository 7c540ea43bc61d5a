"""Runs out of folders: outcomes, the sessions beside them, and what the harness said; and any stored session, measured (an edge: it reads files).

A folder is one run. Every `outcome.json` below it is a task; whether it was solved is what its own check said, else what the harness wrote beside it.

What N runs under several conditions came to, side by side, is asked of them by the queries of report.sql.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
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
from tenure.lab.bench.outcome import FILE, TaskOutcome, read_outcome
from tenure.lab.intervals import Share
from tenure.lab.loading import load, own_address, own_store, source
from tenure.store.records import Records

VERSION: Final = 1


class BenchRun(Struct, frozen=True, kw_only=True, tag="bench_run", tag_field="type"):
    """All tasks of a benchmark, once, under one condition. `sessions` are the measures of its sessions: one of an accumulating run, else one a task."""

    benchmark: str
    condition: str
    name: str
    model: str = ""
    ceiling: int = 0  # provider tokens
    tasks: tuple[TaskOutcome, ...]
    sessions: tuple[Measures, ...] = ()


class BenchReport(Struct, frozen=True, kw_only=True):
    """Rows by benchmark and condition, in the order in which they were first met: those of the view `report` in report.sql, shares with their intervals."""

    version: int = VERSION
    rows: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()


def report(runs: Iterable[BenchRun], notes: Iterable[str] = ()) -> BenchReport:
    """The runs, by benchmark and condition."""
    from tenure.lab.query import Events  # needs DuckDB, which other commands do without

    with Events.of(runs) as events:
        events.view("bench_runs", BenchRun)
        events.script(files("tenure.lab.bench").joinpath("report.sql").read_text(encoding="utf-8"))
        rows = events.ask("from report").dicts
    return BenchReport(rows=tuple(map(_with_intervals, rows)), notes=tuple(notes))


def _with_intervals(value: Any) -> Any:
    """Every share of a row with its value, None of nothing, and Wilson's interval at 95 %."""
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    if fields.keys() != {"hits", "of"}:
        return {name: _with_intervals(each) for name, each in fields.items()}
    share = Share(hits=fields["hits"], of=fields["of"])
    return {**fields, "value": share.value, "low": share.interval.low, "high": share.interval.high}


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
