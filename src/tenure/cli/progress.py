"""A progress bar on standard error, shown only where somebody watches."""

from types import TracebackType
from typing import Self

from rich import progress
from rich.console import Console


class ProgressLine:
    """What is being made, and how much of all is done. Mutable; with a total that is known from the start, it says how long the rest takes."""

    def __init__(self, console: Console, total: float | None = None) -> None:
        columns = (
            (progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
            if total is None
            else (progress.TaskProgressColumn(), progress.TimeRemainingColumn(compact=True))
        )
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=20),
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def update(self, *, description: str | None = None, completed: float | None = None, total: float | None = None) -> None:
        """Show what is made now, and how much is done."""
        self._bar.update(self._task, description=description, completed=completed, total=total)
