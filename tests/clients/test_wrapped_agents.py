"""`tenure wrap` with real agents: the program itself is run, its agent against the gateway, that against the scripted provider."""

import subprocess
import sys
from pathlib import Path

import pytest
from real_agents import AGENTS, Desk, Director, loop

from tenure.testing.provider import FakeProvider, serve

ALL = ("anthropic", "openai", "google")


def wrapped(desk: Desk, url: str, *options: str, again: bool = False, task: str = "do it") -> subprocess.CompletedProcess[str]:
    """`tenure wrap` with an agent, whose providers are all at `url`."""
    upstreams = [part for name in ALL for part in ("--upstream", f"{name}={url}{'/v1' if name == 'openai' else ''}")]
    command = (
        sys.executable,
        "-m",
        "tenure",
        "wrap",
        *options,
        *upstreams,
        "--store",
        str(desk.private),
        *desk.command(task, again=again),
    )
    return desk.finish(command, desk.environment())


@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "on", "pass"])
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_wrapped(name: str, mode: str, tmp_path: Path) -> None:
    desk = Desk(name, tmp_path / "home")
    director = Director(loop(desk.agent, 12, lines=220))
    provider = FakeProvider(director)
    options = {"shadow": (), "on": ("--on",), "pass": ("--pass",)}[mode]
    with serve(provider.app) as url:
        done = wrapped(desk, url, *options, "--ceiling", "24k")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert [seen.violations for seen in provider.seen if seen.violations] == []
    assert "tenure: " in done.stderr
    if desk.agent.has_tools:
        assert director.steps == [], said
