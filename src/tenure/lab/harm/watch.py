"""Harm beside a replay, as its events come, and after one cut, judged by all that the record says came later (Self-GC paper: cut-point replay).

The uses of a session do not depend on any cut, so they are found once and serve all of them.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from tenure.engine.record.entry import Entry, Role
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop, Edit
from tenure.lab.events import At, CallLine, CommitLine, EditTarget, EntryLine, HarmLine, Line
from tenure.lab.harm.edits import StepEdit, edits_of, judge_edit
from tenure.lab.harm.holdings import Holdings, Message, of_entry, of_line
from tenure.lab.harm.judge import WindowTrace, judge
from tenure.lab.harm.use import StepUse, uses

HarmEvent = HarmLine | EditTarget


class Uses(Struct, frozen=True):
    """A session as every cut of it needs it: what its steps used, in order, and what holds what. Grown with its messages."""

    found: list[StepUse]
    edits: list[StepEdit]
    calls: dict[int, int]  # number of the call by the entry that answers it
    holdings: Holdings

    def take(self, message: Message) -> None:
        """The next message."""
        if message.role == "assistant":
            self.calls[message.entry] = len(self.calls)
            self.found.extend(uses(message, self.holdings))
            self.edits.extend(edits_of(message, self.holdings))
        self.holdings.take(message)


def uses_of(messages: Iterable[Message]) -> Uses:
    """The uses of a whole session. One pass."""
    found = Uses([], [], {}, Holdings())
    for message in messages:
        found.take(message)
    return found


class Watch:
    """One session watched: it takes a replay's lines in order. Mutable. With `known` uses they are not looked for again."""

    def __init__(self, known: Uses | None = None) -> None:
        self._holdings = known.holdings if known is not None else Holdings()
        self._window = WindowTrace()
        self._call = -1
        self._known = known is not None
        self._uses: dict[int, list[StepUse | StepEdit]] = {}  # that are known, by entry
        for use in (*known.found, *known.edits) if known is not None else ():
            self._uses.setdefault(use.entry, []).append(use)

    def take(self, line: Line) -> Iterator[HarmEvent]:
        """What the line shows to have been needed. O(new blocks), and O(needs) for an assistant's message."""
        match line:
            case CallLine():
                self._call = line.call
            case CommitLine():
                self.commit(line.commit, line.entries, line.edits, recorded=line.moment == "recorded")
            case EntryLine() if self._known:
                yield from self._judged(self._uses.get(line.entry, ()))
            case EntryLine():
                yield from self.message(of_line(line), self._call)
            case _:
                return

    def commit(self, number: int, entries: int, edits: tuple[Edit, ...], *, recorded: bool = False) -> None:
        """A commit; `recorded`: the recorded agent's own."""
        self._window.commit(number, entries, edits, recorded=recorded)

    def message(self, message: Message, call: int) -> Iterator[HarmEvent]:
        """A message, which `call` answers where it is an assistant's."""
        self._call = call
        yield from self._judged((*uses(message, self._holdings), *edits_of(message, self._holdings)))
        self._holdings.take(message)

    def _judged(self, found: Iterable[StepUse | StepEdit]) -> Iterator[HarmEvent]:
        for use in found if self._window.taken else ():
            line = (
                judge_edit(use, self._window, self._call)
                if isinstance(use, StepEdit)
                else judge(use, self._window, self._holdings, self._call)
            )
            if line is not None:
                yield line


class RecordWatch:
    """A record watched as it grows: what each of its steps needed of what had left before it. Mutable."""

    def __init__(self) -> None:
        self.needs: list[HarmLine] = []
        self.entries = self.commits = 0  # taken in so far
        self._index, self._watch = Index(), Watch()
        self._waiting: deque[Commit] = deque()

    def take(self, entries: Iterable[Entry], commits: Sequence[Commit]) -> None:
        """The next entries, and all commits that were made so far. O(what is new)."""
        self._waiting.extend(commits[self.commits :])
        self.commits = len(commits)
        for entry in entries:
            while self._waiting and self._waiting[0].entries <= entry.n:
                commit = self._waiting.popleft()
                self._watch.commit(commit.n, commit.entries, commit.edits, recorded=commit.moment == "recorded")
            self._index.grow(entry)
            call = len(self._index.steps) - (entry.role is Role.ASSISTANT)
            found = self._watch.message(of_entry(entry, self._index), call)
            self.needs += (each for each in found if isinstance(each, HarmLine))
            self.entries = entry.n + 1


def watched(lines: Iterable[Line]) -> Iterator[Line | HarmEvent]:
    """The lines of a replay, each assistant's message followed by what it missed or might have missed."""
    watch = Watch()
    for line in lines:
        yield line
        yield from watch.take(line)


def after_cut(
    session: Uses, entries: int, removed: Iterable[At], residues: Sequence[Edit] = (), *, until: int | None = None
) -> Iterator[HarmLine]:
    """What the steps from entry `entries` on (up to `until`) miss or might have missed of blocks that were removed there.

    `removed` are blocks of entries below `entries`; `residues` are edits that put something in their place.
    """
    window = _cut(entries, removed, residues)
    for use in session.found:
        if entries <= use.entry and (until is None or use.entry < until):
            line = judge(use, window, session.holdings, session.calls[use.entry])
            if line is not None:
                yield line


def edits_after_cut(session: Uses, entries: int, removed: Iterable[At], residues: Sequence[Edit] = ()) -> Iterator[EditTarget]:
    """What the edits from entry `entries` on have to find and was touched there; arguments as of `after_cut`."""
    window = _cut(entries, removed, residues)
    for edit in session.edits:
        line = judge_edit(edit, window, session.calls[edit.entry]) if entries <= edit.entry else None
        if line is not None:
            yield line


def _cut(entries: int, removed: Iterable[At], residues: Sequence[Edit]) -> WindowTrace:
    window = WindowTrace()
    window.commit(0, entries, (*(Drop(entry=entry, block=block) for entry, block in removed), *residues))
    return window
