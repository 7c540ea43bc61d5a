"""Which reasoning has to stay with what it led to.

Providers check reasoning in several ways (`rules.Rules`); an edit that would leave half of such a unit takes the other half along or
leaves both. Under `prefix_bound` an edit invalidates later reasoning whatever it led to, so there no other rule applies.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tenure.engine.record.entry import Role
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Drop
from tenure.engine.view.project import Projection, Row
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
