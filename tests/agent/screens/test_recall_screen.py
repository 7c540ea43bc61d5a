"""`/recall`: what left the window is looked at, and brought back for the model where the person wants that."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from tui_stage import COUNTED, NARROW, SQUEEZED, USUAL, WIDE, Squeezed, looks, made, picture, played, said, says, text_of, until

from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.recall import RecallScreen
from tenure.agent.screens.viewer import ContextViewer
from tenure.agent.screens.widgets import RowList


def recalling(app: TenureApp) -> RecallScreen:
    assert isinstance(app.screen, RecallScreen)
    return app.screen


def shown(app: TenureApp) -> dict[str, int]:
    """The weight of every call's result in the window."""
    assert app._agent is not None
    session = app._agent.context.session
    return {span.object: session.view.weight(*span.result) for span in session.index.spans if span.result is not None}


def test_words_are_found_with_how_much_of_each_the_window_shows(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "count")
        await said(pilot, app, "/recall seq 700")
        await until(pilot, lambda: isinstance(app.screen, RecallScreen))
        async for width, theme in looks(pilot, NARROW, USUAL, WIDE):
            golden(f"tui-recall-{width}-{theme}.txt", picture(app))

    played(made(tmp_path, COUNTED, **SQUEEZED), play, (60, 24))


def test_what_has_left_is_brought_back_at_the_end_for_the_models_next_call(tmp_path: Path, squeezed: Squeezed) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        assert shown(app)["bash:1"] == 0
        await said(pilot, app, "/recall bash:1")
        await until(pilot, lambda: isinstance(app.screen, RecallScreen))
        assert "not in the window" in text_of(app)
        assert "1 2 3 4 5" in text_of(app)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, Chat))
        await until(pilot, lambda: "is back at the end of the window" in text_of(app))
        assert shown(app)["recall:1"] > 600
        assert shown(app)["bash:1"] == 0  # where it stood nothing changed
        await said(pilot, app, "go on")
        assert "I see it again." in text_of(app)

    played(squeezed(tmp_path, says("I see it again.")), play, (100, 40))


def test_escape_leaves_the_window_as_it_was_and_what_it_shows_whole_is_not_brought_back(
    tmp_path: Path, squeezed: Squeezed
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        before = shown(app)
        await said(pilot, app, "/recall seq")
        await until(pilot, lambda: isinstance(app.screen, RecallScreen))
        await pilot.press("enter")
        assert app.screen.query_one("#leaf").has_focus
        await pilot.press("escape")
        assert recalling(app).query_one(RowList).has_focus
        await pilot.press("escape")
        assert isinstance(app.screen, Chat)
        assert shown(app) == before
        await said(pilot, app, "/recall bash:9")
        await until(pilot, lambda: isinstance(app.screen, RecallScreen))
        await pilot.press("b")
        await until(pilot, lambda: "nothing to bring back" in text_of(app))
        await pilot.press("escape")
        assert shown(app) == before

    played(squeezed(tmp_path, says("I see it again.")), play, (140, 40))


def test_what_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "count")
        for wanted, told in (
            (" bash:99", "no object 'bash:99'"),
            (" nowhere to be seen", "nothing in the record"),
            ("", "a handle"),
        ):
            await said(pilot, app, f"/recall{wanted}")
            await until(pilot, lambda told=told: told in text_of(app))

    played(made(tmp_path, [says("one, two, three")]), play, (120, 30))


def test_an_object_is_brought_back_from_the_viewer_too(tmp_path: Path, squeezed: Squeezed) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ContextViewer))
        await pilot.press("2")
        app.screen.query_one("#objects-rows", RowList).go("bash:1")
        await pilot.press("t")
        await until(pilot, lambda: "recall:1" in shown(app))
        assert app.screen.query_one("#objects-rows", RowList).key == "bash:1"
        await pilot.press("escape")
        assert "is back at the end of the window" in text_of(app)

    played(squeezed(tmp_path, says("I see it again.")), play, (120, 40))
