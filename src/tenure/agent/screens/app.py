"""The terminal interface: opens sessions, and carries out the slash commands (an edge)."""

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import work
from textual.binding import Binding, BindingType

from tenure.agent.approval import Mode
from tenure.agent.screens import clean, commands
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.themes import DARK, ThemedApp
from tenure.agent.screens.widgets import TextPage
from tenure.agent.settings import Settings, World
from tenure.errors import InputError, TenureError

if TYPE_CHECKING:
    from tenure.agent.screens.prompt import DraftInput
    from tenure.agent.screens.viewer import Curated
    from tenure.agent.session import Agent

TITLE_CHARS: Final = 80
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
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", "Leave", show=False, priority=True)]

    def __init__(
        self,
        settings: Settings,
        world: World | None = None,
        *,
        theme: str = DARK,
        task: str = "",
        loaded: Callable[[], object] = lambda: None,
    ) -> None:
        """`task` is what the person said already, on the command line; `loaded` is called once all that will be needed is there.

        `settings` are those of the session at hand, and before one is open of the first.
        """
        super().__init__(theme)
        self.settings, self.world, self._first_task, self._loaded = settings, world or World(), task, loaded
        self._agent: Agent | None = None

    async def on_mount(self) -> None:
        self._chat = Chat()
        await self.push_screen(self._chat)
        self._chat.call_after_refresh(self._begin)  # what it loads must not keep the first paint waiting

    @work(exclusive=True, group="opening")
    async def _begin(self) -> None:
        settings = self.settings
        if not (settings.model or settings.newest or settings.resume):
            model = await self._pick_model()
            if not model:
                self._chat.tell("no model was chosen: /model opens the list again, /model NAME takes one")
                return
            settings = replace(settings, model=model)
        is_open = await self._open(settings)
        self._load()
        if is_open and self._first_task:
            self._chat.draft.post_message(self._chat.draft.Submitted(self._first_task))

    async def _open(self, settings: Settings) -> bool:
        """Another session in place of the one before; when it cannot be opened that one stays."""
        await asyncio.to_thread(import_module, _LATER[0])  # it takes a moment, and keys go on meanwhile
        from tenure.agent.session import Agent

        try:
            agent = await Agent.open(settings, self.world)
        except TenureError as error:
            self._chat.tell(str(error), "error")
            return False
        before, self._agent = self._agent, agent
        self.settings = settings
        await self._chat.hold(agent)
        if before is not None:
            await before.close()
        return True

    async def _reopen(self, resume: str, told: str) -> None:
        """Go on with another session of the store, with the model that is talked with now."""
        now = self._as_now
        held = replace(now.as_held(), model=now.model, base_url=now.base_url)
        if await self._open(replace(held, resume=resume, newest=False)):
            self._chat.tell(told)

    async def _pick_model(self) -> str:
        from tenure.agent.access import available
        from tenure.agent.screens.pickers import model_picker, recent_models

        world, store = self.world, self._agent.context.store if self._agent is not None else self.world.store
        found, recent = await asyncio.gather(
            available(world.environment, world.home, world.local), asyncio.to_thread(recent_models, self.settings, world, store)
        )
        return await self.push_screen_wait(model_picker(found, recent))

    @work(group="loading")
    async def _load(self) -> None:
        for name in _LATER:
            await asyncio.to_thread(import_module, name)
        if self._agent is not None:
            await self._agent.warm()
        self._loaded()

    @work(exclusive=True, group="opening")
    async def search_history(self, draft: "DraftInput") -> None:
        """Put what was typed before, here or in earlier sessions of the folder, into the draft."""
        from tenure.agent.screens.pickers import history_picker, prompts

        agent = self._open_agent
        found = await asyncio.to_thread(prompts, agent.context.store, str(agent.folder))
        chosen = await self.push_screen_wait(history_picker(found))
        if chosen:
            draft.put(found[int(chosen)].text)

    async def obey(self, name: str, rest: str) -> None:
        """A slash command, by its name in `commands.COMMANDS`. Raises TenureError for what cannot be."""
        done = getattr(self, f"_do_{name}")(rest)
        if isawaitable(done):  # the others are workers
            await done

    async def leave(self) -> None:
        """Close the session, and end."""
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.close()
        self.exit(agent.id if agent is not None and len(agent.context.session.index) else "")

    async def action_quit(self) -> None:
        await self.leave()

    # --- Commands

    @property
    def _open_agent(self) -> "Agent":
        if self._agent is None:
            raise InputError("session", "none is open", "/model or /sessions")
        return self._agent

    @property
    def _as_now(self) -> Settings:
        """The settings with the model that is talked with now, where it is."""
        choice = self._open_agent.choice
        return replace(self.settings, model=choice.spec, base_url=choice.base_url)

    async def _do_context(self, _: str) -> None:
        from tenure.agent.screens.build import build
        from tenure.agent.screens.history import of_context
        from tenure.agent.screens.pickers import title_of
        from tenure.agent.screens.viewer import ContextViewer
        from tenure.engine.meter.tokens import o200k

        agent = self._open_agent
        store, dialect = agent.context.store, agent.choice.api
        count, system = self.world.tokens or o200k(), agent.admitted.system
        builder = partial(build, store=store, folder=agent.folder, count=count, system=system, dialect=dialect)
        title = title_of(store, store.conversation(agent.id))
        history = partial(of_context, agent.context, title=title, model=agent.choice.name)
        viewer = ContextViewer(history, builder, busy=lambda: self._chat.is_busy, recall=self._bring_back)
        await self.push_screen(viewer, self._go_on_with)

    async def _go_on_with(self, curated: "Curated | None") -> None:
        """Go on with what was made in the viewer."""
        if curated is None:
            return
        if curated.built:
            source = self._open_agent.id[:8]
            await self._reopen(curated.built, f"this is {curated.built[:8]}, built from {source}, which stays as it was")
            return
        try:
            await self._fork(curated.entries, files=curated.files, draft=curated.draft)
        except TenureError as error:
            self._chat.tell(str(error), "error")

    async def _fork(self, entries: int, *, files: bool = False, draft: str = "") -> None:
        """Go on in a copy of the session up to some entry. Raises TenureError."""
        source = self._open_agent.id[:8]
        fork, done = await self._open_agent.fork(entries, files=files)
        became = f"; {commands.rewound_text(done)}" if done else "; no file had changed since" if files else ""
        await self._reopen(fork, f"this is {fork[:8]}, a fork of {source} at entry {entries}, which stays as it was{became}")
        if draft:
            self._chat.draft.put(draft)

    def _do_handoff(self, focus: str) -> None:
        self._chat.hand_off(self._open_agent, focus)

    async def _do_recall(self, wanted: str) -> None:
        from tenure.agent.screens.history import of_context
        from tenure.agent.screens.recall import RecallScreen

        if not wanted:
            raise InputError("/recall", "nothing", "a handle such as read:12, a path, or words")
        agent = self._open_agent
        history = of_context(agent.context, title=agent.id[:8], model=agent.choice.name)
        await self.push_screen(RecallScreen(history, wanted), self._use_recalled)

    def _use_recalled(self, handle: str | None) -> None:
        if handle:
            try:
                self._bring_back(handle)
            except TenureError as error:
                self._chat.tell(str(error), "warning")

    def _bring_back(self, handle: str) -> str:
        """Put what left the window at its end again, and say so. Raises InputError."""
        self._chat.brought(self._open_agent.bring_back(handle))
        text = f"{handle} is back at the end of the window: the model sees it from its next call on"
        self._chat.tell(text)
        return text

    async def _do_budget(self, rest: str) -> None:
        if rest and not await self._set("target", rest):
            return
        self._chat.tell(commands.budget_text(self._open_agent))

    async def _do_policy(self, rest: str) -> None:
        if rest and not await self._set("policy", rest):
            return
        self._chat.tell(commands.policy_text(self._open_agent))

    async def _do_set(self, rest: str) -> None:
        from tenure.agent.settings_file import setting_named, shown

        name, _, text = rest.partition(" ")
        if not name:
            self.push_screen(
                TextPage("settings", commands.settings_text(self._open_agent.parts.settings, min(114, self.size.width - 6)))
            )
            return
        setting = setting_named(name)
        if text.strip() and not await self._set(name, text.strip()):
            return
        self._chat.tell(f"{name} = {shown(self._open_agent.parts.settings, setting) or 'the usual'}: {setting.about}")

    async def _set(self, name: str, text: str) -> bool:
        """Go on under another value of a setting; False when that could not be. Raises InputError."""
        from tenure.agent.settings_file import changed, setting_named

        setting = setting_named(name)
        if setting.at_start:
            raise InputError(name, "a setting of the start", f"it in a new session: tenure settings says where {name} is written")
        if name == "approve":
            self._do_mode(text)
            return False
        settings = changed(self._as_now, {name: text})
        agent = self._open_agent
        if len(agent.context.session.index):
            settings = replace(settings, resume=agent.id, newest=False)
        return await self._open(settings)

    def _do_why(self, _: str) -> None:
        self.push_screen(TextPage("why", commands.why_text(self._open_agent)))

    def _do_ledger(self, _: str) -> None:
        self.push_screen(TextPage("ledger", commands.ledger_text(self._open_agent, min(110, self.size.width - 8))))

    def _do_help(self, _: str) -> None:
        self.push_screen(TextPage("help", commands.help_text(min(114, self.size.width - 6))))

    async def _do_fork(self, rest: str) -> None:
        await self._fork((await self._place(rest))[0] if rest else len(self._open_agent.context.session.index))

    async def _place(self, handle: str) -> tuple[int, str]:
        """Before a person's words, or the end of another message, and the words. Raises InputError."""
        from tenure.agent.screens.contents import lists
        from tenure.agent.screens.history import of_context
        from tenure.agent.screens.tree import start_of

        history = of_context(self._open_agent.context)
        return start_of(history, lists(history), handle)

    def _do_title(self, words: str) -> None:
        store, id_ = self._open_agent.context.store, self._open_agent.id
        before = store.conversation(id_).title
        title = clean.line(words, TITLE_CHARS)
        if title:
            store.entitle(id_, title, instead=before)
        self._chat.tell(f"this session is called {title or before or 'nothing yet'}")

    async def _do_rewind(self, rest: str) -> None:
        agent = self._open_agent
        if not rest:
            self._chat.tell(commands.rewind_text(agent.snapshots()))
        elif rest.isdecimal():
            self._chat.tell(commands.rewound_text(await agent.rewind(int(rest))))
        else:
            entries, words = await self._place(rest)
            await self._fork(entries, files=True, draft=words)

    async def _do_new(self, _: str) -> None:
        await self._open(replace(self._as_now, resume="", newest=False))

    async def _do_undo(self, _: str) -> None:
        agent = self._open_agent
        changes = agent.snapshots()
        if not changes:
            raise InputError("/undo", "no change of a file is kept in this session", "a change")
        self._chat.tell(f"before {changes[-1].cause}: {commands.rewound_text(await agent.rewind(changes[-1].number))}")

    def _do_export(self, rest: str) -> None:
        from tenure.agent.screens.export import export

        agent = self._open_agent
        if not rest:
            raise InputError("/export", "no file", "a name that ends with .md or .json")
        path = agent.folder / Path(rest).expanduser()
        self._chat.tell(f"{export(agent.context, path, agent.choice.api):,} entries are in {path}")

    @work(exclusive=True, group="opening")
    async def _do_model(self, rest: str) -> None:
        model = rest or await self._pick_model()
        if not model:
            return
        if self._agent is None:
            await self._open(replace(self.settings, model=model))
            return
        try:
            await self._agent.use(model)
        except TenureError as error:
            self._chat.tell(str(error), "error")
            return
        self.settings = self._as_now
        self._chat.tell(f"{model} goes on from here; its provider has none of this cached")

    @work(exclusive=True, group="opening")
    async def _do_sessions(self, _: str) -> None:
        from tenure.agent.screens.pickers import NEW, session_picker

        agent = self._agent
        if agent is None:
            self._chat.tell("no store is open yet: /model opens a session", "warning")
            return
        session = await self.push_screen_wait(session_picker(agent.context.store, str(agent.folder)))
        if session == NEW:
            await self._open(replace(self._as_now, resume="", newest=False))
        elif session:
            await self._open(await self._settings_of(agent, session))

    async def _settings_of(self, agent: "Agent", session: str) -> Settings:
        """How to open an earlier session: as it was held, with a model of the person's choice where the store does not say."""
        from tenure.engine.lifecycle.terms import Terms

        is_known = Terms.stored(agent.context.store.conversation(session).terms).base_url
        model = "" if is_known else await self._pick_model()
        return replace(self.settings.as_held(), resume=session, newest=False, model=model)

    def _do_mode(self, rest: str) -> None:
        agent = self._open_agent
        if rest:
            if rest not in tuple(Mode):
                raise InputError("/mode", repr(rest), ", ".join(Mode))
            agent.mode = Mode(rest)
        self._chat.tell("\n".join((f"mode: {agent.mode}; there are {', '.join(Mode)}", *agent.unwalled)))

    def _do_theme(self, _: str) -> None:
        self.action_theme()

    async def _do_quit(self, _: str) -> None:
        await self.leave()
