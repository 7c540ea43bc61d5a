"""Other people's text, made harmless for the screen.

Everything that a widget shows of a session goes through here; what the interface says itself does not need to.
"""

from pathlib import Path
from typing import Final

from tenure.agent.tools.terminal_text import plain
from tenure.engine.record.visible import visible

LONGEST: Final = 60_000  # characters of one text that are shown at once
TAB: Final = 4


def text(raw: str, most: int = LONGEST) -> str:
    """A text of several lines, cut in the middle where it is too long."""
    if len(raw) > most:
        half = most // 2
        raw = f"{raw[:half]}\n[… {len(raw) - 2 * half:,} characters …]\n{raw[-half:]}"
    return plain(raw).expandtabs(TAB)


def line(raw: str, most: int = 400) -> str:
    """The first words of a text as one line; what is cut ends with a sign of that."""
    words = " ".join(raw[: 4 * most].split())
    return visible(words if len(words) <= most and len(raw) <= 4 * most else words[: most - 1] + "…")


def path(folder: Path, home: Path) -> str:
    """A folder as people write it: below the home folder with a tilde."""
    return line(f"~/{folder.relative_to(home)}" if folder != home and folder.is_relative_to(home) else str(folder))
