"""Each agent against the scripted provider itself: it finds it by what `tenure wrap` gives it, and its requests are valid."""

from pathlib import Path

import msgspec
import pytest
from real_agents import AGENTS, Desk, Director, loop

from tenure.gateway.programs import BASE_URLS, PROGRAMS, program_named, start, upstreams
from tenure.testing.provider import FakeProvider, serve

URL = "http://127.0.0.1:1"


def test_a_program_that_is_not_known_finds_the_gateway_in_its_environment(tmp_path: Path) -> None:
    begun = start(["./my-agent", "--fast"], URL, tmp_path, {"HOME": "/home/me"})
    assert begun.command == ("./my-agent", "--fast")
    assert begun.environment["HOME"] == "/home/me"
    assert {begun.environment[name] for name in BASE_URLS} == {URL, f"{URL}/v1", f"{URL}/v1beta"}


def test_settings_that_the_user_gives_by_the_environment_stay(tmp_path: Path) -> None:
    given = '{"model": "x/y", "provider": {"openai": {"options": {"timeout": 5}}}}'
    begun = start(["opencode"], URL, tmp_path, {"OPENCODE_CONFIG_CONTENT": given})
    settings = msgspec.json.decode(begun.environment["OPENCODE_CONFIG_CONTENT"])
    assert settings["model"] == "x/y"
    assert settings["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": f"{URL}/v1"}
    kept = start(["gemini"], URL, tmp_path, {"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "/etc/ours.json"})
    assert kept.environment["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"] == "/etc/ours.json"


def test_requests_go_on_to_where_the_environment_sent_them_before() -> None:
    there = upstreams({"ANTHROPIC_BASE_URL": "https://gateway.example/anthropic"})
    assert there["anthropic"] == "https://gateway.example/anthropic"
    assert set(there) == {"anthropic", "chatgpt"}, "the makers' own are known"


def test_a_plan_instead_of_a_key_has_an_upstream_of_its_own(tmp_path: Path) -> None:
    begun = start(["codex", "exec"], URL, tmp_path, {}, is_subscribed=True)
    assert begun.command == ("codex", "-c", f'openai_base_url="{URL}/chatgpt"', "exec")


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_that_a_program_is_given_is_filled_in(name: str, tmp_path: Path) -> None:
    begun = start([f"/usr/bin/{name}"], URL, tmp_path, {})
    assert program_named(f"/usr/bin/{name}") is PROGRAMS[name]
    assert "$" not in "".join([*begun.command, *begun.environment.values(), *begun.files.values()])


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_works_with_the_provider_itself(name: str, tmp_path: Path) -> None:
    desk = Desk(name, tmp_path / "home")
    director = Director(loop(desk.agent, 3, lines=40, together=2))
    provider = FakeProvider(director)
    with serve(provider.app) as url:
        done = desk.run(url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert provider.seen, done.stdout + done.stderr
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    if desk.agent.has_tools:
        assert director.steps == [], done.stdout + done.stderr
        assert b"line 40 of 2.1" in provider.seen[-1].body
