"""The terminal interface: opens sessions, and obeys the slash commands (an edge)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import uuid4

from msgspec.structs import replace
from textual import work
from textual.binding import Binding, BindingType

from tenure.agent.approval import Mode
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.themes import DARK, ThemedApp
from tenure.agent.settings import Settings, World
from tenure.errors import InputError, TenureError

if TYPE_CHECKING:
    from tenure.agent.session import Agent

# What a session needs, then what commands do: loaded in this order behind the first paint, so that nobody waits for it before one can type.
_LATER: Final = (
    "tenure.agent.session",
    "tenure.agent.screens.recall",
    "tenure.agent.screens.viewer",
    "tenure.agent.screens.pickers",
    "tenure.engine.meter.statement",
    "tenure.agent.screens.export",
)


class TenureApp(ThemedApp):
    """One session at a time; returns the id of the last."""

    TITLE = "tenure"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Leave", show=False, priority=True),
    ]

    def __init__(
        self,
        settings: Settings,
        world: World | None = None,
        *,
        theme: str = DARK,
        task: str = "",
        loaded: Callable[[], object] = lambda: None,
    ) -> None:
        """`task` is what the person said already, on the command line; `loaded` is called once all that will be needed is there."""
        super().__init__(theme)
        self._settings, self._world, self._opening_words = settings, world or World(), task
        self._loaded = loaded
        self._agent: Agent | None = None
        self._commands: Final[dict[str, Callable[[str], Awaitable[None]]]] = {
            "context": self._do_context,
            "handoff": self._do_handoff,
            "recall": self._do_recall,
            "budget": self._do_budget,
            "policy": self._do_policy,
            "why": self._do_why,
            "ledger": self._do_ledger,
            "fork": self._do_fork,
            "rewind": self._do_rewind,
            "export": self._do_export,
            "model": self._do_model,
            "sessions": self._do_sessions,
            "mode": self._do_mode,
            "theme": self._do_theme,
            "help": self._do_help,
            "quit": self._do_quit,
        }

    async def on_mount(self) -> None:
        """Open what was asked for."""
        self._chat = Chat()
        await self.push_screen(self._chat)
        self._chat.call_after_refresh(self._begin)  # what it loads must not keep the first paint waiting

    @work(exclusive=True, group="opening")
    async def _begin(self) -> None:
        settings = self._settings
        if not (settings.model or settings.newest or settings.resume):
            chosen = await self._asked_model()
            if not chosen:
                self._chat.tell("no model was chosen: /model opens the list again, /model NAME takes one")
                return
            settings = replace(settings, model=chosen)
        is_open = await self._open(settings)
        self._load()
        if is_open and self._opening_words:
            self._chat.draft.post_message(self._chat.draft.Submitted(self._opening_words))

    async def _open(self, settings: Settings) -> bool:
        """Another session in place of the one before; when it cannot be opened that one stays."""
        await asyncio.to_thread(import_module, _LATER[0])  # it takes a moment, and keys go on meanwhile
        from tenure.agent.session import Agent

        try:
            agent = await Agent.open(settings, self._world)
        except TenureError as error:
            self._chat.tell(str(error), "error")
            return False
        before, self._agent = self._agent, agent
        self._settings = settings
        await self._chat.hold(agent)
        if before is not None:
            await before.close()
        return True

    async def _asked_model(self) -> str:
        from tenure.agent.access import available
        from tenure.agent.screens.pickers import model_picker

        world = self._world
        found = await available(world.environment, world.home, world.local)
        return await self.push_screen_wait(model_picker(found))

    @work(group="loading")
    async def _load(self) -> None:
        for name in _LATER:
            await asyncio.to_thread(import_module, name)
        if self._agent is not None:
            await self._agent.warm()
        self._loaded()

    @property
    def home(self) -> Path:
        """The person's home folder."""
        return self._world.home

    async def obey(self, name: str, rest: str) -> None:
        """A slash command. Raises TenureError for what cannot be."""
        await self._commands[name](rest)

    async def leave(self) -> None:
        """Close the session, and end."""
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.close()
        self.exit(agent.id if agent is not None and len(agent.context.session.index) else "")

    async def action_quit(self) -> None:
        """Leave."""
        await self.leave()

    # --- Commands

    @property
    def _open_agent(self) -> "Agent":
        if self._agent is None:
            raise InputError("session", "none is open", "/model or /sessions")
        return self._agent

    async def _do_context(self, _: str) -> None:
        from tenure.agent.screens.build import ConversationBuilder
        from tenure.agent.screens.history import of_context
        from tenure.agent.screens.pickers import title_of
        from tenure.agent.screens.viewer import ContextViewer
        from tenure.engine.meter.tokens import o200k

        agent = self._open_agent
        count = self._world.tokens or o200k()
        builder = ConversationBuilder(
            lambda: agent.context.store,
            agent.folder,
            count,
            keep=True,
            system=lambda: agent.admitted.system,
            dialect=agent.choice.api,
        )
        title = title_of(agent.context.store, agent.context.store.conversation(agent.id))
        again = partial(of_context, agent.context, title=title, model=agent.choice.name)
        viewer = ContextViewer(again(), builder, again=again, busy=lambda: self._chat.is_busy, recall=self._bring_back)
        await self.push_screen(viewer, self._built)

    async def _built(self, conversation: str | None) -> None:
        if conversation:
            before = self._open_agent
            if await self._open(replace(self._as_now, resume=conversation, newest=False)):
                self._chat.tell(f"this is {conversation[:8]}, built from {before.id[:8]}, which stays as it was")

    async def _do_handoff(self, focus: str) -> None:
        agent = self._open_agent
        self._chat.hand_off(agent, focus)

    async def _do_recall(self, wanted: str) -> None:
        from tenure.agent.screens.history import of_context
        from tenure.agent.screens.recall import RecallScreen, found

        if not wanted:
            raise InputError("/recall", "nothing", "a handle such as read:12, a path, or words")
        agent = self._open_agent
        history = of_context(agent.context, title=agent.id[:8], model=agent.choice.name)
        await self.push_screen(RecallScreen(history, found(history, wanted), wanted), self._recalled)

    def _recalled(self, handle: str | None) -> None:
        if handle:
            try:
                self._bring_back(handle)
            except TenureError as error:
                self._chat.tell(str(error), "warning")

    def _bring_back(self, handle: str) -> str:
        """Put what left the window at its end again, and say so. Raises InputError."""
        self._chat.brought(self._open_agent.bring_back(handle))
        said = f"{handle} is back at the end of the window: the model sees it from its next call on"
        self._chat.tell(said)
        return said

    async def _do_budget(self, rest: str) -> None:
        from tenure.agent.screens.commands import budget_text
        from tenure.engine.lifecycle.budget import Budget

        agent = self._open_agent
        if not rest:
            self._chat.tell(budget_text(agent))
            return
        window = agent.choice.window - agent.choice.reserve
        await self._again(replace(self._as_now, budget=Budget.parse(target=rest, window=window)))
        self._chat.tell(budget_text(self._open_agent))

    async def _do_policy(self, rest: str) -> None:
        from tenure.agent.screens.commands import policy_text

        if rest:
            await self._again(replace(self._as_now, policy=rest))
        self._chat.tell(policy_text(self._open_agent))

    async def _again(self, settings: Settings) -> None:
        """The same session, held otherwise."""
        agent = self._open_agent
        if len(agent.context.session.index):
            settings = replace(settings, resume=agent.id, newest=False)
        await self._open(settings)

    @property
    def _as_now(self) -> Settings:
        """The settings with the model that is talked with now, where it is."""
        choice = self._open_agent.choice
        return replace(self._settings, model=choice.spec, base_url=choice.base_url)

    async def _do_why(self, _: str) -> None:
        from tenure.agent.screens.commands import why_text
        from tenure.agent.screens.widgets import TextPage

        await self.push_screen(TextPage("why", why_text(self._open_agent)))

    async def _do_ledger(self, _: str) -> None:
        from tenure.agent.screens.commands import ledger_text
        from tenure.agent.screens.widgets import TextPage

        await self.push_screen(TextPage("ledger", ledger_text(self._open_agent, min(110, self.size.width - 8))))

    async def _do_fork(self, _: str) -> None:
        agent = self._open_agent
        length = len(agent.context.session.index)
        if not length:
            raise InputError("/fork", "an empty session", "one with something in it")
        made = agent.context.store.fork(agent.id, length, uuid4().hex, f"fork of {agent.id[:8]}")
        await self._open(replace(self._as_now, resume=made.id, newest=False, policy="", budget=None))
        self._chat.tell(f"this is {made.id[:8]}, a fork of {agent.id[:8]}, which stays as it was")

    async def _do_rewind(self, rest: str) -> None:
        from tenure.agent.screens.commands import rewind_text, rewound_text

        agent = self._open_agent
        if not rest:
            self._chat.tell(rewind_text(agent.snapshots()))
            return
        if not rest.isdecimal():
            raise InputError("/rewind", repr(rest), "the number of a change; /rewind alone lists them")
        self._chat.tell(rewound_text(await agent.rewind(int(rest))))

    async def _do_export(self, rest: str) -> None:
        from tenure.agent.screens.export import export

        agent = self._open_agent
        if not rest:
            raise InputError("/export", "no file", "a name that ends with .md or .json")
        path = agent.folder / Path(rest).expanduser()
        count = export(agent.context, path, agent.choice.api)
        self._chat.tell(f"{count:,} entries are in {path}")

    async def _do_model(self, rest: str) -> None:
        self._change_model(rest)

    @work(exclusive=True, group="opening")
    async def _change_model(self, wanted: str) -> None:
        chosen = wanted or await self._asked_model()
        if not chosen:
            return
        if self._agent is None:
            await self._open(replace(self._settings, model=chosen))
            return
        try:
            await self._agent.use(chosen)
        except TenureError as error:
            self._chat.tell(str(error), "error")
            return
        self._settings = self._as_now
        self._chat.tell(f"{chosen} goes on from here; its provider has none of this cached")

    async def _do_sessions(self, _: str) -> None:
        self._change_session()

    @work(exclusive=True, group="opening")
    async def _change_session(self) -> None:
        from tenure.agent.screens.pickers import NEW, session_picker

        agent = self._agent
        if agent is None:
            self._chat.tell("no store is open yet: /model opens a session", "warning")
            return
        chosen = await self.push_screen_wait(session_picker(agent.context.store, str(agent.folder)))
        if chosen:
            await self._open(await self._settings_of(agent, "" if chosen == NEW else chosen))

    async def _settings_of(self, agent: "Agent", conversation: str) -> Settings:
        """How to open a session: as it was held, with a model of the person's choice where the store does not say; a new one as the one now."""
        if not conversation:
            return replace(self._as_now, resume="", newest=False)
        from tenure.engine.lifecycle.terms import Terms

        known = Terms.stored(agent.context.store.conversation(conversation).terms).base_url
        model = "" if known else await self._asked_model()
        return replace(self._settings, resume=conversation, newest=False, model=model, base_url="", policy="", budget=None)

    async def _do_mode(self, rest: str) -> None:
        agent = self._open_agent
        if rest:
            if rest not in tuple(Mode):
                raise InputError("/mode", repr(rest), ", ".join(Mode))
            agent.mode = Mode(rest)
        self._chat.tell("\n".join((f"mode: {agent.mode}; there are {', '.join(Mode)}", *agent.unwalled)))

    async def _do_theme(self, _: str) -> None:
        self.action_theme()

    async def _do_help(self, _: str) -> None:
        from tenure.agent.screens.commands import help_text
        from tenure.agent.screens.widgets import TextPage

        await self.push_screen(TextPage("help", help_text(min(114, self.size.width - 6))))

    async def _do_quit(self, _: str) -> None:
        await self.leave()
