"""The session: what a screen, a command or a test holds of an agent.

    agent = await Agent.open(settings)
    async for event in agent.run("mend the parser"):
        ...
    await agent.close()

One turn runs at a time. Whatever happens is in the record before it is told; leaving the loop early, cancelling the task or killing the process
leaves a valid record, from which `Agent.open` goes on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from msgspec.structs import replace

from tenure.agent import opening
from tenure.agent.access import UnusableModel
from tenure.agent.admission.prompt import Admitted
from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.calls import CallRunner
from tenure.agent.catalogue import ModelChoice
from tenure.agent.events import ApprovalAsked, ApprovalGiven, CallOutput, Delegated, Event, Noticed, SessionOpened, TurnDone
from tenure.agent.loop import Loop
from tenure.agent.pictures import read_pictures
from tenure.agent.recorder import Recorder
from tenure.agent.settings import Settings, World
from tenure.agent.snapshots import Rewound, Snapshot
from tenure.agent.spending import SessionSpend, Spending
from tenure.agent.tail_notes import TailNotes
from tenure.agent.tools.glob import listed_files
from tenure.agent.tools.tool import Here, Tool, ToolLimits
from tenure.apis.media import MediaSource
from tenure.context import Context
from tenure.engine.meter.gauge import Gauge
from tenure.engine.meter.ledger import Ledger
from tenure.engine.record.entry import Role
from tenure.engine.record.episodes import Episode
from tenure.engine.record.query import Query
from tenure.engine.record.recall import blocks_of, handle_in
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.engine.lifecycle.planning import Answered


ABANDONED: Final = "stopped at once"


class Agent:
    """One conversation with a model, its folder and its tools. Mutable. Belongs to one event loop."""

    def __init__(self, parts: opening.Parts, *, is_part: bool = False) -> None:
        """Put the parts of an open session together; `Agent.open` is the way to get one. `is_part`: it is a sub-agent."""
        self.parts, self._is_part = parts, is_part
        self.admitted: Admitted = parts.admitted  # what it was told at its start; weights are estimates before the first turn
        self.spending = Spending(lambda: self.context.ledger.total)  # what it has used, and may still use
        self.helping = asyncio.Lock()  # held by whoever changes the window's books outside a turn
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._stop = asyncio.Event()
        self._turn: asyncio.Task[None] | None = None
        self._children: dict[str, Agent] = {}  # by the call of `task` that each works for
        self._is_announced = self._is_closed = False
        self._is_beginning = False  # a turn is being made ready, and can be cancelled already
        self._handing_off: Flag | None = None  # set to stop it
        self._warming: asyncio.Task[None] | None = None  # held, or it would be collected; the first request waits for it
        self._put_together()

    @classmethod
    async def open(
        cls, settings: Settings, world: World | None = None, *, delegation: opening.Delegation | None = None
    ) -> "Agent":
        """A new session, or an earlier one that goes on. Raises InputError for settings that cannot be, StoreError for a store that fails.

        `delegation` opens a sub-agent: its own window and folder, another agent's model, store and permissions.
        """
        from tenure.agent.subagent import TaskTool

        made: list[Agent] = []

        def tools() -> Sequence[Tool]:
            """A fork is offered `task` though there may be no agent below it, and is told so when it calls it."""
            is_fork = delegation is not None and delegation.is_fork
            return (TaskTool(lambda: made[0]),) if settings.depth or is_fork else ()

        parts = await opening.opened(settings, world or World(), delegation=delegation, more=tools)
        made.append(cls(parts, is_part=delegation is not None))
        return made[0]

    def run(self, text: str = "", *, images: Sequence[Path] = ()) -> AsyncGenerator[Event, None]:
        """One turn: what the person says, and all that comes of it. Without a text the session goes on where it was interrupted.

        Closing the iterator cancels the turn. Raises InputError for an image that cannot be read, when a turn runs already, and when there is
        nothing to go on with.
        """
        return self._held(images, partial(self._turn_of, text))

    def run_command(self, command: str) -> AsyncGenerator[Event, None]:
        """A shell command of the person's own, whatever the mode; the model sees it and its output from its next call on, and it can leave like any.

        Closing the iterator stops it. Raises InputError when a turn runs already.
        """
        if not command.strip():
            raise InputError("command", "nothing", "a shell command behind the !")
        return self._held((), lambda _: self._loop.command(command))

    def _turn_of(self, text: str, pictures: Sequence[MediaSource]) -> Coroutine[Any, Any, None]:
        if not text.strip() and not pictures and not self._can_go_on():
            raise InputError("task", "nothing to do", "some words, or a session that was interrupted")
        self._calls.message = text or self._calls.message
        return self._loop.turn(text, pictures)

    async def _held(
        self, images: Sequence[Path], work: Callable[[Sequence[MediaSource]], Coroutine[Any, Any, None]]
    ) -> AsyncGenerator[Event, None]:
        """The events of one piece of work, from the session's own opening on."""
        self._require_idle()
        self._stop.clear()
        self._is_beginning = True
        try:
            pictures = await asyncio.to_thread(read_pictures, images)
            playing = work(pictures)
            try:
                # An SDK takes seconds to load: beside what follows.
                self._warming = asyncio.create_task(self.parts.speaker.warm())
                for event in self._opening():
                    yield event
                if not self._recorder.length:
                    await asyncio.to_thread(self._weigh)  # which loads the vocabulary
                    self._recorder.system(self.parts.admitted.system)
                self._is_beginning = False
                self._require_idle()  # it may have been closed meanwhile
            except BaseException:
                playing.close()
                raise
        finally:
            self._is_beginning = False
        turn = self._turn = asyncio.create_task(playing)
        turn.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            if turn.cancelled():
                yield TurnDone(reason="cancelled", why=ABANDONED)
            else:
                await turn
        finally:  # no subscriber is left, or all events were delivered: the turn is brought to its end before anything else begins
            if not turn.done():
                self.cancel()
                await asyncio.wait({turn})
            self._turn = None
            self._events = asyncio.Queue()

    def approve(self, call: str, answer: ApprovalAnswer, words: str = "") -> bool:
        """A person's word on a call that waits for it; `words` go to the model with a no. False when nothing waits under that id.

        A call of a sub-agent is named as its event names it: the call of `task`, a slash, and its own.
        """
        task, slash, inner = call.partition("/")
        if slash and task in self._children:
            return self._children[task].approve(inner, answer, words)
        return self._calls.approve(call, answer, words)

    def cancel(self) -> None:
        """Stop the turn: the model's stream is closed, tools are ended, and the record is left valid. A handoff stops too, and changes nothing."""
        if self._handing_off is not None:
            self._handing_off.set()
        if self.is_running:
            self._stop.set()
            for child in self._children.values():
                child.cancel()

    def abandon(self) -> None:
        """Stop the turn without waiting for anything: what tools had to say is lost, and calls get their result when the session goes on."""
        self.cancel()
        for child in self._children.values():
            child.abandon()
        if self._turn is not None:
            self._turn.cancel()

    async def close(self) -> None:
        """Cancel what runs, end what was started, and let go of the store. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._turn is not None:
            self._stop.set()
            await asyncio.wait({self._turn})
        self.cancel()
        async with self.helping:
            pass
        await opening.close(self.parts, is_part=self._is_part)

    async def files(self) -> tuple[str, ...]:
        """The files of the folder that a person may mean, by their paths below it; without those that git ignores, and not all of a great many."""
        return await listed_files(self._here(""))

    def rest(self) -> tuple[Event, ...]:
        """Nobody has spoken for a while: do what is cheap while the provider's cache is cold; what is to be told of that. Nothing during a turn."""
        if self.is_running or self._is_closed or self._handing_off is not None or not self._recorder.length:
            return ()
        self._recorder.settle("idle")
        return tuple(self._recorder.decided())

    async def use(self, model: str, *, base_url: str = "") -> None:
        """Go on with another model; the record stays. Raises InputError during a turn, and for a model that cannot be spoken to."""
        self._require_idle()
        try:
            before, self.parts = self.parts, opening.with_model(self.parts, model, base_url)
        except UnusableModel as error:
            raise await opening.advised(error, self.parts.world) from None
        await before.speaker.close()
        self._put_together()

    async def warm(self) -> None:
        """Load what the first call needs while the person still types. Never raises."""
        await asyncio.to_thread(self._weigh)
        await self.parts.speaker.warm()

    async def handoff(self, focus: str = "") -> "Answered | None":
        """Hand earlier history off to a brief that this session's model writes; None when there is nothing new to hand off.

        `cancel` stops it. Raises InputError during a turn, ModelError when the model fails; nothing has changed then.
        """
        from tenure.agent.helper import helper, stoppable

        self._require_idle()
        parts = self.parts
        model = helper(parts.settings.summariser or "helper", parts.choice, parts.speaker, parts.settings, parts.world)
        self._handing_off = stop = Flag()
        model = stoppable(model, stop)
        async with self.helping:
            writing = asyncio.create_task(asyncio.to_thread(self.context.handoff, model, focus=focus))
            try:
                return await asyncio.shield(writing)
            finally:
                stop.set()
                await asyncio.wait({writing})  # whoever waited may be gone: the window belongs to nobody else before it is done
                self._handing_off = None

    def bring_back(self, handle: str) -> tuple[Event, ...]:
        """What left the window, at its end again, as if the model had recalled it; what is to be told of that.

        Raises InputError during a turn, for what the record does not have, and for what the window shows as it was.
        """
        self._require_idle()
        index, view = self.context.session.index, self.context.session.view
        try:
            places = blocks_of(index, handle_in(index, handle))
        except InputError:
            places = ()
            self.context.recall(handle, cap=1)  # of a record that this one was built from
        if places and all(view.weight(*at) == index.block(at).tokens for at in places):
            raise InputError("recall", f"{handle} is in the window as it was", "something that has left it")
        return tuple(self._recorder.bring_back(Query(handle=handle)))

    def snapshots(self) -> tuple[Snapshot, ...]:
        """The changes before which the files were kept, oldest first. Raises InputError when git cannot tell."""
        return self.parts.snapshots.listed() if self.parts.snapshots is not None else ()

    async def rewind(self, number: int) -> Rewound:
        """Put the files back as they were before a change, by its number; the conversation stays. Raises InputError during a turn."""
        self._require_idle()
        if self.parts.snapshots is None:
            raise InputError("rewind", "no copies of files are kept", "a session with them (Settings.snapshots)")
        return await asyncio.to_thread(self.parts.snapshots.rewind, number, entries=self._recorder.length)

    async def fork(self, entries: int, *, files: bool = False) -> tuple[str, Rewound | None]:
        """A new session of the first so many entries, which keeps what it may undo; its id. This one stays as it was.

        With `files`, those of the folder are put back as they were then, and what they are now is kept with this session: what became of them, None
        where nothing had changed since. Raises InputError during a turn, and for what cannot be put back; then there is no fork.
        """
        self._require_idle()
        kept = self.parts.snapshots
        if files and kept is None:
            raise InputError("rewind", "no copies of files are kept", "a session with them (Settings.snapshots), or a fork")
        number = await asyncio.to_thread(kept.since, entries) if files and kept is not None else 0
        done = await self.rewind(number) if number else None
        fork = self.context.store.fork(self.id, entries, uuid4().hex, f"fork of {self.id[:8]}").id
        if kept is not None:
            await asyncio.to_thread(kept.share, fork, entries)
        return fork, done

    @property
    def context(self) -> Context:
        """The window: recall, pin, undo, restore, diff. Not to be changed during a turn."""
        return self.parts.context

    @property
    def id(self) -> str:
        """By which `--resume` finds it."""
        return self.context.conversation

    @property
    def folder(self) -> Path:
        """Where it works."""
        return self.parts.folder

    @property
    def choice(self) -> ModelChoice:
        """The model, with its window and output limit."""
        return self.parts.choice

    @property
    def model(self) -> str:
        """As `--model` takes it."""
        return self.choice.spec

    @property
    def mode(self) -> Mode:
        """How much is asked; may be set at any time."""
        return self.parts.permissions.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.parts.permissions.mode = mode

    @property
    def unwalled(self) -> tuple[str, ...]:
        """What is to be said of the mode, where no wall stands around what runs in it."""
        return opening.unwalled(self.mode, self.parts.walls)

    @property
    def gauge(self) -> Gauge:
        """How full the window is."""
        return self.context.gauge

    @property
    def evicts(self) -> bool:
        """Whether the window makes room by itself: there is a policy, and it could keep the limit so far."""
        return self._recorder.evicts

    @property
    def cached_share(self) -> float:
        """Of the newest prompt what the provider read from its cache, 0 to 1."""
        return self._recorder.cached_share

    @property
    def ledger(self) -> Ledger:
        """What its own calls cost, and what eviction saved."""
        return self.context.ledger

    @property
    def spent(self) -> SessionSpend:
        """What was used since it was opened, sub-agents included."""
        return self.spending.spent

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """What the agent declared, oldest first."""
        return tuple(episode for episode in self.context.session.index.episodes if episode.declared)

    @property
    def episode(self) -> Episode | None:
        """The one that is open."""
        return self.context.session.index.graph.open

    @property
    def is_running(self) -> bool:
        """Whether a turn runs."""
        return self._is_beginning or self._turn is not None

    # --- For `subagent`

    def adopt(self, call: str, child: "Agent") -> Callable[[Event], None]:
        """Let a sub-agent work for a call, within what may still be used here; what it says is to be handed to the callable."""
        self._children[call] = child
        self.spending.share(child.spending, self.parts.settings.allowance)
        if self._stop.is_set():
            child.cancel()
        folder = str(child.folder)
        return lambda event: self._say(Delegated(call=call, folder=folder, of=_within(event, call)))

    def release(self, call: str) -> None:
        """A sub-agent is done."""
        if (child := self._children.pop(call, None)) is not None:
            self.spending.release(child.spending)

    # --- Inner

    def _weigh(self) -> None:
        self.admitted = opening.counted(self.parts.admitted, self.parts.world)

    def _put_together(self) -> None:
        parts, say, stop = self.parts, self._say, self._stop
        self._recorder = Recorder(
            parts.context,
            parts.choice.api,
            parts.decisions,
            annotate=parts.settings.episodes,
            delegated=lambda: self.spending.delegated,
        )
        self._calls = CallRunner(parts, self._recorder, here=self._here, say=say, stop=stop)
        self._tools = parts.tools
        loop = asyncio.get_running_loop()
        parts.helping.say = lambda event: loop.call_soon_threadsafe(say, event) and None
        parts.helping.is_stopped = stop.is_set
        notes = TailNotes(self._recorder, parts.repository, parts.permissions, alone=parts.settings.alone)
        self._loop = Loop(parts, self._recorder, self._calls, notes, self.spending, tools=self._offered, say=say, stop=stop)

    def _offered(self) -> tuple[dict[str, Any], ...]:
        """The tools of the next request: the same ones, until an MCP server comes up that was slow."""
        servers = self.parts.servers
        if servers is not None and servers.waiting:
            if new := servers.come():
                self.parts.toolbox.add(new)
                self._tools = self.parts.tools
                named = ", ".join(tool.name for tool in new[:5])
                self._say(Noticed(text=f"{len(new)} tools of an MCP server that was slow are offered now: {named}"))
            for note in servers.notes:
                self._say(Noticed(text=note))
        return self._tools

    def _here(self, call: str) -> Here:
        parts = self.parts
        return Here(
            workspace=parts.workspace,
            call=call,
            part=self._recorder.part(call),
            limits=ToolLimits(spill_bytes=parts.settings.spill),
            environment=parts.world.environment,
            cancel=self._stop,
            say=lambda text: self._say(CallOutput(call=call, text=text)),
            wait=parts.world.wait,
            now=parts.world.seconds,
        )

    def _say(self, event: Event) -> None:
        self._events.put_nowait(event)

    def _opening(self) -> Sequence[Event]:
        """What is said once, before the first turn."""
        if self._is_announced:
            return ()
        self._is_announced = True
        start = SessionOpened(
            session=self.id,
            folder=str(self.folder),
            model=self.model,
            resumed=self.parts.resumed,
            entries=self._recorder.length,
            interrupted=len(self._recorder.unanswered),
        )
        return start, *(Noticed(text=notice) for notice in self.parts.notices)

    def _can_go_on(self) -> bool:
        """Whether the model is to speak next without a further word: the record ends in a person's words, in results, or in calls without."""
        index = self.context.session.index
        return bool(len(index)) and (index.entries[-1].role in (Role.USER, Role.TOOL) or bool(self._recorder.unanswered))

    def _require_idle(self) -> None:
        if self._is_closed:
            raise InputError("session", "closed", "an open one")
        if self.is_running:
            raise InputError("session", "a turn is running", "one turn at a time: wait for it, or cancel it")
        if self._handing_off is not None:
            raise InputError("session", "a handoff is being written", "one thing at a time: wait for it, or cancel it")


def _within(event: Event, call: str) -> Event:
    """A sub-agent's call that waits for a person, named so that `approve` finds it."""
    match event:
        case ApprovalAsked() | ApprovalGiven():
            return replace(event, call=f"{call}/{event.call}")
        case Delegated():
            return replace(event, of=_within(event.of, call))
        case _:
            return event
