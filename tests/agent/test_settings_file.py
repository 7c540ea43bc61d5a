"""Settings by the names that people use: what a file may say, whose file counts, and what is refused."""

import asyncio
from pathlib import Path

import pytest
from holding import Outside, folder, open_agent, says

from tenure.agent.approval import Mode
from tenure.agent.settings import Settings, WindowLimits, World
from tenure.agent.settings_file import SETTINGS, changed, file_settings, shown, usual_settings
from tenure.engine.lifecycle.budget import Budget
from tenure.errors import InputError


def world(tmp_path: Path, text: str = "", project: str = "") -> tuple[World, Path]:
    """A user with a file of settings, and a project with one."""
    (tmp_path / "home" / ".config" / "tenure").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "tenure" / "settings.toml").write_text(text, encoding="utf-8")
    where = tmp_path / "ws"
    (where / ".tenure").mkdir(parents=True)
    (where / ".tenure" / "settings.toml").write_text(project, encoding="utf-8")
    return World(environment={}, home=tmp_path / "home"), where


def test_a_users_file_is_read(tmp_path: Path) -> None:
    text = 'model = "openai:gpt-5"\nceiling = "50%"\nclip = 2000\nnotes = true\napprove = "edits"\nmax_usd = 1.5\nhandoff_at = "120k"\n'
    here, where = world(tmp_path, text)
    found = usual_settings(where, here)
    assert (found.model, found.limits, found.clip, found.notes) == ("openai:gpt-5", WindowLimits(ceiling="50%"), 2_000, True)
    assert (found.mode, found.allowance.usd, found.handoff_at) == (Mode.EDITS, 1.5, "120k")


def test_a_projects_file_counts_before_the_users(tmp_path: Path) -> None:
    here, where = world(tmp_path, 'target = "80k"\nclip = "4k"\n', 'target = "60k"\n')
    found = file_settings(where, here)
    assert found.values == {"target": "60k", "clip": "4k"}
    assert found.origins["target"] == str(where / ".tenure" / "settings.toml")


@pytest.mark.parametrize("setting", [each for each in SETTINGS if not each.by_project], ids=lambda each: each.name)
def test_a_projects_file_decides_nothing_about_who_is_asked_what_is_allowed_and_what_is_spent(setting, tmp_path: Path) -> None:
    here, where = world(tmp_path, "", f'{setting.name} = "all"\nclip = "2k"\n')
    found = usual_settings(where, here)
    assert found == changed(Settings(folder=where, notices=found.notices), {"clip": "2k"})
    assert setting.name in found.notices[0]
    assert "only its user may set" in found.notices[0]


def test_what_is_wrong_in_a_projects_file_is_told_and_left_out(tmp_path: Path) -> None:
    here, where = world(tmp_path, "", 'ceilling = "80k"\nclip = "2 k"\nfloor = "60%"\n')
    found = file_settings(where, here)
    assert found.values == {"floor": "60%", "clip": "2 k"} or found.values == {"floor": "60%"}
    assert "'ceilling', expected one of ceiling" in " ".join(found.notices)


@pytest.mark.parametrize("text", ["[", "x = 1\n" * 20_000, 'target = ["80k"]', "target = 1979-05-27"])
def test_a_projects_file_that_is_none_keeps_nobody_from_starting(text: str, tmp_path: Path) -> None:
    here, where = world(tmp_path, "", text)
    found = file_settings(where, here)
    assert not found.values
    assert len(found.notices) == 1


def test_a_projects_file_that_is_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    here, where = world(tmp_path)
    (tmp_path / "elsewhere.toml").write_text('clip = "2k"', encoding="utf-8")
    (where / ".tenure" / "settings.toml").unlink()
    (where / ".tenure" / "settings.toml").symlink_to(tmp_path / "elsewhere.toml")
    found = file_settings(where, here)
    assert not found.values
    assert "out of its folder" in found.notices[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('target = "many"', "target"),
        ("nothing = 1", "'nothing'"),
        ('gate = "open"', "priced"),
        ('approve = "never"', "read-only"),
        ('handoff_at = "often"', "85%"),
        ("clip = 3", "at least"),
        ("notes = 5", "on or off"),
        ('policy = "magic"', "policy"),
        ("target =", "TOML"),
    ],
)
def test_what_is_wrong_in_a_users_file_is_said_with_its_place(text: str, named: str, tmp_path: Path) -> None:
    here, where = world(tmp_path, text)
    with pytest.raises(InputError) as error:
        usual_settings(where, here)
    assert "settings.toml" in str(error.value)
    assert named in str(error.value)


def test_a_session_that_goes_on_keeps_what_it_was_held_to(tmp_path: Path) -> None:
    here, where = world(tmp_path, 'model = "openai:gpt-5"\npolicy = "cwl"\ntarget = "40k"\nplanner = "same"\nclip = "2k"\n')
    found = usual_settings(where, here, goes_on=True)
    assert found == Settings(folder=where, planner="same")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: each.name)
def test_what_is_shown_of_a_setting_can_be_written_again(setting) -> None:
    written = {
        "limits": "48k", "mode": "edits", "servers": "servers.json", "handoff_at": "120k", "digest_above": "9000", "clip": "2000",
        "policy": "tiered", "compat": "paper", "gate": "selfgc-paper", "theme": "light", "handoff": "middle-out", "embeddings": "minilm", "allowance": "7",
    }  # fmt: skip
    switches = ("notes", "episodes", "sandbox", "network", "snapshots", "follow_links", "look_back")
    text = "off" if setting.name in switches else written.get(setting.field.partition(".")[0], "something")
    settings = changed(Settings(folder=Path()), {setting.name: text})
    assert changed(Settings(folder=Path()), {setting.name: shown(settings, setting)}) == settings


def test_a_share_is_of_the_models_own_window(tmp_path: Path) -> None:
    async def limits() -> Budget:
        limits = WindowLimits(ceiling="50%", floor="40%", window="20k")
        agent = await open_agent(Outside(folder(tmp_path), says("Done.")), limits=limits)
        await agent.close()
        return agent.context.session.setup.budget

    assert asyncio.run(limits()) == Budget(ceiling=10_000, floor=4_000, window=20_000)
