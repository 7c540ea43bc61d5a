"""A turn: the model is asked, its calls are carried out, until it has no more to do (an edge).

The order is what makes a kill harmless: a reply is in the record before its first call runs, a result before the next call or request.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tenure.agent.breaker import Breaker
from tenure.agent.calls import CallRunner
from tenure.agent.events import Event, Noticed, Reason, Requested, TurnDone, TurnFailed, TurnStarted
from tenure.agent.model_call import Cut, ModelRequest
from tenure.agent.opening import Parts
from tenure.agent.overflow import ModelWindow
from tenure.agent.recorder import Recorder
from tenure.agent.spending import Spending
from tenure.agent.tail_notes import TailNotes
from tenure.apis.media import MediaSource
from tenure.apis.reply import WholeReply
from tenure.errors import Conflict, ModelError, TenureError

BY_THE_USER: Final = "interrupted by the user"
INTERRUPTED: Final = "[interrupted: this program was stopped while the call ran; whether it had an effect is not known, so look before you do it again]"
NOT_RUN: Final = "[not run: the reply that made this call was broken off by a refusal]"
ELSEWHERE: Final = (
    "this session went on elsewhere meanwhile, in another process; nothing is lost: open it again to go on behind that"
)
PAUSES: Final = 8  # times in a row that a provider may ask to be asked to go on


class Loop:
    """Plays the turns of one session. Mutable: it counts."""

    def __init__(
        self,
        parts: Parts,
        recorder: Recorder,
        calls: CallRunner,
        notes: TailNotes,
        spending: Spending,
        *,
        tools: Callable[[], Sequence[Mapping[str, Any]]],
        say: Callable[[Event], None],
        stop: asyncio.Event,
    ) -> None:
        """`tools` gives those of the next request; `stop` is set when the person has had enough."""
        self._recorder, self._calls, self._notes, self._spending = recorder, calls, notes, spending
        self._model = ModelRequest(parts.speaker, say=say, stop=stop, wait=parts.world.wait, chance=parts.world.chance)
        self._helping = parts.helping
        self._allowance, self._reserve, self._seconds = parts.settings.allowance, parts.choice.reserve, parts.world.seconds
        self._tools, self._fields, self._say, self._stop = tools, parts.fields, say, stop
        self._looks_back = parts.settings.look_back
        self._window = ModelWindow.of(recorder.context.session.setup.budget)
        self._text = ""
        self._steps = 0

    async def turn(self, text: str, images: Sequence[MediaSource] = ()) -> None:
        """One turn, from what the person says to the event that ends it. Never raises but asyncio.CancelledError."""
        began, before = self._seconds(), self._spending.spent
        self._text, self._steps = "", 0
        reason: Reason = "failed"
        try:
            self._recorder.unresolved(self._recorder.unanswered, INTERRUPTED)
            entry = self._recorder.human(text, images) if text or images else -1
            self._say(TurnStarted(text=text, entry=entry))
            if self._looks_back and text and (fits := await self._notes.look_back(text)):
                self._say(Noticed(text=f"fits what you ask, and left the window: {fits}; the model is told"))
            reason, why = await self._play()
            if reason == "done":
                self._recorder.settle("turn-end")
                self._tell_decided()
        except (TenureError, OSError) as error:
            why = ELSEWHERE if isinstance(error, Conflict) else str(error)
            self._say(TurnFailed(text=why, kind=error.kind if isinstance(error, ModelError) else None))
        spent = self._spending.spent.since(before)
        self._say(
            TurnDone(
                reason=reason,
                text=self._text,
                why=why,
                steps=self._steps,
                usage=spent.usage,
                usd=spent.usd,
                unpriced=spent.unpriced,
                seconds=self._seconds() - began,
            )
        )

    async def command(self, command: str) -> None:
        """A shell command of the person's own, recorded as a call of `bash` behind their words."""
        try:
            self._recorder.unresolved(self._recorder.unanswered, INTERRUPTED)
            entry = self._recorder.human(f"! {command}")
            self._say(TurnStarted(text=f"! {command}", entry=entry))
            await self._calls.by_hand(self._recorder.call_by_hand("bash", {"command": command}))
            self._recorder.close_loop("run by the user")
        except (TenureError, OSError) as error:
            self._say(TurnFailed(text=ELSEWHERE if isinstance(error, Conflict) else str(error)))

    async def _play(self) -> tuple[Reason, str]:
        """Why the turn is over, and more about that for people."""
        breaker, pauses = Breaker(), 0
        self._calls.changed = True
        while True:
            if limit := self._spending.over(self._allowance, self._steps):
                return limit
            whole = await self._reply()
            if isinstance(whole, Cut):
                return self._cancelled(whole.text)
            self._text = whole.text
            pauses = pauses + 1 if whole.end == "paused" else 0
            if end := _end_of(whole, pauses):
                self._recorder.unresolved(whole.calls, NOT_RUN)
                return end
            if whole.end == "length" and whole.calls:
                self._say(Noticed(text=f"the reply was cut short: {whole.why}"))
            breaker = await self._calls.run(whole.calls, breaker, cut=whole.end == "length")
            if self._stop.is_set():
                return self._cancelled("")
            if self._recorder.is_task_over:
                self._recorder.settle("task-boundary")
                self._tell_decided()
            if wanted := self._calls.wanted:
                return "needs approval", f"{wanted.summary}: {wanted.reason}"
            if breaker.cycle.stops:
                return "stuck", breaker.cycle.words

    async def _reply(self) -> WholeReply | Cut:
        """The next reply, recorded."""
        if self._calls.changed:
            self._calls.changed = False
            await self._notes.ask_git()
        if self._stop.is_set():
            return Cut()
        self._steps += 1
        began = self._seconds()
        whole = await self._model.reply(self._body, shrink=self._shrink)
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

    async def _body(self) -> bytes:
        notes, tools = self._notes.now(), self._tools()
        request = partial(self._recorder.request, tools=tools, fields=self._fields, notes=notes)
        is_slow = bool(self._helping.roles - {"digest"})  # a helper's answer may take a minute
        body = await asyncio.to_thread(request) if is_slow else request()
        self._tell_decided()
        self._say(Requested(step=self._steps, tokens=self._recorder.context.gauge.tokens, notes=notes))
        return body

    def _shrink(self, error: ModelError) -> bool:
        """Learn from a refusal how small the window is, so that the next request is evicted to its floor. False when nothing may leave."""
        session = self._recorder.context.session
        before = session.view.tokens
        sent = self._recorder.context.gauge.tokens
        self._window = self._window.refused(error.overflow, sent=sent, reserve=self._reserve)
        self._recorder.bound(self._window.budget)
        self._recorder.settle("before-call")
        self._tell_decided()
        return session.view.tokens < before

    def _tell_decided(self) -> None:
        for event in self._recorder.decided():
            self._say(event)

    def _cancelled(self, text: str) -> tuple[Reason, str]:
        for event in self._recorder.cut_off(text, BY_THE_USER):
            self._say(event)
        return "cancelled", BY_THE_USER


def _end_of(whole: WholeReply, pauses: int) -> tuple[Reason, str] | None:
    """Why the turn is over with this reply; None when it is not."""
    if whole.end == "refused":
        return "refused", whole.why
    if whole.calls or (whole.end == "paused" and pauses <= PAUSES):
        return None
    if whole.end != "done":
        return "cut short", whole.why
    return ("failed", "the model said nothing") if whole.is_empty else ("done", "")
