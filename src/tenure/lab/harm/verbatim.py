"""Text that a step repeats to the letter: what an edit is to find, lines, quotations.

Each pattern is linear on any text.
"""

import re
from collections.abc import Iterator
from typing import Final

from tenure.lab.harm.fields import BODIES, PATCHES, PATTERNS, PLACES, TARGETS
from tenure.lab.harm.forms import Anchor, Form
from tenure.lab.harm.passage import Field

SHORTEST_LINE: Final = 24
LONGEST_LINE: Final = 240
SHORTEST_TARGET: Final = 16  # of one of several lines that an edit is to find
WORDS_OF_QUOTE: Final = 3
SHORTEST_ALONE: Final = 8  # of the only one
MOST_NEEDS: Final = 4_000  # of one field; a body of more lines than that is not read to its end

_QUOTED = re.compile(r"\"([^\"\n]{12,240})\"|`([^`\n]{12,240})`|“([^”\n]{12,240})”")
_WORD = re.compile(r"\w{2,64}")
_PATCH_MARKS: Final = ("@@", "*** Begin Patch", "\n+++ ")


def verbatim_of(field: Field) -> Iterator[tuple[Anchor, ...]]:
    """Lines that may have been read before, as the stretches in which they stand together; targets come whole."""
    if field.name in TARGETS:
        lines = [line for raw in field.text[: MOST_NEEDS * LONGEST_LINE].split("\n") if (line := raw.strip())]
        shortest = SHORTEST_TARGET if len(lines) > 1 else SHORTEST_ALONE
        if telling := [line for line in lines if len(line) >= shortest]:
            yield tuple(Anchor(Form.TARGET, line[:LONGEST_LINE]) for line in telling[:MOST_NEEDS])
        return
    if field.name in PATCHES and any(mark in field.text for mark in _PATCH_MARKS):
        yield from _patched(field.text)
        return
    if field.name in PLACES:
        return
    lines = (raw.strip() for raw in field.text.split("\n", MOST_NEEDS)[:MOST_NEEDS])
    yield tuple(Anchor(Form.LINES, line) for line in lines if SHORTEST_LINE <= len(line) <= LONGEST_LINE)
    if field.name not in BODIES:
        for found in _QUOTED.finditer(field.text):
            yield from _quote(found[1] or found[2] or found[3])
    if field.name in PATTERNS and len(field.text) <= LONGEST_LINE:
        yield from _quote(field.text)


def _quote(quoted: str) -> Iterator[tuple[Anchor, ...]]:
    """A quotation, if it is long enough to be one."""
    if " " in quoted.strip() and len(_WORD.findall(quoted)) >= WORDS_OF_QUOTE:
        yield (Anchor(Form.QUOTE, quoted.strip()),)


def _patched(text: str) -> Iterator[tuple[Anchor, ...]]:
    """The stretches of a patch that must be found: what it takes away, and what it leaves around."""
    stretch: list[Anchor] = []
    for raw in text.split("\n", MOST_NEEDS)[:MOST_NEEDS]:
        line = raw[1:].strip()
        if raw[:1] in ("-", " ") and not raw.startswith("---"):
            if SHORTEST_TARGET <= len(line) <= LONGEST_LINE:
                stretch.append(Anchor(Form.TARGET, line))
        elif not raw.startswith("+") and stretch:
            yield tuple(stretch)
            stretch = []
    if stretch:
        yield tuple(stretch)
