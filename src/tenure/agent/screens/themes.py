"""Two themes, the app that has them, and how a severity looks on every surface."""

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.theme import Theme

from tenure.engine.meter.gauge import Severity

DARK: Final = "tenure-dark"
LIGHT: Final = "tenure-light"

THEMES: Final = (
    Theme(
        name=DARK,
        dark=True,
        primary="#7aa2f7",
        secondary="#9d8cd6",
        accent="#56c8d8",
        foreground="#d8dce6",
        background="#14161b",
        surface="#1a1d24",
        panel="#232833",
        success="#7fbf7f",
        warning="#e0af68",
        error="#f0717f",
        variables={
            "quiet": "#858b9b",
            "under-cursor": "#2b3a5e",
            "scrollbar-background": "#14161b",
            "scrollbar-background-hover": "#14161b",
            "scrollbar": "#39415a",
            "block-cursor-text-style": "none",
            "footer-key-foreground": "#7aa2f7",
        },
    ),
    Theme(
        name=LIGHT,
        dark=False,
        primary="#2b5fc4",
        secondary="#6b4fb3",
        accent="#0f7286",
        foreground="#22262e",
        background="#fbfbf9",
        surface="#f3f3ef",
        panel="#e6e6e0",
        success="#2f7a35",
        warning="#8f5c00",
        error="#b3262f",
        variables={
            "quiet": "#6a6f7a",
            "under-cursor": "#cbdaf7",
            "scrollbar-background": "#fbfbf9",
            "scrollbar-background-hover": "#fbfbf9",
            "scrollbar": "#c4c8d0",
            "block-cursor-text-style": "none",
            "footer-key-foreground": "#2b5fc4",
        },
    ),
)

OWN: Final = {"quiet": "#858b9b", "under-cursor": "#2b3a5e"}  # for the moment before a theme is set

# How a severity is coloured; which one it is, `meter.gauge.severity` alone decides.
TONES: Final[Mapping[Severity, str]] = {"ok": "$text-success", "warn": "$text-warning bold", "critical": "$text-error bold"}


class ThemedApp(App[str]):
    """An app in one of our two themes; Ctrl+T turns to the other."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+t", "theme", "Theme", show=False, priority=True)]

    def __init__(self, theme: str) -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.animation_level = "none"  # keys answer at once, and a picture is the same every time

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of ours that Textual does not have."""
        return OWN

    def action_theme(self) -> None:
        """Dark to light and back."""
        self.theme = LIGHT if self.theme == DARK else DARK
