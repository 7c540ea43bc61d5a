"""One thread at a time: a context is changed by its methods, and a second thread that comes in between is told so. An event loop hands them to one."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from tenure.errors import InputError

S = TypeVar("S", bound=Any)
P = ParamSpec("P")
T = TypeVar("T")


def alone(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method of an object with a lock, `turn`, that raises InputError, and does nothing, while another thread is in one of the same object's."""

    @wraps(method)
    def called(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self.turn.acquire(blocking=False):
            raise InputError(
                method.__name__,
                "another thread at work in this context",
                "one at a time: a context for each thread, or a lock of yours",
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            self.turn.release()

    return called


def in_thread(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A method to be awaited, which runs in a thread, so that an event loop goes on while it waits for a model or a store."""

    @wraps(method)
    async def awaited(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *args, **kwargs)

    return awaited
