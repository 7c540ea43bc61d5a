"""What a request of these messages says, one string a message."""

from tenure.engine.record.entry import Block, Draft, ToolCall
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop
from tenure.engine.view.project import project
from tenure.engine.view.request import pieces
from tenure.testing.builders import placed


def shape(*drafts: Draft, without: tuple[int, ...] = ()) -> list[str]:
    entries, index = placed(*drafts), Index()
    for entry in entries:
        index.grow(entry)
    edits = tuple(Drop(entry=entry, block=block) for entry in without for block in range(len(entries[entry].blocks)))
    commit = Commit(n=0, entries=len(index), policy="t", moment="manual", reason="t", edits=edits)
    sent = pieces(project(index, len(index), [commit]), index, entries.__getitem__)
    return [" + ".join(map(_word, piece.blocks)) for piece in sent]


def _word(block: Block) -> str:
    return f"{block.name}?" if isinstance(block, ToolCall) else block.text
