"""Real agents, driven without a screen against a scripted provider: what each is called with, and what a scripted model has to call.

`scripts/clients` installs them into a folder of their own; what is not there is skipped.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tenure.gateway.programs import start
from tenure.testing.script import Call, Fault, Reply, Turn

CLIENTS = Path(os.environ.get("TENURE_CLIENTS") or Path.home() / ".cache" / "tenure" / "clients")
KEY = "sk-test-0123456789"
SIDE_ANSWER = '{"complexity_reasoning": "one step", "complexity_score": 10}'  # to a router; a title may be anything
DONE = "all done"


def shell(tool: str, key: str = "command", **more: Any) -> Callable[[str], Call]:
    return lambda command: Call(name=tool, arguments=json.dumps({key: command, **more}))


def in_javascript(command: str) -> Call:
    """What newer models of Codex write: a program that calls the tools."""
    return Call(name="exec", arguments=f"const r = await tools.exec_command({{cmd: {json.dumps(command)}}}); text(r.output)")


class Agent(NamedTuple):
    """A real agent with one of the models that it can be used with."""

    program: str  # in CLIENTS
    arguments: tuple[str, ...]  # in front of the task
    call: Callable[[str], Call]  # that runs a command in a shell
    again: tuple[str, ...] | None = None  # to go on with the newest session; None: it cannot, without a screen
    behind: tuple[str, ...] = ()  # the task
    environment: Mapping[str, str] = {}
    has_tools: bool = True


_CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
_CODEX_AGAIN = ("exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")
_OPENCODE = ("run", "--auto", "-m")
_PI = ("-p", "--offline", "--provider")
_GEMINI = ("--skip-trust", "-y", "-m", "gemini-2.5-pro")
_MINI = ("-y", "--exit-immediately", "-l", "0", "-o", "trajectory.json", "-m")
_AIDER = (
    *("--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes"),
    *("--no-gitignore", "--no-stream", "--model"),
)
_LITELLM = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}
_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}  # root may skip permissions in a sandbox only
_CLAUDE = ("--dangerously-skip-permissions", "--output-format", "json")
_bash = shell("Bash", description="look")

AGENTS = {
    "claude": Agent("claude/node_modules/.bin/claude", (*_CLAUDE, "-p"), _bash, ("-c", *_CLAUDE, "-p"), environment=_QUIET),
    "codex": Agent("codex/node_modules/.bin/codex", _CODEX, in_javascript, _CODEX_AGAIN),
    "codex-functions": Agent(
        "codex/node_modules/.bin/codex",
        (*_CODEX, "-m", "gpt-5.1-codex"),
        shell("exec_command", "cmd"),
        (*_CODEX_AGAIN, "-m", "gpt-5.1-codex"),
    ),
    "opencode": Agent(
        "opencode/node_modules/.bin/opencode",
        (*_OPENCODE, "anthropic/claude-sonnet-4-5"),
        shell("bash", description="look"),
        (*_OPENCODE, "anthropic/claude-sonnet-4-5", "-c"),
    ),
    "opencode-openai": Agent(
        "opencode/node_modules/.bin/opencode",
        (*_OPENCODE, "openai/gpt-5.1"),
        shell("bash", description="look"),
        (*_OPENCODE, "openai/gpt-5.1", "-c"),
    ),
    "pi": Agent("pi/node_modules/.bin/pi", (*_PI, "anthropic", "--model", "claude-sonnet-4-5"), shell("bash"), (*_PI, "anthropic", "--model", "claude-sonnet-4-5", "-c")),
    "pi-openai": Agent("pi/node_modules/.bin/pi", (*_PI, "openai", "--model", "gpt-5.1"), shell("bash"), (*_PI, "openai", "--model", "gpt-5.1", "-c")),
    "pi-gemini": Agent("pi/node_modules/.bin/pi", (*_PI, "google", "--model", "gemini-2.5-pro"), shell("bash"), (*_PI, "google", "--model", "gemini-2.5-pro", "-c")),
    "gemini": Agent("gemini/node_modules/.bin/gemini", (*_GEMINI, "-p"), shell("run_shell_command", description="look"), (*_GEMINI, "-r", "latest", "-p")),
    "mini": Agent("mini/bin/mini", (*_MINI, "openai/gpt-5.1", "-t"), shell("bash"), environment=_LITELLM),
    "mini-anthropic": Agent("mini/bin/mini", (*_MINI, "anthropic/claude-sonnet-4-5", "-t"), shell("bash"), environment=_LITELLM),
    "mini-gemini": Agent("mini/bin/mini", (*_MINI, "gemini/gemini-2.5-pro", "-t"), shell("bash"), environment=_LITELLM),
    "aider": Agent("aider/bin/aider", (*_AIDER, "openai/gpt-5.1", "--message"), shell("none"), behind=("a.txt",), environment=_LITELLM, has_tools=False),
    "aider-anthropic": Agent("aider/bin/aider", (*_AIDER, "anthropic/claude-sonnet-4-5", "--message"), shell("none"), behind=("a.txt",), environment=_LITELLM, has_tools=False),
}  # fmt: skip


class Desk:
    """A home and a project of its own for an agent, so that nothing of the user's is read or written."""

    def __init__(self, name: str, folder: Path) -> None:
        self.agent, self.home = AGENTS[name], folder
        self.program = CLIENTS / self.agent.program
        if not self.program.exists():
            pytest.skip(f"{self.agent.program} is not installed: make clients")
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        (self.work / "a.txt").write_text("alpha\n" * 20)
        subprocess.run(["git", "init", "-q"], cwd=self.work, check=True)
        self.private = Path(
            tempfile.mkdtemp(dir=CLIENTS, prefix="store-")
        )  # Gemini CLI reads nothing from below a folder that others may write to

    def environment(self) -> dict[str, str]:
        """Nothing of the user's but where programs and certificates are."""
        path = f"{CLIENTS / 'node/node_modules/.bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {key: os.environ[key] for key in ("SSL_CERT_FILE", "LANG") if key in os.environ}
        keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY"), KEY)
        return {"PATH": path, "HOME": str(self.home), "TERM": "dumb", **kept, **keys, **self.agent.environment}

    def command(self, task: str, *, again: bool = False) -> tuple[str, ...]:
        arguments = self.agent.again if again else self.agent.arguments
        assert arguments is not None
        return (str(self.program), *arguments, task, *self.agent.behind)

    def run(
        self, url: str, task: str = "do it", *, again: bool = False, timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """The agent at its task, in front of whatever answers at `url`; told so as `tenure wrap` does."""
        with tempfile.TemporaryDirectory(
            dir=CLIENTS
        ) as folder:  # Gemini CLI reads nothing from below a folder that others may write to
            begun = start(self.command(task, again=again), url, Path(folder), self.environment())
            for name, text in begun.files.items():
                (Path(folder) / name).write_text(text)
            return self.finish(begun.command, begun.environment, timeout_s)

    def finish(
        self, command: Sequence[str], environment: Mapping[str, str], timeout_s: float = 600
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.work,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )


def has_tools(body: Mapping[str, Any]) -> bool:
    """Whether a request is one of the conversation; titles, routers and the like offer no tools."""
    items = body.get("input")
    return bool(body.get("tools")) or any(
        item.get("type") == "additional_tools" for item in (items if isinstance(items, list) else ()) if isinstance(item, dict)
    )


class Director:
    """A scripted model for a real agent: the next step for a request of the conversation, something harmless for any other."""

    def __init__(self, steps: Sequence[Turn]) -> None:
        self.steps = list(steps)
        self.asides = 0

    def __call__(self, body: Mapping[str, Any]) -> Turn:
        if not has_tools(body):
            self.asides += 1
            return Reply(text=SIDE_ANSWER)
        step = self.steps.pop(0) if self.steps else Reply(text=DONE)
        thinks = (body.get("thinking") or {}).get("type") == "enabled"
        return Reply(text=step.text, calls=step.calls, thinking="Let me see.") if thinks and not isinstance(step, Fault) else step  # type: ignore[union-attr]


def loop(agent: Agent, steps: int, *, lines: int = 400, together: int = 1) -> list[Turn]:
    """A long tool loop: each step runs commands that print `lines` lines each, then the end."""
    listing = [
        Reply(
            text=f"Step {n}.",
            calls=tuple(agent.call(f"echo part {n}.{m}; seq -f 'line %g of {n}.{m}' {lines}") for m in range(together)),
        )
        for n in range(steps)
    ]
    if agent.program.endswith("mini"):
        return [*listing, Reply(text="Done.", calls=(agent.call("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"),))]
    return [*listing, Reply(text=DONE)]
