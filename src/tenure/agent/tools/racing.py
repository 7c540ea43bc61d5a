"""Waiting with an end."""

import asyncio
from collections.abc import Awaitable
from enum import Enum
from typing import Any

from tenure.agent.tools.tool import Here


class End(Enum):
    """How waiting ended."""

    DONE = "done"
    LATE = "late"
    CANCELLED = "cancelled"


async def ended(work: "asyncio.Future[Any]", here: Here, limit_s: float) -> End:
    """Wait for `work`, at most `limit_s` seconds and until the call is cancelled. `work` goes on if it is not done; that is the caller's."""
    late, stop = _task(here.wait(limit_s)), _task(here.cancel.wait())
    try:
        await asyncio.wait({work, late, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        late.cancel()
        stop.cancel()
    if work.done():
        return End.DONE
    return End.CANCELLED if here.cancel.is_set() else End.LATE


class Patience:
    """For work that goes step by step: whether to go on. Use with `with`."""

    def __init__(self, here: Here, limit_s: float) -> None:
        self._cancel, self._late = here.cancel, _task(here.wait(limit_s))

    async def ends(self) -> bool:
        """Whether time is up or the call is cancelled; others have their turn meanwhile."""
        await asyncio.sleep(0)
        return self._late.done() or self._cancel.is_set()

    def __enter__(self) -> "Patience":
        return self

    def __exit__(self, *_: object) -> None:
        self._late.cancel()


def _task(awaitable: Awaitable[object]) -> "asyncio.Future[object]":
    return asyncio.ensure_future(awaitable)
