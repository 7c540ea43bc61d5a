"""What a block is, as a person would say it: one list of kinds for replays and audits."""

from typing import Final

from msgspec import UNSET

from tenure.engine.lifecycle.session import Session
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE, Index
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


def kind_at(index: Index, at: At) -> str:
    """The same of a block of a record."""
    facts = index.block(at)
    span = index.spans[facts.span] if facts.span != NONE else None
    return kind_name(facts.kind, str(facts.origin), *((span.tool, str(span.kind)) if span is not None else ()))


def stayed_by_kind(session: Session) -> dict[str, int]:
    """O200k tokens that the view shows, by kind, most first."""
    view, stayed = session.view, dict[str, int]()
    for row in view.rows():
        for block in row.blocks:
            kind = kind_at(session.index, (row.entry, block))
            stayed[kind] = stayed.get(kind, 0) + view.weight(row.entry, block)
    if residues := sum(insert.tokens for insert in view.inserts):
        stayed[RESIDUES] = residues
    return dict(sorted(stayed.items(), key=lambda item: -item[1]))
