"""Who does the jobs: this process, several of this machine, or a cluster (an edge).

What comes back of a job is bytes, or why there are none. An engine gives each job's place with its answer as soon as there is one, in any order, and
to each job exactly one. A worker that dies - killed, out of memory - costs the job that killed it, not those that ran beside it.
"""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from threading import Thread
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tenure.errors import InputError
from tenure.extras import NotInstalled
from tenure.lab.spread.keep import code_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class SpreadJob(Protocol):
    """What is to be done: a small frozen value that can be pickled."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def identity(self) -> str:
        """Everything that the result depends on, beside its name and the code: settings, and the hash of the content of what is read."""
        ...


class FailedJob(Struct, frozen=True, kw_only=True):
    """A job that came to no result."""

    name: str
    kind: str  # of error, by its class
    reason: str


def died(job: SpreadJob) -> FailedJob:
    """That whoever did the job did not live to tell."""
    return FailedJob(name=job.name, kind="WorkerDied", reason="the process that ran it ended without a word")


Answer = bytes | FailedJob
J = TypeVar("J", bound=SpreadJob)


class Work(Struct, Generic[J], frozen=True):
    """`work`, as the engines run it. Picklable when `work` is a function of a module."""

    work: Callable[[J], Struct]
    code: str  # of whoever asks; another here would mix results of two versions

    def __call__(self, job: J) -> Answer:
        """The result as MessagePack, in which no float loses a digit."""
        try:
            if code_of(self.work) != self.code:
                return FailedJob(
                    name=job.name, kind="OtherCode", reason="the code where it ran is not the code that asked for it"
                )
            return msgspec.msgpack.encode(self.work(job))
        except Exception as error:  # whatever it was: the other jobs go on, and this one is named
            return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error))


class Engine(Protocol):
    """Runs a task on jobs."""

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """Each job's place with its answer, in any order."""
        ...


def one_process(task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
    """One after another, here."""
    for place, job in enumerate(jobs):
        yield place, task(job)


class Processes(Struct, frozen=True):
    """Several processes of this machine, started anew, so that they work alike on every system."""

    count: int

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """As many at a time as there are processes. Jobs that a dead worker left are done again, each alone: then it is plain whose fault it was."""
        left = yield from _pooled(task, dict(enumerate(jobs)), self.count)
        for place, job in left.items():
            if (yield from _pooled(task, {place: job}, 1)):
                yield place, died(job)


def _pooled(task: Work[J], jobs: dict[int, J], count: int) -> Generator[tuple[int, Answer], None, dict[int, J]]:
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


def _answer(future: "Future[Answer]", job: SpreadJob) -> Answer | None:
    """None when the worker died."""
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # it could not be handed over, such as what cannot be pickled
        return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error))


def _as_worker(parent: "Connection") -> None:
    """A worker dies silently when its user interrupts the work, and does not outlive who started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: "Connection") -> None:
    parent.poll(None)  # nothing is ever said: there is news only when the other end closes
    os._exit(1)


class OnRay(Struct, frozen=True):
    """A Ray cluster; `ray` is the module, which is imported only when it is asked for.

    Every node needs this package in the same version (a worker that runs other code says so) and the files of the jobs under the same paths. The
    cluster is the one that `RAY_ADDRESS` names or that this process is connected to; without either one is started on this machine and stopped again.
    """

    ray: ModuleType
    workers: int  # of a cluster that is started here
    ahead: int = 4  # jobs handed over for each core, so that none waits for the next one

    @classmethod
    def found(cls, workers: int) -> "OnRay":
        """Raises NotInstalled where Ray is not installed."""
        try:
            return cls(import_module("ray"), workers)
        except ImportError as error:
            raise NotInstalled("ray") from error

    def __call__(self, task: Work[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
        """As many at a time as the cluster has cores. A job whose worker died is tried three times more, as Ray does, and then fails."""
        ours = self._connected()
        waiting: dict[Any, int] = {}
        try:
            run = self.ray.remote(_run)
            handed = self.ray.put(task)
            room = max(1, int(self.ray.cluster_resources().get("CPU", 1))) * self.ahead
            rest = enumerate(jobs)
            while True:
                while len(waiting) < room and (following := next(rest, None)) is not None:
                    place, job = following
                    waiting[run.remote(handed, job)] = place
                if not waiting:
                    return
                (done, *_), _ = self.ray.wait(list(waiting), num_returns=1)
                place = waiting.pop(done)
                yield place, self._answer(done, jobs[place])
        finally:
            for job in waiting:  # of whoever stopped listening
                self.ray.cancel(job, force=True)
            if ours:
                self.ray.shutdown()

    def _connected(self) -> bool:
        """Whether the connection is made here, and so is ours to end."""
        if self.ray.is_initialized():
            return False
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray would otherwise warn of
        size = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.workers, "include_dashboard": False}
        self.ray.init(log_to_driver=False, logging_level="ERROR", **size)
        return True

    def _answer(self, done: Any, job: SpreadJob) -> Answer:
        errors = self.ray.exceptions
        try:
            return self.ray.get(done)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            return died(job)
        except Exception as error:  # what it was handed cannot be read there, such as a module that the node has not
            return FailedJob(name=job.name, kind=type(error).__name__, reason=str(error).strip().rpartition("\n")[2])


def _run(task: Work[J], job: J) -> Answer:
    return task(job)


ENGINES: Final[Mapping[str, Callable[[int], Engine]]] = MappingProxyType(
    {"local": lambda _: one_process, "processes": Processes, "ray": OnRay.found}
)


def engine_named(name: str, workers: int = 0) -> Engine:
    """The engine of that name; `workers` of 0 are as many as there are cores. Raises InputError for no such engine, or one not installed."""
    if name not in ENGINES:
        raise InputError("--engine", repr(name), "one of " + ", ".join(ENGINES))
    return ENGINES[name](workers or os.cpu_count() or 1)
