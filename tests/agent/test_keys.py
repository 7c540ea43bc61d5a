import os
from pathlib import Path

import pytest

from tenure.agent.access import UnusableModel, configuration_folder, key_for, speaker_of, state_folder
from tenure.agent.catalogue import chosen
from tenure.agent.settings import World
from tenure.errors import InputError

SECRET = "sk-0123456789abcdef"


def kept(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "keys.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return folder


def test_the_environment_counts_before_the_file_and_the_providers_variable_before_the_apis(tmp_path: Path) -> None:
    kept(tmp_path, f'openai = "{SECRET}"\n')
    gpt = chosen("openai:gpt-5")
    groq = chosen("openai:llama", base_url="https://api.groq.com/openai/v1")
    assert key_for(gpt, {"OPENAI_API_KEY": "sk-env"}, tmp_path) == "sk-env"
    assert key_for(gpt, {}, tmp_path) == SECRET
    gemini = chosen("gemini:gemini-3-pro")
    assert key_for(gemini, {"GOOGLE_API_KEY": "g"}, tmp_path) == "g"
    assert key_for(gemini, {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "own"}, tmp_path) == "own"
    assert key_for(groq, {"GROQ_API_KEY": "gsk-env", "OPENAI_API_KEY": "sk-env"}, tmp_path) == "gsk-env"


def test_a_providers_key_goes_to_no_other_provider(tmp_path: Path) -> None:
    kept(tmp_path, f'openai = "{SECRET}"\n')
    for spec, url in (("openai:llama", "https://api.groq.com/openai/v1"), ("groq:llama", ""), ("deepseek:deepseek-chat", "")):
        assert key_for(chosen(spec, base_url=url), {"OPENAI_API_KEY": "sk-env"}, tmp_path) is None
    assert key_for(chosen("groq:llama"), {"GROQ_API_KEY": "gsk-env"}, tmp_path) == "gsk-env"
    unknown = chosen("openai:m", base_url="https://llm.example.org/v1")
    assert key_for(unknown, {"OPENAI_API_KEY": "sk-env"}, tmp_path) == "sk-env"


def test_a_key_of_the_file_goes_to_its_own_host_only(tmp_path: Path) -> None:
    kept(tmp_path, f'openai = "{SECRET}"\n"llm.example.org:8000" = "own"\n')
    assert key_for(chosen("openai:m", base_url="http://llm.example.org:8000/v1"), {}, tmp_path) == "own"
    assert key_for(chosen("openai:m", base_url="http://elsewhere.example.org/v1"), {}, tmp_path) is None


def test_a_table_of_a_provider_is_read_too_and_a_server_of_this_machine_needs_no_key(tmp_path: Path) -> None:
    kept(tmp_path, f'[anthropic]\napi_key = "{SECRET}"\n')
    assert key_for(chosen("anthropic:claude-opus-4-5"), {}, tmp_path) == SECRET
    assert key_for(chosen("openai:m", base_url="http://127.0.0.1:11434/v1"), {}, tmp_path) == "-"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_can_read_is_not_read(mode: int, tmp_path: Path) -> None:
    kept(tmp_path, f'openai = "{SECRET}"\n', mode)
    with pytest.raises(InputError, match="chmod 600") as caught:
        key_for(chosen("openai:gpt-5"), {}, tmp_path)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", [f'openai = "{SECRET}', f"{SECRET}", "\0", "a" * 70_000])
def test_a_file_that_is_no_toml_is_said_without_what_is_in_it(text: str, tmp_path: Path) -> None:
    kept(tmp_path, text)
    with pytest.raises(InputError, match="no TOML") as caught:
        key_for(chosen("openai:gpt-5"), {}, tmp_path)
    assert SECRET not in f"{caught.value!r} {caught.getrepr(chain=True)}"


def test_a_folder_or_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "folder" / "keys.toml").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "keys.toml", 0o600)
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="not a file"):
            key_for(chosen("openai:gpt-5"), {}, tmp_path / name)


def test_folders_follow_the_standard_and_only_absolute_ones_count() -> None:
    home = Path("/home/ada")
    assert configuration_folder({}, home) == home / ".config" / "tenure"
    assert configuration_folder({"XDG_CONFIG_HOME": "/etc/ada"}, home) == Path("/etc/ada/tenure")
    assert state_folder({"XDG_STATE_HOME": "here"}, home) == home / ".local" / "state" / "tenure"


@pytest.mark.parametrize(
    ("spec", "told"),
    [("openai:gpt-5", "set OPENAI_API_KEY, or write openai"), ("anthropic:claude-opus-4-5", "set ANTHROPIC_API_KEY")],
)
def test_who_has_given_no_key_is_told_where_one_is_looked_for(spec: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableModel, match=f"there is no key for {spec}: ") as caught:
        speaker_of(chosen(spec), World(environment={}, home=tmp_path), tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path / ".config" / "tenure" / "keys.toml") in str(caught.value)
