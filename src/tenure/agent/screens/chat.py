"""The main screen: one session, talked with (an edge). A turn is read without ever keeping the keys waiting."""

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
from tenure.agent.pictures import mention_of, pictures_in
from tenure.agent.screens import clean
from tenure.agent.screens.approval import ApprovalPrompt
from tenure.agent.screens.commands import is_command, parsed
from tenure.agent.screens.pieces import note
from tenure.agent.screens.prompt import DraftInput, Prompt
from tenure.agent.screens.status import StatusFacts, line, nudge, opening
from tenure.agent.screens.transcript import TranscriptView, earlier, typed
from tenure.errors import InputError, TenureError

if TYPE_CHECKING:
    from tenure.agent.screens.app import TenureApp
    from tenure.agent.session import Agent

BREATH_S: Final = 0.004  # of events, after which everything else has its turn
WAITING: Final = 3  # queued prompts that are shown
TICK_S: Final = 0.1
REST_S: Final = 330.0  # without a word, after which a prompt cache of five minutes is cold
TWICE_S: Final = 1.5  # between two Ctrl+C that mean to leave


class Chat(Screen[None]):
    """The transcript, a question that waits, the prompt and the status line."""

    DEFAULT_CSS = """
    Chat {
        background: $background;
        #nudge { display: none; height: auto; padding: 0 1; background: $surface; }
        #nudge.-open { display: block; }
        #status { height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
        #waiting { display: none; height: auto; max-height: 4; padding: 0 1; color: $quiet; }
        #waiting.-open { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", show=False),
        Binding("ctrl+c", "interrupt", "Stop, leave", show=False, priority=True),
        Binding("ctrl+r", "history", "What was typed", show=False),
        Binding("ctrl+o", "context", "Context", show=False, priority=True),
        Binding("pageup", "scroll(-1)", "Up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "Down", show=False, priority=True),
        Binding("ctrl+end", "follow", "Follow", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.agent: Agent | None = None  # None while a session is opened
        self._waiting: list[str] = []  # typed while a turn ran
        self._tick = -1
        self._pressed = float("-inf")
        self._gauged: Gauged | None = None
        self._is_done = False  # the newest turn came to its own end
        self._is_entitled = False  # a title was asked for
        self._handed_off = -1  # entries when a handoff was asked for last

    def compose(self) -> ComposeResult:
        yield TranscriptView()
        yield Static(id="nudge")
        yield Static(id="waiting")
        yield ApprovalPrompt()
        yield Prompt()
        yield Static(id="status")

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._ticked)
        self._show_status()
        self.draft.focus()

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
        self.agent, self._gauged = agent, None
        self._is_entitled, self._handed_off = False, -1
        self.workers.cancel_group(self, "title")  # pyright: ignore[reportUnknownMemberType] - Textual's
        await self.transcript.clear()
        for piece in earlier(agent.context):
            self.transcript.add(piece)
        if not len(agent.context.session.index):
            self.tell(f"{agent.model} in {clean.path(agent.folder, self._own.world.home)}\n/help says what there is.")
        self.draft.remember(typed(agent.context))
        self._show_status()
        self.call_later(agent.warm)
        self._send_waiting(agent)

    def tell(self, text: str, kind: str = "note") -> None:
        """Say something in the transcript."""
        self.transcript.add(note(text, kind))

    # --- Turns

    @on(DraftInput.Submitted)
    async def _submitted(self, event: DraftInput.Submitted) -> None:
        if is_command(event.text):
            await self._command(event.text)
        elif self.agent is None or self.is_busy:
            self._set_waiting([*self._waiting, event.text])
        else:
            self._start(event.text)

    def _start(self, text: str) -> None:
        """What the person sent: words for the model, or behind a ! a command of their own."""
        agent = self.agent
        assert agent is not None
        if text.startswith("!") and text[1:].strip():
            self._play(agent.run_command(text[1:].strip()))
        else:
            self._play(agent.run(text, images=pictures_in(text, agent.folder)))

    @on(DraftInput.Pasted)
    def _pasted(self, event: DraftInput.Pasted) -> None:
        agent = self.agent
        mention = mention_of(event.text, agent.folder, agent.parts.scratch.path) if agent is not None else ""
        self.draft.insert(f"{mention} " if mention else event.text)

    @on(Prompt.PathsWanted)
    @work(exclusive=True, group="paths")
    async def _list_paths(self) -> None:
        if self.agent is not None:
            self.query_one(Prompt).offer(await self.agent.files())

    async def _command(self, text: str) -> None:
        try:
            command, rest = parsed(text)
            if command.idle and self.is_busy:
                raise InputError(f"/{command.name}", "a turn is running", "an end of it, or Esc")
            await self._own.obey(command.name, rest)
        except TenureError as error:
            self.tell(str(error), "warning")

    @work(exclusive=True, group="turn")
    async def _play(self, events: AsyncGenerator[Event]) -> None:
        agent = self.agent
        assert agent is not None
        self._is_done = False
        async with self._busy():
            since = monotonic()
            async for event in events:
                self.take(event)
                if monotonic() - since > BREATH_S:
                    await asyncio.sleep(0)
                    since = monotonic()
        if self._is_done:
            self._entitle(agent)
        self._send_waiting(agent)
        self._rest(agent)

    @work(exclusive=True, group="rest")
    async def _rest(self, agent: "Agent") -> None:
        """Once the provider has forgotten the window, what pays then leaves."""
        await asyncio.sleep(REST_S)
        if self.agent is agent and not self.is_busy:
            self.brought(agent.rest())

    @work(exclusive=True, group="turn")
    async def hand_off(self, agent: "Agent", focus: str) -> None:
        """Let the model brief what came before; Esc stops it. What is typed meanwhile waits, as during a turn."""
        self.tell("the model briefs what came before … (Esc stops it)")
        async with self._busy():
            answered = await agent.handoff(focus)
            self.tell(str(answered.decision) if answered is not None else "there is nothing new to hand off")
        self._handed_off = len(agent.context.session.index)
        self._show_status()
        self._send_waiting(agent)

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

    def _send_waiting(self, agent: "Agent") -> None:
        """Send queued prompts."""
        if self._waiting and self.agent is agent:
            end = next((n for n, text in enumerate(self._waiting) if text.startswith("!")), len(self._waiting)) or 1
            following = "\n\n".join(self._waiting[:end])
            self._set_waiting(self._waiting[end:])
            self.call_later(self._start, following)

    def _set_waiting(self, texts: list[str]) -> None:
        self._waiting = texts
        if self.agent is not None:
            self.agent.context.queued = bool(texts)
        shown = self.query_one("#waiting", Static)
        shown.set_class(bool(texts), "-open")
        rows = [f"{len(texts)} waiting: {texts[0]}" if n == 0 else f"then: {text}" for n, text in enumerate(texts[:WAITING])]
        rows += [f"and {len(texts) - WAITING} more"] if len(texts) > WAITING else []
        shown.update("\n".join(map(clean.line, rows)))

    def take(self, event: Event) -> None:
        """What an event means for the screen."""
        question = self.query_one(ApprovalPrompt)
        inner, folder = event, ""
        while isinstance(inner, Delegated):
            inner, folder = inner.of, inner.folder
        match inner:
            case ApprovalAsked():
                question.ask(inner, by=f"sub-agent in {clean.path(Path(folder), self._own.world.home)}" if folder else "")
            case ApprovalGiven(call=call):
                self._settle(call)
            case Gauged() if inner is event:
                self._gauged = inner
                self._show_status()
            case TurnDone(reason=reason) if inner is event:
                self._is_done = reason == "done"
                question.clear()
            case _:
                pass
        self.transcript.take(event)

    @on(ApprovalPrompt.Answered)
    def _answered(self, event: ApprovalPrompt.Answered) -> None:
        if self.agent is not None:
            self.agent.approve(event.call, event.answer, event.words)
        self._settle(event.call)

    def _settle(self, call: str) -> None:
        question = self.query_one(ApprovalPrompt)
        question.settled(call)
        if not question.waits:
            self.draft.focus()

    # --- Keys

    def action_stop(self) -> None:
        """Stop the turn; what waited is given back to the prompt."""
        if self.agent is None or not self.is_busy:
            return
        if self._waiting:
            self.draft.put("\n\n".join([*self._waiting, self.draft.text]).strip())
            self._set_waiting([])
        self.agent.cancel()

    async def action_interrupt(self) -> None:
        """Stop the turn, else clear what is typed; twice within a moment, leave."""
        now = monotonic()
        is_second, self._pressed = now - self._pressed < TWICE_S, now
        if is_second:
            await self._own.leave()
        elif self.is_busy:
            self.action_stop()
        elif self.draft.text:
            self.draft.text = ""
        else:
            self.notify("Ctrl+C again leaves; the session can be gone on with", timeout=TWICE_S)

    def action_history(self) -> None:
        """Search what was typed in this folder."""
        if self.agent is not None:
            self._own.search_history(self.draft)

    async def action_context(self) -> None:
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
        self._show_status()

    def _show_status(self) -> None:
        agent = self.agent
        if not self.is_attached:
            return
        if agent is None:
            self.query_one("#status", Static).update(opening(self._own.settings.model, self._own.settings.folder))
            return
        plan = agent.context.session.waiting
        gauge, episode, cost = agent.gauge, agent.episode, self._gauged or agent.ledger.total
        facts = StatusFacts(
            model=agent.model,
            folder=agent.folder,
            gauge=gauge,
            evicts=agent.evicts,
            mode=str(agent.mode),
            cached_share=agent.cached_share,
            usd=cost.usd,
            unpriced=cost.unpriced,
            episode=f"{episode.type} {episode.name}" if episode is not None else "",
            plan=len(plan.actions) if plan is not None else 0,
            tick=self._tick,
        )
        self.query_one("#status", Static).update(line(facts, max(20, self.size.width - 2)))
        advice = nudge(gauge, evicts=agent.evicts, can_hand_off=len(agent.context.session.index) != self._handed_off)
        shown = self.query_one("#nudge", Static)
        shown.set_class(advice is not None, "-open")
        if advice is not None:
            shown.update(advice)

    @property
    def _own(self) -> "TenureApp":
        return cast("TenureApp", self.app)  # pyright: ignore[reportUnknownMemberType] - Textual's
