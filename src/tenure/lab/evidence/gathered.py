"""All that was measured of a corpus, in an order that does not depend on who measured it when (an edge: it runs the work)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.lab.events import AccumulatingRun, Billed, Compared, Curves, CutLine, IsolatedRun, Needed, Profile
from tenure.lab.evidence.corpus import Corpus, told
from tenure.lab.evidence.jobs import Job, OfSession, Together, layout, of_sessions, together
from tenure.lab.evidence.sections.detector import Label
from tenure.lab.evidence.work import Found, Line, work
from tenure.lab.protocols.accumulating import together as added
from tenure.lab.protocols.tasks import Task
from tenure.lab.protocols.workload import hard_set
from tenure.lab.spread import Engine, Failed, Keep, spread
from tenure.lab.spread.code import code_of

TOGETHER: Final = "together"  # beside the keys of `work.OF_SESSION`
EVERYTHING: Final = ("alone", "cuts", "needs", "billed", TOGETHER)
Progress = Callable[[str, int, int], None]  # what is done, how many of how many


class Gathered(Struct, frozen=True, kw_only=True):
    """What came of everything that was run; empty where it was not asked for."""

    corpus: Corpus
    code: str  # hash of the code that measured
    profiles: tuple[Profile, ...] = ()
    cuts: tuple[CutLine, ...] = ()
    alone: tuple[IsolatedRun, ...] = ()
    needs: dict[str, Curves] = {}  # by session
    billed: tuple[Compared, ...] = ()
    conversations: tuple[tuple[AccumulatingRun, ...], ...] = ()  # for each policy and budget, one for each conversation
    labels: tuple[Label, ...] = ()
    failed: tuple[Failed, ...] = ()

    @property
    def together(self) -> tuple[AccumulatingRun, ...]:
        """Each policy and budget over all conversations."""
        return tuple(added(runs) for runs in self.conversations)

    @property
    def tools(self) -> dict[str, str]:
        """The agent of each session."""
        return {member.name: member.tool for member in self.corpus.members}


def gathered(
    corpus: Corpus,
    whats: Sequence[str],
    engine: Engine,
    *,
    keep: Keep | None = None,
    labels: tuple[Label, ...] = (),
    heard: Progress = lambda _what, _done, _of: None,
) -> Gathered:
    """Run what is asked for: first what every section needs, then the rest, longest first. Raises StoreError when `keep` cannot be written."""
    failed: list[Failed] = []

    def run(what: str, jobs: Sequence[Job]) -> list[tuple[Job, Found]]:
        results = spread(work, jobs, Found, engine=engine, keep=keep, told=lambda done, of: heard(what, done, of))
        pairs = list(zip(jobs, results, strict=True))
        failed.extend(replace(found, reason=told(found.reason, corpus.folder)) for _, found in pairs if isinstance(found, Failed))
        return [(job, found) for job, found in pairs if isinstance(found, Found)]

    seen = run("reading", of_sessions(corpus, ("profile",)))
    profiles = hard_set(line for line in _lines(seen) if isinstance(line, Profile))
    readable = frozenset(each.source for each in profiles)
    sound = replace(corpus, members=tuple(member for member in corpus.members if member.name in readable))
    tasks: list[Task] = []
    if TOGETHER in whats and sound.members:
        tasks += (line for line in _lines(run("laying out", [layout(sound)])) if isinstance(line, Task))
    jobs = [*together(sound, tasks), *of_sessions(sound, [what for what in whats if what != TOGETHER])]
    done = run("running", jobs)
    lines = [line for job, found in done if isinstance(job, OfSession) for line in found.lines]
    return Gathered(
        corpus=corpus,
        code=code_of(work),
        profiles=profiles,
        cuts=tuple(line for line in lines if isinstance(line, CutLine)),
        alone=tuple(line for line in lines if isinstance(line, IsolatedRun)),
        needs={line.source: line.curves for line in lines if isinstance(line, Needed)},
        billed=tuple(line.compared for line in lines if isinstance(line, Billed)),
        conversations=_conversations(done, len({task.conversation for task in tasks})),
        labels=labels,
        failed=tuple(failed),
    )


def _lines(done: Iterable[tuple[Job, Found]]) -> Iterator[Line]:
    return (line for _, found in done for line in found.lines)


def _conversations(done: Iterable[tuple[Job, Found]], count: int) -> tuple[tuple[AccumulatingRun, ...], ...]:
    """By policy and budget, where no conversation is missing: sums over fewer could not be compared."""
    runs: dict[str, dict[int, AccumulatingRun]] = {}
    for job, found in done:
        if isinstance(job, Together):
            way = f"{job.policy} {job.ceiling} {job.compacting}"
            runs.setdefault(way, {})[job.tasks[0].conversation] = next(
                line for line in found.lines if isinstance(line, AccumulatingRun)
            )
    return tuple(tuple(mine[number] for number in sorted(mine)) for mine in runs.values() if len(mine) == count)
