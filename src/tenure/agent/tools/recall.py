"""The tool `recall`: what left the window comes back. The conversation answers it; here it is only offered."""

from collections.abc import Mapping
from typing import Any

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import frozen
from tenure.agent.tools.tool import Answering, Here, Outcome
from tenure.agent.workspace import Workspace
from tenure.record.recall import RECALL_DESCRIPTION, RECALL_SCHEMA
from tenure.record.tools import RECALL, ToolKind


class Recall:
    """Brings back what left the window."""

    name = RECALL
    kind = ToolKind.BULK
    description = RECALL_DESCRIPTION

    def __init__(self, answer: Answering) -> None:
        self.schema: Mapping[str, Any] = frozen(RECALL_SCHEMA)
        self._answer = answer

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:  # noqa: ARG002 - it only reads the record
        """Nothing."""
        return None

    async def run(self, arguments: str, here: Here) -> Outcome:
        """What the record has."""
        return self._answer(here.call, arguments)
