"""Which reasoning has to stay with what it led to. Promise: nothing is broken.

Providers check signed reasoning in four ways (`rules.Thinking`); an edit that would leave half of such a unit takes the other half along
or leaves both.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenure.record.entry import Role
from tenure.record.index import Index
from tenure.rules.rules import Rules
from tenure.view.edit import Drop
from tenure.view.project import Projection


def is_bound(index: Index, rules: Rules, loop_start: int, entry: int) -> bool:
    """Whether the signed reasoning of an entry leaves only together with all that follows it there."""
    if rules.reasoning_unit:
        return True
    match rules.thinking:
        case "open_loop":
            return entry >= loop_start
        case "last_message":
            return bool(index.steps) and entry == index.steps[-1].entry
        case _:
            return False


def settle(index: Index, entry: int, shown: Sequence[int], drop: set[int], *, bound: bool) -> set[int]:
    """The blocks to drop so that no unit is torn, given those that a policy would; `shown` are the entry's shown blocks."""
    facts = index.entries[entry].blocks
    settled = set(drop)
    if bound:
        for thinking, followers in _units(shown, {number for number in shown if facts[number].signed}):
            if settled.issuperset(followers):
                settled.update(thinking if followers else ())
            else:
                settled.difference_update(thinking)
    left = [number for number in shown if number not in settled]
    if left and len(left) < len(shown) and all(facts[number].kind == "thinking" for number in left):
        settled.update(left)  # a message of reasoning alone says nothing
    return settled


def invalidated(index: Index, view: Projection, changed_from: int) -> Iterator[Drop]:
    """Under `prefix_bound`: the signed reasoning that an edit at `changed_from` makes invalid, newest entry first."""
    for row in view.rows_from(changed_from):
        if index.entries[row.entry].role is not Role.ASSISTANT:
            continue
        facts = index.entries[row.entry].blocks
        signed = {number for number in row.blocks if facts[number].signed}
        if signed:
            for number in sorted(settle(index, row.entry, row.blocks, signed, bound=False)):
                yield Drop(entry=row.entry, block=number)


def _units(shown: Iterable[int], signed: set[int]) -> list[tuple[set[int], set[int]]]:
    """Runs of signed reasoning, each with what follows it up to the next run."""
    units: list[tuple[set[int], set[int]]] = []
    for number in shown:
        if number in signed:
            if not units or units[-1][1]:
                units.append((set(), set()))
            units[-1][0].add(number)
        elif units:
            units[-1][1].add(number)
    return units
