"""Harm as it happens, beside a replay or over a file that one wrote."""

from collections.abc import Iterable, Iterator

from tenure.lab.events import CallLine, CommitLine, EntryLine, HarmLine, Line
from tenure.lab.harm.holdings import Holdings
from tenure.lab.harm.judge import judge
from tenure.lab.harm.passage import of_line
from tenure.lab.harm.use import uses
from tenure.lab.harm.window import Window


class Watch:
    """One session watched: it takes a replay's lines in order. Mutable."""

    def __init__(self) -> None:
        self._holdings = Holdings()
        self._window = Window()
        self._call = -1

    def take(self, line: Line) -> Iterator[HarmLine]:
        """What the line shows to have been needed. O(new blocks), and O(needs) for an assistant's message."""
        match line:
            case CallLine():
                self._call = line.call
            case CommitLine():
                self._window.commit(line.commit, line.entries, line.edits, recorded=line.moment == "recorded")
            case EntryLine():
                message = of_line(line)
                if self._window.taken:
                    for use in uses(message, self._holdings):
                        found = judge(use, self._window, self._holdings, self._call)
                        if found is not None:
                            yield found
                self._holdings.take(message)
            case _:
                return


def watched(lines: Iterable[Line]) -> Iterator[Line | HarmLine]:
    """The lines of a replay, each assistant's message followed by what it missed or might have missed."""
    watch = Watch()
    for line in lines:
        yield line
        yield from watch.take(line)
