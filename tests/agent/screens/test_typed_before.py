"""What was typed before is found again, what waits is shown, and what is pasted may be an image."""

import base64
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from tui_stage import folder_of, made, played, said, says, settled, spoken, text_of, until

from pictures import png
from tenure.agent.access import Available
from tenure.agent.pictures import mention_of, pictures_in
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.pickers import Picker, model_picker, recent_models
from tenure.agent.settings import Settings, World
from tenure.engine.lifecycle.terms import Terms
from tenure.store.records import Conversation
from tenure.store.soundness import encoded
from tenure.testing.store import MemoryStore


def chat_of(app: TenureApp) -> Chat:
    assert isinstance(app.screen, Chat)
    return app.screen


def test_what_was_typed_in_an_earlier_session_is_found_and_put_into_the_draft(tmp_path: Path) -> None:
    store = MemoryStore()

    async def second(pilot: Pilot[Any], app: TenureApp) -> None:
        await said(pilot, app, "something else")
        await pilot.press("ctrl+r")
        await until(pilot, lambda: isinstance(app.screen, Picker))
        assert isinstance(app.screen, Picker)
        assert [row.texts[1] for row in app.screen.rows] == ["something else", "now the tests", "mend the parser of comments"]
        await pilot.press(*"pars", "enter")
        await until(pilot, lambda: isinstance(app.screen, Chat))
        assert chat_of(app).draft.text == "mend the parser of comments"

    spoken(made(tmp_path, [says("a"), says("b")], store=store), "mend the parser of comments", "now the tests")
    played(made(tmp_path, [says("c")], store=store), second)


def test_prompts_that_wait_are_shown_in_their_order(tmp_path: Path) -> None:
    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat_of(app)._set_waiting(["mend it", "then test", "then document", "and push"])
        await settled(pilot)
        shown = text_of(app)
        assert "4 waiting: mend it" in shown
        assert shown.index("then: then test") < shown.index("then: then document") < shown.index("and 1 more")

    played(made(tmp_path, []), play)


def test_a_plan_that_waits_stands_in_the_status_line(tmp_path: Path) -> None:
    from tenure.agent.screens.status import StatusFacts, line
    from tenure.engine.meter.gauge import Gauge

    facts = StatusFacts(model="m", folder=tmp_path, gauge=Gauge(tokens=1, limit=10), plan=3)
    assert "a plan waits: 3" in line(facts, 120).plain
    assert "cached" not in line(facts, 120).plain  # nothing was yet


def test_models_of_the_newest_sessions_stand_first_and_those_with_a_key_before_others(tmp_path: Path) -> None:
    store = MemoryStore()
    for n, (model, dialect, url) in enumerate(
        [
            ("claude-opus-4-5", "anthropic", "https://api.anthropic.com"),
            ("gpt-5", "openai-responses", "https://api.openai.com/v1"),
            ("secret", "openai-chat", "https://elsewhere.example/v1"),
        ]
    ):
        terms = encoded(Terms(base_url=url))
        store.create(Conversation(id=f"s{n}", tenant="", model=model, dialect=dialect, terms=terms, created=f"2026-01-0{n + 1}"))
    recent = recent_models(Settings(folder=tmp_path), World(environment={}, home=tmp_path), store)
    assert set(recent) == {"openai:gpt-5", "anthropic:claude-opus-4-5"}
    picker = model_picker([Available(spec="anthropic:NAME", why="", service="anthropic")], recent)
    assert [(row.key, row.texts[-1]) for row in picker.rows[:2]] == [
        ("anthropic:claude-opus-4-5", "recent"),
        ("openai:gpt-5", "no key"),
    ]
    assert len({row.key for row in picker.rows}) == len(picker.rows)


def test_without_a_store_no_model_is_recent(tmp_path: Path) -> None:
    world = World(environment={}, home=tmp_path)
    assert recent_models(Settings(folder=tmp_path), world, None) == ()
    (tmp_path / "broken.db").write_bytes(b"no database" * 500)
    assert recent_models(Settings(folder=tmp_path, store=str(tmp_path / "broken.db")), world, None) == ()


@pytest.mark.parametrize("form", ["{path}", "'{path}'", "file://{url}", "{escaped}"])
def test_a_path_of_an_image_that_a_terminal_pastes_is_a_mention_of_it(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a shot.png"
    path.write_bytes(png())
    text = form.format(path=path, url=str(path).replace(" ", "%20"), escaped=str(path).replace(" ", "\\ "))
    mention = mention_of(text, tmp_path, tmp_path)
    assert mention == '@"a shot.png"'
    assert pictures_in(f"look at {mention} please", tmp_path) == (path,)


def test_a_data_url_of_an_image_is_kept_as_a_file_and_mentioned(tmp_path: Path) -> None:
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    mention = mention_of(url, tmp_path / "elsewhere", tmp_path)
    (path,) = pictures_in(mention, tmp_path)
    assert path.read_bytes() == png()


@pytest.mark.parametrize(
    "text", ["make test", "/etc/hosts", "none.png", "data:image/png;base64,AAAA", "data:image/png;base64,=", "x" * 9_000 + ".png"]
)
def test_other_pasted_text_is_text(text: str, tmp_path: Path) -> None:
    assert mention_of(text, tmp_path, tmp_path) == ""


def test_pasting_into_the_draft_mentions_an_image_and_keeps_text(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "shot.png").write_bytes(png())

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        draft = chat_of(app).draft
        for text in (str(folder_of(tmp_path) / "shot.png"), "is it right?", "\nline one\nline two"):
            app.post_message(events.Paste(text))
            await settled(pilot)
        assert draft.text == "@shot.png is it right?\nline one\nline two"

    played(made(tmp_path, []), play)
