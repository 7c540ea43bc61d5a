from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input
from tui_stage import NARROW, USUAL, WIDE, call, folder_of, looks, made, picture, played, said, says, spoken, text_of, until

from tenure.agent.approval import Mode
from tenure.agent.events import (
    Committed,
    EpisodeEnded,
    Event,
    LimitUnmet,
    Noticed,
    ObjectLeft,
    Retrying,
    SessionOpened,
    TurnDone,
    TurnFailed,
)
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.approval import ApprovalPrompt
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.pickers import MODELS, Picker
from tenure.agent.screens.recall import RecallScreen
from tenure.agent.screens.themes import DARK, LIGHT
from tenure.agent.screens.viewer import ContextViewer
from tenure.agent.screens.widgets import Cell, ListRow, TextPage
from tenure.engine.record.episodes import EpisodeType
from tenure.errors import Failure
from tenure.testing.store import MemoryStore

TASK = (
    says(
        "I look for the parser first.",
        call("delimiter", action="start", name="locate-parser", type="expl"),
        call("bash", command="cat parser.py"),
        thinking="where is the parser?",
    ),
    says(
        "",
        call("delimiter", action="end", description="parse() in parser.py drops comments in skip()"),
        call("delimiter", action="start", name="keep-comments", type="act", dependencies=["locate-parser"]),
        call("edit", path="parser.py", old="    return skip(text)", new="    return keep(text)"),
    ),
    says("**Comments** are kept now, see `parser.py`.", call("delimiter", action="end")),
    says("All done."),
)


def chat_of(app: TenureApp) -> Chat:
    assert isinstance(app.screen, Chat)
    return app.screen


def test_a_turn_shows_episodes_calls_diffs_and_words_and_what_it_did_to_files_is_listed_and_undone(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        before = (folder_of_app(app) / "parser.py").read_text()
        await said(pilot, app, "keep comments")
        every = [(width, theme) for width in (60, 80, 160) for theme in (DARK, LIGHT)]
        async for width, theme in looks(pilot, *every, height=44):
            golden(f"tui-turn-{width}-{theme}.txt", picture(app))
        assert (folder_of_app(app) / "parser.py").read_text() != before
        await said(pilot, app, "/rewind", wait=False)
        await until(pilot, lambda: "before edit parser.py" in text_of(app))
        await said(pilot, app, "/rewind 1", wait=False)
        await until(pilot, lambda: "1 files written, 0 removed" in text_of(app))
        assert (folder_of_app(app) / "parser.py").read_text() == before
        await said(pilot, app, "/rewind one", wait=False)
        await until(pilot, lambda: "expected a turn such as user:3" in text_of(app))

    played(made(tmp_path, TASK, mode=Mode.ALL), play, (60, 44))


def test_a_call_runs_once_a_person_agrees(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "keep comments", wait=False)
        await until(pilot, lambda: chat.query_one(ApprovalPrompt).waits)
        assert "skip" in (folder_of_app(app) / "parser.py").read_text()
        await pilot.press("y")
        await until(pilot, lambda: not chat.is_busy)
        assert "keep" in (folder_of_app(app) / "parser.py").read_text()

    played(made(tmp_path, TASK), play)


def test_an_approval_shows_what_would_change_and_declined_with_words_it_does_nothing_and_the_model_reads_them(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "keep comments", wait=False)
        await until(pilot, lambda: chat.query_one(ApprovalPrompt).waits)
        async for width, theme in looks(pilot, *((width, theme) for width in (80, 160) for theme in (DARK, LIGHT)), height=30):
            shown = picture(app)
            spinner = next(letter for letter in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if letter in shown)
            golden(f"tui-approval-{width}-{theme}.txt", shown.replace(spinner, "⠋"))
        await pilot.press("w")
        chat.query_one("#words", Input).value = "leave it alone"
        await pilot.press("enter")
        await until(pilot, lambda: not chat.is_busy)
        assert chat.agent is not None
        record = chat.agent.context.store.entries(chat.agent.id)
        assert any("leave it alone" in block.text for entry in record for block in entry.blocks)
        assert "skip" in (folder_of_app(app) / "parser.py").read_text()

    played(made(tmp_path, TASK), play)


def test_escape_stops_a_turn_and_the_keys_come_back(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "wait", wait=False)
        await until(pilot, lambda: "sleep" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: not chat.is_busy)
        assert "cancelled" in text_of(app)
        assert chat.draft.has_focus

    played(made(tmp_path, [says("", call("bash", command="sleep 30")), says("never")], mode=Mode.ALL), play)


def test_what_is_typed_during_a_turn_is_said_after_it(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "first", wait=False)
        await until(pilot, lambda: chat.query_one(ApprovalPrompt).waits)
        chat.draft.focus()
        chat.draft.put("second")
        await pilot.press("enter")
        assert "1 waiting: second" in text_of(app)
        chat.query_one("#answers").focus()
        await pilot.press("n")
        await until(pilot, lambda: "heard the second" in text_of(app))
        assert "waiting:" not in text_of(app)

    played(made(tmp_path, [says("", call("bash", command="touch built")), says("ok"), says("heard the second")]), play)


def test_text_of_models_and_tools_is_never_obeyed(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "[red]my words[/red] \x1b[2J")
        shown = text_of(app)
        for kept in ("[red]my words[/red]", "[bold]words[/bold]", "[@click=app.quit]go[/]", "[blink]file[/blink]"):
            assert kept in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown

    hostile = "[bold]words[/bold] \x1b[31m [@click=app.quit]go[/] \u202eevil"
    replies = [says(hostile, call("bash", command="printf '[blink]file[/blink] \\033]0;title\\007 \\033[2J'")), says("ok")]
    played(made(tmp_path, replies, mode=Mode.ALL), play)


def test_commands_are_completed_and_walked_with_the_arrows_and_near_ones_are_named(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await pilot.press("slash", "h")
        await pilot.pause(0.05)
        assert "/handoff" in text_of(app)
        assert "/help" in text_of(app)
        await pilot.press("down", "tab")
        assert chat.draft.text == "/help "
        await pilot.press("enter")
        await pilot.pause(0.05)
        assert isinstance(app.screen, TextPage)
        assert "/ledger" in text_of(app)
        await pilot.press("escape")
        await said(pilot, app, "/ledgr")
        await until(pilot, lambda: "no such command, expected /ledger" in text_of(app))

    played(made(tmp_path, []), play, (100, 40))


def test_help_names_every_key_and_command_and_a_key_changes_the_theme(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        async for width, theme in looks(pilot, NARROW, USUAL, WIDE, height=44):
            await said(pilot, app, "/help")
            await until(pilot, lambda: isinstance(app.screen, TextPage))
            golden(f"tui-help-{width}-{theme}.txt", picture(app))
            await pilot.press("escape", "ctrl+t")
            assert app.theme == (LIGHT if theme == DARK else DARK)

    played(made(tmp_path, []), play, (60, 44))


def test_a_list_of_models_reads_well(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    ready: Cell = ("ready", "mark")
    locked: Cell = ("no key", "dim")
    names = [(f"anthropic:model-{n}", ready if n < 23 else locked) for n in range(30)]
    rows = [ListRow(name, (name, "200k", "3.00", "15.00", key)) for name, key in names]

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        app.push_screen(Picker("Models: type a name, or anthropic:claude-opus-4-5", MODELS, rows, free=True))
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("minus", "2", "down")
        await until(pilot, lambda: "model-22" in text_of(app) and "model-3" not in text_of(app))
        async for width, theme in looks(pilot, NARROW, USUAL):
            golden(f"tui-models-{width}-{theme}.txt", picture(app))
        await pilot.press("escape")

    played(made(tmp_path, []), play, (60, 24))


def test_what_is_told_on_the_way_reads_well(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    left = (ObjectLeft(action="strip", object="episode:locate", level="bulk"), ObjectLeft(action="clear", object="read:1"))
    happened: tuple[Event, ...] = (
        SessionOpened(session="0123456789abcdef", folder="/kit", model="m", resumed=True, entries=40, interrupted=2),
        Noticed(text="AGENTS.md: 300 characters were left out"),
        Retrying(text="gpt-5-mini: overloaded (529)", kind=Failure.UNAVAILABLE, attempt=2, most=6, wait_s=4.0),
        Committed(
            n=3,
            policy="cwl",
            reason="912 tokens over the ceiling of 14,000",
            account="",
            left=left,
            tokens_before=14_912,
            tokens_after=8_213,
        ),
        EpisodeEnded(name="locate", type=EpisodeType.EXPL, description="skip() drops comments", aborted=True),
        LimitUnmet(text="the window holds 15,000 tokens of 14,000, and nothing more may leave", tokens=15_000, limit=14_000),
        TurnFailed(text="gpt-5-mini: the key was not accepted (401)"),
        TurnDone(reason="step limit", why="60 calls of the model, as many as were allowed", steps=60, usd=0.25, seconds=90.0),
    )

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        for event in happened:
            chat.take(event)
        await until(pilot, lambda: chat.transcript.is_drawn)
        async for width, theme in looks(pilot, NARROW, USUAL, WIDE, height=36):
            golden(f"tui-notices-{width}-{theme}.txt", picture(app))

    played(made(tmp_path, []), play, (60, 36))


def test_what_is_typed_at_once_is_taken_in_its_order_and_brought_back_by_up_and_a_path_is_no_command(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        for letter in "pasted at once":
            app.post_message(events.Key("space" if letter == " " else letter, letter))
        app.post_message(events.Key("enter", "\r"))
        await until(pilot, lambda: "heard it" in text_of(app))
        assert "pasted at once" in text_of(app)
        assert not chat.draft.text
        await said(pilot, app, "/etc/hosts is what?")
        assert "a file of names" in text_of(app)
        chat.draft.put("begun")
        await pilot.press("up")
        assert chat.draft.text == "/etc/hosts is what?"
        await pilot.press("up")
        assert chat.draft.text == "pasted at once"
        await pilot.press("down", "down")
        assert chat.draft.text == "begun"

    played(made(tmp_path, [says("heard it"), says("a file of names")]), play)


def test_every_answer_is_seen_however_long_the_call_and_the_rest_of_it_can_be_read(tmp_path: Path) -> None:
    command = "\n".join(f"touch file-{n}" for n in range(60))

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "touch them", wait=False)
        await until(pilot, lambda: chat.query_one(ApprovalPrompt).waits and "PageDown shows the rest" in text_of(app))
        assert all(answer in text_of(app) for answer in ("y  yes", "n  no", "w  no, and say why"))
        assert "touch file-59" not in text_of(app)
        for _ in range(20):
            await pilot.press("pagedown")
        await until(pilot, lambda: "touch file-59" in text_of(app))
        await pilot.press("n")
        await until(pilot, lambda: not chat.is_busy)

    played(made(tmp_path, [says("", call("bash", command=command)), says("ok")]), play, (60, 24))


def test_a_command_that_tells_opens_a_page_that_escape_closes(tmp_path: Path) -> None:
    told = {"/why": "Window:", "/ledger": "scripted", "/recall parser": "parser.py", "/recall bash:1": "# a parser"}

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "keep comments")
        for command, words in told.items():
            await said(pilot, app, command)
            await until(pilot, lambda: isinstance(app.screen, TextPage | RecallScreen))
            assert words in text_of(app), command
            await pilot.press("escape")
            assert isinstance(app.screen, Chat)

    played(made(tmp_path, TASK, mode=Mode.ALL), play, (100, 40))


def test_a_budget_and_a_policy_are_changed_within_the_session_and_a_fork_goes_on_while_its_source_stays(tmp_path: Path) -> None:
    store = MemoryStore()

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "one")
        before = chat.agent
        await said(pilot, app, "/budget 9k")
        await until(pilot, lambda: chat.agent is not before)
        await said(pilot, app, "/policy cwl")
        await until(pilot, lambda: "policy: cwl" in text_of(app))
        assert chat.agent is not None
        assert before is not None
        assert chat.agent.id == before.id
        assert chat.agent.context.session.setup.budget.target == 9_000
        await said(pilot, app, "two")
        assert "still here" in text_of(app)
        source, length = chat.agent.id, len(chat.agent.context.session.index)
        await said(pilot, app, "/fork")
        await until(pilot, lambda: chat.agent is not None and chat.agent.id != source)
        await said(pilot, app, "three")
        assert store.conversation(source).length == length
        assert chat.agent is not None
        assert store.conversation(chat.agent.id).length > length

    played(made(tmp_path, [says("1"), says("still here"), says("3")], store=store), play)


def test_an_export_holds_everything_and_overwrites_nothing_and_the_viewer_opens_and_closes(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "keep comments")
        for name in ("all.md", "all.json"):
            await said(pilot, app, f"/export {name}")
            written = (folder_of_app(app) / name).read_text(encoding="utf-8")
            assert all(words in written for words in ("keep comments", "I look for the parser", "# a parser", "All done."))
            await said(pilot, app, f"/export {name}")
            await until(pilot, lambda name=name: f"{name}: cannot be written" in text_of(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ContextViewer))
        assert "keep comments" in text_of(app)
        await pilot.press("escape")
        assert isinstance(app.screen, Chat)

    played(made(tmp_path, TASK, mode=Mode.ALL), play, (200, 40))


def test_a_session_that_goes_on_shows_where_it_was(tmp_path: Path) -> None:
    store = MemoryStore()

    async def then(pilot: Pilot[Any], app: TenureApp) -> None:
        await until(pilot, lambda: "All done." in text_of(app))
        assert "keep-comments" in text_of(app)
        await pilot.press("up")
        assert chat_of(app).draft.text == "keep comments"

    spoken(made(tmp_path, TASK, mode=Mode.ALL, store=store), "keep comments")
    played(made(tmp_path, TASK, mode=Mode.ALL, store=store, newest=True), then, (80, 44))


def test_the_session_picker_names_sessions_by_their_first_words(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    store = MemoryStore()

    async def then(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "/sessions")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        sheet = next(sheet for sheet in store.conversations(str(folder_of(tmp_path))) if sheet.length)
        async for width, theme in looks(pilot, (80, DARK), USUAL):
            golden(f"tui-sessions-{width}-{theme}.txt", picture(app).replace(sheet.id[:8], "01234567"))
        await pilot.press("r", "e", "n", "enter")
        await until(pilot, lambda: isinstance(app.screen, Chat) and "it is renamed" in text_of(app))

    spoken(made(tmp_path, [says("it is renamed")], store=store), "rename the module")
    played(made(tmp_path, [], store=store), then, (80, 24))


def test_a_session_that_is_picked_goes_on_where_it_was_held_and_every_command_stays_there(tmp_path: Path) -> None:
    store = MemoryStore()

    async def then(pilot: Pilot[Any], app: TenureApp) -> None:
        def held() -> tuple[str, str]:
            agent = chat_of(app).agent
            assert agent is not None
            return agent.model, agent.choice.host

        await said(pilot, app, "/sessions")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("r", "e", "n", "enter")
        await until(pilot, lambda: isinstance(app.screen, Chat) and "it is renamed" in text_of(app))
        for command in ("/budget 50k", "/policy tiered", "/fork"):
            before = chat_of(app).agent
            await said(pilot, app, command)
            await until(pilot, lambda before=before: chat_of(app).agent is not before)
            assert held() == ("openai-chat:scripted", "llm.example.org")  # as the script names itself
        await said(pilot, app, "/model ollama:small")
        await said(pilot, app, "/budget 40k")
        assert held() == ("ollama:small", "127.0.0.1:11434")

    own = "https://llm.example.org/v1"
    spoken(made(tmp_path, [says("it is renamed")], store=store, model="openai-chat:qwen3", base_url=own), "rename the module")
    played(made(tmp_path, [], store=store), then, (80, 24))


def test_a_picked_session_whose_host_is_not_known_is_asked_about(tmp_path: Path) -> None:
    store = MemoryStore()

    async def then(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "/sessions")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("r", "e", "n", "enter")
        await until(pilot, lambda: isinstance(app.screen, Picker) and "claude" in text_of(app))
        await pilot.press(*"sonnet-4-5", "enter")
        await until(pilot, lambda: chat.agent is not None and "sonnet-4-5" in chat.agent.model)
        assert chat.agent is not None
        assert chat.agent.id == old.id

    spoken(made(tmp_path, [says("it is renamed")], store=store), "rename the module")
    (old,) = store.conversations(None)
    store.hold_to(replace(old, terms=""))  # as a version that kept no URL has it
    played(made(tmp_path, [], store=store), then, (80, 24))


def test_the_model_picker_takes_a_listed_model(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "/model", wait=False)
        await until(pilot, lambda: isinstance(app.screen, Picker) and "claude" in text_of(app))
        await pilot.press(*"sonnet-4-5", "enter")
        await until(pilot, lambda: chat.agent is not None and "sonnet-4-5" in chat.agent.model)

    played(made(tmp_path, []), play, (100, 40))


def folder_of_app(app: TenureApp) -> Path:
    agent = next(screen for screen in app.screen_stack if isinstance(screen, Chat)).agent
    assert agent is not None
    return agent.folder
