"""All tools of a session, in an order that never changes."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.tools.bash import Bash
from tenure.agent.tools.edit import Edit
from tenure.agent.tools.glob import Glob
from tenure.agent.tools.grep import Grep
from tenure.agent.tools.ls import Ls
from tenure.agent.tools.read import Read
from tenure.agent.tools.read_skill import ReadSkill
from tenure.agent.tools.sandbox import Walls
from tenure.agent.tools.tool import Here, Tool, ToolOutcome
from tenure.agent.tools.write import Write
from tenure.agent.workspace import Workspace
from tenure.engine.record.episodes import ToolAnswer

_NAME_CHARS: Final = 80


class Toolbox:
    """The tools by name. Mutable: further ones may come."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._hold(tools)

    def _hold(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in self.tools}
        assert len(self._by_name) == len(self.tools), "two tools of one name"
        self._by_key = {tool.name.casefold(): tool for tool in reversed(self.tools)}

    def add(self, tools: Sequence[Tool]) -> None:
        """Take further tools, behind the others."""
        self._hold((*self.tools, *tools))

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._by_name)

    def find(self, name: str) -> Tool | None:
        """The tool that a model called, in whatever case."""
        return self._by_name.get(name) or self._by_key.get(name.strip().casefold())

    def needs(self, name: str, arguments: str, workspace: Workspace) -> Approval | None:
        """What a call would change; None for one that changes nothing, and may run beside others. Never raises."""
        tool = self.find(name)
        if tool is None:
            return None
        try:
            return tool.needs(arguments, workspace)
        except Exception as error:  # when unsure, a person is asked
            return Approval(
                tool=name, act=CallEffect.DESTROY, summary=name, reason=f"it could not be judged ({type(error).__name__})"
            )

    async def run(self, name: str, arguments: str, here: Here) -> ToolOutcome:
        """What came of a call. Never raises but asyncio.CancelledError."""
        tool = self.find(name)
        if tool is None:
            return ToolOutcome(text=self._unknown(name), error=True)
        try:
            return await tool.run(arguments, here)
        except Exception as error:  # a defect of ours, or the disk's: the model is told, and the session goes on
            return ToolOutcome(text=f"{tool.name}: failed ({type(error).__name__}: {error})", error=True)

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name[:_NAME_CHARS].casefold(), self._by_key, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(self.names)}"
        return f"There is no tool {name[:_NAME_CHARS]!r}; {hint}"


def toolbox(
    *,
    read_skill: Callable[[str], ToolAnswer] | None = None,
    walls: Walls | None = None,
    keys: frozenset[str] = frozenset(),
    more: Iterable[Tool] = (),
) -> Toolbox:
    """The usual tools and `more`, such as those of MCP servers.

    `read_skill` gives a skill's body; without it that tool is not there. `walls` stand around commands. `keys` are variables that hold keys to models under names of their
    own, which no command may see.
    """
    own: list[Tool] = [Read(), Glob(), Grep(), Ls(), Edit(), Write(), Bash(walls=walls, keys=keys)]
    own += [ReadSkill(read_skill)] if read_skill else []
    return Toolbox([*own, *more])
