"""What the policies here look at: the shown tool results and steps that may go, oldest first. O(view)."""

from collections.abc import Iterator

from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import At
from tenure.engine.record.index import NONE, Span


def results(situation: Situation) -> list[Span]:
    """The calls whose results are shown, in order; of those that may not go too."""
    index = situation.index
    facts = (index.entries[row.entry].blocks[block] for row in situation.view.rows() for block in row.blocks)
    return [index.spans[fact.span] for fact in facts if fact.kind == "tool_result" and fact.span != NONE]


def is_free(situation: Situation, span: Span) -> bool:
    """Whether a shown result may go."""
    return span.result is not None and situation.is_free(span.result)


def weight(situation: Situation, span: Span) -> int:
    """What a result weighs as it is shown."""
    return situation.view.weight(*span.result) if span.result is not None else 0


def turns(situation: Situation) -> dict[int, list[At]]:
    """The shown blocks of each human turn, in order."""
    return _grouped(situation, "turn")


def steps(situation: Situation) -> dict[int, list[At]]:
    """The shown blocks of each reply with its results, in order; what came before the first is not among them."""
    found = _grouped(situation, "step")
    found.pop(0, None)
    return found


def _grouped(situation: Situation, by: str) -> dict[int, list[At]]:
    groups: dict[int, list[At]] = {}
    for entry, blocks in _rows(situation):
        number = getattr(situation.index.entries[entry], by)
        groups.setdefault(number, []).extend((entry, block) for block in blocks)
    return groups


def _rows(situation: Situation) -> Iterator[tuple[int, tuple[int, ...]]]:
    return ((row.entry, row.blocks) for row in situation.view.rows())
