"""What stands in place of a cleared result.

"Escaping Context Amnesia" (the tiered context text), tier 1.5: actionable hints, not silent removal. Ours also name the handle that brings
back exactly what was there.
"""

from typing import Final

from tenure.engine.record.objects import tool_name
from tenure.engine.record.quotation import cited, enclosed, in_quotes
from tenure.engine.record.tools import ToolKind

# What is to be done by kind of tool; a tool that does not matter to the kind is named below.
HINTS: Final = {
    ToolKind.BULK: "Search again for current results",
    ToolKind.INTERMEDIATE: "Call it again if a fresh result is needed",
    ToolKind.DURABLE: "The change was made; read the file to see it as it is now",
}

# By tool, as `tool_name` gives them, where there is more to say.
HINTS_BY_TOOL: Final = {
    **dict.fromkeys(
        "read read_file readfile view cat open_file notebookread".split(), "Read the file again for its present state"
    ),
    **dict.fromkeys(
        "bash shell execute_command run_shell_command exec exec_command local_shell run terminal execute_bash".split(),
        "Run it again for fresh output",
    ),
    **dict.fromkeys("webfetch web_fetch fetch fetch_url browse open_url".split(), "Fetch it again for its present state"),
    **dict.fromkeys(
        "task agent spawn_agent dispatch_agent".split(), "The sub-agent is done; ask it again only for something new"
    ),
    **dict.fromkeys("todowrite todo_write update_plan write_todos".split(), "A newer list stands further down"),
}

_NOTE: Final = "[result"
ERROR_CHARS: Final = 160  # of a failed call's message that stay


def hint(tool: str, kind: ToolKind) -> str:
    """What the model can do to have the like again."""
    return HINTS_BY_TOOL.get(tool_name(tool)) or HINTS[kind]


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


def superseded(handle: str, cue: str, later: str, *, same: bool) -> str:
    """What stands in place of a read or search that was done again: the later one is shown."""
    why = "the same stands again at" if same else "there is a newer one at"
    return f"{_NOTE}{f' of {cited(cue)}' if cue else ''} cleared: {why} {later}; recall {handle} for what was here.]"
