"""A turn: the model is asked, its calls are carried out, until it has no more to do (an edge).

The order is what makes a kill harmless: a reply is in the record before its first call runs, a result before the next call or request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tenure.agent.breaker import Breaker
from tenure.agent.calls import CallRunner
from tenure.agent.events import Event, Failed, Noticed, Reason, Requested, TurnDone, TurnStarted
from tenure.agent.model_call import Cut, ModelCall
from tenure.agent.notes import TailNotes
from tenure.agent.overflow import ModelWindow
from tenure.agent.recorder import Recorder
from tenure.agent.settings import Allowance
from tenure.agent.spending import Spending
from tenure.apis.media import Source
from tenure.apis.reply import WholeReply
from tenure.errors import Conflict, ModelError, TenureError

BY_THE_USER: Final = "interrupted by the user"
INTERRUPTED: Final = "[interrupted: this program was stopped while the call ran; whether it had an effect is not known, so look before you do it again]"
NOT_RUN: Final = "[not run: the reply that made this call was broken off by a refusal]"
ELSEWHERE: Final = (
    "this session went on elsewhere meanwhile, in another process; nothing is lost: open it again to go on behind that"
)
PAUSES: Final = 8  # times in a row that a provider may ask to be asked to go on


class Ended(Struct, frozen=True, kw_only=True):
    """Why a turn is over."""

    reason: Reason
    why: str = ""


class Loop:
    """Plays the turns of one session. Mutable: it counts."""

    def __init__(
        self,
        recorder: Recorder,
        asking: ModelCall,
        calls: CallRunner,
        notes: TailNotes,
        spending: Spending,
        *,
        tools: Callable[[], Sequence[Mapping[str, Any]]],
        fields: Mapping[str, Any],
        allowance: Allowance,
        reserve: int,
        say: Callable[[Event], None],
        stop: asyncio.Event,
        seconds: Callable[[], float],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`tools` gives those of the next request, `fields` are the same for every one; `reserve` are tokens that a reply may take; `changed` is told of a changed folder."""
        self._recorder, self._asking, self._calls, self._notes, self._spending = recorder, asking, calls, notes, spending
        self._tools, self._fields, self._allowance, self._reserve = tools, dict(fields), allowance, reserve
        self._say, self._stop, self._seconds, self._changed = say, stop, seconds, changed
        self._window = ModelWindow.of(recorder.context.session.setup.budget)
        self._text = ""
        self._steps = 0

    async def turn(self, text: str, images: Sequence[Source] = ()) -> None:
        """One turn, from what the person says to the event that ends it. Never raises but asyncio.CancelledError."""
        began, before = self._seconds(), self._spending.spent
        self._text, self._steps = "", 0
        try:
            self._recorder.unresolved(self._recorder.unanswered, INTERRUPTED)
            entry = self._recorder.human(text, images) if text or images else -1
            self._say(TurnStarted(text=text, entry=entry))
            ended = await self._played()
        except ModelError as error:
            self._say(Failed(text=str(error), kind=error.kind))
            ended = Ended(reason="failed", why=str(error))
        except Conflict:
            self._say(Failed(text=ELSEWHERE))
            ended = Ended(reason="failed", why=ELSEWHERE)
        except (TenureError, OSError) as error:
            self._say(Failed(text=str(error)))
            ended = Ended(reason="failed", why=str(error))
        spent = self._spending.spent.since(before)
        self._say(
            TurnDone(
                reason=ended.reason,
                text=self._text,
                why=ended.why,
                steps=self._steps,
                usage=spent.usage,
                usd=spent.usd,
                unpriced=spent.unpriced,
                seconds=self._seconds() - began,
            )
        )

    async def _played(self) -> Ended:
        breaker, pauses = Breaker(), 0
        self._calls.changed = True
        while True:
            if over := self._spending.over(self._allowance, self._steps):
                return Ended(reason=over[0], why=over[1])
            whole = await self._asked()
            if isinstance(whole, Cut):
                return self._cancelled(whole.said)
            self._text = whole.text
            pauses = pauses + 1 if whole.end == "paused" else 0
            if ended := self._ended(whole, pauses):
                self._recorder.unresolved(whole.calls, NOT_RUN)
                return ended
            if whole.end == "length" and whole.calls:
                self._say(Noticed(text=f"the reply was cut short: {whole.why}"))
            breaker = await self._calls.run(whole.calls, breaker, cut=whole.end == "length")
            if self._stop.is_set():
                return self._cancelled("")
            if wanted := self._calls.wanted:
                return Ended(reason="needs approval", why=f"{wanted.summary}: {wanted.reason}")
            if breaker.cycle.stops:
                return Ended(reason="stuck", why=breaker.cycle.words)

    async def _asked(self) -> WholeReply | Cut:
        """The next reply, recorded."""
        if self._calls.changed:
            self._calls.changed = False
            await self._changed()
        if self._stop.is_set():
            return Cut()
        self._steps += 1
        began = self._seconds()
        whole = await self._asking.reply(self._body, shrink=self._shrink)
        if isinstance(whole, Cut):
            return whole
        sent = self._recorder.context.gauge.tokens
        self._spending.called(whole.usage, estimated=sent)
        if not whole.is_empty:
            for event in self._recorder.reply(whole, self._seconds() - began):
                self._say(event)
            self._window = self._window.answered(whole.usage, estimated=sent)
            self._recorder.bound(self._window.budget)
        return whole

    def _body(self) -> bytes:
        notes = self._notes.now()
        body, left = self._recorder.request(tools=self._tools(), fields=self._fields, notes=notes)
        for event in left:
            self._say(event)
        self._say(Requested(step=self._steps, tokens=self._recorder.context.gauge.tokens, notes=notes))
        return body

    def _shrink(self, error: ModelError) -> bool:
        """Learn from a refusal how small the window is, so that the next request is evicted to its floor. False when nothing may leave."""
        session = self._recorder.context.session
        before = session.view.tokens
        sent = self._recorder.context.gauge.tokens
        self._window = self._window.refused(error.overflow, sent=sent, reserve=self._reserve)
        self._recorder.bound(self._window.budget)
        for event in self._recorder.squeezed():
            self._say(event)
        return session.view.tokens < before

    def _ended(self, whole: WholeReply, pauses: int) -> Ended | None:
        """Whether the turn is over with this reply."""
        if whole.end == "refused":
            return Ended(reason="refused", why=whole.why)
        if whole.calls or (whole.end == "paused" and pauses <= PAUSES):
            return None
        if whole.end != "done":
            return Ended(reason="cut short", why=whole.why)
        return Ended(reason="done") if not whole.is_empty else Ended(reason="failed", why="the model said nothing")

    def _cancelled(self, said: str) -> Ended:
        for event in self._recorder.cut_off(said, BY_THE_USER):
            self._say(event)
        return Ended(reason="cancelled", why=BY_THE_USER)
