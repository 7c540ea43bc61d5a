"""What versions 0 and 1 of OpenHands share: which drafts stand for which events, and what a condensation leaves of them."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.record.entry import Draft, Origin, Role, Text, ToolCall, ToolResult, Usage
from tenure.logs.reader import Rewritten
from tenure.logs.tally import Tally
from tenure.logs.window import Window

EventId = int | str  # a number in version 0, a UUID in version 1

FINISHED: Final = "\n[Command finished with exit code {}]"
WORKING: Final = "\n[Current working directory: {}]"
INTERPRETER: Final = "\n[Python interpreter: {}]"
RUNNING: Final = -1  # the exit code of a command that has none yet


class Settings(Struct, frozen=True):
    """What the file says about the run beside its events."""

    task: str = ""  # what was asked, for a history without it
    model: str = ""
    longest: int | None = None  # characters of an observation; the middle of a longer one is cut out
    recalls: bool = True  # whether recalled context is sent
    usages: dict[str, Usage] = {}  # by the id of the response


class Printed(Struct, frozen=True, gc=False):
    """What OpenHands notes about a command beside what it printed."""

    exit_code: int | None = RUNNING
    working_dir: str | None = None
    py_interpreter_path: str | None = None
    prefix: str | None = ""
    suffix: str | None = ""

    def around(self, content: str) -> str:
        """The output as the model reads it."""
        text = f"{self.prefix or ''}{content}{self.suffix or ''}"
        text += WORKING.format(self.working_dir) if self.working_dir else ""
        text += INTERPRETER.format(self.py_interpreter_path) if self.py_interpreter_path else ""
        return text + (FINISHED.format(self.exit_code) if self.exit_code not in (None, RUNNING) else "")


class Story:
    """One conversation while it is read."""

    def __init__(self, window: Window, tally: Tally, settings: Settings) -> None:
        self.window, self.tally, self.settings = window, tally, settings
        self.called: dict[str, int] = {}  # each call that a result may follow, and its draft
        self.asked = False
        self._draft_of: dict[EventId, int] = {}
        self._numbers: list[int] = []  # the events that have numbers, sorted
        self._events: dict[int, int] = {}  # of each draft: how many events it still stands for
        self._call_of: dict[int, int] = {}
        self._results: dict[int, set[int]] = {}  # of each draft with calls: those still there
        self._summary: int | None = None

    def place(self, draft: Draft, event: EventId | None) -> Iterator[Draft]:
        """The draft, before the first of the model's also the task where the history lacks it."""
        if draft.role is Role.ASSISTANT and not self.asked and self.settings.task:
            self.asked = True
            self.window.add()
            yield Draft(role=Role.USER, blocks=(Text(text=self.settings.task, origin=Origin.HUMAN),), line=draft.line)
        self.asked = self.asked or draft.role is Role.USER
        number = self.window.add()
        for block in draft.blocks:
            if isinstance(block, ToolCall):
                self.called[block.call_id] = number
            elif isinstance(block, ToolResult) and block.call_id in self.called:
                call = self._call_of[number] = self.called[block.call_id]
                self._results.setdefault(call, set()).add(number)
        self.stands_for(number, event)
        yield draft

    def stands_for(self, number: int, event: EventId | None) -> None:
        """Note that a draft shows an event, also as one of several."""
        if event is None or event in self._draft_of:
            return
        self._draft_of[event] = number
        self._events[number] = self._events.get(number, 0) + 1
        if isinstance(event, int):
            insort(self._numbers, event)

    def between(self, first: int, last: int) -> list[int]:
        """The events numbered from `first` to `last`."""
        return self._numbers[bisect_left(self._numbers, first) : bisect_right(self._numbers, last)]

    def condensed(
        self, forgotten: Iterable[EventId], summary: str, line: int, at: str, event: EventId | None
    ) -> Iterator[Rewritten | Draft]:
        """The events are forgotten, and with a new summary the one before."""
        leaving = self._leaving(forgotten)
        if summary and self._summary is not None:
            leaving.add(self._summary)
        if (dropped := self.window.drop(leaving)) is not None:
            before, kept = dropped
            yield Rewritten(reason="condensation", line=line, at=at, drop_before=before, kept=kept)
        if summary:
            self._summary = self.window.add()
            if event is not None:
                self.stands_for(self._summary, f"{event}-summary")
            yield Draft(role=Role.USER, blocks=(Text(text=summary, origin=Origin.HARNESS),), at=at, line=line)

    def _leaving(self, forgotten: Iterable[EventId]) -> set[int]:
        """The drafts all of whose events are forgotten; a call and its results leave together."""
        leaving: set[int] = set()
        for event in forgotten:
            number = self._draft_of.pop(event, None)
            if number is None:
                continue
            if isinstance(event, int):
                del self._numbers[bisect_left(self._numbers, event)]
            self._events[number] -= 1
            if not self._events[number]:
                leaving.add(number)
        for number in tuple(leaving):
            leaving.update(self._results.pop(number, ()))
        for number in tuple(leaving):
            if (call := self._call_of.pop(number, None)) in self._results:
                self._results[call].discard(number)
                if not self._results[call]:
                    leaving.add(call)
        return leaving
