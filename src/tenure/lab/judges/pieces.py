"""Views, edits and entries as the pieces that a judge reads."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from tenure.engine.record.entry import (
    Block,
    Count,
    Entry,
    Media,
    Opaque,
    Origin,
    Read,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from tenure.engine.record.index import NONE, Index
from tenure.engine.view.edit import Drop, Edit, Insert, Replace
from tenure.engine.view.project import Projection, View
from tenure.lab.judges.case import INSERTED, Kind, Piece

_WORDS: Final[dict[Origin, Kind]] = {
    Origin.HUMAN: "human",
    Origin.MODEL: "words",
    Origin.TOOL: "note",
    Origin.HARNESS: "note",
}


def of_view(view: View, index: Index, read: Read) -> Iterator[Piece]:
    """What a view shows, in order. O(view)."""
    for line in view.lines:
        if isinstance(line, Insert):
            turn = index.entries[min(line.before_entry, len(index) - 1)].turn
            yield Piece(entry=line.before_entry, block=INSERTED, turn=turn, kind="note", text=line.text, tokens=line.tokens)
            continue
        entry, instead = read(line.entry), dict(line.replaced)
        for number in line.blocks:
            shown = instead.get(number)
            if shown is None:
                yield of_block(entry, number, index)
            else:
                yield of_block(entry, number, index, text=shown.text, tokens=shown.tokens)


def of_edits(edits: Iterable[Edit], before: Projection, index: Index, read: Read, count: Count) -> tuple[Piece, ...]:
    """What edits take out of a view, in record order: of a block that is shown shortened, the lines that are not shown any more. O(edits)."""
    gone: dict[tuple[int, int], Piece] = {}
    for edit in edits:
        if isinstance(edit, Drop | Replace):
            entry, standing = read(edit.entry), before.instead(edit.entry, edit.block)
            text = standing.text if standing is not None else entry.blocks[edit.block].text
            if isinstance(edit, Replace):
                text = _not_in(edit.text, text)
            tokens = count(text) if isinstance(edit, Replace) else before.weight(edit.entry, edit.block)
            piece = of_block(entry, edit.block, index, text=text, tokens=tokens, is_part=isinstance(edit, Replace))
            gone[piece.at] = piece
    return tuple(gone[at] for at in sorted(gone))


def of_future(entries: Iterable[Entry], index: Index) -> Iterator[Piece]:
    """What really came, without the reasoning: it is neither said nor done, and many logs leave it out."""
    for entry in entries:
        for number, block in enumerate(entry.blocks):
            if not isinstance(block, Thinking):
                yield of_block(entry, number, index)


def of_block(
    entry: Entry, number: int, index: Index, *, text: str | None = None, tokens: int | None = None, is_part: bool = False
) -> Piece:
    """One block, with another text where it is given."""
    block, facts = entry.blocks[number], index.block((entry.n, number))
    name = ""
    if facts.span != NONE:
        span = index.spans[facts.span]
        name = index.handle(span.object, span.call[0])
    return Piece(
        entry=entry.n,
        block=number,
        turn=facts.turn,
        kind=_kind(block, entry.role),
        name=name,
        text=_text(block) if text is None else text,
        tokens=facts.tokens if tokens is None else tokens,
        error=isinstance(block, ToolResult) and block.error,
        is_part=is_part,
    )


def _kind(block: Block, role: Role) -> Kind:
    match block:
        case ToolCall():
            return "call"
        case ToolResult():
            return "result"
        case Thinking():
            return "thinking"
        case Text() | Media():
            return "system" if role is Role.SYSTEM else _WORDS[block.origin]
        case Opaque():
            return "note"
        case _:
            assert_never(block)


def _text(block: Block) -> str:
    if isinstance(block, Media):
        return f"[{block.media_type or 'media'}] {block.text}".rstrip()
    if isinstance(block, ToolResult) and block.media:
        return f"{block.text}\n[{len(block.media)} media]"
    return block.text


def _not_in(shorter: str, text: str) -> str:
    """The lines of a text that a shorter one does not hold, each gap between them a line of its own."""
    shown = set(shorter.split("\n"))
    gone: list[str] = []
    for line in text.split("\n"):
        if line not in shown:
            gone.append(line)
        elif gone and gone[-1] != _GAP:
            gone.append(_GAP)
    return "\n".join(gone)


_GAP: Final = "…"
