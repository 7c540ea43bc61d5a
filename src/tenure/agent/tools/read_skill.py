"""The tool `read_skill`: how people here want something done. Admission knows the skills; here they are only asked for."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tenure.agent.admission.skills import READ_SKILL, READ_SKILL_DESCRIPTION, READ_SKILL_SCHEMA
from tenure.agent.approval import Approval
from tenure.agent.tools.arguments import frozen, parsed
from tenure.agent.tools.tool import Here, Outcome
from tenure.agent.workspace import Workspace
from tenure.engine.record.episodes import Answer
from tenure.engine.record.tools import ToolKind


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read_skill`."""

    name: str


class ReadSkill:
    """Shows a skill."""

    name = READ_SKILL
    kind = ToolKind.INTERMEDIATE
    description = READ_SKILL_DESCRIPTION

    def __init__(self, read: Callable[[str], Answer]) -> None:
        """`read` gives the body of a skill by its name."""
        self.schema: Mapping[str, Any] = frozen(READ_SKILL_SCHEMA)
        self._read = read

    def needs(self, arguments: str, workspace: Workspace) -> Approval | None:  # noqa: ARG002 - skills are there to be read
        """Nothing."""
        return None

    async def run(self, arguments: str, here: Here) -> Outcome:  # noqa: ARG002 - admission knows the place
        """The skill's body."""
        asked = parsed(Asked, arguments, self.name)
        if isinstance(asked, Outcome):
            return asked
        told = self._read(asked.name)
        return Outcome(text=told.text, error=told.error)
