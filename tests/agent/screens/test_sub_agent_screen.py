"""What a sub-agent asks for is asked of the same person, on the same screen, and it is said who asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from tui_stage import NARROW, USUAL, WIDE, call, folder_of, looks, made, picture, played, said, says, text_of, until

from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.approval import ApprovalPrompt
from tenure.agent.screens.chat import Chat

DELEGATED = (
    says("I hand the manual out.", call("task", task="Write the manual.", folder="engine")),
    says("", call("write", path="manual.md", content="# Manual\n")),
    says("The manual is written."),
    says("All done."),
)


def workshop(tmp_path: Path) -> TenureApp:
    (folder_of(tmp_path) / "engine").mkdir()
    return made(tmp_path, DELEGATED)


async def asked(pilot: Pilot[Any], app: TenureApp) -> Chat:
    chat = app.screen
    assert isinstance(chat, Chat)
    await said(pilot, app, "write the manual", wait=False)
    await until(pilot, lambda: chat.query_one(ApprovalPrompt).waits and chat.transcript.is_drawn)
    return chat


def test_an_approval_of_a_sub_agent_names_it_and_a_yes_reaches_it(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = await asked(pilot, app)
        async for width, theme in looks(pilot, NARROW, USUAL, WIDE):
            shown = picture(app)
            spinner = next(letter for letter in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if letter in shown)
            golden(f"tui-sub-agent-{width}-{theme}.txt", shown.replace(spinner, "⠋"))
        manual = folder_of(tmp_path) / "engine" / "manual.md"
        assert not manual.exists()
        await pilot.press("y")
        await until(pilot, lambda: not chat.is_busy)
        assert manual.read_text(encoding="utf-8") == "# Manual\n"
        assert "All done." in text_of(app)
        assert chat.draft.has_focus

    played(workshop(tmp_path), play, (60, 24))


def test_escape_says_no_for_the_sub_agent_and_a_second_one_stops_the_turn(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = await asked(pilot, app)
        await pilot.press("escape")
        await until(pilot, lambda: not chat.query_one(ApprovalPrompt).waits)
        await pilot.press("escape")
        await until(pilot, lambda: not chat.is_busy)
        assert not (folder_of(tmp_path) / "engine" / "manual.md").exists()

    played(workshop(tmp_path), play, (100, 40))
