"""The tool `read_skill`: how people here want something done. Admission knows the skills; here they are only asked for."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from tenure.agent.admission.skills import READ_SKILL
from tenure.agent.tools.arguments import ArgumentTool
from tenure.agent.tools.tool import Here, ToolOutcome
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.tools import ToolKind


class ReadSkillArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of `read_skill`."""

    name: Annotated[str, Meta(description="the skill's name, as the index has it")]


class ReadSkill(ArgumentTool[ReadSkillArguments]):
    """Shows a skill."""

    name = READ_SKILL
    takes = ReadSkillArguments
    kind = ToolKind.INTERMEDIATE
    description = (
        "Read a skill: the steps that people here want a kind of task done by. The index of skills in your instructions says what there is; "
        "read one before you begin a task that it fits, then follow it."
    )

    def __init__(self, read: Callable[[str], ToolAnswer]) -> None:
        """`read` gives the body of a skill by its name."""
        self._read = read

    async def _run(self, given: ReadSkillArguments, here: Here) -> ToolOutcome:  # noqa: ARG002 - admission knows the place
        skill = self._read(given.name)
        return ToolOutcome(text=skill.text, error=skill.error)
