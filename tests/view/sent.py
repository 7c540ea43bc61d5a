"""What a request of these messages says, one string a message."""

from tenure.record.entry import Block, Draft, ToolCall
from tenure.record.index import Index
from tenure.testing.builders import placed
from tenure.view.project import project
from tenure.view.request import pieces


def shape(*drafts: Draft) -> list[str]:
    entries, index = placed(*drafts), Index()
    for entry in entries:
        index.grow(entry)
    sent = pieces(project(index, len(index), ()), index, entries.__getitem__)
    return [" + ".join(map(_word, piece.blocks)) for piece in sent]


def _word(block: Block) -> str:
    return f"{block.name}?" if isinstance(block, ToolCall) else block.text
