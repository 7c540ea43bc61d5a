"""The agent for terminal-bench's own harness, which LongCLI-Bench extends (an edge).

    tb run --agent-import-path tenure.lab.bench.harnesses.terminal_bench:Tenure --model anthropic/… --dataset-path tasks_long_cli

Written against terminal-bench 0.2.18 (`terminal_bench/agents/installed_agents/abstract_installed_agent.py`) and the copy of it in
https://github.com/finyorko/longcli-bench, which installs once a container and may come again with test output: the same conversation goes on then. The
container's /agent-logs is a folder of the host, where the session lies.
"""

# terminal-bench is no dependency of ours: its classes are not known to the type checker.
# pyright: basic, reportMissingImports=false

import os
import shlex
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from terminal_bench.agents.base_agent import AgentResult
from terminal_bench.agents.installed_agents.abstract_installed_agent import AbstractInstalledAgent
from terminal_bench.terminal.models import TerminalCommand
from terminal_bench.terminal.tmux_session import TmuxSession

from tenure.lab.bench.harnesses import command as commands
from tenure.lab.bench.harnesses import logs
from tenure.lab.bench.play import CEILING, CWL, condition_named

SYSTEM = "command -v curl git rg >/dev/null || { apt-get update && apt-get install -y curl ca-certificates git ripgrep; }"


class Tenure(AbstractInstalledAgent):
    """Installs the agent into the container and gives it the task. `session` is a folder on the host for one session over all tasks."""

    def __init__(
        self,
        model_name: str,
        *args: Any,
        condition: str = CWL.name,
        ceiling: str | int = CEILING,
        session: str = "",
        package: str = "",
        program: str = "",
        endpoint: str = "",
        max_calls: int = 0,
        max_usd: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        condition_named(condition)  # wrong before anything is spent
        self._session, self._package, self._program = session, package, program
        self._task = "task"
        self._playing = commands.PlayCommand(
            model=model_name,
            condition=condition,
            ceiling=str(ceiling),
            endpoint=endpoint,
            max_calls=int(max_calls),
            max_usd=float(max_usd),
            program=program or "tenure",
        )

    @staticmethod
    def name() -> str:
        """As results name it."""
        return "tenure"

    @property
    def folder(self) -> str:
        """Where the session lies in the container."""
        return f"{self.CONTAINER_AGENT_LOGS_PATH}/{commands.FOLDER}"

    @property
    def _env(self) -> dict[str, str]:
        return {name: value for name in commands.KEYS if (value := os.environ.get(name))}

    @property
    def _install_agent_script_path(self) -> Path:
        """The script is sourced, so what it installs into the path is found by the command behind it."""
        package = self._package
        if package.endswith(".whl"):
            package = f"/installed-agent/{Path(package).name}"
        lines = commands.install(commands.requirement(package or (self.version or ""))).splitlines()
        body = ":" if self._program else "\n".join(['export PATH="$HOME/.local/bin:$PATH"', "(", SYSTEM, *lines, ")"])
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as script:
            script.write(f"#!/bin/bash\n{body}\n")
        return Path(script.name)

    def _run_agent_commands(self, instruction: str) -> list[TerminalCommand]:  # noqa: ARG002 - the words are in a file
        line = commands.command(self._playing, self.folder, task=self._task)
        return [TerminalCommand(command=line, max_timeout_sec=float("inf"), block=True)]

    def perform_task(self, instruction: str, session: TmuxSession, logging_dir: Path | None = None) -> AgentResult:
        """Play the task; tokens are what the agent itself reports. Of an accumulating session the store is carried over `logging_dir`."""
        here = logging_dir / commands.FOLDER if logging_dir is not None else None
        if logging_dir is not None and len(logging_dir.parts) > 2:  # runs/RUN/TASK/TRIAL/agent-logs
            self._task = logging_dir.parts[-3]
        with ExitStack() as open_now:
            folder = open_now.enter_context(logs.held(Path(self._session).expanduser())) if self._session else None
            self._prepared(instruction, session, here, folder)
            try:
                result = super().perform_task(instruction, session, logging_dir)
            finally:
                if folder is not None and here is not None:
                    logs.kept(folder, lambda fresh: [shutil.copy2(path, fresh) for path in logs.session_files(here)])
        outcome = logs.outcome_in(logging_dir) if logging_dir is not None else None
        if outcome is None or logging_dir is None:
            return result
        logs.write_trajectory(logging_dir, outcome)
        return result.model_copy(update={"total_input_tokens": outcome.usage.prompt, "total_output_tokens": outcome.usage.output})

    def _prepared(self, instruction: str, session: TmuxSession, here: Path | None, folder: Path | None) -> None:
        """Put the words, the wheel and, of an accumulating session, the store where the command finds them."""
        with tempfile.TemporaryDirectory(prefix="tenure-words-") as scratch:
            words = Path(scratch) / commands.WORDS
            words.write_text(self._render_instruction(instruction), encoding="utf-8")
            session.container.exec_run(["sh", "-c", f"mkdir -p {shlex.quote(self.folder)}"])
            session.copy_to_container(words, container_dir=self.folder, container_filename=commands.WORDS)
        if self._package.endswith(".whl"):
            session.copy_to_container(
                Path(self._package).expanduser(), container_dir="/installed-agent", container_filename=Path(self._package).name
            )
        is_first = here is None or not logs.session_files(here)  # a further turn of the same task has it already
        for path in logs.session_files(folder) if folder is not None and is_first else ():
            session.copy_to_container(path, container_dir=self.folder, container_filename=path.name)
