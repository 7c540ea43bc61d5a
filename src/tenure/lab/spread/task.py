"""One job done, wherever it is done: what comes back is bytes, or why there are none."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from tenure.lab.spread.code import code_of


class Job(Protocol):
    """What is to be done: a small frozen value that can be pickled."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def identity(self) -> str:
        """Everything that the result depends on, beside its name and the code: settings, and the hash of the content of what is read."""
        ...


class Failed(Struct, frozen=True, kw_only=True):
    """A job that came to no result."""

    name: str
    kind: str  # of error, by its class
    reason: str


def died(job: Job) -> Failed:
    """That whoever did the job did not live to tell."""
    return Failed(name=job.name, kind="WorkerDied", reason="the process that ran it ended without a word")


Answer = bytes | Failed
J = TypeVar("J", bound=Job)


class Task(Struct, Generic[J], frozen=True):
    """`work`, as the engines run it. Picklable when `work` is a function of a module."""

    work: Callable[[J], Struct]
    code: str  # of whoever asks; another here would mix results of two versions

    def __call__(self, job: J) -> Answer:
        """The result as MessagePack, in which no float loses a digit."""
        try:
            if code_of(self.work) != self.code:
                return Failed(name=job.name, kind="OtherCode", reason="the code where it ran is not the code that asked for it")
            return msgspec.msgpack.encode(self.work(job))
        except Exception as error:  # whatever it was: the other jobs go on, and this one is named
            return Failed(name=job.name, kind=type(error).__name__, reason=str(error))
