"""One call of the model, with everything that a person would do when it fails: what passes is waited for, the rest is reported at once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from tenure.agent.events import CallDelta, Event, Retrying, TextDelta, ThinkingDelta
from tenure.agent.retries import wait_for
from tenure.apis.reply import Delta, WholeReply
from tenure.errors import Failure, ModelError
from tenure.models.speaker import Speaker

EMPTY: Final = Failure.BAD_REPLY  # what a reply without text and calls is


class Cut(Struct, frozen=True, kw_only=True):
    """The person stopped the call; `text` is what had come of the reply."""

    text: str = ""


async def until_stopped(work: "asyncio.Future[Any]", stop: asyncio.Event) -> None:
    """Wait for `work` until `stop` is set; what is not done then goes on, and is the caller's."""
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()


class ModelRequest:
    """Asks one model. Mutable: it keeps what a reply has streamed."""

    def __init__(
        self,
        speaker: Speaker,
        *,
        say: Callable[[Event], None],
        stop: asyncio.Event,
        wait: Callable[[float], Awaitable[None]],
        chance: Callable[[], float],
    ) -> None:
        """`stop` is set when the person has had enough; `wait` passes seconds."""
        self._speaker, self._say, self._stop, self._wait, self._chance = speaker, say, stop, wait, chance
        self._streamed: list[str] = []

    async def reply(self, body: Callable[[], Awaitable[bytes]], *, shrink: Callable[[ModelError], bool]) -> WholeReply | Cut:
        """The reply to a request, which is made anew for each attempt. Raises the last ModelError when there is none.

        `shrink` makes room when a provider says that the request is too long; False when there is nothing to be had. That is tried once.
        """
        failed, is_shrunk = Counter[Failure](), False
        while True:
            whole: WholeReply | None = None
            try:
                request = await body()
                if self._stop.is_set():  # while a helper was waited for
                    return Cut()
                whole = await self._attempt(request)
                if whole is None:
                    return Cut(text="".join(self._streamed))
                if not whole.is_empty or whole.end != "done":
                    return whole
                error = ModelError(EMPTY, f"{self._speaker.name}: the reply is empty")
            except ModelError as raised:
                error = raised
            if error.kind is Failure.TOO_LONG and not is_shrunk and shrink(error):
                is_shrunk = True
                self._say(Retrying(text=str(error), kind=error.kind, attempt=2, most=2, discard=bool(error.said)))
                continue
            failed[error.kind] += 1
            if await self._may_go_on(error, failed[error.kind]):
                continue
            if whole is not None:
                return whole
            if self._stop.is_set():
                return Cut()
            raise error

    async def _may_go_on(self, error: ModelError, failed: int) -> bool:
        """Wait as long as it is wise to; False to give up, or when the person has had enough."""
        wait = wait_for(error.kind, failed, asked_s=error.retry_after_s, chance=self._chance())
        if wait is None or self._stop.is_set():
            return False
        text, discard = str(error), bool(self._streamed)
        times = {"attempt": wait.attempt, "most": wait.most}
        self._say(Retrying(text=text, kind=error.kind, wait_s=wait.seconds, discard=discard, **times))
        waiting = asyncio.ensure_future(self._wait(wait.seconds))
        try:
            await until_stopped(waiting, self._stop)
        finally:
            waiting.cancel()
        return not self._stop.is_set()

    async def _attempt(self, body: bytes) -> WholeReply | None:
        """The reply of one attempt; None when the person stopped it."""
        self._streamed.clear()
        hearing = asyncio.ensure_future(self._hear(body))
        try:
            await until_stopped(hearing, self._stop)
            return hearing.result() if hearing.done() else None
        finally:
            hearing.cancel()
            await asyncio.wait({hearing})

    async def _hear(self, body: bytes) -> WholeReply:
        stream = self._speaker.speak(body)
        try:
            async for piece in stream:
                if isinstance(piece, WholeReply):
                    return piece
                self._tell(piece)
        finally:
            await stream.aclose()
        raise ModelError(Failure.CUT_SHORT, f"{self._speaker.name}: the reply has no end")

    def _tell(self, piece: Delta) -> None:
        match piece.kind:
            case "text":
                self._streamed.append(piece.text)
                self._say(TextDelta(text=piece.text))
            case "thinking":
                self._say(ThinkingDelta(text=piece.text))
            case "arguments":
                self._say(CallDelta(place=piece.place, tool=piece.tool, text=piece.text))
