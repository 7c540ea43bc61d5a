"""What hears of a record as the index grows, and keeps facts of its own about it."""

from typing import TYPE_CHECKING

from tenure.engine.record.entry import At, ToolResult

if TYPE_CHECKING:
    from tenure.engine.record.index import Index, Span


class Listener:
    """Hears of every event and heeds none; O(1) each."""

    def replied(self) -> None:
        """The model speaks again: what has no result by now was interrupted."""

    def called(self, index: "Index", span: "Span", arguments: str) -> None:
        """The model made a call."""

    def answered(self, span: "Span", at: At, result: ToolResult) -> None:
        """A call got its result."""

    def reminded(self, at: At, text: str) -> None:
        """The harness said something."""
