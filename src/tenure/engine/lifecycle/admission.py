"""Admission: what a tool's result is shown as from its birth.

Made when messages are placed, so that the clip is stored in the transaction that stores the result, and a view never shows it whole.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tenure.engine.clip.setting import Clip
from tenure.engine.policies.situation import Count
from tenure.engine.record.entry import Entry, ToolResult
from tenure.engine.record.index import Answering, Index
from tenure.engine.record.notes import fits
from tenure.engine.record.objects import tool_name
from tenure.engine.record.spill import whole
from tenure.engine.record.tools import is_delimiter, is_notes, is_recall, is_reference
from tenure.engine.view.edit import Replace

FRAMING: Final = 4  # tokens an entry costs beside its text

# What is read to be followed to the letter is never clipped.
WHOLE: Final = frozenset("skill read_skill use_skill load_skill activate_skill".split())


def clips(index: Index, entries: Sequence[Entry], settings: Clip, count: Count) -> Iterator[tuple[Answering, Replace]]:
    """The results among entries that are to follow which are shown clipped, each with the edit that does it."""
    first = len(index)
    for answering in index.answers_in(entries):
        entry, block = entries[answering.result[0] - first], answering.result[1]
        result, weight = entry.blocks[block], entry.tokens[block]
        if weight <= settings.above or not isinstance(result, ToolResult) or result.media:
            continue
        if is_recall(answering.tool) or is_delimiter(answering.tool) or tool_name(answering.tool) in WHOLE:
            continue
        if is_reference(result.text):
            continue
        if is_notes(answering.tool) and fits(result.text):
            continue
        from tenure.engine.clip.clip import clip  # brings all shapes, which a session without large results never needs

        found = clip(
            result.text,
            weight,
            answering.handle,
            settings,
            count,
            whole=whole(answering.handle, result.spill) if result.spill else "",
        )
        if found is not None:
            tokens = found.tokens + FRAMING * (block == 0)
            yield (
                answering,
                Replace(entry=entry.n, block=block, text=found.text, tokens=tokens, routes=(answering.handle,)),
            )
