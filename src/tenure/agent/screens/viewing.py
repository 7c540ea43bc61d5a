"""`tenure context SESSION`: the viewer as an app of its own, on any session that can be read (an edge)."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from tenure.agent.screens.history import History
from tenure.agent.screens.themes import DARK, LIGHT, OWN, THEMES
from tenure.agent.screens.viewer import Builder, ContextViewer


class ViewerApp(App[str]):
    """Shows one session; returns the id of a conversation that was built."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+t", "theme", "Theme", show=False)]

    def __init__(self, history: Callable[[], History], builder: Builder | None = None, *, theme: str = DARK) -> None:
        super().__init__()
        self._history, self._builder = history, builder
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.animation_level = "none"  # keys answer at once, and a picture is the same every time

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of ours that Textual does not have."""
        return OWN

    def on_mount(self) -> None:
        """The viewer is all there is."""
        self.push_screen(ContextViewer(self._history(), self._builder), self.exit)

    def action_theme(self) -> None:
        """Dark to light and back."""
        self.theme = LIGHT if self.theme == DARK else DARK
