"""Carrying out the calls of one reply (an edge).

Calls that change nothing and stand next to each other run together; one that changes something runs alone, in its place. What ran together is
recorded together, in the order of the calls, as soon as all of it is done: so the result of whatever changed the world is in the record before
anything else happens.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from tenure.agent.admission.instructions import NestedInstructions
from tenure.agent.admission.place import shown
from tenure.agent.approval import Approval, ApprovalAnswer, CallVerdict, declined, refused
from tenure.agent.breaker import Breaker, CallAndResult, note
from tenure.agent.events import ApprovalAsked, ApprovalGiven, CallStarted, Event, Noticed
from tenure.agent.model_call import until_stopped
from tenure.agent.opening import Parts
from tenure.agent.recorder import VIRTUAL, FinishedCall, Recorder
from tenure.agent.tools.sandbox import CommandReach
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.agent.workspace import Workspace
from tenure.apis.json_text import load
from tenure.apis.reply import ReplyCall
from tenure.engine.record.tools import cue_of
from tenure.errors import InputError

TOGETHER: Final = 8  # calls that run at once
GRACE_S: Final = 5.0  # a stopped tool may take to answer with what it had, before it is cut off
CUE: Final = 160  # characters of a call's summary

STOPPED: Final = "[interrupted: the user stopped this call before it was done; what it had done by then stays done]"
NOT_BEGUN: Final = "[not run: the user stopped the turn before this call]"
UNANSWERED: Final = "Not done: {}: {}. It needs the user's agreement, and nobody is there to give it."
NOT_REACHED: Final = "[not run: a call before this one needs the user's agreement]"


class CallRunner:
    """Runs the calls of a session's replies. Mutable: it knows what waits for a person."""

    def __init__(
        self, parts: Parts, recorder: Recorder, *, here: Callable[[str], Here], say: Callable[[Event], None], stop: asyncio.Event
    ) -> None:
        """`here` makes the place of a call, by its id; `stop` is set when the person wants everything to end."""
        self._recorder, self._here, self._say, self._stop = recorder, here, say, stop
        self._toolbox, self._permissions, self._snapshots = parts.toolbox, parts.permissions, parts.snapshots
        self._alone, self._seconds = parts.settings.alone, parts.world.seconds
        self._helping, self._nested = parts.helping, NestedInstructions(parts.place)
        self._is_kept = True  # the files were, before the newest change
        self._waiting: dict[str, asyncio.Future[tuple[ApprovalAnswer, str]]] = {}
        self.message = ""  # what the person said last
        self.wanted: Approval | None = None  # what nobody was there to agree to
        self.changed = True  # something may have changed the folder since this was set to False

    def approve(self, call: str, answer: ApprovalAnswer, words: str) -> bool:
        """A person's word; False when nothing waits under that id."""
        waiting = self._waiting.get(call)
        if waiting is None or waiting.done():
            return False
        waiting.set_result((answer, words))
        return True

    async def run(self, made: Sequence[ReplyCall], breaker: Breaker, *, cut: bool) -> Breaker:
        """Carry out the calls of the newest reply and record what came of them. `cut`: the reply was cut short, its last call perhaps with it."""
        self.wanted = None
        deeds: list[CallAndResult] = []
        at = 0
        while at < len(made):
            wave = self._wave(made, at)
            came = await self._together(wave, cut=cut) if wave else [await self._in_its_place(made[at])]
            at += len(came)
            deeds += [CallAndResult(tool=each.made.tool, arguments=each.made.arguments, result=each.text) for each in came]
            if at == len(made):
                breaker = breaker.after(deeds)
                came[-1] = self._recorder.noted(came[-1], note(breaker.cycle)) if breaker.cycle.tells else came[-1]
            results = self._recorder.results(came)
            for event in await asyncio.to_thread(list, results) if "digest" in self._helping.roles else results:
                self._say(event)
        self._instruct(made)
        return breaker

    def _instruct(self, made: Sequence[ReplyCall]) -> None:
        """Say what holds in folders to which the calls of a reply have gone, behind their results."""
        nested = self._nested.reached(path for each in made for path in _named(each, self._here("").workspace))
        if nested.text:
            self._recorder.host(nested.text)
            self._say(Noticed(text=f"instructions of {', '.join(map(shown, nested.shown))} hold from here"))

    async def by_hand(self, made: ReplyCall) -> None:
        """Carry out a call that the person makes, and record what came of it."""
        self._begin(made)
        await self._keep(made, self._here(made.call_id))
        for event in self._recorder.results([await self._done(made, CommandReach.ANYWHERE)]):
            self._say(event)
        self.changed = True

    def _wave(self, made: Sequence[ReplyCall], at: int) -> Sequence[ReplyCall]:
        """The calls from one on that may run together; none when the first changes something."""
        end = at
        while end < len(made) and (made[end].broken or self._is_free(made[end])):
            end += 1
        return made[at:end]

    def _is_free(self, made: ReplyCall) -> bool:
        if made.tool in VIRTUAL:
            return True
        tool = self._toolbox.find(made.tool)
        alone = getattr(tool, "in_its_place", None)
        if alone is not None and alone(made.arguments):
            return False
        return self._toolbox.needs(made.tool, made.arguments, self._here("").workspace) is None

    async def _together(self, wave: Sequence[ReplyCall], *, cut: bool) -> list[FinishedCall]:
        room = asyncio.Semaphore(TOGETHER)

        async def one(made: ReplyCall) -> FinishedCall:
            async with room:
                self._begin(made)
                return await self._done(made, cut=cut)

        return list(await asyncio.gather(*map(one, wave)))

    async def _in_its_place(self, made: ReplyCall) -> FinishedCall:
        """A call that may change something, run alone."""
        self._begin(made)
        if self.wanted is not None:
            return self._not_done(made, NOT_REACHED)
        here = self._here(made.call_id)
        approval = self._toolbox.needs(made.tool, made.arguments, here.workspace)
        episode = self._recorder.context.session.index.graph.open
        verdict, question = self._permissions.verdict(approval, episode, alone=self._alone)
        if verdict is CallVerdict.REFUSE and question is not None:
            return self._not_done(made, refused(question))
        if verdict is CallVerdict.RUN and approval is not None:
            problem = await self._keep(made, here)
            if problem and self._permissions.trusts(approval):
                reason = f"{approval.reason}, and that could not be undone: {problem}"
                verdict, question = CallVerdict.ASK, replace(approval, reason=reason)
        answer = None
        if verdict is CallVerdict.ASK and question is not None:
            answer = await self._ask(made, question)
            if isinstance(answer, FinishedCall):
                return answer
            await self._keep(made, here)
        done = await self._done(made, self._permissions.reach(approval, answer))
        self.changed = self.changed or approval is not None
        return done

    async def _keep(self, made: ReplyCall, here: Here) -> str:
        """Keep the files as they are before a call that may change them; why that could not be done, which is said once."""
        if self._snapshots is None:
            return ""
        also = _named(made, here.workspace)
        problem = await asyncio.to_thread(
            self._snapshots.take, _summary(made), message=self.message, entries=self._recorder.length, also=also
        )
        if problem and self._is_kept:
            self._say(Noticed(text=f"Changes of files cannot be undone: {problem}"))
        self._is_kept = not problem
        return problem

    async def _ask(self, made: ReplyCall, approval: Approval) -> FinishedCall | ApprovalAnswer:
        """What the person says who agrees, or what stands in for a call that may not run."""
        if self._stop.is_set():
            return self._not_done(made, NOT_BEGUN)
        walled = (
            getattr(self._toolbox.find(made.tool), "walled", False)
            and self._permissions.reach(approval) is CommandReach.WORKSPACE
        )
        approval = replace(approval, walled=walled)
        self._say(ApprovalAsked(call=made.call_id, approval=approval))
        if self._alone:
            self.wanted = approval
            return self._not_done(made, UNANSWERED.format(approval.summary, approval.reason))
        waiting = self._waiting[made.call_id] = asyncio.get_running_loop().create_future()
        try:
            await until_stopped(waiting, self._stop)
        finally:
            del self._waiting[made.call_id]
        if not waiting.done():
            waiting.cancel()
            return self._not_done(made, NOT_BEGUN)
        answer, words = waiting.result()
        self._say(ApprovalGiven(call=made.call_id, answer=answer, words=words))
        self._permissions.answered(approval, answer)
        return self._not_done(made, declined(approval, words)) if answer is ApprovalAnswer.NO else answer

    def _begin(self, made: ReplyCall) -> None:
        self._say(CallStarted(call=made.call_id, tool=made.tool, summary=_summary(made), arguments=made.arguments))

    async def _done(self, made: ReplyCall, reach: CommandReach = CommandReach.LOOK, *, cut: bool = False) -> FinishedCall:
        """One call, run to its result."""
        if made.broken:
            return self._recorder.outcome(made, ToolOutcome(text=_broken(made, cut=cut), error=True))
        if self._stop.is_set():
            return self._recorder.outcome(made, ToolOutcome(text=NOT_BEGUN, error=True), outcome="interrupted")
        if made.tool in VIRTUAL:
            return self._recorder.virtual(made)
        began = self._seconds()
        came = await self._run(made, reach)
        outcome = "interrupted" if self._stop.is_set() else "done"
        return self._recorder.outcome(made, came, outcome=outcome, seconds=self._seconds() - began)

    async def _run(self, made: ReplyCall, reach: CommandReach) -> ToolOutcome:
        here = dataclasses.replace(self._here(made.call_id), reach=reach)
        running = asyncio.ensure_future(self._toolbox.run(made.tool, made.arguments, here))
        try:
            await until_stopped(running, self._stop)
            if not running.done():  # a tool that listens answers with what it had
                await asyncio.wait({running}, timeout=GRACE_S)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait({running})
        return self._recorder.unended(made, STOPPED) if running.cancelled() else running.result()

    def _not_done(self, made: ReplyCall, text: str) -> FinishedCall:
        outcome = "interrupted" if text in (NOT_BEGUN, NOT_REACHED) else "declined"
        return self._recorder.outcome(made, ToolOutcome(text=text, error=True), outcome=outcome)


def _named(made: ReplyCall, workspace: Workspace) -> tuple[Path, ...]:
    """The file that a call names."""
    with suppress(InputError):
        match load(made.arguments):
            case {"path": str(path)}:
                return (workspace.path(path),)
            case _:
                pass
    return ()


def _broken(made: ReplyCall, *, cut: bool) -> str:
    if cut:
        return (
            f"{made.tool}: not run: your reply reached its output limit within this call. Make it again in smaller parts: a long file is best "
            "written in several edits."
        )
    return f"{made.tool}: not run: its arguments are no JSON object ({made.broken}). Make the call again with one."


def _summary(made: ReplyCall) -> str:
    cue = cue_of(made.arguments)
    return f"{made.tool} {cue}"[:CUE].strip()
