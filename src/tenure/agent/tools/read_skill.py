"""The tool `read_skill`: how people here want something done. Admission knows the skills; here they are only asked for."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tenure.agent.admission.skills import READ_SKILL, READ_SKILL_DESCRIPTION, READ_SKILL_SCHEMA
from tenure.agent.tools.arguments import ArgumentTool, frozen
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.tools import ToolKind


class ReadSkillArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read_skill`."""

    name: str


class ReadSkill(ArgumentTool[ReadSkillArguments]):
    """Shows a skill."""

    name = READ_SKILL
    takes = ReadSkillArguments
    kind = ToolKind.INTERMEDIATE
    description = READ_SKILL_DESCRIPTION

    def __init__(self, read: Callable[[str], ToolAnswer]) -> None:
        """`read` gives the body of a skill by its name."""
        self._read = read

    @property
    def schema(self) -> Mapping[str, Any]:
        """The same as the library's own."""
        return frozen(READ_SKILL_SCHEMA)

    async def _run(self, given: ReadSkillArguments, here: Here) -> ToolOutcome:  # noqa: ARG002 - admission knows the place
        skill = self._read(given.name)
        return ToolOutcome(text=skill.text, error=skill.error)
