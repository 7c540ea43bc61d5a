"""Who does the jobs: this process, several of this machine, or a cluster (an edge).

An engine gives each job's place with its answer as soon as there is one, in any order, and to each job exactly one. A worker that dies -
killed, out of memory - costs the job that killed it, not those that ran beside it.
"""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from tenure.errors import InputError
from tenure.lab.spread.task import Answer, Failed, J, Job, Task, died

if TYPE_CHECKING:  # names another class on Windows
    from multiprocessing.connection import Connection


class Engine(Protocol):
    """Runs a task on jobs."""

    def __call__(self, task: Task[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """Each job's place with its answer, in any order."""
        ...


def one_process(task: Task[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
    """One after another, here."""
    for place, job in enumerate(jobs):
        yield place, task(job)


class Processes(Struct, frozen=True):
    """Several processes of this machine, started anew, so that they work alike on every system."""

    count: int

    def __call__(self, task: Task[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """As many at a time as there are processes. Jobs that a dead worker left are done again, each alone: then it is plain whose fault it was."""
        left = yield from _pooled(task, dict(enumerate(jobs)), self.count)
        for place, job in left.items():
            if (yield from _pooled(task, {place: job}, 1)):
                yield place, died(job)


def _pooled(task: Task[J], jobs: dict[int, J], count: int) -> Generator[tuple[int, Answer], None, dict[int, J]]:
    """The answers; returns the jobs that have none because a worker died."""
    left = dict(jobs)
    if not left:
        return left
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)  # closed when we end, however we do: then they end too
    pool = ProcessPoolExecutor(min(count, len(jobs)), mp_context=spawn, initializer=_as_worker, initargs=(ours,))
    try:
        places = {pool.submit(task, job): place for place, job in jobs.items()}
        for future in as_completed(places):
            place = places[future]
            if (answer := _answer(future, jobs[place])) is not None:
                del left[place]
                yield place, answer
    except BrokenProcessPool:  # while jobs were still handed over
        pass
    finally:
        if left:  # nobody listens any more: what runs is of no use
            theirs.close()
        pool.shutdown(wait=True, cancel_futures=True)
        theirs.close()
        ours.close()
    return left


def _answer(future: "Future[Answer]", job: Job) -> Answer | None:
    """None when the worker died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # it could not be handed over, such as what cannot be pickled
        return Failed(name=job.name, kind=type(error).__name__, reason=str(error))


def _as_worker(parent: "Connection") -> None:
    """A worker dies silently when its user interrupts the work, and does not outlive who started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: "Connection") -> None:
    parent.poll(None)  # nothing is ever said: there is news only when the other end closes
    os._exit(1)


def _local(_workers: int) -> Engine:
    return one_process


def _ray(workers: int) -> Engine:
    from tenure.lab.spread.on_ray import OnRay

    return OnRay.found(workers)


ENGINES: Final[Mapping[str, Callable[[int], Engine]]] = MappingProxyType({"local": _local, "processes": Processes, "ray": _ray})


def engine_named(name: str, workers: int = 0) -> Engine:
    """The engine of that name; `workers` of 0 are as many as there are cores. Raises InputError for no such engine, or one not installed."""
    if name not in ENGINES:
        raise InputError("--engine", repr(name), "one of " + ", ".join(ENGINES))
    return ENGINES[name](workers or os.cpu_count() or 1)
