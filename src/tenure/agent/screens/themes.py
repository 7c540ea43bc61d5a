"""Two themes, the app that has them, and how a severity looks on every surface."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.app import App
from textual.binding import Binding, BindingType
from textual.theme import Theme

from tenure.engine.meter.gauge import Severity

DARK: Final = "tenure-dark"
LIGHT: Final = "tenure-light"

_NAMES: Final = (
    "primary secondary accent foreground background surface panel success warning error quiet under-cursor scrollbar".split()
)
_COLOURS: Final = {
    DARK: "#7aa2f7 #9d8cd6 #56c8d8 #d8dce6 #14161b #1a1d24 #232833 #7fbf7f #e0af68 #f0717f #858b9b #2b3a5e #39415a",
    LIGHT: "#2b5fc4 #6b4fb3 #0f7286 #22262e #fbfbf9 #f3f3ef #e6e6e0 #2f7a35 #8f5c00 #b3262f #6a6f7a #cbdaf7 #c4c8d0",
}


def _theme(name: str) -> Theme:
    colours: dict[str, Any] = dict(zip(_NAMES, _COLOURS[name].split(), strict=True))
    own: dict[str, str] = {each: colours.pop(each) for each in ("quiet", "under-cursor", "scrollbar")}
    bars = {f"scrollbar-background{each}": str(colours["background"]) for each in ("", "-hover")}
    variables = {**own, **bars, "block-cursor-text-style": "none", "footer-key-foreground": colours["primary"]}
    return Theme(name=name, dark=name == DARK, variables=variables, **colours)


THEMES: Final = tuple(map(_theme, _COLOURS))
OWN: Final = {name: THEMES[0].variables[name] for name in ("quiet", "under-cursor")}  # for the moment before a theme is set

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
