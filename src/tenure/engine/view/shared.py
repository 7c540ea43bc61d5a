"""What two views have in common."""

from collections.abc import Iterator

from msgspec import Struct

from tenure.engine.view.edit import Insert
from tenure.engine.view.project import View, Weights

Unit = tuple[object, ...]  # (entry, block, replacement or None) or (key, text)


class Difference(Struct, frozen=True, kw_only=True):
    """What one view shows that the other does not: `(entry, block)` of record blocks, keys of inserted entries."""

    gone: tuple[tuple[int, int], ...]
    come: tuple[tuple[int, int], ...]
    changed: tuple[tuple[int, int], ...]
    removed: tuple[Insert, ...]
    inserted: tuple[Insert, ...]


def units(view: View, weights: Weights) -> Iterator[tuple[Unit, int]]:
    """The smallest parts of a view in order, each with its tokens."""
    for line in view.lines:
        if isinstance(line, Insert):
            yield (line.key, line.text), line.tokens
            continue
        tokens = weights.weights(line.entry)
        replaced = dict(line.replaced)
        for block in line.blocks:
            shown = replaced.get(block)
            yield (line.entry, block, shown.text if shown else None), shown.tokens if shown else tokens[block]


def shared_prefix(before: View, after: View, weights: Weights) -> int:
    """Tokens of the longest equal run of units at the start of two views."""
    total = 0
    for (old, _), (new, tokens) in zip(units(before, weights), units(after, weights), strict=False):
        if old != new:
            break
        total += tokens
    return total


def difference(before: View, after: View, weights: Weights) -> Difference:
    """What the model saw then, and what it sees now."""
    old = {unit[:-1]: unit[-1] for unit, _ in units(before, weights) if len(unit) == 3}
    new = {unit[:-1]: unit[-1] for unit, _ in units(after, weights) if len(unit) == 3}
    stood = {line.key: line for line in before.lines if isinstance(line, Insert)}
    stands = {line.key: line for line in after.lines if isinstance(line, Insert)}
    return Difference(
        gone=_places(place for place in old if place not in new),
        come=_places(place for place in new if place not in old),
        changed=_places(place for place in new if place in old and new[place] != old[place]),
        removed=tuple(line for key, line in stood.items() if key not in stands),
        inserted=tuple(line for key, line in stands.items() if key not in stood),
    )


def _places(places: Iterator[Unit]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((int(str(entry)), int(str(block))) for entry, block in places))
