"""One job done: sessions read, replayed, judged. What comes back are numbers under the names of members, wherever the corpus lies."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.lab.cuts import cuts
from tenure.lab.events import AccumulatingRun, Billed, CutLine, IsolatedRun, Needed, Profile
from tenure.lab.evidence.corpus import address_of, source_of
from tenure.lab.evidence.held_out import judged
from tenure.lab.evidence.jobs import (
    BESIDE,
    PRUNE,
    PRUNES,
    TARGETED,
    TARGETS,
    Job,
    Layout,
    OfSession,
    Together,
    ceilings_of,
)
from tenure.lab.evidence.origins import ALL
from tenure.lab.protocols.accumulating import accumulating
from tenure.lab.protocols.compaction import compacted
from tenure.lab.protocols.conditions import UNBOUNDED, budget_of, limits
from tenure.lab.protocols.curves import curves
from tenure.lab.protocols.isolated import isolated
from tenure.lab.protocols.tasks import Task, laid_out
from tenure.lab.protocols.workload import profile
from tenure.lab.replay import Source
from tenure.lab.validation import compare

Line = Profile | CutLine | IsolatedRun | AccumulatingRun | Task | Needed | Billed


class Found(Struct, frozen=True):
    """What came of a job."""

    lines: tuple[Line, ...] = ()


def work(job: Job) -> Found:
    """Raises InputError when a session of the job cannot be read."""
    tokenizer = o200k()
    match job:
        case OfSession():
            one = _read_once(source_of(job.folder, job.member.name))
            return Found(tuple(OF_SESSION[job.what](one, tokenizer)))
        case Layout():
            return Found(tuple(_laid_out(job, tokenizer)))
        case Together():
            return Found((_together(job, tokenizer),))
        case _:
            assert_never(job)


def _read_once(one: Source) -> Source:
    """The session, parsed once however often it is replayed."""
    name, events = one.events()
    held = tuple(events)
    return replace(one, events=lambda: (name, iter(held)))


def _profile(one: Source, tokenizer: Tokenizer) -> Iterator[Line]:
    yield profile(one, tokenizer)


def _cuts(one: Source, tokenizer: Tokenizer) -> Iterator[Line]:
    """At each share; at the one of the goals also what takes just as much as each other policy took."""
    policies = {name: policy for name in ALL if (policy := judged(ALL[name], one.path)) is not None}
    for prune in PRUNES:
        beside = {name: policies[name] for name in BESIDE} if prune == PRUNE else {}
        yield from cuts(one, policies, tokenizer, prune=prune, beside=beside, oracles=True)


def _alone(one: Source, tokenizer: Tokenizer) -> Iterator[Line]:
    """Without eviction, under ceilings, and with targets. Below its limit nothing happens in a session, so it is not run again."""
    free = isolated(one, None, budget_of(None), tokenizer)
    yield free
    targeted = [(name, Budget(target=target, window=UNBOUNDED)) for name in TARGETED for target in TARGETS]
    ceiled = [(name, budget_of(ceiling)) for name in ALL for ceiling in ceilings_of(name)]
    for name, budget in (*ceiled, *targeted):
        if free.measured.peak_view_tokens <= budget.limit:
            yield replace(free, policy=name, budget=limits(budget))
        else:
            yield isolated(one, judged(ALL[name], one.path), budget, tokenizer)


def _needed(one: Source, tokenizer: Tokenizer) -> Iterator[Line]:
    yield Needed(source=one.path, curves=curves(one, tokenizer))


def _billed(one: Source, tokenizer: Tokenizer) -> Iterator[Line]:
    compared = compare(one, tokenizer)
    if compared is not None:
        yield Billed(compared=compared)


def _laid_out(job: Layout, tokenizer: Tokenizer) -> Iterator[Line]:
    names = {address_of(job.folder, member.name): member.name for member in job.members}
    for tasks in laid_out(names, tokenizer):
        yield from (replace(task, source=names[task.source], project=_folder_of(names[task.source])) for task in tasks)


def _together(job: Together, tokenizer: Tokenizer) -> Line:
    tasks = tuple(replace(task, source=address_of(job.folder, task.source)) for task in job.tasks)
    if job.compacting is not None:
        run = compacted(tasks, job.compacting, tokenizer)
    else:
        run = accumulating(tasks, ALL.get(job.policy), budget_of(job.ceiling), tokenizer)
    named = tuple(replace(found, source=task.source) for found, task in zip(run.tasks, job.tasks, strict=True))
    return replace(run, tasks=named)


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


# What is done with each session, by name.
OF_SESSION: Final[Mapping[str, Callable[[Source, Tokenizer], Iterator[Line]]]] = MappingProxyType(
    {"profile": _profile, "alone": _alone, "cuts": _cuts, "needs": _needed, "billed": _billed}
)
