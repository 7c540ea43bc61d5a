"""What a shape makes of lines: shared by the tests of all shapes."""

from collections.abc import Sequence
from itertools import pairwise
from types import ModuleType

from tenure.engine.clip.shape import Keep, Note, Shaped, weighed
from tenure.engine.meter.tokens import o200k

COUNT = o200k()


def shaped(shape: ModuleType, lines: Sequence[str], room: int) -> Shaped:
    """The lines as the shape chooses them."""
    found = shape.choose(lines, room, COUNT)
    assert found is not None
    return found


def text_of(found: Shaped, lines: Sequence[str]) -> str:
    """All that the reader sees of it."""
    parts = (each.text if isinstance(each, Note) else "\n".join(lines[each.start : each.stop]) for each in found.pieces)
    return "\n".join(parts)


def shown(shape: ModuleType, lines: Sequence[str], room: int) -> tuple[Shaped, str]:
    """The lines as the shape chooses them, and as the reader sees them."""
    found = shaped(shape, lines, room)
    return found, text_of(found, lines)


def kept(found: Shaped) -> list[int]:
    """The lines that are kept, by number."""
    return [at for piece in found.pieces if isinstance(piece, Keep) for at in range(piece.start, piece.stop)]


def notes(found: Shaped) -> str:
    """All notes."""
    return "\n".join(piece.text for piece in found.pieces if isinstance(piece, Note))


def lawful(shape: ModuleType, lines: Sequence[str], room: int, most: float = 1) -> Shaped | None:
    """The lines as the shape chooses them: ranges ascend without overlap, and what is shown fits the room."""
    found = shape.choose(lines, room, COUNT) if shape.fits(lines) else None
    if found is None:
        return None
    ranges = [piece for piece in found.pieces if isinstance(piece, Keep)]
    assert all(piece.start < piece.stop <= len(lines) for piece in ranges)
    assert all(left.stop <= right.start for left, right in pairwise(ranges))
    assert weighed(lines, found.pieces, COUNT) <= room * most
    return found
