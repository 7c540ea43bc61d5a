"""A corpus over a Ray cluster (an edge). Ray is imported here only, and only when it is asked for.

Every node needs this package in the same version (a worker that runs other code says so) and the files of the jobs under the same paths. The
cluster is the one that `RAY_ADDRESS` names or that this process is connected to; without either one is started on this machine and stopped again.
"""

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from msgspec import Struct

from tenure.extras import NotInstalled
from tenure.lab.spread.engines import Answer, Failed, J, Job, Task, died


class OnRay(Struct, frozen=True):
    """A cluster; `ray` is the module."""

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

    def __call__(self, task: Task[J], jobs: Sequence[J], /) -> Iterator[tuple[int, Answer]]:
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

    def _answer(self, done: Any, job: Job) -> Answer:
        errors = self.ray.exceptions
        try:
            return self.ray.get(done)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            return died(job)
        except Exception as error:  # what it was handed cannot be read there, such as a module that the node has not
            return Failed(name=job.name, kind=type(error).__name__, reason=str(error).strip().rpartition("\n")[2])


def _run(task: Task[J], job: J) -> Answer:
    return task(job)
