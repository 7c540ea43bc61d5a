"""Which lines of a file a result shows: as it numbers them, else as the call asked."""

import re
from typing import Final

from tenure.lab.audit.shell import Showing

EDGE: Final = 12  # lines at each end of a result among which the first and the last numbered one are looked for

_NUMBERED = re.compile(r"[ \t]{0,10}(\d{1,7})(?:→|\t|: ?|[ \t]*\|)")


def lines_shown(text: str, shows: Showing | None) -> range:
    """The lines, of a result that shows no file those of its own. Not empty."""
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    if shows is None:
        return range(1, len(lines) + 1)
    if (found := _numbered(lines)) is not None:
        return found
    count = len(lines) if shows.count is None else min(len(lines), shows.count)
    return range(shows.start, shows.start + max(1, count))


def _numbered(lines: list[str]) -> range | None:
    """The numbers that lines carry, where they are those of lines in a row; text may stand around them."""
    first = next(((at, number) for at in range(min(EDGE, len(lines))) if (number := _number(lines[at]))), None)
    last = next(
        ((at, number) for at in range(len(lines) - 1, max(-1, len(lines) - 1 - EDGE), -1) if (number := _number(lines[at]))), None
    )
    if first is None or last is None or last[1] - first[1] != last[0] - first[0]:
        return None
    return range(first[1], last[1] + 1)


def _number(line: str) -> int:
    found = _NUMBERED.match(line)
    return int(found[1]) if found else 0
