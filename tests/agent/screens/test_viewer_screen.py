import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TabbedContent
from tui_stage import NARROW, USUAL, WIDE, Squeezed, call, looks, made, picture, played, said, says, text_of, until

from tenure.agent.approval import Mode
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.build import build
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.history import of_address, of_records
from tenure.agent.screens.themes import DARK, LIGHT
from tenure.agent.screens.viewer import ContextViewer, ViewerApp
from tenure.agent.screens.widgets import RowList
from tenure.store.store import Store
from tenure.testing.builders import by_words
from tenure.testing.store import MemoryStore

LINES = "\n".join(f"{n}: a line of the module that was read" for n in range(1, 41))


def session_file(path: Path) -> Path:
    """A plain chat of three tasks, annotated, with an image of an escape sequence in it."""
    messages: list[dict[str, object]] = []
    for task in range(3):
        messages.append({"role": "user", "content": f"Task {task}: let [b]parser {task}[/b] accept comments \x1b[31m."})
        calls = (
            ("delimiter", {"action": "start", "name": f"find-{task}", "type": "expl"}),
            ("read", {"path": f"src/parser_{task}.py"}),
            ("delimiter", {"action": "end", "description": f"comments are dropped in skip() of part {task}"}),
        )
        for n, (name, arguments) in enumerate(calls):
            id_ = f"call_{task}_{n}"
            made_call = {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            messages.append({"role": "assistant", "content": None, "tool_calls": [made_call]})
            messages.append({"role": "tool", "tool_call_id": id_, "content": LINES if name == "read" else "ok"})
        messages.append({"role": "assistant", "content": f"Part {task} keeps its comments now."})
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def viewed(
    path: Path,
    play: Callable[[Pilot[Any], ViewerApp], Awaitable[None]],
    size: tuple[int, int] = (120, 36),
    *,
    store: MemoryStore | None = None,
) -> None:
    """Open the viewer on a file, and play."""
    kept = store or MemoryStore()
    builder = partial(build, store=kept, folder=path.parent, count=by_words)
    app = ViewerApp(lambda: of_address(str(path), by_words), builder)

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: isinstance(app.screen, ContextViewer))
            await play(pilot, app)

    asyncio.run(run())


def test_every_list_reads_well(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    async def play(pilot: Pilot[Any], app: ViewerApp) -> None:
        for key, tab in enumerate(("tree", "objects", "calls"), 1):
            await pilot.press(str(key), *(("home", "right") if tab == "tree" else ()))
            for height, every in ((24, (NARROW, (80, DARK), USUAL)), (36, (WIDE, (160, LIGHT)))):
                async for width, theme in looks(pilot, *every, height=height):
                    golden(f"tui-viewer-{tab}-{width}-{theme}.txt", picture(app))

    viewed(session_file(tmp_path / "session.json"), play, (60, 24))


def test_commits_read_well_and_the_cursor_is_in_sight_when_a_long_list_is_turned_to(
    tmp_path: Path, squeezed: Squeezed, golden: Callable[[str, str], None]
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp, chat: Chat, viewer: ContextViewer) -> None:
        await pilot.press("4")
        for height, every in ((24, (NARROW, USUAL)), (36, (WIDE,))):
            async for width, theme in looks(pilot, *every, height=height):
                golden(f"tui-viewer-commits-{width}-{theme}.txt", picture(app))
        async for _ in looks(pilot, USUAL, height=18):
            await pilot.press("3")
            await pilot.pause(0.1)
            rows = viewer.query_one("#calls-rows", RowList)
            assert rows.cursor == rows.count - 1
            assert rows.scroll_offset.y > 0

    live(squeezed(tmp_path), play, (60, 24))


def test_a_call_shows_what_changed_or_all_that_the_model_saw_and_words_are_found(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: ViewerApp) -> None:
        await pilot.press("3")
        await pilot.pause(0.05)
        shown = text_of(app)
        assert "what changed since the call before" in shown
        assert "Task 0" not in shown
        await pilot.press("d")
        await pilot.pause(0.05)
        shown = text_of(app)
        assert "all that the model saw" in shown
        assert "Task 0" in shown
        await pilot.press("slash")
        app.screen.query_one("#search", Input).value = "SKIP() of part 1"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query_one("#found-rows", RowList).count)
        assert app.screen.query_one("#found-rows", RowList).count == 1
        assert app.screen.query_one("#lists", TabbedContent).get_tab("found").label_text == "5 Found"
        assert "dropped in skip() of part 1" in text_of(app)

    viewed(session_file(tmp_path / "session.json"), play, (160, 60))


def test_chosen_turns_become_a_conversation_and_the_file_stays_of_which_nothing_is_pinned(tmp_path: Path) -> None:
    path, store = session_file(tmp_path / "session.json"), MemoryStore()
    before = path.read_bytes()

    async def play(pilot: Pilot[Any], app: ViewerApp) -> None:
        await pilot.press("2")
        await pilot.pause(0.05)
        assert "Pin" not in text_of(app)
        await pilot.press("p", "r", "1", "b")  # nothing is chosen yet
        await pilot.pause(0.05)
        assert isinstance(app.screen, ContextViewer)
        assert not store.conversations(str(tmp_path))
        await pilot.press("home", "space", "down", "space")
        assert "2 chosen" in text_of(app)
        await pilot.press("b")
        await pilot.pause(0.05)

    viewed(path, play, store=store)
    (sheet,) = store.conversations(str(tmp_path))
    history = of_records(store, sheet.id)
    said_ = [block.text for n in range(len(history.index)) for block in history.read(n).blocks if block.origin == "human"]
    assert [words[:6] for words in said_] == ["Task 0", "Task 2"]
    assert path.read_bytes() == before
    assert store.verify(sheet.id) is None


def live(
    app: TenureApp,
    play: Callable[[Pilot[Any], TenureApp, Chat, ContextViewer], Awaitable[None]],
    size: tuple[int, int] = (160, 40),
) -> None:
    """A live session of which something has left the window, in the viewer."""

    async def both(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = app.screen
        assert isinstance(chat, Chat)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ContextViewer))
        viewer = app.screen
        assert isinstance(viewer, ContextViewer)
        await play(pilot, app, chat, viewer)

    played(app, both, size)


def test_what_has_left_a_live_session_is_restored_and_undone_and_a_pin_is_set_and_let_go(
    tmp_path: Path, squeezed: Squeezed
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp, chat: Chat, viewer: ContextViewer) -> None:
        assert chat.agent is not None
        context = chat.agent.context
        gone = next(span for span in context.session.index.spans if not _is_whole(context, span))
        await pilot.press("2")
        viewer.query_one("#objects-rows", RowList).go(gone.object)
        await pilot.press("r")
        await pilot.pause(0.05)
        assert _is_whole(context, gone)
        await pilot.press("4", "end")
        await pilot.pause(0.05)
        assert f"restore of {gone.object}" in text_of(app)
        await pilot.press("u")
        await pilot.pause(0.05)
        assert not _is_whole(context, gone)
        await pilot.press("2")
        viewer.query_one("#objects-rows", RowList).go("bash:9")
        await pilot.press("p")
        await pilot.pause(0.05)
        assert [hold.object for hold in context.session.holds] == ["bash:9"]
        assert "⚑" in text_of(app)
        await pilot.press("p")
        await pilot.pause(0.05)
        assert not context.session.holds

    live(squeezed(tmp_path), play)


def _is_whole(context: Any, span: Any) -> bool:
    view, index = context.session.view, context.session.index
    return span.result is not None and view.weight(*span.result) == index.block(span.result).tokens


def test_the_tree_folds_and_a_message_chooses_its_turn(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: ViewerApp) -> None:
        rows = app.screen.query_one("#tree-rows", RowList)
        await pilot.press("home")
        turns = rows.count
        await pilot.press("l", "down", "down", "down")
        assert rows.count > turns
        assert rows.key.startswith("entry:")
        await pilot.press("space")
        assert "1 chosen" in text_of(app)
        assert "[x]  ▾ user:1" in text_of(app)
        await pilot.press("h")  # to the turn that the message is in
        assert rows.key == "user:1"
        await pilot.press("h")
        assert rows.count == turns

    viewed(session_file(tmp_path / "session.json"), play)


def curated(tmp_path: Path, *keys: str, command: str = "") -> tuple[TenureApp, list[str]]:
    """A session that writes one file in each of two turns, and what is pressed in its viewer, or typed; the app, and what the file holds then."""
    replies = [
        says("", call("write", path="note.txt", content="first\n")), says("one"),
        says("", call("write", path="note.txt", content="second\n")), says("two"), says("three"),
    ]  # fmt: skip
    app = made(tmp_path, replies, store=Store(f"sqlite:///{tmp_path / 'sessions.db'}"), mode=Mode.ALL)
    texts: list[str] = []

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "write one")
        await said(pilot, app, "write two")
        chat = app.screen
        assert isinstance(chat, Chat)
        assert chat.agent is not None
        before = chat.agent.id
        if command:
            await said(pilot, app, command)
        else:
            await pilot.press("ctrl+o")
            await until(pilot, lambda: isinstance(app.screen, ContextViewer))
            await pilot.press(*keys)
        await until(pilot, lambda: isinstance(app.screen, Chat) and chat.agent is not None and chat.agent.id != before)
        assert chat.agent.context.store.conversation(before).length > chat.agent.context.store.conversation(chat.agent.id).length
        texts.extend([(chat.agent.folder / "note.txt").read_text(), chat.draft.text, text_of(app)])
        texts.append(str(len(chat.agent.snapshots())))

    played(app, play, (120, 36))
    return app, texts


@pytest.mark.parametrize("how", [{"keys": ("end", "w")}, {"command": "/rewind user:2"}])
def test_rewinding_to_a_persons_words_puts_files_and_words_back(how: dict[str, Any], tmp_path: Path) -> None:
    _, (held, draft, shown, changes) = curated(tmp_path, *how.get("keys", ()), command=how.get("command", ""))
    assert held == "first\n"
    assert draft == "write two"
    assert "1 files written" in shown
    assert changes == "1"  # what it may undo itself


@pytest.mark.parametrize("how", [{"keys": ("end", "up", "f")}, {"command": "/fork user:2"}])
def test_a_fork_at_a_turn_leaves_the_files_as_they_are(how: dict[str, Any], tmp_path: Path) -> None:
    _, (held, draft, shown, _) = curated(tmp_path, *how.get("keys", ()), command=how.get("command", ""))
    assert held == "second\n"
    assert draft == ""
    assert "a fork of" in shown


def test_a_session_is_renamed(tmp_path: Path) -> None:
    store = MemoryStore()
    app = made(tmp_path, [says("one")], store=store)

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "go")
        await said(pilot, app, "/title The parser, at last")
        await said(pilot, app, "/title")
        assert "this session is called The parser, at last" in text_of(app)

    played(app, play)
    assert store.conversations(None)[0].title == "The parser, at last"
