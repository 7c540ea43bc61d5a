"""Which reasoning has to stay with what it led to.

Providers check reasoning in several ways (`rules.Rules`); an edit that would leave half of such a unit takes the other half along or
leaves both. Under `prefix_bound` an edit invalidates later reasoning whatever it led to, so there no other rule applies.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tenure.engine.record.entry import Role
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Drop, Insert, Restore
from tenure.engine.view.project import Line, Projection, Row
from tenure.engine.view.rules import Rules


class Bond(NamedTuple):
    """What ties the reasoning of one entry."""

    unit: bool = False  # signed reasoning stays with what follows it there, or leaves with all of it
    calls: bool = False  # any reasoning stays while the entry makes calls


def bond(index: Index, rules: Rules, entry: int) -> Bond:
    """What ties the reasoning of an entry now. A tie may end as the record grows; none is ever added."""
    if rules.thinking == "prefix_bound":
        return Bond()
    in_loop = rules.thinking == "open_loop" and entry >= index.loop_start
    is_last = rules.thinking == "last_message" and entry >= index.spoken
    return Bond(unit=rules.reasoning_unit or in_loop or is_last, calls=rules.call_reasoning)


def settle(index: Index, entry: int, shown: Sequence[int], drop: Iterable[int], bond: Bond) -> set[int]:
    """The blocks to drop so that no unit is torn, given those that a policy would; `shown` are the entry's shown blocks."""
    facts = index.entries[entry].blocks
    settled = set(drop)
    if bond.unit:
        for thinking, followers in units(shown, {number for number in shown if facts[number].signed}):
            if settled.issuperset(followers):
                settled.update(thinking if followers else ())
            else:
                settled.difference_update(thinking)
    if bond.calls and any(facts[number].kind == "tool_call" and number not in settled for number in shown):
        return settled.difference([number for number in shown if facts[number].kind == "thinking"])
    left = [number for number in shown if number not in settled]
    while left and len(left) < len(shown) and facts[left[-1]].kind == "thinking":
        settled.add(left.pop())  # reasoning that leads to nothing: no provider takes it at a message's end
    return settled


def droppable(index: Index, rules: Rules, row: Row, chosen: Sequence[int]) -> Sequence[int]:
    """The blocks of an entry that go when a policy wants these shown ones to, in order: with what cannot stay, without what cannot go alone."""
    if not 0 < len(chosen) < len(row.blocks):
        return chosen
    return sorted(settle(index, row.entry, row.blocks, chosen, bond(index, rules, row.entry)))


def led_to(index: Index, entry: int, block: int) -> list[int]:
    """What follows reasoning in its message, up to the next reasoning: the blocks without which it says nothing."""
    facts = index.entries[entry].blocks
    reasoning = {number for number, fact in enumerate(facts) if fact.kind == "thinking"}
    return [
        number for thinking, followers in units(range(len(facts)), reasoning) if block in thinking for number in sorted(followers)
    ]


def invalidated(index: Index, view: Projection, changed_from: int) -> Iterator[Drop]:
    """Under `prefix_bound`: the signed reasoning that an edit at `changed_from` makes invalid, newest entry first."""
    for row in view.rows_from(changed_from):
        if index.entries[row.entry].role is not Role.ASSISTANT:
            continue
        facts = index.entries[row.entry].blocks
        signed = {number for number in row.blocks if facts[number].signed}
        if signed:
            for number in sorted(settle(index, row.entry, row.blocks, signed, Bond())):
                yield Drop(entry=row.entry, block=number)


def reopened(index: Index, lines: Sequence[Line]) -> Iterator[Restore]:
    """Under `open_loop`: the signed reasoning before the open loop that has to be shown again, newest entry first. O(lines looked at).

    Where a reply without calls has left, what it answered and what was said next are one message of results: a provider sees one open loop
    that starts before it, and wants the reasoning there too.
    """
    earlier = lines[
        : bisect_left(lines, index.loop_start, key=lambda line: line.before_entry if isinstance(line, Insert) else line.entry)
    ]
    spoken = (line for line in reversed(earlier) if _speaks(index, line))
    for role, run in groupby(spoken, key=lambda line: _role(index, line)):
        rows = [line for line in run if isinstance(line, Row)]
        if role is not Role.ASSISTANT:
            continue
        if not any(index.entries[row.entry].blocks[number].kind == "tool_call" for row in rows for number in row.blocks):
            return
        for row in rows:
            if len(row.blocks) == len(index.entries[row.entry].blocks):
                continue
            every = range(len(index.entries[row.entry].blocks))
            gone = set(every).difference(row.blocks)
            for number in sorted(gone - settle(index, row.entry, every, gone, Bond(unit=True))):
                yield Restore(entry=row.entry, block=number)


def is_closed(index: Index, view: Projection) -> bool:
    """Whether the reply before the open loop is shown, and words behind it: nothing is reopened then. O(that reply and what follows it)."""
    stop = index.loop_start
    behind = stop == len(index) > 0 and index.entries[-1].role is Role.ASSISTANT
    for entry in range(stop - 1, -1, -1):
        facts, row = index.entries[entry], view.row(entry)
        if facts.role is Role.ASSISTANT:
            if row is not None and _speaks(index, row):
                return behind
            if entry == facts.reply:
                return False
        behind = behind or (row is not None and facts.role is Role.USER)
    return True


def _role(index: Index, line: Line) -> Role:
    return line.role if isinstance(line, Insert) else index.entries[line.entry].role


def _speaks(index: Index, line: Line) -> bool:
    """Whether a provider is sent a message of a line that ends or goes on a loop: no system's, and not one of reasoning alone."""
    if _role(index, line) is Role.SYSTEM:
        return False
    return isinstance(line, Insert) or any(index.entries[line.entry].blocks[number].kind != "thinking" for number in line.blocks)


def units(shown: Iterable[int], thinking: set[int]) -> list[tuple[set[int], set[int]]]:
    """Runs of reasoning, each with what follows it up to the next run."""
    found: list[tuple[set[int], set[int]]] = []
    for number in shown:
        if number in thinking:
            if not found or found[-1][1]:
                found.append((set(), set()))
            found[-1][0].add(number)
        elif found:
            found[-1][1].add(number)
    return found
