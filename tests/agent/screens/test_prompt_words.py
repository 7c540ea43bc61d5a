"""What a person types beside words for the model: files behind an @, commands behind a !, settings behind /set."""

import re
from pathlib import Path

import pytest
from tui_stage import made, played, said, says, text_of, until

from tenure.agent.approval import Mode
from tenure.agent.screens.prompt import nearest

PATHS = ["src/tenure/agent/loop.py", "src/tenure/cli/main.py", "tests/test_main.py", "README.md", "docs/main.md"]


@pytest.mark.parametrize(
    ("wanted", "first"),
    [("main", "docs/main.md"), ("main.py", "src/tenure/cli/main.py"), ("loop", PATHS[0]), ("stcm", PATHS[1]), ("", "README.md")],
)
def test_files_are_found_by_the_letters_of_their_names(wanted: str, first: str) -> None:
    assert nearest(wanted, PATHS)[0] == first
    assert not nearest("zzz", PATHS)
    assert len(nearest("", [f"f{n}" for n in range(10_000)])) == 50


def test_an_at_offers_the_files_of_the_folder_escape_closes_the_list_and_tab_takes_one(tmp_path: Path) -> None:
    app = made(tmp_path, [says("read it")])

    async def play(pilot, app) -> None:
        chat = app.screen
        await pilot.press(*"see @pars")
        await until(pilot, lambda: "parser.py" in text_of(app))
        await pilot.press("escape")
        assert (chat.draft.text, chat.draft.completing) == ("see @pars", False)
        await pilot.press("e")
        await until(pilot, lambda: chat.draft.completing)
        await pilot.press("tab")
        assert chat.draft.text == "see @parser.py "
        await pilot.press("enter")
        await until(pilot, lambda: "read it" in text_of(app))

    played(app, play)


def test_a_command_of_the_persons_own_runs_unasked_the_model_sees_it_and_its_change_is_undone(tmp_path: Path) -> None:
    kit = tmp_path / "parser-kit"

    async def play(pilot, app) -> None:
        agent = app.screen.agent
        for mode, words in ((Mode.ASK, "by hand"), (Mode.READ_ONLY, "and again")):
            agent.mode = mode
            await said(pilot, app, f"!echo {mode} > made.txt; echo {words}")
            assert words in text_of(app)
            assert (kit / "made.txt").read_text() == f"{mode}\n"
        await said(pilot, app, "and?")
        shown = agent.context.session.index
        assert [span.object for span in shown.spans if span.tool == "bash"] == ["bash:1", "bash:2"]
        assert "I see." in text_of(app)
        await said(pilot, app, "!exit 3")
        assert "exit code 3" in text_of(app)
        app.screen.draft.put("!sleep 60")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.is_busy and agent.is_running)
        await pilot.press("escape")
        await until(pilot, lambda: not app.screen.is_busy)
        await said(pilot, app, "Go on.")  # the session is as usable as before
        assert "done it" in text_of(app)
        await said(pilot, app, "!echo changed > parser.py")
        assert (kit / "parser.py").read_text() == "changed\n"
        await said(pilot, app, "/undo")
        await until(pilot, lambda: "files written" in text_of(app))
        assert "def parse" in (kit / "parser.py").read_text()

    played(made(tmp_path, [says("I see."), says("done it")]), play)


def test_what_is_typed_while_a_turn_runs_is_sent_in_its_order(tmp_path: Path) -> None:
    async def play(pilot, app) -> None:
        chat = app.screen
        chat._set_waiting(["!echo one", "two", "three", "!echo four"])
        chat._send_waiting(chat.agent)
        await until(pilot, lambda: not chat._waiting and not chat.is_busy and len(chat.agent.context.session.index) > 8)
        human = [turn.start[0] for turn in chat.agent.context.session.index.turns]
        texts = [chat.agent.context.store.entry(chat.agent.id, n).blocks[0].text for n in human]
        assert texts == ["! echo one", "two\n\nthree", "! echo four"]

    played(made(tmp_path, [says("answer")]), play)


def test_settings_are_listed_shown_and_changed(tmp_path: Path) -> None:
    async def play(pilot, app) -> None:
        await said(pilot, app, "Go.")
        await said(pilot, app, "/set ceiling 50%")
        await until(pilot, lambda: "ceiling = 50%" in text_of(app))
        agent = app.screen.agent
        assert agent.context.session.setup.budget.ceiling == (agent.choice.window - agent.choice.reserve) // 2
        await said(pilot, app, "/set planner same")
        await until(pilot, lambda: "planner = same" in text_of(app))
        assert app.screen.agent.context.session.setup.budget.ceiling
        await said(pilot, app, "/set sandbox on")
        assert "new session" in text_of(app)
        await said(pilot, app, "/set ceeling 5")
        assert "ceiling" in text_of(app)
        await said(pilot, app, "/set")
        assert not re.search(r"\bwho\b", text_of(app))
        assert "settings" in text_of(app)

    played(made(tmp_path, [says("done")]), play, size=(100, 50))


def test_a_new_session_begins_and_the_old_one_stays(tmp_path: Path) -> None:
    async def play(pilot, app) -> None:
        await said(pilot, app, "Go.")
        before = app.screen.agent.id
        await said(pilot, app, "/clear")
        await until(pilot, lambda: app.screen.agent.id != before)
        assert app.screen.agent.context.store.conversation(before).length

    played(made(tmp_path, [says("done")]), play)
