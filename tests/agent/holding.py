"""A session in a folder of its own, with a script or a provider on this machine, told to its end."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from tenure.agent.approval import ApprovalAnswer, Mode
from tenure.agent.events import ApprovalAsked, Event, TurnDone
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools.tool import ToolLimits
from tenure.engine.record.entry import Entry
from tenure.models.scripted import Playing, Script, ScriptedSpeaker
from tenure.store.records import PART
from tenure.testing.script import Broken, Call, Fault, Reply
from tenure.testing.store import MemoryStore

E = TypeVar("E")
LIMITS = {ToolLimits().search_s, ToolLimits().command_s, ToolLimits().command_most_s}  # how long a tool may take: never up
Turn = Reply | Fault | Broken


def call(tool: str, **arguments: Any) -> Call:
    """A call in a script."""
    from tenure.apis.json_text import dump

    return Call(name=tool, arguments=dump(arguments))


def says(text: str, *calls: Call, thinking: str = "") -> Reply:
    """A reply in a script."""
    return Reply(text=text, thinking=thinking, calls=calls)


def folder(tmp_path: Path, **files: str) -> Path:
    """A workspace with these files, whose names have `_` for the dot."""
    made = tmp_path / "ws"
    made.mkdir(exist_ok=True)
    (tmp_path / "home").mkdir(exist_ok=True)
    for name, text in files.items():
        (made / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return made


class Outside:
    """A world that stands still: waits are noted and pass at once, and time is what was waited for."""

    def __init__(
        self, where: Path, *turns: Turn, dialect: str = "openai-chat", model: str = "scripted", pace_s: float = 0.0
    ) -> None:
        self.where = where
        self.store = MemoryStore()
        self.waits: list[float] = []
        self.speaker = ScriptedSpeaker(
            Script(replies=turns, playing=Playing(dialect=dialect, model=model, pace_s=pace_s)),
            now=lambda: 0.0,
            tokens=lambda text: len(text) // 4 + 1,
        )

    def world(self, **changed: Any) -> World:
        async def wait(seconds: float) -> None:
            if seconds in LIMITS:
                await asyncio.Event().wait()
            self.waits.append(seconds)

        settings: dict[str, Any] = {
            "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.where.parent / "home")},
            "home": self.where.parent / "home",
            "today": None,
            "now": lambda: "2026-01-01T00:00:00.000000Z",
            "wait": wait,
            "chance": lambda: 1.0,
            "speaker": lambda _: self.speaker,
            "store": self.store,
            "tokens": lambda text: len(text) // 4 + 1,
        }
        return World(**(settings | changed))

    def settings(self, **changed: Any) -> Settings:
        usual: dict[str, Any] = {"folder": self.where, "model": "scripted:-", "mode": Mode.ALL}
        return Settings(**(usual | changed))


async def open_agent(outside: Outside, world: dict[str, Any] | None = None, **settings: Any) -> Agent:
    """A session in this world."""
    return await Agent.open(outside.settings(**settings), outside.world(**(world or {})))


async def heard(
    agent: Agent, text: str = "", *, answer: ApprovalAnswer | None = None, on: Callable[[Event], object] | None = None
) -> list[Event]:
    """All events of a turn. `answer` is a person's word on every call that waits for one; `on` is told of each event as it comes."""
    events: list[Event] = []
    async for event in agent.run(text):
        events.append(event)
        if isinstance(event, ApprovalAsked) and answer is not None:
            agent.approve(event.call, answer)
        if on is not None:
            on(event)
    return events


def played(
    outside: Outside, *texts: str, answer: ApprovalAnswer | None = None, world: dict[str, Any] | None = None, **settings: Any
) -> list[Event]:
    """All events of a session that is opened, told these things, and closed."""

    async def play() -> list[Event]:
        async with AsyncExitStack() as stack:
            agent = await open_agent(outside, world, **settings)
            stack.push_async_callback(agent.close)
            return [event for text in texts for event in await heard(agent, text, answer=answer)]

    return asyncio.run(play())


def of(events: Iterable[Event], kind: type[E]) -> list[E]:
    """The events of a kind."""
    return [event for event in events if isinstance(event, kind)]


def end(events: Sequence[Event]) -> TurnDone:
    """How the last turn ended; that it did, and that nothing came behind it."""
    assert isinstance(events[-1], TurnDone)
    return events[-1]


def recorded(outside: Outside) -> tuple[Entry, ...]:
    """The record of the newest session."""
    held = outside.store.conversations(str(outside.where.resolve()))
    newest = next(sheet for sheet in held if not sheet.title.startswith(PART))
    return tuple(outside.store.entries(newest.id))


def results(outside: Outside) -> list[str]:
    """The texts of all results in the newest session's record."""
    return [block.text for entry in recorded(outside) for block in entry.blocks if block.__struct_config__.tag == "tool_result"]
