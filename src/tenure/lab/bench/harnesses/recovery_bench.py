"""The agent for Recovery-Bench: it takes over where another failed (an edge).

    python -m recovery_bench.run_recovery --traces jobs/… --agent tenure.lab.bench.harnesses.recovery_bench:RecoveryTenure --model anthropic/…

Written against https://github.com/letta-ai/recovery-bench (`recovery_bench/agents/recovery_mixin.py`, and `recovery_bench/agents/recovery/pi.py`, which does
the same for Harbor's Pi), which builds on Harbor: the failed attempt's commands are replayed in the container before the agent begins.
"""

# Neither Harbor nor Recovery-Bench is a dependency of ours: their classes are not known to the type checker.
# pyright: basic, reportMissingImports=false

from typing import Any

from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from recovery_bench.agents.recovery_mixin import RecoveryMixin
from recovery_bench.replay import replay_via_exec
from recovery_bench.utils import save_usage

from tenure.lab.bench.harnesses.harbor import Tenure


class RecoveryTenure(RecoveryMixin, Tenure):
    """`Tenure`, behind the replay of a failed attempt. `message_mode`: full, none or summary, of what is told of it."""

    def __init__(self, message_mode: str = "full", model_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**(model_kwargs or {}), **kwargs)
        self._init_recovery(message_mode)

    @staticmethod
    def name() -> str:
        """As results name it."""
        return "recovery-tenure"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Install the agent, then bring the container to where the failed attempt left it."""
        await super().setup(environment)
        commands, _ = self._parse_trajectory()
        if commands:
            await replay_via_exec(environment, commands)

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Play the task, with what Recovery-Bench says of the attempt before."""
        await super().run(await self._build_recovery_instruction(instruction), environment, context)
        if context.is_empty():
            self.populate_context_post_run(context)
        save_usage(self.logs_dir, context)
