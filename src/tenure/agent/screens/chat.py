"""The main screen: one session, talked with (an edge).

The screen only listens: it takes events, and says to the session what a person wants. A turn is read without ever keeping the keys waiting.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from tenure.agent.events import ApprovalAsked, ApprovalGiven, Delegated, Event, Gauged, TurnDone
from tenure.agent.screens import clean
from tenure.agent.screens.approval import ApprovalPrompt
from tenure.agent.screens.commands import is_command, parsed
from tenure.agent.screens.pieces import note
from tenure.agent.screens.prompt import DraftInput, Prompt
from tenure.agent.screens.status import StatusFacts, line, nudge
from tenure.agent.screens.transcript import TranscriptView
from tenure.errors import InputError, TenureError

if TYPE_CHECKING:
    from tenure.agent.screens.app import TenureApp
    from tenure.agent.session import Agent

BREATH_S: Final = 0.004  # of events, after which everything else has its turn
TICK_S: Final = 0.1
TWICE_S: Final = 1.5  # between two Ctrl+C that mean to leave


class Chat(Screen[None]):
    """The transcript, a question that waits, the prompt and the status line."""

    DEFAULT_CSS = """
    Chat {
        background: $background;
        #nudge { display: none; height: auto; padding: 0 1; background: $surface; }
        #nudge.-open { display: block; }
        #status { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
        #waiting { display: none; height: auto; max-height: 3; padding: 0 1; color: $quiet; }
        #waiting.-open { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", show=False),
        Binding("ctrl+c", "interrupt", "Stop, leave", show=False, priority=True),
        Binding("ctrl+o", "context", "Context", show=False, priority=True),
        Binding("pageup", "scroll(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "Down", show=False, priority=True),
        Binding("ctrl+end", "follow", "Follow", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._agent: Agent | None = None
        self._waiting: list[str] = []  # typed while a turn ran
        self._tick = -1
        self._pressed = float("-inf")
        self._gauged: Gauged | None = None
        self._is_done = False  # the newest turn came to its own end
        self._is_entitled = False  # a title was asked for
        self._handed_off = -1  # entries when a handoff was asked for last

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield TranscriptView()
        yield Static(id="nudge")
        yield Static(id="waiting")
        yield ApprovalPrompt()
        yield Prompt()
        yield Static(id="status")

    def on_mount(self) -> None:
        """The prompt has the keys."""
        self.set_interval(TICK_S, self._ticked)
        self.draft.focus()

    @property
    def agent(self) -> "Agent | None":
        """The session; None while one is opened."""
        return self._agent

    @property
    def draft(self) -> DraftInput:
        """What is being typed."""
        return self.query_one(DraftInput)

    @property
    def transcript(self) -> TranscriptView:
        """What was said."""
        return self.query_one(TranscriptView)

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return self._tick >= 0

    async def hold(self, agent: "Agent") -> None:
        """Talk with this session from now on; the one before is closed by who opened it."""
        from tenure.agent.screens.transcript import earlier, typed

        self._agent, self._gauged = agent, None
        self._is_entitled, self._handed_off = False, -1
        self.workers.cancel_group(self, "title")  # pyright: ignore[reportUnknownMemberType] - Textual's
        transcript = self.transcript
        await transcript.clear()
        for piece in earlier(agent.context):
            transcript.add(piece)
        if not len(agent.context.session.index):
            transcript.add(note(f"{agent.model} in {clean.path(agent.folder, self._own.home)}\n/help says what there is."))
        self.draft.remember(typed(agent.context))
        self._show_status()
        self.call_later(agent.warm)
        self._go_on(agent)

    def tell(self, text: str, kind: str = "note") -> None:
        """Say something in the transcript."""
        self.transcript.add(note(text, kind))

    # --- Turns

    @on(DraftInput.Submitted)
    async def _submitted(self, event: DraftInput.Submitted) -> None:
        if is_command(event.text):
            await self._command(event.text)
        elif self._agent is None or self.is_busy:
            self._wait(event.text)
        else:
            self._turn(event.text)

    async def _command(self, text: str) -> None:
        try:
            command, rest = parsed(text)
            if command.idle and self.is_busy:
                raise InputError(f"/{command.name}", "a turn is running", "an end of it, or Esc")
            await self._own.obey(command.name, rest)
        except TenureError as error:
            self.tell(str(error), "warning")

    def _wait(self, text: str) -> None:
        self._waiting.append(text)
        if self._agent is not None:
            self._agent.context.queued = True
        self._show_waiting()

    @work(exclusive=True, group="turn")
    async def _turn(self, text: str) -> None:
        agent = self._agent
        assert agent is not None
        async with self._busy():
            await self._heard(agent, text)
        if self._is_done:
            self._entitle(agent)
        self._go_on(agent)

    @work(exclusive=True, group="turn")
    async def hand_off(self, agent: "Agent", focus: str) -> None:
        """Let the model brief what came before; Esc stops it. What is typed meanwhile waits, as during a turn."""
        self.tell("the model briefs what came before … (Esc stops it)")
        async with self._busy():
            answered = await agent.handoff(focus)
            self.tell(str(answered.decision) if answered is not None else "there is nothing new to hand off")
        self._handed_off = len(agent.context.session.index)
        self._show_status()
        self._go_on(agent)

    @work(exclusive=True, group="title")
    async def _entitle(self, agent: "Agent") -> None:
        """Once for each session that is held: best effort, and nobody waits for it."""
        if not self._is_entitled:
            from tenure.agent.helper import entitled

            self._is_entitled = True
            await entitled(agent)

    def brought(self, events: Iterable[Event]) -> None:
        """Show what was brought back."""
        for event in events:
            self.take(event)
        self._show_status()

    @asynccontextmanager
    async def _busy(self) -> AsyncGenerator[None]:
        """Something runs; what goes wrong is told, and then the keys are the prompt's again."""
        self._tick = 0
        try:
            yield
        except TenureError as error:
            self.tell(str(error), "error")
        finally:
            self._tick = -1
            self.query_one(ApprovalPrompt).clear()
            self._show_status()
            self.draft.focus()

    def _go_on(self, agent: "Agent") -> None:
        """Say what was typed while nobody could listen."""
        if self._waiting and self._agent is agent:
            following, self._waiting = "\n\n".join(self._waiting), []
            agent.context.queued = False
            self._show_waiting()
            self.call_later(self._turn, following)

    async def _heard(self, agent: "Agent", text: str) -> None:
        since = monotonic()
        async for event in agent.run(text):
            self.take(event)
            if monotonic() - since > BREATH_S:
                await asyncio.sleep(0)
                since = monotonic()

    def take(self, event: Event) -> None:
        """What an event means for the screen."""
        question = self.query_one(ApprovalPrompt)
        inner, folder = event, ""
        while isinstance(inner, Delegated):
            inner, folder = inner.of, inner.folder
        match inner:
            case ApprovalAsked():
                question.ask(inner, by=f"sub-agent in {clean.path(Path(folder), self._own.home)}" if folder else "")
            case ApprovalGiven(call=call):
                question.settled(call)
                if not question.waits:
                    self.draft.focus()
            case Gauged() if not isinstance(event, Delegated):
                self._gauged = inner
                self._show_status()
            case TurnDone(reason=reason) if not isinstance(event, Delegated):
                self._is_done = reason == "done"
                question.clear()
            case _:
                pass
        self.transcript.take(event)

    @on(ApprovalPrompt.Answered)
    def _answered(self, event: ApprovalPrompt.Answered) -> None:
        if self._agent is not None:
            self._agent.approve(event.call, event.answer, event.words)
        self.query_one(ApprovalPrompt).settled(event.call)
        if not self.query_one(ApprovalPrompt).waits:
            self.draft.focus()

    # --- Keys

    def action_stop(self) -> None:
        """Stop the turn; what waited is given back to the prompt."""
        if self._agent is None or not self.is_busy:
            return
        if self._waiting:
            self.draft.put("\n\n".join([*self._waiting, self.draft.text]).strip())
            self._waiting = []
            self._agent.context.queued = False
            self._show_waiting()
        self._agent.cancel()

    async def action_interrupt(self) -> None:
        """Stop the turn, else clear what is typed; twice within a moment, leave."""
        now = monotonic()
        twice, self._pressed = now - self._pressed < TWICE_S, now
        if twice:
            await self._own.leave()
        elif self.is_busy:
            self.action_stop()
        elif self.draft.text:
            self.draft.text = ""
        else:
            self.notify("Ctrl+C again leaves; the session can be gone on with", timeout=TWICE_S)

    async def action_context(self) -> None:
        """The viewer."""
        await self._command("/context")

    def action_scroll(self, way: int) -> None:
        """A page of what a call would do, while it waits and is longer than its room; else of the transcript."""
        if not self.query_one(ApprovalPrompt).scroll(way):
            (self.transcript.scroll_page_up if way < 0 else self.transcript.scroll_page_down)(animate=False)

    def action_follow(self) -> None:
        """To the end, and stay there."""
        self.transcript.scroll_end(animate=False)
        self.transcript.anchor()

    # --- Below

    def _ticked(self) -> None:
        if self.is_busy:
            self._tick += 1
            self._show_status()

    def on_resize(self) -> None:
        """The line fits its width."""
        self._show_status()

    def _show_status(self) -> None:
        agent = self._agent
        if agent is None or not self.is_attached:
            return
        gauge, gauged, episode = agent.gauge, self._gauged, agent.episode
        total = agent.ledger.total
        facts = StatusFacts(
            model=agent.model,
            folder=agent.folder,
            gauge=gauge,
            evicts=agent.evicts,
            mode=str(agent.mode),
            cached_share=agent.cached_share,
            usd=gauged.usd if gauged is not None else total.usd,
            unpriced=gauged.unpriced if gauged is not None else total.unpriced,
            episode=f"{episode.type} {episode.name}" if episode is not None else "",
            tick=self._tick,
        )
        self.query_one("#status", Static).update(line(facts, max(20, self.size.width - 2)))
        said = nudge(gauge, evicts=agent.evicts, can_hand_off=len(agent.context.session.index) != self._handed_off)
        told = self.query_one("#nudge", Static)
        told.set_class(said is not None, "-open")
        if said is not None:
            told.update(said)

    def _show_waiting(self) -> None:
        shown = self.query_one("#waiting", Static)
        shown.set_class(bool(self._waiting), "-open")
        shown.update(clean.line(f"{len(self._waiting)} waiting: {self._waiting[-1]}" if self._waiting else ""))

    @property
    def _own(self) -> "TenureApp":
        return cast("TenureApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's
