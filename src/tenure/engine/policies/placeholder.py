"""What stands in place of a cleared result.

"Escaping Context Amnesia" (the tiered context text), tier 1.5: actionable hints, not silent removal. Ours also name the handle that brings
back exactly what was there.
"""

from collections.abc import Mapping
from typing import Final, Literal

from tenure.engine.record.objects import tool_name
from tenure.engine.record.quotation import cited, enclosed, in_quotes
from tenure.engine.record.tools import ACTS, Act, ToolKind

# What is to be done by kind of tool; a tool that does not matter to the kind is named below.
HINTS: Final = {
    ToolKind.BULK: "Search again for current results",
    ToolKind.INTERMEDIATE: "Call it again if a fresh result is needed",
    ToolKind.DURABLE: "The change was made; read the file to see it as it is now",
}

# By what the tool does, where there is more to say.
HINTS_BY_ACT: Final = {
    Act.READ: "Read the file again for its present state",
    Act.RUN: "Run it again for fresh output",
    Act.FETCH: "Fetch it again for its present state",
    Act.AGENT: "The sub-agent is done; ask it again only for something new",
    Act.TODO: "A newer list stands further down",
}

Later = Literal["same", "newer", "elsewhere"]  # what the later call shows: the same, what it is now, or another part
_WHY_LATER: Final[Mapping[Later, str]] = {
    "same": "the same stands again at",
    "newer": "there is a newer one at",
    "elsewhere": "another part of it was read since, at",
}
_NOTE: Final = "[result"
ERROR_CHARS: Final = 160  # of a failed call's message that stay


def hint(tool: str, kind: ToolKind) -> str:
    """What the model can do to have the like again."""
    act = ACTS.get(tool_name(tool))
    return (HINTS_BY_ACT.get(act) if act else None) or HINTS[kind]


def is_note(text: str) -> bool:
    """Whether what stands for a result is a placeholder already. Asked only of texts that were put in place of one."""
    return text.startswith(_NOTE)


def cleared(handle: str, cue: str, tool: str, kind: ToolKind, tokens: int, failed: str = "") -> str:
    """The placeholder of a result of `tokens` tokens; of a failed call its first line stays."""
    about = f" of {cited(cue)}" if cue else ""
    said = f" It failed: {in_quotes(enclosed(failed[: 4 * ERROR_CHARS])[:ERROR_CHARS])}" if failed else ""
    return f"{_NOTE}{about} cleared, {tokens:,} tokens.{said} {hint(tool, kind)}, or recall {handle} for exactly what was here.]"


def trimmed(handle: str, left_out: int) -> str:
    """What stands between head and tail."""
    return f"[… {left_out:,} tokens left out here; the result is intact: recall {handle} shows all of it …]"


def superseded(handle: str, cue: str, later: str, how: Later) -> str:
    """What stands in place of a read or search that was done again: the later one is shown."""
    about = f" of {cited(cue)}" if cue else ""
    return f"{_NOTE}{about} cleared: {_WHY_LATER[how]} {later}; recall {handle} for what was here.]"
