"""What a block is, as a person would say it: one list of kinds for replays and audits."""

from typing import Final

from msgspec import UNSET

from tenure.engine.record.tools import Kinds, is_delimiter
from tenure.lab.events import BlockLine

RESIDUES: Final = "residues"  # what commits put into a view

# The kinds that have a plainer name among people.
LABELS: Final = {
    "results of intermediate tools": "reads and command output",
    "results of bulk tools": "search output",
    "results of durable tools": "results of edits",
    "calls of intermediate tools": "calls of reads and commands",
    "calls of bulk tools": "searches",
    "calls of durable tools": "edits and writes",
    "calls of delimiter tools": "episode marks",
    "results of delimiter tools": "answers to episode marks",
    "tool_result": "results without a call",
}

_kinds: Final = Kinds()


def kind_name(kind: str, origin: str, tool: str = "", of_tool: str = "") -> str:
    """The kind of a block of that `kind` and `origin`; of a call and its result that of the tool, `of_tool`, counts too."""
    if tool:
        return f"{kind.removeprefix('tool_')}s of {'delimiter' if is_delimiter(tool) else of_tool} tools"
    return f"{origin} {kind}" if kind in ("text", "media") else kind


def kind_of_line(block: BlockLine) -> str:
    """The same of a line's block."""
    tool = block.name if block.name is not UNSET else ""
    return kind_name(str(block.kind), str(block.origin), tool, str(_kinds.of(tool)) if tool else "")
