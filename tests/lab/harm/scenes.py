"""Sessions of a few lines for the detector: messages numbered as they stand, and the lines of a replay that they would be."""

from collections.abc import Iterator, Sequence

from tenure.engine.record.entry import Draft, Role, ToolCall, ToolResult
from tenure.engine.record.index import Index, kind_of
from tenure.engine.view.edit import Drop, Edit, Moment
from tenure.lab.events import At, BlockLine, CallLine, CommitLine, EntryLine, HarmLine, Line
from tenure.lab.harm.holdings import Message, of_entry
from tenure.lab.harm.watch import Uses, Watch, after_cut, uses_of
from tenure.testing.builders import indexed, placed


def messages(*drafts: Draft) -> list[Message]:
    index = indexed(*drafts)
    return [of_entry(entry, index) for entry in placed(*drafts)]


def session(*drafts: Draft) -> Uses:
    return uses_of(messages(*drafts))


def missed(drafts: Sequence[Draft], entries: int, *removed: At, residues: Sequence[Edit] = ()) -> list[HarmLine]:
    """What the steps from `entries` on miss of the blocks that are removed there; needs that stay visible are left out."""
    return [harm for harm in after_cut(session(*drafts), entries, removed, residues) if harm.verdict != "visible"]


def texts(harms: Sequence[HarmLine]) -> set[str]:
    return {harm.text for harm in harms}


def entry_lines(*drafts: Draft) -> Iterator[EntryLine]:
    index = indexed(*drafts)
    for entry in placed(*drafts):
        blocks = tuple(
            BlockLine(
                block=number,
                kind=kind_of(block),
                origin=str(block.origin),
                objects=tuple(index.objects_of((entry.n, number))),
                tokens=1,
                text=block.text,
                name=_tool(index, (entry.n, number)) if isinstance(block, ToolCall | ToolResult) else "",
            )
            for number, block in enumerate(entry.blocks)
        )
        yield EntryLine(
            entry=entry.n, id=entry.id, parent="", sha256="", source=0, line=0, role=str(entry.role), turn=0, at="", blocks=blocks
        )


def _tool(index: Index, at: At) -> str:
    return index.spans[index.block(at).span].tool


def commit_line(number: int, entries: int, *edits: Edit, moment: Moment = "before-call") -> CommitLine:
    return CommitLine(
        commit=number,
        before_call=0,
        entries=entries,
        policy="test",
        forced=True,
        reason="",
        moment=moment,
        price=None,
        tokens_before=0,
        tokens_after=0,
        ratio=1.0,
        actions=(),
        edits=edits,
    )


def call_line(number: int, entry: int) -> CallLine:
    return CallLine(
        call=number,
        at="",
        model="",
        entries=entry,
        entry=entry,
        head_tokens=0,
        ratio=1.0,
        view_tokens=0,
        record_tokens=0,
        shared_prefix_tokens=0,
        uncached=0,
        cache_write=0,
        cache_read=0,
        output=0,
        usd=0.0,
    )


def replayed(drafts: Sequence[Draft], commits: Sequence[CommitLine]) -> list[HarmLine]:
    """The harms of a replay with these commits, each before the entry of its number."""
    watch, found, calls = Watch(), list[HarmLine](), 0
    lines: list[Line] = []
    for entry in entry_lines(*drafts):
        lines += (commit for commit in commits if commit.entries == entry.entry)
        if entry.role == Role.ASSISTANT:
            lines.append(call_line(calls, entry.entry))
            calls += 1
        lines.append(entry)
    for line in lines:
        found += (each for each in watch.take(line) if isinstance(each, HarmLine))
    return found


def drops(*places: At) -> tuple[Drop, ...]:
    return tuple(Drop(entry=entry, block=block) for entry, block in places)
