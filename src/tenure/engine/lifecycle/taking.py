"""What the actions on single objects come to as edits.

Pure functions from a view in the making to edits that can be applied to it; an action that may do nothing, or would not pay, gives none.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from tenure.engine.policies.situation import Situation
from tenure.engine.record.index import NONE, Index, Span
from tenure.engine.view.action import Shorten, Take
from tenure.engine.view.edit import Drop, Edit, Insert, Remove, Replace
from tenure.engine.view.guard import At
from tenure.engine.view.pointers import STRETCH_LINE, Line, is_pointer, start_of, stretch_line
from tenure.engine.view.project import Projection
from tenure.engine.view.residue import place_of, role_of_residue
from tenure.engine.view.thinking import bond, settle

FRAMING: Final = 4  # tokens an entry costs beside its text


def shortened(situation: Situation, view: Projection, action: Shorten) -> tuple[Replace, ...]:
    """The text in place of what is shown now, where that may be touched, is longer, and carries no reasoning's seal."""
    index = situation.index
    at = action.at or _part(index.spans[action.span], action)
    if at is None or not view.shows(*at) or not situation.is_free(at):
        return ()
    tokens = situation.count(action.text) + FRAMING * (at[1] == 0)
    if tokens >= view.weight(*at):
        return ()
    if action.part == "arguments" and any(fact.signed for fact in index.entries[at[0]].blocks):
        return ()  # signed reasoning vouches for what follows it
    return (Replace(entry=at[0], block=at[1], text=action.text, tokens=tokens, routes=action.routes),)


def shortens(index: Index, action: Shorten) -> str:
    """The object that is shortened, as the log names it."""
    if action.span != NONE:
        return index.spans[action.span].object
    assert action.at is not None
    return f"entry:{action.at[0]}/{action.at[1]}"


def _part(span: Span, action: Shorten) -> At | None:
    return span.call if action.part == "arguments" else span.result


def taken(situation: Situation, view: Projection, action: Take, key: str) -> tuple[Edit, ...]:
    """Drops, and the pointer under `key`; nothing when that would not make the view smaller."""
    drops = [Drop(entry=entry, block=block) for entry, blocks in _droppable(situation, view, action) for block in blocks]
    removed = [insert for insert in view.inserts if action.inserted and _goes_too(situation, insert, action.before_entry)]
    gained = sum(view.weight(drop.entry, drop.block) for drop in drops) + sum(insert.tokens for insert in removed)
    edits: tuple[Edit, ...] = (*drops, *(Remove(key=insert.key) for insert in removed))
    if not drops:
        return ()
    if not action.pointer:
        return edits
    place = _at_rest(situation, action.before_entry)
    pointers = [_inserted(situation, place, 0, key, Line(text=action.pointer, routes=action.routes))]
    if routes := [route for insert in removed if is_pointer(insert) for route in insert.routes]:
        line = stretch_line(situation.index, routes)  # what was folded before stays on the way back
        pointers.append(_inserted(situation, place, 1, f"{STRETCH_LINE}{key[1:]}.0", line))  # a key that no merged line has
    return (*edits, *pointers) if sum(insert.tokens for insert in pointers) < gained else ()


def _inserted(situation: Situation, place: int, order: int, key: str, line: Line) -> Insert:
    return Insert(
        before_entry=place,
        order=order,
        key=key,
        role=role_of_residue(),
        text=line.text,
        tokens=situation.count(line.text) + FRAMING,
        routes=line.routes,
    )


def _goes_too(situation: Situation, insert: Insert, before_entry: int) -> bool:
    """Whether what a brief stands for includes an inserted entry: not a pointer, beside a person's words, to something that came later."""
    if insert.before_entry > before_entry:
        return False
    return not is_pointer(insert) or all(start_of(situation.index, route)[0] < before_entry for route in insert.routes)


def _droppable(situation: Situation, view: Projection, action: Take) -> Iterator[tuple[int, list[int]]]:
    """By entry, the blocks that may go and can go together."""
    entries: dict[int, set[int]] = {}
    for entry, block in _with_partners(situation, action.places):
        if view.shows(entry, block) and situation.is_free((entry, block)):
            entries.setdefault(entry, set()).add(block)
    for entry, blocks in sorted(entries.items()):
        row = view.row(entry)
        assert row is not None
        drop: Iterable[int] = blocks
        if len(blocks) < len(row.blocks):
            tie = bond(situation.index, situation.rules, situation.loop_start, entry)
            drop = settle(situation.index, entry, row.blocks, blocks, tie)
        if chosen := sorted(drop):
            yield entry, chosen


def _with_partners(situation: Situation, places: Iterable[At]) -> Iterator[At]:
    """The places, with the result of each call among them, and the call of each result."""
    index = situation.index
    for at in places:
        yield at
        span = index.block(at).span
        if span != NONE:
            yield index.spans[span].call
            yield from [found] if (found := index.spans[span].result) else []


def _at_rest(situation: Situation, before_entry: int) -> int:
    """Where a pointer may stand: never between a call and its result."""
    return before_entry if before_entry >= len(situation.index) else place_of(situation.index, before_entry)
