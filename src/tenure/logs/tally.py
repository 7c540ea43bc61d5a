"""Counts what a reader leaves out by kind, so that thousands of harmless lines become one `Skipped` each kind."""

from collections.abc import Iterator
from typing import Final

from tenure.logs.reader import Skipped

_LONGEST_REASON: Final = 200  # characters; a reason may quote the file


class Tally:
    """Mutable while a file is read; `skipped` reports it once at the end."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, int, int]] = {}

    def add(self, reason: str, line: int, size: int) -> None:
        """Count one thing left out; `reason` is also the kind."""
        reason = reason[:_LONGEST_REASON]
        first, count, total = self._kinds.get(reason, (line, 0, 0))
        self._kinds[reason] = (first, count + 1, total + size)

    def skipped(self) -> Iterator[Skipped]:
        """One event per kind, at the line where the kind first appeared."""
        for reason, (line, count, total) in self._kinds.items():
            yield Skipped(line=line, bytes=total, reason=reason if count == 1 else f"{reason} ({count} times)")
