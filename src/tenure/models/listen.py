"""Asking over a connection: one thread listens, the one that asks can stop it at any moment. Everything decided here is a neighbour's.

A call has a thread and an event loop of its own, so it can be made from anywhere, also from within a running loop, and stopping it closes
the connection wherever it stands: in the look-up of a name, in the handshake, in the SDK's wait before it tries again, in a silent stream.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum, auto
from threading import Event, Thread
from typing import Final

from msgspec import Struct

from tenure.engine.meter.price import Prices, prices_for
from tenure.engine.record.entry import Usage
from tenure.errors import Failure, InputError, ModelError
from tenure.models.failures import Trouble, sentence, told_trouble, trouble
from tenure.models.question import Answer, Question
from tenure.models.replies import LONGEST, Heard, Reader, answered, shortfall

Cancel = Event | Callable[[], bool]  # set, or true: stop now. Looked at in the thread that asks, every 50 ms

POLL_S: Final = 0.05
GRACE_S: Final = 2.0  # how long a stopped call may take to close its connection before it is left to itself
MOST_RETRIES: Final = 10


class Patience(Struct, frozen=True, kw_only=True):
    """How long a call may take, in seconds, and how often the SDK may try again by itself.

    `connect_s` is for one attempt to connect, `total_s` for everything: attempts, waits between them, and the whole stream.
    """

    retries: int = 2
    connect_s: float = 10.0
    total_s: float = 600.0

    def __post_init__(self) -> None:
        if not 0 <= self.retries <= MOST_RETRIES:
            raise InputError("patience", f"retries {self.retries}", f"0 to {MOST_RETRIES}")
        if not (0 < self.connect_s < float("inf") and 0 < self.total_s < float("inf")):
            raise InputError("patience", f"connect_s {self.connect_s}, total_s {self.total_s}", "seconds above 0")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Line:
    """A model at the other end of a connection."""

    model: str
    host: str
    events: Callable[[bytes], AsyncGenerator[object, None]]  # opens a connection, sends a body, brings the stream's events
    reader: Callable[[], Reader]
    patience: Patience
    provider: str  # whose prices hold; empty: unknown
    prices: Prices | None
    secrets: tuple[str, ...]

    @property
    def who(self) -> str:
        """The model in words, for messages."""
        return f"{self.model} at {self.host}"

    def ask(self, question: Question, body: bytes, cancel: Cancel | None) -> Answer:
        """Send `body` and hear the answer out. Raises ModelError, and KeyboardInterrupt when the person has had enough."""
        reader = self.reader()
        try:
            end = hear(lambda: self.events(body), reader.take, cancel=cancel, total_s=self.patience.total_s)
        except Exception as error:
            heard = reader.heard()
            found = trouble(error, begun=bool(heard.text), host=self.host)
            if found is None:
                raise
            raise self._error(found, heard) from None  # an SDK's error may hold a key, in its words or in its request
        return self._concluded(end, reader.heard(), question)

    def _concluded(self, end: "End", heard: Heard, question: Question) -> Answer:
        if end is End.CANCELLED:
            raise self._error(Trouble(kind=Failure.CANCELLED), heard)
        if end is End.TIMED_OUT:
            kind = Failure.CUT_SHORT if heard.text else Failure.UNAVAILABLE
            raise self._error(Trouble(kind=kind, detail=f"not done within {self.patience.total_s:g} seconds"), heard)
        if heard.error is not None:
            raise self._error(told_trouble(heard.error, begun=bool(heard.text)), heard)
        if missing := shortfall(heard):
            raise self._error(Trouble(kind=missing[0], detail=missing[1]), heard)
        text = answered(heard.text, question)
        if text is None:
            raise self._error(Trouble(kind=Failure.BAD_REPLY, detail="no JSON, where JSON was asked for"), heard)
        cost_usd = self._cost_usd(heard.model, heard.usage)
        return Answer(text=text, model=heard.model or self.model, stop=heard.stop, usage=heard.usage, cost_usd=cost_usd)

    def _error(self, found: Trouble, heard: Heard) -> ModelError:
        return ModelError(
            found.kind,
            sentence(self.who, found, self.secrets),
            said=heard.text,
            usage=heard.usage,
            cost_usd=self._cost_usd(heard.model, heard.usage),
            retry_after_s=found.retry_after_s,
            overflow=found.overflow,
        )

    def _cost_usd(self, model: str, usage: Usage | None) -> float | None:
        if usage is None:
            return None
        if self.prices is not None:
            return self.prices.cost_usd(usage)
        names = [name for name in (model, self.model) if name and self.provider]
        listed = [prices_for(name, self.provider, prompt=usage.prompt) for name in names]
        return next((prices.cost_usd(usage) for prices in listed if prices.known), None)


class End(Enum):
    """How listening ended, other than by an error."""

    COMPLETE = auto()
    CANCELLED = auto()
    TIMED_OUT = auto()


def hear(
    events: Callable[[], AsyncGenerator[object, None]],
    take: Callable[[object], None],
    *,
    cancel: Cancel | None = None,
    total_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> End:
    """Give every event to `take`, until there are no more, the caller cancels, or time is up. Raises what the events raise."""
    cancelled = cancel.is_set if isinstance(cancel, Event) else cancel
    if cancelled is not None and cancelled():
        return End.CANCELLED
    deadline = clock() + total_s
    listener = _Listener(events, take)
    try:
        while not listener.done.wait(POLL_S):
            if cancelled is not None and cancelled():
                return End.CANCELLED
            if clock() > deadline:
                return End.TIMED_OUT
    finally:
        listener.stop()
    if listener.error is not None:
        raise listener.error
    return End.COMPLETE


class _Listener:
    """A thread with an event loop that takes in one stream."""

    def __init__(self, events: Callable[[], AsyncGenerator[object, None]], take: Callable[[object], None]) -> None:
        self.done = Event()
        self.error: BaseException | None = None
        self._events, self._take = events, take
        self._stopping = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None
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
            asyncio.run(self._listen())
        except BaseException as error:  # whatever it is, it is raised again in the thread that asks
            self.error = error
        finally:
            self.done.set()

    async def _listen(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = asyncio.get_running_loop(), task
        if self._stopping:
            return
        size = 0
        async with aclosing(self._events()) as stream:
            async for event in stream:
                self._take(event)
                size += len(str(event))
                if size > LONGEST:
                    raise OSError("the stream does not end")
