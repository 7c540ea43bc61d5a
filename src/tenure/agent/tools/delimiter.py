"""The tool `delimiter`: where a piece of work begins and ends. The record answers it; here it is only offered."""

from collections.abc import Mapping
from typing import Any

from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import frozen
from tenure.agent.tools.tool import Answering, Here, Outcome
from tenure.agent.workspace import Workspace
from tenure.record.episodes import DELIMITER_DESCRIPTION, DELIMITER_SCHEMA
from tenure.record.tools import DELIMITER, ToolKind


class Delimiter:
    """Marks episodes."""

    name = DELIMITER
    kind = ToolKind.DURABLE
    description = DELIMITER_DESCRIPTION

    def __init__(self, answer: Answering) -> None:
        self.schema: Mapping[str, Any] = frozen(DELIMITER_SCHEMA)
        self._answer = answer

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:  # noqa: ARG002 - it changes nothing in the task
        """Nothing."""
        return None

    async def run(self, arguments: str, here: Here) -> Outcome:
        """What the record says to it."""
        return self._answer(here.call, arguments)
