"""Admission: what messages are shown as when they are appended.

A large result is clipped in the transaction that stores it, so a view never shows it whole, and the record keeps all of it. A result whose call has
left the view cannot stand there alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.state import SessionState
from tenure.engine.meter.tokens import FRAMING
from tenure.engine.record.entry import Count, Entry, ToolResult
from tenure.engine.record.excerpt import whole
from tenure.engine.record.index import Answering, Index
from tenure.engine.record.notes import fits
from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import is_delimiter, is_notes, is_recall, is_reference
from tenure.engine.view.edit import Commit, Drop, Edit, LoggedAction, Replace

# What is read to be followed to the letter is never clipped.
WHOLE: Final = frozenset("skill read_skill use_skill load_skill activate_skill".split())


def admission(session: SessionState, entries: Sequence[Entry], count: Count) -> Iterator[Commit]:
    """What of entries that are to follow is shown otherwise when they are appended: at most one commit for each reason."""
    index, settings, length = session.index, session.setup.clip, session.length
    number, tokens = len(session.commits), session.view.tokens + sum(sum(entry.tokens) for entry in entries)

    def commit(reason: str, edits: Sequence[Edit], saved: int, actions: tuple[LoggedAction, ...] = ()) -> Commit:
        return Commit(
            n=number,
            entries=length + len(entries),
            policy="admission",
            moment="admission",
            reason=reason,
            tokens_before=tokens,
            tokens_after=tokens - saved,
            ratio=session.ratio,
            actions=actions,
            edits=tuple(edits),
        )

    late = [
        Drop(entry=each.result[0], block=each.result[1])
        for each in index.answers_in(entries)
        if each.call[0] < length and not session.view.shows(*each.call)
    ]
    if late:
        gone = sum(entries[edit.entry - length].tokens[edit.block] for edit in late)
        yield commit("a late result of a call that was evicted", late, gone)
        number, tokens = number + 1, tokens - gone
    if settings is None or session.head_at_stake:  # nothing is hidden that no tool could bring back
        return
    dropped = {(edit.entry, edit.block) for edit in late}
    pairs = [pair for pair in clips(index, entries, settings, count) if pair[0].result not in dropped]
    if pairs:
        saved = sum(entries[edit.entry - length].tokens[edit.block] - edit.tokens for _, edit in pairs)
        reason = f"{len(pairs)} result{'s' * (len(pairs) > 1)} of more than {settings.above:,} tokens"
        acts = tuple(LoggedAction(kind="clip", object=answering.handle.partition("@")[0]) for answering, _ in pairs)
        yield commit(reason, [edit for _, edit in pairs], saved, acts)


def clips(index: Index, entries: Sequence[Entry], settings: Clip, count: Count) -> Iterator[tuple[Answering, Replace]]:
    """The results among entries that are to follow which are shown clipped, each with the edit that does it."""
    for answering in index.answers_in(entries):
        entry, block = entries[answering.result[0] - len(index)], answering.result[1]
        result, weight, tool = entry.blocks[block], entry.tokens[block], answering.tool
        if weight <= settings.above or not isinstance(result, ToolResult) or result.media:
            continue
        if is_recall(tool) or is_delimiter(tool) or tool_name(tool) in WHOLE or is_reference(result.text):
            continue
        if is_notes(tool) and fits(result.text):
            continue
        from tenure.engine.clip.clip import clip  # brings all shapes, which a session without large results never needs

        rest = whole(answering.handle, result.spill) if result.spill else ""
        clipped = clip(result.text, weight, answering.handle, settings, count, whole=rest)
        if clipped is not None:
            tokens = clipped.tokens + FRAMING * (block == 0)
            routes = (answering.handle,)
            yield answering, Replace(entry=entry.n, block=block, text=clipped.text, tokens=tokens, routes=routes)
