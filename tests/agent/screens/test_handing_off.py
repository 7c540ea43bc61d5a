"""A critical window on the screen, and the whole way of `/handoff`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from tui_stage import NARROW, USUAL, call, looks, made, picture, played, said, says, text_of, until

from tenure.agent.approval import Mode
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.planners.handoff.sections import SECTIONS
from tenure.engine.view.edit import Insert

COUNTED = [says("", call("bash", command=f"seq -s ' ' {n} 700")) for n in range(1, 10)]
BRIEF = "\n\n".join(f"## {section.title}\nIt was counted to 700; its {section.key}." for section in SECTIONS) + "\n[end of brief]"


def full(tmp_path: Path, *replies: dict[str, object]) -> TenureApp:
    """A session whose window is critical, and from which nothing leaves by itself."""
    return made(
        tmp_path,
        [*COUNTED, says("counted"), *replies],
        mode=Mode.ALL,
        policy="none",
        clip=0,
        budget=Budget(window=8_000),
    )


def chat_of(app: TenureApp) -> Chat:
    assert isinstance(app.screen, Chat)
    return app.screen


def test_just_before_something_leaves_by_itself_nobody_is_told_to_pay_for_a_handoff(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "count")
        agent = chat_of(app).agent
        assert agent is not None
        assert agent.gauge.severity == "critical"
        assert "/handoff lets the model brief" not in text_of(app)
        assert "evicts at 8.0k" in text_of(app)

    app = made(tmp_path, [*COUNTED, says("counted")], mode=Mode.ALL, clip=0, budget=Budget(target=8_000))
    played(app, play, (120, 24))


def test_a_critical_window_says_so_and_a_handoff_briefs_what_came_before_so_that_it_is_none(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "count")
        async for width, theme in looks(pilot, NARROW, USUAL):
            golden(f"tui-critical-{width}-{theme}.txt", picture(app))
        await pilot.resize_terminal(100, 40)
        assert "/handoff lets the model brief" in text_of(app)
        await said(pilot, app, "/handoff")
        await until(pilot, lambda: not chat.is_busy)
        assert "/handoff lets the model brief" not in text_of(app)
        assert chat.agent is not None
        assert chat.agent.gauge.severity == "ok"
        assert "It was counted to 700" in "\n".join(
            edit.text for commit in chat.agent.context.session.commits for edit in commit.edits if isinstance(edit, Insert)
        )
        await said(pilot, app, "go on")
        assert "I go on." in text_of(app)

    played(full(tmp_path, says(BRIEF), says("I go on.")), play, (60, 24))


def test_a_handoff_that_comes_to_nothing_changes_nothing_and_points_to_why(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "count")
        assert chat.agent is not None
        before = chat.agent.context.session.commits
        await said(pilot, app, "/handoff")
        await until(pilot, lambda: not chat.is_busy)
        assert chat.agent.context.session.commits == before
        assert "what holds it is in /why" in text_of(app)  # the same again would come to the same
        await said(pilot, app, "go on")
        assert "/handoff lets the model brief" in text_of(app)

    played(full(tmp_path, says("no brief at all"), says("I go on.")), play, (100, 40))


def test_what_is_typed_while_the_brief_is_written_waits_for_it(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = chat_of(app)
        await said(pilot, app, "count")
        chat.draft.put("/handoff")
        await pilot.press("enter")
        chat.draft.put("go on")
        await pilot.press("enter")
        await until(pilot, lambda: "I go on." in text_of(app) and not chat.is_busy)
        assert chat.agent is not None
        human = [turn.start[0] for turn in chat.agent.context.session.index.turns]
        briefs = [commit.entries for commit in chat.agent.context.session.commits if commit.policy == "handoff"]
        assert briefs
        assert briefs[0] <= human[-1]

    played(full(tmp_path, says(BRIEF), says("I go on.")), play, (100, 40))
