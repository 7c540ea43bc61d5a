"""One thread at a time: a context is changed by its methods, and a second thread that comes in between is told so."""

from collections.abc import Callable
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
