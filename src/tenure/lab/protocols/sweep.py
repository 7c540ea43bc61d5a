"""Budgets swept over the same sessions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.lab.events import AccumulatingRun, IsolatedRun, Limits, Measured
from tenure.lab.loading import source
from tenure.lab.protocols.accumulating import accumulating
from tenure.lab.protocols.compaction import Compacting, compacted
from tenure.lab.protocols.conditions import USUAL, Conditions, budget_of
from tenure.lab.protocols.isolated import isolated
from tenure.lab.protocols.measured import added
from tenure.lab.protocols.tasks import Task

Protocol = Literal["isolated", "accumulating"]

WINDOW: Final = 267_000  # of which 80,000 are "approximately 30 %" (CWL paper, section 5): where its uncapped sessions end
CEILINGS: Final[tuple[int | None, ...]] = (50_000, 80_000, 120_000, 160_000, WINDOW, None)


class PartRow(Struct, frozen=True, kw_only=True):
    """A session or a conversation of a row."""

    name: str
    calls: int
    record_tokens: int
    peak_view_tokens: int
    usd: float
    missed: int
    calls_missing: int


class SweepRow(Struct, frozen=True, kw_only=True, tag="sweep", tag_field="type"):
    """One policy at one ceiling under one protocol, all parts added up; `policy` is `none` without eviction, `compaction` for summaries."""

    protocol: Protocol
    policy: str
    variant: str = ""  # of a compaction: what its summaries say
    ceiling: int | None  # provider tokens; None: no limit
    budget: Limits
    measured: Measured
    parts: tuple[PartRow, ...]


def sweep_accumulating(
    conversations: Sequence[Sequence[Task]],
    policies: Mapping[str, Policy],
    tokenizer: Tokenizer,
    *,
    ceilings: Sequence[int | None] = CEILINGS,
    compactions: Sequence[Compacting] = (),
    conditions: Conditions = USUAL,
) -> Iterator[SweepRow]:
    """A row without limit, one for each policy and ceiling, one for each compaction."""
    yield accumulated_row(
        [accumulating(tasks, None, budget_of(None), tokenizer, conditions=conditions) for tasks in conversations]
    )
    for policy in policies.values():
        for ceiling in (each for each in ceilings if each is not None):
            budget = budget_of(ceiling)
            yield accumulated_row(
                [accumulating(tasks, policy, budget, tokenizer, conditions=conditions) for tasks in conversations]
            )
    for compacting in compactions:
        yield accumulated_row([compacted(tasks, compacting, tokenizer, conditions=conditions) for tasks in conversations])


def sweep_isolated(
    addresses: Sequence[str],
    policies: Mapping[str, Policy],
    tokenizer: Tokenizer,
    *,
    ceilings: Sequence[int | None] = CEILINGS,
    conditions: Conditions = USUAL,
) -> Iterator[SweepRow]:
    """The same for each session alone. A session that never reaches a ceiling is not run again: nothing happens in it."""
    whole = [isolated(source(address), None, budget_of(None), tokenizer, conditions=conditions) for address in addresses]
    yield isolated_row(whole, None)
    for policy in policies.values():
        for ceiling in (each for each in ceilings if each is not None):
            budget = budget_of(ceiling)
            runs = [
                replace(run, policy=policy.name)
                if run.measured.peak_view_tokens <= ceiling
                else isolated(source(run.source), policy, budget, tokenizer, conditions=conditions)
                for run in whole
            ]
            yield isolated_row(runs, ceiling)


def accumulated_row(runs: Sequence[AccumulatingRun]) -> SweepRow:
    """The conversations of one policy and budget; at least one."""
    first = runs[0]
    return SweepRow(
        protocol="accumulating",
        policy=first.policy,
        variant=first.variant,
        ceiling=first.budget.ceiling,
        budget=first.budget,
        measured=added(run.measured for run in runs),
        parts=tuple(_part(f"conversation {number}", run.measured) for number, run in enumerate(runs)),
    )


def isolated_row(runs: Sequence[IsolatedRun], ceiling: int | None) -> SweepRow:
    """The sessions of one policy and budget; at least one."""
    first = runs[0]
    return SweepRow(
        protocol="isolated",
        policy=first.policy,
        ceiling=ceiling,
        budget=next((run.budget for run in runs if run.budget.ceiling == ceiling), Limits(ceiling=ceiling)),
        measured=added(run.measured for run in runs),
        parts=tuple(_part(run.source, run.measured) for run in runs),
    )


def _part(name: str, one: Measured) -> PartRow:
    return PartRow(
        name=name,
        calls=one.calls,
        record_tokens=one.record_tokens,
        peak_view_tokens=one.peak_view_tokens,
        usd=one.bill.total_usd,
        missed=one.misses.missed,
        calls_missing=one.misses.calls,
    )


def by_ceiling(rows: Iterable[SweepRow], protocol: Protocol, policy: str) -> dict[int | None, SweepRow]:
    """The rows of one policy; where nothing is evicted there is only the one without a ceiling."""
    return {row.ceiling: row for row in rows if row.protocol == protocol and row.policy in (policy, "none")}
