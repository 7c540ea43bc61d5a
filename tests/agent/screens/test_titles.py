"""A session gets its title behind its first turn, and nobody waits for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from tui_stage import HELPER, NARROW, USUAL, folder_of, looks, made, picture, played, said, says, text_of, until

from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.pickers import Picker
from tenure.testing.store import MemoryStore

LONG = "please have a look at the module that nobody has looked at for years, and rename it, and all that uses it, to something better"


def titles(store: MemoryStore, tmp_path: Path) -> list[str]:
    return [sheet.title for sheet in store.conversations(str(folder_of(tmp_path))) if sheet.length]


def test_the_picker_shows_the_title_that_a_helper_model_found(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    store = MemoryStore()

    async def first(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, LONG)
        await until(pilot, lambda: titles(store, tmp_path) == ["Rename the old module"])

    async def then(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "/sessions")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        sheet = next(sheet for sheet in store.conversations(str(folder_of(tmp_path))) if sheet.length)
        async for width, theme in looks(pilot, NARROW, USUAL):
            golden(f"tui-titles-{width}-{theme}.txt", picture(app).replace(sheet.id[:8], "01234567"))
        await pilot.press("escape")

    helped = [says('"Rename the old module."')]
    played(made(tmp_path, [says("it is renamed")], store=store, helper=HELPER, helped=helped), first)
    played(made(tmp_path, [], store=store), then, (60, 24))


def test_a_session_is_asked_for_its_title_once_and_the_next_turn_does_not_wait(tmp_path: Path) -> None:
    store = MemoryStore()

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "one")
        await said(pilot, app, "two")
        await until(pilot, lambda: titles(store, tmp_path) == ["First"])
        await said(pilot, app, "three")
        assert titles(store, tmp_path) == ["First"]
        chat = app.screen
        assert isinstance(chat, Chat)
        assert chat.agent is not None
        assert [spent.role for spent in store.asides(chat.agent.id)] == ["title"]

    helped = [says("First"), says("Second")]
    played(made(tmp_path, [says("1"), says("2"), says("3")], store=store, helper=HELPER, helped=helped), play)


@pytest.mark.parametrize("helper", [HELPER, "nobody:at-all", ""], ids=["fails", "is not there", "is a script"])
def test_without_a_helper_that_answers_a_session_is_named_by_its_first_words_and_nothing_is_said(
    helper: str, tmp_path: Path
) -> None:
    store = MemoryStore()

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "rename the module")
        await pilot.pause(0.1)
        assert titles(store, tmp_path) == [""]
        assert not any(word in text_of(app) for word in ("error", "title", "script has no more"))

    played(made(tmp_path, [says("it is renamed")], store=store, helper=helper), play)


def test_a_turn_that_failed_asks_for_no_title(tmp_path: Path) -> None:
    store = MemoryStore()

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "one")
        await pilot.pause(0.1)
        assert titles(store, tmp_path) == [""]

    script: list[dict[str, object]] = [{"status": 401}]
    played(made(tmp_path, script, store=store, helper=HELPER, helped=[says("A title")]), play)
