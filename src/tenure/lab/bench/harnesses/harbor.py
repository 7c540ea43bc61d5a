"""The agent for Harbor, and so for Terminal-Bench 2.0: `harbor run -a tenure.lab.bench.harnesses.harbor:Tenure` (an edge).

Written against Harbor 0.25.0 (https://github.com/laude-institute/harbor, `harbor/agents/base.py` and `harbor/agents/installed/base.py`), which is
imported here and nowhere else. The agent is installed into the task's container and runs there, alone, every call approved. Its session lies in the
container's folder of logs, which Harbor brings back. With `session` all tasks go on in one conversation: its store is carried from container to
container, and stays in that folder on the host.
"""

# Harbor is no dependency of ours: its classes are not known to the type checker.
# pyright: basic, reportMissingImports=false

import asyncio
import shlex
import tempfile
from pathlib import Path
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.agents.options import InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

from tenure.lab.bench.harnesses import command as commands
from tenure.lab.bench.harnesses import logs
from tenure.lab.bench.outcome import STORE
from tenure.lab.bench.play import CEILING, CWL, condition_named
from tenure.lab.events import fields_in


class TenureOptions(InstalledAgentOptions):
    """What `--ak name=value` sets."""

    condition: str = Field(default=CWL.name, description="The window's rules: cwl, compaction, none, or a policy.")
    ceiling: str = Field(default=str(CEILING), description="Tokens of the window, such as 80k.")
    session: str | None = Field(
        default=None, description="A folder on the host: all tasks go on in one session, kept there. Needs -n 1."
    )
    package: str = Field(default="", description="What is installed: a wheel on the host, a version, or a requirement.")
    program: str | None = Field(default=None, description="Where tenure is in the image already: nothing is installed.")
    endpoint: str = Field(default="", description="Where the model's API is, if not at its owner's.")
    max_calls: int = Field(default=0, ge=0, description="Calls of the model for one task; 0: no limit.")
    max_usd: float = Field(default=0.0, ge=0, description="Money for one task; 0: no limit.")
    fields: str = Field(default="", description="Further settings of the provider's API, as JSON.")


class Tenure(BaseInstalledAgent):
    """Installs the agent into the container and gives it the task."""

    capabilities = AgentCapabilities(atif=True, resume=True)
    options_model = TenureOptions
    options: TenureOptions

    @staticmethod
    def name() -> str:
        """As results name it."""
        return "tenure"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        condition_named(self.options.condition)  # wrong before anything is spent

    def get_version_command(self) -> str | None:
        """Prints the version that is installed; of a program that was there already nothing is known."""
        return None if self.options.program else f"{self._path}uv tool list | sed -n 's/^tenure v//p'"

    async def install(self, environment: BaseEnvironment) -> None:
        """The package and what it needs: a Python of its own through uv, git, ripgrep."""
        if self.options.program:
            return
        await self.ensure_system_dependencies(environment, ("curl", "ca_certificates", "bash", "git", "ripgrep"))
        package = self.options.package
        if package.endswith(".whl"):
            inside = f"/installed-agent/{Path(package).name}"
            await environment.upload_file(Path(package).expanduser(), inside)
            package = inside
        wanted = commands.requirement(package or (self._version or ""))
        await self.exec_as_agent(environment, command=commands.install(wanted))

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:  # noqa: ARG002 - filled afterwards
        """Play the task; of an accumulating session, behind the tasks before it."""
        if not self.options.session:
            await self._played(instruction, environment)
            return
        with logs.held(Path(self.options.session).expanduser()) as folder:
            await self._sent(folder, environment)
            try:
                await self._played(instruction, environment)
            finally:
                await self._fetched(folder, environment)

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Tokens, money and the trajectory of this task, from what the container left."""
        outcome = logs.outcome_in(self.logs_dir)
        if outcome is None:
            return
        context.n_input_tokens = outcome.usage.prompt
        context.n_cache_tokens = outcome.usage.cache_read
        context.n_output_tokens = outcome.usage.output
        context.cost_usd = outcome.usd if outcome.usd or not outcome.unpriced else None
        context.metadata = {
            "tenure": logs.summary_of(outcome),
            "n_episodes": outcome.calls,
        }  # `n_episodes`: Recovery-Bench reads it
        logs.write_trajectory(self.logs_dir, outcome)

    @property
    def _remote(self) -> str:
        return str(self.environment_logs_dir / commands.FOLDER)

    @property
    def _path(self) -> str:
        """What makes the program findable where it was installed for one user."""
        return "" if self.options.program else 'export PATH="$HOME/.local/bin:$PATH"; '

    async def _played(self, instruction: str, environment: BaseEnvironment) -> None:
        remote = self._remote
        await self.exec_as_agent(environment, command=f"mkdir -p {shlex.quote(remote)}")
        with tempfile.TemporaryDirectory(prefix="tenure-words-") as scratch:
            words = Path(scratch) / commands.WORDS
            words.write_text(instruction, encoding="utf-8")
            await self._upload_agent_owned_file(environment, words, f"{remote}/{commands.WORDS}")
        options = self.options
        own = fields_in(options, commands.PlayCommand, model=self.model_name or "", program=options.program or "tenure")
        playing = commands.PlayCommand(**own)
        line = self._path + commands.command(playing, remote, task=environment.environment_name)
        keys = {name: value for name in commands.KEYS if (value := self._get_env(name))}
        try:
            await self.exec_as_agent(environment, command=line, env=keys)
        except asyncio.CancelledError:  # the task's time is up
            await environment.exec(command=commands.stop(remote))
            raise

    async def _sent(self, folder: Path, environment: BaseEnvironment) -> None:
        """Bring the session into the container."""
        await self.exec_as_agent(environment, command=f"mkdir -p {shlex.quote(self._remote)}")
        for path in logs.session_files(folder):
            await self._upload_agent_owned_file(environment, path, f"{self._remote}/{path.name}")

    async def _fetched(self, folder: Path, environment: BaseEnvironment) -> None:
        """Bring the session back, also of a task whose time was up."""
        with tempfile.TemporaryDirectory(prefix="session-", dir=folder) as scratch:
            listed = await environment.exec(command=f"ls {shlex.quote(self._remote)}")
            for name in (listed.stdout or "").split():
                if name.startswith(STORE):
                    await environment.download_file(f"{self._remote}/{name}", Path(scratch) / name)
            logs.take(folder, Path(scratch))
