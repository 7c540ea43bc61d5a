"""A text to read, over the rest of the screen."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static


class Reading(ModalScreen[None]):
    """A heading and a text; any of Escape, q and Enter closes it."""

    DEFAULT_CSS = """
    Reading {
        align: center middle;
        #page { width: 100%; max-width: 120; height: auto; max-height: 90%; background: $surface; border: round $primary; padding: 0 1; }
        #name { text-style: bold; margin: 0 0 1 0; }
        #leaf { height: auto; max-height: 100%; scrollbar-size-vertical: 1; background: $surface; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close")]

    def __init__(self, heading: str, text: Content) -> None:
        super().__init__()
        self._heading, self._text = heading, text

    def compose(self) -> ComposeResult:
        """Heading and text."""
        with Vertical(id="page"):
            yield Label(f"{self._heading}  (Esc closes)", id="name", markup=False)
            with VerticalScroll(id="leaf"):
                yield Static(self._text)

    def on_mount(self) -> None:
        """The keys scroll it."""
        self.query_one("#leaf").focus()
