"""The window over a session, by kind and call."""

from collections import Counter

from tenure.lab.audit.report import POINTS, Point, Series
from tenure.lab.audit.standing import Change
from tenure.lab.events import At, CallLine, EntryLine
from tenure.lab.kinds import RESIDUES, kind_of_line


class Stack:
    """Tokens of a view by kind. Mutable."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self._kinds: dict[At, str] = {}

    def entry(self, line: EntryLine) -> None:
        """Learn what the blocks of a message are; before their changes are taken."""
        for number, block in enumerate(line.blocks):
            self._kinds[line.entry, number] = kind_of_line(block)

    def kind(self, change: Change) -> str:
        """What changed."""
        return RESIDUES if isinstance(change.key, str) else self._kinds[change.key]

    def take(self, change: Change) -> None:
        """Something is shown, or not any more."""
        self.tokens[self.kind(change)] += change.after - change.before


class Thinned:
    """A series in the making, never longer than twice what is kept. Mutable.

    It is cut into stretches of equally many calls, whose length doubles when there are too many; of each the fullest call is kept.
    """

    def __init__(self, most: int = POINTS) -> None:
        self._most = most
        self._every = 1
        self._calls = 0
        self._kept: list[tuple[CallLine, dict[str, int]]] = []

    def call(self, line: CallLine, tokens: Counter[str]) -> None:
        """The next call, and what it sent by kind."""
        point = (line, {kind: count for kind, count in tokens.items() if count})
        if self._calls % self._every:
            self._kept[-1] = _fuller(self._kept[-1], point)
        else:
            self._kept.append(point)
        self._calls += 1
        if len(self._kept) > self._most:
            self._every *= 2
            pairs = [self._kept[at : at + 2] for at in range(0, len(self._kept), 2)]
            self._kept = [_fuller(pair[0], pair[-1]) for pair in pairs]

    @property
    def series(self) -> Series:
        """What was taken so far."""
        total: Counter[str] = Counter()
        for _, tokens in self._kept:
            total.update(tokens)
        kinds = tuple(sorted(total, key=lambda kind: (-total[kind], kind)))
        points = tuple(
            Point(call=line.call, at=line.at, ratio=line.ratio, tokens=tuple(tokens.get(kind, 0) for kind in kinds))
            for line, tokens in self._kept
        )
        return Series(kinds=kinds, every=self._every, points=points)


def _fuller(one: tuple[CallLine, dict[str, int]], other: tuple[CallLine, dict[str, int]]) -> tuple[CallLine, dict[str, int]]:
    return other if other[0].view_tokens > one[0].view_tokens else one
