"""Whatever models, tools and sessions say, no screen of the interface obeys it."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from tui_stage import call, made, played, said, says, settled, text_of, until

from hostile_text import EVIL, MARKUP, SOUND, acting, log_file, message_file
from tenure.agent.approval import Mode
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.build import build
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.commands import COMMANDS
from tenure.agent.screens.history import of_address
from tenure.agent.screens.viewer import ContextViewer, ViewerApp
from tenure.agent.screens.viewer_tabs import TABS
from tenure.engine.lifecycle.budget import Budget
from tenure.testing.builders import by_words
from tenure.testing.store import MemoryStore

TEXT = f"{MARKUP} {EVIL}\n# {EVIL}\n- {EVIL}\n\n| a | {EVIL} |\n|---|---|\n| {EVIL} | b |\n\n```{EVIL}\n{EVIL}\n```\n[go](javascript:{EVIL})"
REPLIES = [
    says(TEXT, call("bash", command=f"printf 'o\\033]0;x\\007\\033[2Jwned\\n%.0s' $(seq 300) # {EVIL}"), thinking=EVIL),
    says(
        EVIL, call(f"t{EVIL}", path=EVIL), call("read", path=f"no {EVIL}"), call("write", path="new.md", content=f"{EVIL}\n" * 9)
    ),
    says("", call("delimiter", action="start", name=f"n {SOUND}"[:60], type="expl")),
    says("", call("delimiter", action="end", description=SOUND)),
    says("", call("edit", path="new.md", old_string=EVIL, new_string=f"x{EVIL}")),
    says(TEXT),
]
ARGUMENTS = {
    "handoff": EVIL,
    "recall": "owned",
    "budget": EVIL,
    "policy": EVIL,
    "model": EVIL,
    "export": f"no/{EVIL}",
    "mode": EVIL,
}


async def kept_harmless(pilot: Pilot[Any]) -> str:
    """What is on the screen once it stands still, all of it harmless."""
    await settled(pilot)
    shown = text_of(pilot.app)
    assert not acting(shown), acting(shown)
    return shown


def test_a_turn_obeys_nothing_that_its_model_and_its_tools_say(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, f"do {TEXT}")
        shown = await kept_harmless(pilot)
        assert "[/nothing]" in shown or "owned" in shown
        for _ in range(4):
            await pilot.press("pageup", "pageup")
            await kept_harmless(pilot)

    played(made(tmp_path, REPLIES, mode=Mode.ALL), play, (100, 40))


def test_an_approval_obeys_nothing_of_the_call_that_it_is_about(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "do it", wait=False)
        for _ in range(4):
            await until(pilot, lambda: "owned" in text_of(app))
            await kept_harmless(pilot)
            await pilot.press("y")

    played(made(tmp_path, [*REPLIES[:2], says("ok")]), play, (100, 40))


@pytest.mark.long
def test_no_command_and_no_page_obeys_what_the_session_says(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, f"do {TEXT}")
        for command in COMMANDS:
            if command.name == "quit":
                continue
            arguments = ARGUMENTS.get(command.name, "").replace("\n", " ")
            for line in dict.fromkeys((f"/{command.name}", f"/{command.name} {arguments}".strip())):
                await until(pilot, lambda: isinstance(app.screen, Chat) and app.screen.agent is not None)
                await said(pilot, app, line, wait=False)
                await kept_harmless(pilot)
                await pilot.press("down", "d")
                await kept_harmless(pilot)
                for _ in range(3):
                    if not isinstance(app.screen, Chat):
                        await pilot.press("escape")
        await said(pilot, app, f"/none{SOUND}", wait=False)
        await kept_harmless(pilot)

    settings: dict[str, Any] = {"mode": Mode.ALL, "policy": "cwl", "budget": Budget(ceiling=6_000)}
    played(made(tmp_path, [*REPLIES, *REPLIES[-1:] * 5], **settings), play, (100, 40))


@pytest.mark.long
@pytest.mark.parametrize("written", [message_file, log_file], ids=["messages", "log"])
def test_no_list_of_the_viewer_obeys_what_the_session_says(written: Callable[[Path], Path], tmp_path: Path) -> None:
    path = written(tmp_path / "s[bold]\x1b[2J\u202e.json")
    builder = partial(build, store=MemoryStore(), folder=tmp_path, count=by_words)
    app = ViewerApp(lambda: of_address(str(path), by_words), builder)

    async def run() -> None:
        async with app.run_test(size=(120, 36), notifications=True) as pilot:
            await until(pilot, lambda: isinstance(app.screen, ContextViewer))
            for number in range(1, len(TABS) + 1):
                await pilot.press(str(number))
                await kept_harmless(pilot)
                for _ in range(2):
                    await pilot.press("down", "enter", "d", "space", "p", "r", "t", "u")
                    await kept_harmless(pilot)
            await pilot.press("slash", *"owned", "enter")
            await kept_harmless(pilot)

    asyncio.run(run())
