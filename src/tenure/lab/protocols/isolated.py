"""Each session alone, whole, under a budget: what it costs, and what its own later steps miss."""

from collections.abc import Iterable

from msgspec import Struct

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.policy import Policy
from tenure.lab.events import IsolatedRun, Limits, Measured, Profile, Workload
from tenure.lab.protocols.conditions import USUAL, Conditions, limits, options, told
from tenure.lab.protocols.measured import added, measured
from tenure.lab.replay import Source, replay


def isolated(
    source: Source, policy: Policy | None, budget: Budget, tokenizer: Tokenizer, *, conditions: Conditions = USUAL
) -> IsolatedRun:
    """The whole session under the budget; `policy` None evicts nothing. Raises InputError when the source cannot be read."""
    return IsolatedRun(
        source=source.path,
        policy=policy.name if policy else "none",
        budget=limits(budget),
        head_tokens=conditions.head_tokens,
        measured=measured(replay([told(source)], options(policy, budget, conditions), tokenizer)),
    )


class ClassRow(Struct, frozen=True, kw_only=True, tag="class", tag_field="type"):
    """The sessions of one class of work under one policy and one budget, added up."""

    group: str  # a workload, `hard set` or `all`
    policy: str
    budget: Limits
    measured: Measured


def by_class(runs: Iterable[IsolatedRun], profiles: Iterable[Profile]) -> tuple[ClassRow, ...]:
    """The runs by class of work, then those of the hard set and all, in the classes' order and by policy as these first appear."""
    every = tuple(runs)
    known = {profile.source: profile for profile in profiles}
    groups: dict[str, list[IsolatedRun]] = {
        str(workload): [run for run in every if run.source in known and known[run.source].workload is workload]
        for workload in Workload
    }
    groups["hard set"] = [run for run in every if run.source in known and known[run.source].is_hard]
    groups["all"] = list(every)
    return tuple(
        ClassRow(group=group, policy=policy, budget=budget, measured=measured)
        for group, found in groups.items()
        for (policy, budget), measured in pooled(found).items()
    )


def pooled(runs: Iterable[IsolatedRun]) -> dict[tuple[str, Limits], Measured]:
    """The sessions added up by policy and budget, in the order in which these first appear."""
    groups: dict[tuple[str, Limits], list[Measured]] = {}
    for run in runs:
        groups.setdefault((run.policy, run.budget), []).append(run.measured)
    return {key: added(found) for key, found in groups.items()}
