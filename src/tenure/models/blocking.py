"""The one place where an asynchronous call is waited for: a thread with an event loop of its own works, the one that asks can stop it at any moment.

So a call can be made from anywhere, also from within a running loop, and stopping it closes the connection wherever it stands: in the look-up of a
name, in the handshake, in the SDK's wait before it tries again, in a silent stream.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from math import inf
from threading import Event, Thread
from typing import Any, Final, Generic, TypeVar

from tenure.models.question import Cancel, is_cancelled

POLL_S: Final = 0.05
GRACE_S: Final = 2.0  # how long a stopped call may take to close its connection before it is left to itself

T = TypeVar("T")


class Stopped(Enum):
    """Why a call was ended from outside."""

    CANCELLED = auto()
    TIMED_OUT = auto()


def run(
    call: Callable[[], Coroutine[Any, Any, T]],
    *,
    cancel: Cancel | None = None,
    total_s: float = inf,
    clock: Callable[[], float] = time.monotonic,
) -> T | Stopped:
    """What the call returns, unless the caller cancels it or time is up before. Raises what it raises."""
    if is_cancelled(cancel):
        return Stopped.CANCELLED
    deadline = clock() + total_s
    worker = _Worker(call)
    try:
        while not worker.done.wait(POLL_S):
            if is_cancelled(cancel):
                return Stopped.CANCELLED
            if clock() > deadline:
                return Stopped.TIMED_OUT
    finally:
        worker.stop()
    if worker.error is not None:
        raise worker.error
    return worker.results[0]


class _Worker(Generic[T]):
    """A thread with an event loop that makes one call."""

    def __init__(self, call: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.done = Event()
        self.results: list[T] = []
        self.error: BaseException | None = None
        self._call = call
        self._stopping = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        Thread(target=self._run, name="tenure-model", daemon=True).start()

    def stop(self) -> None:
        """Close the connection, if it is open still, and wait until it is closed, though not for ever."""
        self._stopping = True
        if self._task is not None and not self.done.is_set():
            loop, task = self._task
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:
                return  # the loop has just come to its end by itself
        self.done.wait(GRACE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as error:  # whatever it is, it is raised again in the thread that asks
            self.error = error
        finally:
            self.done.set()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = asyncio.get_running_loop(), task
        if not self._stopping:
            self.results.append(await self._call())
