"""A stage for the terminal interface: a folder, a scripted model, a store in memory, and the screen as text."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.errors import NoWidget
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip

from tenure.agent.approval import Mode
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.commands import is_command
from tenure.agent.screens.themes import DARK, LIGHT
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.agent.tools.sandbox import Means
from tenure.engine.lifecycle.budget import Budget
from tenure.models.scripted import ScriptedSpeaker, parse_script
from tenure.store.records import Records
from tenure.testing.builders import by_words
from tenure.testing.store import MemoryStore

HELPER = "openai-chat:gpt-5-nano"
NARROW, USUAL, WIDE = (60, DARK), (80, LIGHT), (160, DARK)  # widths and themes in which a screen is looked at
Play = Callable[[Pilot[Any], TenureApp], Awaitable[None]]


def call(name: str, /, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


def says(text: str = "", *calls: dict[str, object], thinking: str = "") -> dict[str, object]:
    return {"text": text, "thinking": thinking, "calls": list(calls)}


def folder_of(tmp_path: Path) -> Path:
    folder = tmp_path / "parser-kit"
    folder.mkdir(exist_ok=True)
    (folder / "parser.py").write_text("# a parser\n\ndef parse(text):\n    return skip(text)\n", encoding="utf-8")
    return folder


def made(
    tmp_path: Path,
    replies: Sequence[dict[str, object]],
    *,
    store: Records | None = None,
    theme: str = DARK,
    helped: Sequence[dict[str, object]] = (),
    **settings: Any,
) -> TenureApp:
    """The app on a made-up folder; time stands still, and a token is a word. `helped` is what the model HELPER says."""
    speaker, helper = (
        ScriptedSpeaker(parse_script(json.dumps({"replies": list(each)})), tokens=by_words) for each in (replies, helped)
    )
    world = World(
        environment={"PATH": os.environ["PATH"]},
        home=tmp_path,
        today=None,
        seconds=lambda: 0.0,
        now=lambda: "2026-01-02T03:04:05.000000Z",
        speaker=lambda choice: helper if choice.spec == HELPER else speaker,
        local=(),
        store=store or MemoryStore(),
        tokens=by_words,
        walls=Means.NONE,
    )
    chosen: dict[str, Any] = {"model": "openai-chat:gpt-5-mini"} | settings
    return TenureApp(Settings(folder=folder_of(tmp_path), **chosen), world, theme=theme)


def played(app: TenureApp, play: Play, size: tuple[int, int] = (80, 30)) -> None:
    """Run the app, wait until its session is open, and play."""

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: isinstance(app.screen, Chat) and app.screen.agent is not None)
            await play(pilot, app)
            await app.leave()

    asyncio.run(run())


def spoken(app: TenureApp, *texts: str) -> None:
    """Say these things in the app's session, without its screen."""

    async def run() -> None:
        agent = await Agent.open(app.settings, app.world)
        for text in texts:
            async for _ in agent.run(text):
                pass
        await agent.close()

    asyncio.run(run())


# A session whose first outputs leave its window: settings, and what its model says.
SQUEEZED: dict[str, Any] = {"mode": Mode.ALL, "policy": "cwl", "clip": 0, "budget": Budget(ceiling=6_000)}
COUNTED = [*(says("", call("bash", command=f"seq -s ' ' {n} 700")) for n in range(1, 10)), says("counted")]
Squeezed = Callable[..., TenureApp]


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for something that must come."""
    for _ in range(1_000):
        await pilot.pause(0.01)
        if condition():
            await settled(pilot)
            return
    raise AssertionError(f"it never came; the screen:\n{text_of(pilot.app)}")


async def settled(pilot: Pilot[Any]) -> None:
    """Wait until the screen stays as it is; what moves all the time, such as the sign of a turn that runs, is not waited for."""
    same, shown = 0, text_of(pilot.app)
    for _ in range(12):
        pilot.app.screen.refresh(layout=True)  # Textual now and then leaves a scrollbar as it was before the last line
        await pilot.pause(0.03)  # half a frame of the transcript
        before, shown = shown, text_of(pilot.app)
        same = same + 1 if shown == before else 0
        if same == 2:
            return


async def looks(pilot: Pilot[Any], *wanted: tuple[int, str], height: int = 24) -> AsyncIterator[tuple[int, str]]:
    """The same screen in several widths and themes, one after another, each once it stands still."""
    for width, theme in wanted:
        pilot.app.theme = theme
        await pilot.resize_terminal(width, height)
        await settled(pilot)
        yield width, theme


async def said(pilot: Pilot[Any], app: TenureApp, text: str, *, wait: bool = True) -> None:
    """Type a text, send it, and wait for the end of the turn that it begins."""
    chat = app.screen
    assert isinstance(chat, Chat)
    before = _length(chat)
    chat.draft.put(text)
    await pilot.press("enter")
    if is_command(text):
        await pilot.pause(0.1)
    elif wait:
        await until(pilot, lambda: _length(chat) > before and not chat.is_busy and chat.transcript.is_drawn)


def _length(chat: Chat) -> int:
    return len(chat.agent.context.session.index) if chat.agent is not None else 0


def text_of(app: App[Any]) -> str:
    """What is on the screen."""
    return "\n".join(line.text.rstrip() for line in app.screen._compositor.render_strips()) + "\n"


def picture(app: App[Any]) -> str:
    """The screen as text, then as letters that each stand for a look, then what they stand for.

    Hashes are made the same, and scrollbars are left out: Textual now and then shows one as it was before the last line.
    """
    looks: dict[str, str] = {}
    shown, drawn = list[str](), list[str]()
    bars: list[Region] = []
    for each in app.screen.query("*"):
        with suppress(NoWidget):  # of a list that is hidden
            bars += [app.screen.find_widget(each.vertical_scrollbar).region] if each.show_vertical_scrollbar else []
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        for bar in bars:
            if bar.y <= y < bar.bottom:
                strip = Strip([*strip.crop(0, bar.x), Segment(" " * bar.width), *strip.crop(bar.right)])
        letters = ""
        for segment in strip:
            look = _look(segment.style)
            letter = looks.setdefault(look, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(looks) % 52])
            letters += letter * len(segment.text)
        drawn.append(letters.rstrip())
        shown.append(strip.text.rstrip())
    words = re.sub(r"@[0-9a-f]{4}", "@····", "\n".join(shown)) + "\n"
    legend = [f"{letter}  {look}" for look, letter in looks.items()]
    return "\n".join([words, *_runs(drawn), "", *legend]) + "\n"


def _look(style: Style | None) -> str:
    if style is None:
        return "plain"
    colours = [colour.triplet.hex if colour is not None and colour.triplet else "-" for colour in (style.color, style.bgcolor)]
    marks = [name for name in ("bold", "italic", "underline", "reverse", "dim") if getattr(style, name)]
    return " ".join([f"{colours[0]} on {colours[1]}", *marks])


def _runs(lines: Sequence[str]) -> list[str]:
    """Letters as runs: `a12 b3`; a line that looks the same all along is one run."""
    return [" ".join(f"{run[0][0]}{len(run[0])}" for run in re.finditer(r"(.)\1*", line)) for line in lines]
