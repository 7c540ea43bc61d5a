"""Which of the drafts so far a recorded agent still has before it, for logs that mark messages as gone and keep them."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

MOST_WORK: Final = (
    10**6
)  # steps; what real sessions need is thousands, and a file made to cost more keeps its drafts but not its prunings


class Window:
    """Mutable while a file is read: counts drafts, and says of each rewriting what a `Rewritten` needs to know."""

    def __init__(self) -> None:
        self.count = 0  # drafts so far
        self._stayed: list[int] = []  # those before `_since` that are still there, in order
        self._since = 0
        self._work = 0

    def add(self) -> int:
        """The number of one more draft."""
        self.count += 1
        return self.count - 1

    def clear(self) -> int:
        """All drafts so far leave; what `drop_before` is then."""
        self._stayed, self._since = [], self.count
        return self.count

    def drop(self, numbers: Iterable[int]) -> tuple[int, tuple[int, ...]] | None:
        """These drafts leave; what `drop_before` and `kept` are then, or None when none of them was there."""
        leaving = {number for number in numbers if self._holds(number)}
        if not leaving or self._work > MOST_WORK:
            return None
        before = max(leaving) + 1
        self._work += len(self._stayed) + max(0, before - self._since)
        older = [number for number in self._stayed if number not in leaving]
        newer = [number for number in range(self._since, before) if number not in leaving]
        self._stayed, self._since = older + newer, max(self._since, before)
        return before, tuple(number for number in self._stayed if number < before)

    def _holds(self, number: int) -> bool:
        if number >= self._since:
            return number < self.count
        place = bisect_left(self._stayed, number)
        return place < len(self._stayed) and self._stayed[place] == number
