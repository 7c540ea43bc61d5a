"""How far an audit is, on standard error and only where somebody watches."""

from types import TracebackType
from typing import Final, Self

from rich import progress
from rich.console import Console

from tenure.cli import words
from tenure.cli.audit_screen import name_of
from tenure.lab.audit.report import AuditLine, AuditOutput, RunLine
from tenure.lab.events import CallLine

NAME: Final = 28  # columns of a session's


class Watched:
    """A line that says which session is audited for which policy, and how far all are. Mutable; shows nothing where nobody watches."""

    def __init__(self, console: Console, sessions: int, runs: int) -> None:
        self._sessions, self._runs = sessions, runs
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=20),
            progress.TaskProgressColumn(),
            progress.TimeRemainingColumn(compact=True),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=sessions * runs)
        self._session = 0
        self._name = ""
        self._begun = 0  # runs of this session
        self._calls = self._all = 0  # of this run so far, and of each run: known once one is through

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def session(self, number: int) -> None:
        """The one of that number, from 0, is next; those before it are done."""
        self._session = number
        self._bar.update(self._task, completed=number * self._runs)

    def note(self, line: AuditOutput) -> None:
        """What is being made."""
        match line:
            case AuditLine():
                self._name = words.first_line(name_of(line.source.path), NAME)
                self._begun = self._calls = self._all = 0
                self._say("reading")
            case RunLine():
                self._all, self._calls = self._all or self._calls, 0
                self._begun += 1
                self._say(line.policy)
            case CallLine():
                self._calls += 1
                if self._all:
                    done = self._begun - 1 + self._calls / self._all
                    self._bar.update(self._task, completed=self._session * self._runs + done)
            case _:
                return

    def _say(self, what: str) -> None:
        self._bar.update(
            self._task, description=f"{self._session + 1} of {self._sessions}  {self._name}  {words.plain(what):<19}"
        )
