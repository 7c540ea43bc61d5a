"""What a new user sees before the first question: a missing key, and the models that could be used."""

import asyncio
from pathlib import Path

from tui_stage import text_of, until

from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.pickers import Picker
from tenure.agent.settings import Settings, World
from tenure.testing.store import MemoryStore


def app_of(tmp_path: Path, model: str, **environment: str) -> TenureApp:
    world = World(environment=environment, home=tmp_path, store=MemoryStore(), local=())
    return TenureApp(Settings(folder=tmp_path, model=model), world)


def test_a_missing_key_is_said_before_anything_is_typed_with_what_would_work(tmp_path: Path) -> None:
    async def run() -> None:
        app = app_of(tmp_path, "openai:gpt-5", ANTHROPIC_API_KEY="sk-ant")
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, Chat) and "there is no key for openai:gpt-5" in text_of(app))
            assert "-m anthropic:claude-opus-4-5" in text_of(app)

    asyncio.run(run())


def test_without_a_model_the_list_begins_with_those_whose_key_is_there(tmp_path: Path) -> None:
    async def run() -> None:
        app = app_of(tmp_path, "", OPENAI_API_KEY="sk-own")
        async with app.run_test(size=(120, 30)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, Picker) and "ready" in text_of(app))
            lines = [line for line in text_of(app).splitlines() if "openai:" in line or "anthropic:" in line][1:]
            assert lines
            assert all("openai:" in line and "ready" in line for line in lines)
            await pilot.press("escape")

    asyncio.run(run())


def test_where_no_key_and_no_server_is_found_the_list_says_so(tmp_path: Path) -> None:
    async def run() -> None:
        app = app_of(tmp_path, "")
        async with app.run_test(size=(160, 30)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, Picker) and "no key" in text_of(app))
            assert "No key found: set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY, or start a local server" in text_of(
                app
            )
            await pilot.press("escape")

    asyncio.run(run())
